"""Changing an index in Milvus, which knows no transactions.

Everything is written beside what is valid, where nobody looks for it: in the other cell of a slot,
with a number that is still to come. Then one record, the head, is replaced. Before that nothing
has changed; after it everything has. The next writer deletes what a killed one left.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from math import inf
from time import time
from typing import Any
from uuid import uuid4

import numpy as np

from rankfold.check import DatabaseError, StorageError
from rankfold.databases.contract import Head, TableChange
from rankfold.databases.milvus.client import Client
from rankfold.databases.milvus.entities import (
    check_vectors,
    gone_records,
    gone_rows,
    record_entities,
    row_entities,
)
from rankfold.databases.milvus.heads import Heads, State, next_state
from rankfold.databases.milvus.packing import pack_record, unpack_records
from rankfold.databases.milvus.session import GRACE, MilvusSession
from rankfold.databases.payload import check_widening
from rankfold.storage.columns import Column
from rankfold.types import IntArray

RECORD = ["hash", "record", "place"]


class MilvusWriting(MilvusSession):
    """A session that may change the index, once."""

    def __init__(self, client: Client, name: str, state: State, head: Head) -> None:
        super().__init__(client, state, head, inf)
        self._name = name
        self._heads = Heads(client)

    def recover(self) -> None:
        """Delete what a killed writer left."""
        if self._state.writer is None:
            return
        self._held.undo()
        self._state = replace(self._state, writer=None)
        self._heads.write(self._name, self._state)

    def commit(self, change: TableChange) -> int:
        """Make a change; return the new version."""
        check_vectors(change.added, self.head.settings)
        check_widening(self, change.columns)
        state, version = self._state, self._state.version + 1
        removed = np.unique(np.asarray(change.removed, dtype=np.int64))
        leaving = self._in_order(removed, RECORD)
        width = self.head.settings["stored_width"]
        rows = list(row_entities(change.rows, width, removed.tolist()))
        records = list(record_entities(change.added, change.columns))
        token = self._announce()
        self._held.vectors.add(change.added.slots, change.added.vectors, version)
        self._held.vectors.remove(removed, version)
        self._held.rows.write(version, chain(rows, gone_rows(removed.tolist())))
        self._held.records.write(state.stamp + 1, chain(records, gone_records(leaving)))
        slots = [state.n_points - 1, *change.added.slots.tolist()]
        self._replace_head(
            token,
            next_state(
                state,
                version=version,
                n_points=max(slots) + 1,
                n_alive=state.n_alive + len(change.added.slots) - len(removed),
                kinds=tuple(column.kind for column in change.columns),
                **_largest(state, unpack_records(leaving, ())[0], change.added.ids),
                **_marks(state, version),
            ),
        )
        if self._state.purged > state.purged:
            with suppress(StorageError):  # the change is made, and a later one can tidy up
                self._held.purge(self._state.purged)
        return version

    def change_payload(
        self, slots: IntArray, payload: dict[str, list[Any]], columns: tuple[Column, ...]
    ) -> None:
        """Give points other values in some columns; the version stays as it is."""
        check_widening(self, columns)
        cells = self._in_order(slots, RECORD)
        ids, held = unpack_records(cells, columns)
        values = [payload.get(column.name, held[column.name]) for column in columns]
        changed = [
            {"slot": cell["slot"], "place": cell["place"], **pack_record(point, own)}
            for cell, point, *own in zip(cells, ids, *values, strict=True)
        ]
        token = self._announce()
        self._held.records.write(self._state.stamp + 1, changed)
        kinds = tuple(column.kind for column in columns)
        self._replace_head(token, next_state(self._state, kinds=kinds))

    def _announce(self) -> str:
        """Say that something is about to be written that does not count yet."""
        token = uuid4().hex
        self._heads.write(self._name, replace(self._state, writer=token))
        return token

    def _replace_head(self, token: str, state: State) -> None:
        """Make a change valid, if nobody else has begun one meanwhile."""
        now = self._heads.read(self._name)
        if now is None or now.writer != token:
            raise DatabaseError(
                f"{self._name!r} in {self._client.place} is being changed by someone else at the "
                "same time, and Milvus has no locks: nothing was changed here; let one process "
                "write at a time, and try again."
            )
        self._heads.write(self._name, state)
        self._state = state


def _largest(state: State, leaving: Sequence[Any], coming: Sequence[Any]) -> dict[str, Any]:
    """Return the largest number among the ids after a change, as far as it is known."""
    lost = state.largest is not None and any(
        type(point) is int and point == state.largest for point in leaving
    )
    largest = None if lost else state.largest
    numbers = [point for point in coming if type(point) is int]
    largest = max([*numbers, *([] if largest is None else [largest])], default=None)
    known = state.largest_known and not lost
    if lost and numbers and state.largest_known:
        known = max(numbers) >= (state.largest or 0)
    return {"largest": largest, "largest_known": known}


def _marks(state: State, version: int) -> dict[str, Any]:
    """Return when versions came, and up to which nobody can read them any more."""
    now = time()
    marks = [*state.marks]
    if not marks or marks[-1][1] < now - GRACE / 10:
        marks.append((version, now))
    old = [mark for mark in marks if mark[1] < now - 2 * GRACE]
    purged = max([state.purged, *(number for number, _ in old)])
    return {"marks": tuple(mark for mark in marks if mark not in old), "purged": purged}
