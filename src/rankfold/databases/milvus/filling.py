"""Building an index in Milvus: new collections, which appear by one record at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from math import inf
from time import time
from typing import Any
from uuid import uuid4

from rankfold.check import DatabaseError
from rankfold.databases.contract import NewPoints, Session
from rankfold.databases.milvus.client import Client
from rankfold.databases.milvus.entities import (
    check_vectors,
    create_collections,
    record_entities,
    row_entities,
)
from rankfold.databases.milvus.heads import Heads, Settled, State
from rankfold.databases.milvus.held import Held
from rankfold.databases.milvus.session import MilvusSession
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column

ABANDONED = 24 * 3600.0
"""Seconds after its last sign of life when a filling on a server counts as dead."""

SIGN = 60.0
"""Seconds between signs of life."""


class MilvusFilling:
    """An index in the making."""

    def __init__(
        self,
        client: Client,
        name: str,
        settings: dict[str, Any],
        columns: tuple[Column, ...],
        *,
        replacing: bool,
    ) -> None:
        self.finished = False
        self._client = client
        self._name = name
        self._replacing = replacing
        self._columns = columns
        self._settled = Settled(settings, [column.name for column in columns])
        self._heads = Heads(client)
        kinds = tuple(column.kind for column in columns)
        self._state = State(uuid4().hex, 0, 0, 0, 0, 0, kinds, 0, None)
        self._shown = 0.0
        self._show_life()
        try:
            create_collections(client, self._state, settings)
        except BaseException:
            self.abandon()
            raise

    def add(self, points: NewPoints, rows: Rows | None) -> None:
        """Write some points and their rows; in ascending order of slots."""
        check_vectors(points, self._settled.settings)
        self._show_life()
        held = self._held()
        held.vectors.add(points.slots, points.vectors, 0)
        held.records.fill(record_entities(points, self._columns))
        if rows is not None:
            held.rows.fill(row_entities(rows, self._settled.settings["stored_width"]))
        numbers = [self._state.largest, *(i for i in points.ids if type(i) is int)]
        self._state = replace(
            self._state,
            n_points=max([self._state.n_points, *(points.slots[-1:] + 1).tolist()]),
            n_alive=self._state.n_alive + len(points.slots),
            largest=max((n for n in numbers if n is not None), default=None),
        )

    def write_rows(self, rows: Rows) -> None:
        """Write rows of points that are there."""
        self._show_life()
        self._held().rows.fill(row_entities(rows, self._settled.settings["stored_width"]))

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Search among the points so far, to make lists of them."""
        self._client.settle(self._state.collection("vectors"))
        head = self._settled.head(self._state)
        yield MilvusSession(self._client, self._state, head, inf)

    def finish(self) -> None:
        """Build the index for searches, then let the table appear, or replace the one there."""
        for kind in ("rows", "records", "vectors"):
            self._client.settle(self._state.collection(kind))
        n_parts = self._heads.write_settled(self._state.generation, self._settled)
        before = self._heads.read(self._name)
        if before is not None and not self._replacing:
            raise taken(self._name, self._client.place)
        version = self._heads.last_version(self._name) + 1
        if before is not None:
            self._heads.mark_filling(before.generation, owner())
        self._state = replace(self._state, first=version, version=version, n_parts=n_parts)
        self._heads.write(self._name, self._state)
        self.finished = True
        self._heads.end_filling(self._state.generation)
        if before is not None:
            self._heads.drop(before.generation)

    def abandon(self) -> None:
        """Delete what was written so far, unless it has appeared though nobody confirmed it."""
        now = self._heads.read(self._name)
        if now is None or now.generation != self._state.generation:
            self._heads.drop(self._state.generation)

    def _held(self) -> Held:
        return Held.at(self._client, self._state, self._settled.settings)

    def _show_life(self) -> None:
        if time() - self._shown > SIGN:
            self._shown = time()
            self._heads.mark_filling(self._state.generation, owner())


def sweep(client: Client, heads: Heads, *, alone: bool) -> None:
    """Delete what dead fillings left; ``alone`` if no other process can be at work."""
    fillings = heads.fillings()
    used = {state.generation for name in heads.names() if (state := heads.read(name))}
    for generation, other in fillings.items():
        if generation in used:
            heads.end_filling(generation)
        elif (alone and other["process"] != _process()) or time() - other["seen"] > ABANDONED:
            heads.drop(generation)


def taken(name: str, place: str) -> DatabaseError:
    """Return the error for a name that an index has already."""
    return DatabaseError(
        f"there is an index {name!r} in {place} already; choose another name, or give "
        "replace=True to put this one into its place."
    )


def owner() -> dict[str, Any]:
    """Return who this process is, and that it is alive."""
    return {"process": _process(), "seen": time()}


@cache
def _process() -> str:
    return uuid4().hex
