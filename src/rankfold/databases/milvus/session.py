"""Reading one state of an index in Milvus."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.databases.contract import Head
from rankfold.databases.milvus.cells import Cells
from rankfold.databases.milvus.client import MOST_HITS, MOST_KEYS, Client, Entity
from rankfold.databases.milvus.conditions import meeting
from rankfold.databases.milvus.errors import TooLargeError, damaged, moved
from rankfold.databases.milvus.heads import State
from rankfold.databases.milvus.held import Held
from rankfold.databases.milvus.measuring import entered, nearest_of
from rankfold.databases.milvus.packing import hashed, unpack_records, unpack_rows
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column
from rankfold.storage.conditions import translate
from rankfold.types import FloatArray, IntArray

GRACE = 600.0
"""Seconds for which a session can read its state after others removed points."""

GROWTH = 8
"""How many times as many candidates are looked at where too few meet a condition."""


class MilvusSession:
    """One state of an index: see `Cells` and `Vectors` for what keeps it still."""

    def __init__(self, client: Client, state: State, head: Head, grace: float = GRACE) -> None:
        self.head = head
        self._grace = grace
        self._state = state
        self._client = client
        self._began = monotonic()
        self._held = Held.at(client, state, head.settings)

    @property
    def round_trips(self) -> int:
        """How often this session has waited for an answer, that with the head among them."""
        return 1 + self._held.round_trips

    def changed_since(self, version: int) -> IntArray | None:
        """Return the slots whose rows came, went or changed since a version, maybe some more."""
        if version == self.head.version:
            return np.empty(0, dtype=np.int64)
        if not max(self._state.purged, self._state.first) <= version < self.head.version:
            return None
        return self._held.rows.written_since(version)

    def rows(self, slots: IntArray, around: bool = False) -> Rows:
        """Return the rows of points; with ``around`` also those of all that list them."""
        asked = np.unique(np.asarray(slots, dtype=np.int64))
        cells = self._read(self._held.rows, asked, ["lists", "sources"])
        rows = self._unpacked(cells)
        if not around:
            return rows
        others = np.setdiff1d(rows.sources, rows.slots)
        if not len(others):
            return rows
        cells += self._read(self._held.rows, others, ["lists", "sources"])
        cells.sort(key=lambda cell: int(cell["slot"]))
        return self._unpacked(cells)

    def search(
        self, vectors: FloatArray, k: int, where: str | None = None
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return slots and vectors of about the ``k`` nearest points of each vector."""
        self._check_age()
        vectors = np.atleast_2d(vectors)
        if vectors.shape[1] != self.head.settings["n_features"]:
            raise InputError(
                f"vectors have {vectors.shape[1]} values, but those in {self._client.place} have "
                f"{self.head.settings['n_features']}."
            )
        k = min(k, self.head.n_alive)
        if not k or not len(vectors):
            return nearest_of([], vectors, k)
        if where is not None:
            return self._search_where(vectors, k, where)
        if k > MOST_HITS:
            return nearest_of(self._held.vectors.blocks(), vectors, k)
        return self._held.vectors.search(vectors, k)

    def _search_where(
        self, vectors: FloatArray, k: int, where: str
    ) -> list[tuple[IntArray, FloatArray]]:
        """Look at more and more candidates, and in the end at all points."""
        translate(where, self.head.columns)
        asked = 2 * k
        while asked <= min(MOST_HITS, self.head.n_alive // 2):
            found = self._held.vectors.search(vectors, asked)
            met = self.matching(where, np.unique(np.concatenate([slots for slots, _ in found])))
            kept = [
                (slots[keep], points[keep])
                for slots, points in found
                for keep in [np.isin(slots, met)]
            ]
            if all(len(slots) >= k for slots, _ in kept):
                return kept
            asked *= GROWTH
        return nearest_of(self._held.vectors.read_blocks(self.matching(where)), vectors, k)

    def listers(self, vectors: FloatArray) -> list[tuple[IntArray, FloatArray]] | None:
        """Return slots and vectors of all points to whose list each vector is near enough.

        All vectors are read, so this is for exact search among few points.
        """
        if self.head.settings["search"] != "exact":
            return None
        cells = [cell for block in self._held.rows.blocks(["reach"]) for cell in block]
        slots = np.array([cell["slot"] for cell in cells], dtype=np.int64)
        reach = np.array([cell["reach"] for cell in cells])
        return entered(self.scan(), slots, reach, np.atleast_2d(vectors))

    def vectors(self, slots: IntArray) -> FloatArray:
        """Return vectors in the order of slots, all of which have a point."""
        self._check_age()
        return self._held.vectors.read(np.asarray(slots, dtype=np.int64))

    def scan(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield slots and vectors of all points, block by block, in ascending order."""
        for block in self._held.vectors.blocks():
            self._check_age()
            yield block

    def slots(self) -> IntArray:
        """Return the slots of all points, ascending."""
        self._check_age()
        return self._held.vectors.slots()

    def find(self, ids: Sequence[Any]) -> IntArray:
        """Return the slot of each id, -1 where there is none."""
        self._check_age()
        hashes = sorted({hashed(point) for point in ids})
        slots: dict[tuple[type, Any], int] = {}
        for start in range(0, len(hashes), MOST_KEYS):
            cells = self._with_hashes(hashes[start : start + MOST_KEYS])
            points, _ = unpack_records(cells, ())
            slots |= {
                (type(point), point): cell["slot"]
                for point, cell in zip(points, cells, strict=True)
            }
        return np.array([slots.get((type(point), point), -1) for point in ids], dtype=np.int64)

    def _with_hashes(self, hashes: list[int]) -> list[Entity]:
        """Return the records of ids; in parts where their payload is too long for one answer."""
        try:
            return self._held.records.meeting(f"hash in {hashes}", ["record"])
        except TooLargeError:
            half = len(hashes) // 2
            if not half:
                raise
            return self._with_hashes(hashes[:half]) + self._with_hashes(hashes[half:])

    def points(
        self, slots: IntArray, columns: Sequence[Column]
    ) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return ids and payload in the order of slots, all of which have a point."""
        return unpack_records(self._in_order(slots, ["record"]), columns)

    def matching(self, where: str, slots: IntArray | None = None) -> IntArray:
        """Return the slots, of these or of all, that meet a condition, ascending."""
        translate(where, self.head.columns)
        blocks: Iterator[list[Entity]]
        if slots is None:
            self._check_age()
            blocks = self._held.records.blocks(["record"])
        else:
            unique = np.unique(np.asarray(slots, dtype=np.int64))
            blocks = iter([self._read(self._held.records, unique, ["record"])])
        met = [meeting(where, self.head.columns, cells) for cells in blocks]
        return np.concatenate([np.empty(0, dtype=np.int64), *met])

    def places(self, slots: IntArray) -> FloatArray:
        """Return x and y of points in the order of slots."""
        cells = self._in_order(slots, ["place"])
        places = np.array([cell["place"] for cell in cells], dtype=np.float32)
        return places.reshape(len(cells), 2)

    def largest_number(self) -> int | None:
        """Return the largest id that is a number; all are read if the largest one was removed."""
        if not self._state.largest_known:
            numbers: list[int] = []
            for cells in self._held.records.blocks(["record"]):
                numbers += (point for point in unpack_records(cells, ())[0] if type(point) is int)
            largest = max(numbers, default=None)
            self._state = replace(self._state, largest=largest, largest_known=True)
        return self._state.largest

    def _unpacked(self, cells: Sequence[Entity]) -> Rows:
        try:
            return unpack_rows(cells, self.head.settings)
        except (ValueError, zlib.error) as error:
            raise damaged(self._client.place, f"a list cannot be read ({error})") from None

    def _in_order(self, slots: IntArray, fields: list[str]) -> list[Entity]:
        asked = np.asarray(slots, dtype=np.int64)
        cells = {c["slot"]: c for c in self._read(self._held.records, np.unique(asked), fields)}
        if len(cells) < len(np.unique(asked)):
            raise moved(self._client.place)
        return [cells[slot] for slot in asked.tolist()]

    def _read(self, cells: Cells, slots: IntArray, fields: list[str]) -> list[Entity]:
        self._check_age()
        return cells.read(slots[(slots >= 0) & (slots < self.head.n_points)], fields)

    def _check_age(self) -> None:
        if monotonic() - self._began > self._grace:
            raise moved(self._client.place)
