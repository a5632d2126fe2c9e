"""The vectors of an index: each says at which versions its point is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankfold.databases.milvus.client import MOST_HITS, MOST_KEYS, Client, Entity
from rankfold.databases.milvus.errors import moved
from rankfold.types import FloatArray, IntArray

NEVER = 2**62
"""The version at which a point dies that lives."""

ANSWER = 16 * 2**20
"""Bytes of vectors in one answer, roughly."""

MOST_VECTORS = 256
"""Vectors that are searched for at once: Milvus Lite takes some milliseconds for each."""

MOST_PAIRS = 2**22
"""Distances that an exact search measures at once; more may take longer than an answer should."""

SLOTS = 2**17
"""Slots that are asked for at once, without their vectors."""

ROW = ["slot", "born", "died", "vector"]


@dataclass
class Vectors:
    """The vectors of a collection, as they are at a version."""

    client: Client
    name: str
    version: int
    n_points: int
    n_features: int
    search_type: str
    round_trips: int = 0

    def search(
        self, vectors: FloatArray, k: int, more: str = ""
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return slots and vectors of the nearest points, at most 16,384 for each vector."""
        k = min(k, MOST_HITS)
        params = {"ef": max(64, 2 * k)} if self.search_type == "hnsw" else {}
        step = min(MOST_VECTORS, self._per_answer // k)
        if self.search_type == "exact":
            step = min(step, MOST_PAIRS // self.n_points)
        step = max(1, step)
        found = []
        for start in range(0, len(vectors), step):
            self.round_trips += 1
            part = vectors[start : start + step]
            found += self.client.search(self.name, part, k, self._there + more, params)
        return [self._arrays(hits) for hits in found]

    def read(self, slots: IntArray) -> FloatArray:
        """Return vectors in the order of slots."""
        if not len(slots):
            return np.empty((0, self.n_features), dtype=np.float32)
        blocks = [vectors for _, vectors in self.read_blocks(slots)]
        return np.concatenate(blocks)

    def read_blocks(self, slots: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield vectors in the order of slots, block by block."""
        step = min(MOST_KEYS, self._per_answer)
        for start in range(0, len(slots), step):
            self.round_trips += 1
            block = slots[start : start + step]
            found = self.client.get(self.name, np.unique(block), ["slot", "vector"])
            known, vectors = self._arrays(found)
            order = np.argsort(known)
            places = np.searchsorted(known, block, sorter=order)
            if not np.isin(block, known).all():
                raise moved(self.client.place)
            yield block, vectors[order[places]]

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield slots and vectors of all points, ascending."""
        for condition in self._ranges(self._per_answer):
            slots, vectors = self._arrays(self._query(condition, ["slot", "vector"]))
            order = np.argsort(slots)
            if len(order):
                yield slots[order], vectors[order]

    def slots(self) -> IntArray:
        """Return the slots of all points, ascending."""
        parts = [
            np.sort(np.array([e["slot"] for e in self._query(condition, ["slot"])], dtype=np.int64))
            for condition in self._ranges(SLOTS)
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def add(self, slots: IntArray, vectors: FloatArray, version: int) -> None:
        """Write vectors of points that are there from a version on."""
        rows = zip(slots.tolist(), vectors.astype(np.float32), strict=True)
        self.client.write(self.name, (_row(slot, version, NEVER, vector) for slot, vector in rows))

    def remove(self, slots: IntArray, version: int) -> None:
        """Let points die at a version; their vectors stay for those who read older ones."""
        step = min(MOST_KEYS, self._per_answer)
        for start in range(0, len(slots), step):
            found = self.client.get(self.name, slots[start : start + step], ROW)
            self.client.write(self.name, (_row_of(e, version) for e in found))

    def undo(self) -> None:
        """Take back what was written for later versions, which never became valid."""
        late = self.client.query(self.name, f"born > {self.version}", ["slot"])
        self.client.delete(self.name, [entity["slot"] for entity in late])
        dying = f"died > {self.version} and died < {NEVER}"
        slots = [entity["slot"] for entity in self.client.query(self.name, dying, ["slot"])]
        self.remove(np.array(slots, dtype=np.int64), NEVER)

    def dead(self, version: int) -> list[int]:
        """Return the slots of points that died up to a version."""
        return [e["slot"] for e in self.client.query(self.name, f"died <= {version}", ["slot"])]

    def purge(self, slots: list[int]) -> None:
        """Delete vectors."""
        self.client.delete(self.name, slots)

    @property
    def _there(self) -> str:
        return f"born <= {self.version} and died > {self.version}"

    @property
    def _per_answer(self) -> int:
        return max(1, ANSWER // (4 * self.n_features + 50))

    def _ranges(self, step: int) -> Iterator[str]:
        for start in range(0, self.n_points, step):
            yield f"slot >= {start} and slot < {start + step} and {self._there}"

    def _query(self, condition: str, fields: list[str]) -> list[Entity]:
        self.round_trips += 1
        return self.client.query(self.name, condition, fields)

    def _arrays(self, entities: list[Entity]) -> tuple[IntArray, FloatArray]:
        slots = np.array([entity["slot"] for entity in entities], dtype=np.int64)
        vectors = np.array([entity["vector"] for entity in entities], dtype=np.float32)
        return slots, vectors.reshape(len(slots), self.n_features)


def _row(slot: int, born: int, died: int, vector: object) -> Entity:
    return {"slot": slot, "born": born, "died": died, "vector": vector}


def _row_of(entity: Entity, died: int) -> Entity:
    vector = np.array(entity["vector"], dtype=np.float32)
    return _row(entity["slot"], entity["born"], died, vector)
