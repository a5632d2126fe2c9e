"""A backend in fifty lines: points in arrays of NumPy, and the graph in a dictionary."""
# ruff: noqa: D102 (`Database` and `Backend` say what each method does)

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rankfold.databases.backend import Backend, Metric, Record, nearest_first, portions
from rankfold.databases.protocol import Hits, Key, Page
from rankfold.types import FloatArray


class ArrayCollection(Backend):
    """Points by key; ``where`` is a function of what the user keeps with a point."""

    def __init__(
        self, keys: Sequence[Key], vectors: FloatArray, fields: Sequence[Any], metric: Metric
    ) -> None:
        self.name, self.metric, self.exact = "docs in memory", metric, True
        self._points = dict(zip(keys, vectors.astype(np.float32), strict=True))
        self._fields = dict(zip(keys, fields, strict=True))
        self._records: dict[str, Record] = {}
        self.n_features = vectors.shape[1]

    def count(self) -> int:
        return len(self._points)

    def scan(self, size: int) -> Iterator[Page]:
        for some in portions(self._points, size):
            yield self.vectors(some)

    def vectors(self, keys: Sequence[Key]) -> Page:
        self.round_trips += 1
        there = [key for key in keys if key in self._points]
        found = np.array([self._points[key] for key in there], dtype=np.float32)
        return Page(there, found.reshape(-1, self.n_features))

    def search(self, vectors: FloatArray, k: int, where: Any = None) -> list[Hits]:
        page = self.vectors([key for key in self._points if not where or where(self._fields[key])])
        found = [nearest_first(page, vector, self.metric) for vector in vectors]
        return [Hits(hits.keys[:k], hits.sq_distances[:k]) for hits in found]

    def payload(self, keys: Sequence[Key]) -> Mapping[Key, dict[str, Any]]:
        self.round_trips += 1
        return {key: self._fields[key] for key in keys if key in self._fields}

    def matching(self, keys: Sequence[Key], where: Any) -> set[Key]:
        return {key for key, own in self.payload(keys).items() if not where or where(own)}

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        self.round_trips += 1
        return [self._records[name] for name in ids if name in self._records]

    def load_all(self, size: int) -> Iterator[list[Record]]:
        yield from portions(self._records.values(), size)

    def store(self, records: Sequence[Record]) -> None:
        self._records.update({record["id"]: record for record in records})

    def remove(self, ids: Sequence[str]) -> None:
        for name in ids:
            self._records.pop(name, None)

    def detach(self) -> None:
        self._records.clear()

    def close(self) -> None:
        pass
