"""A database in fifty lines: points in arrays of NumPy, and the graph in a dictionary."""
# ruff: noqa: D102 (`Database` says what each method does)

from collections.abc import Iterator, Sequence
from typing import Any

from rankfold.databases.backend import Database, Key, Metric, Points, Record, What, portions
from rankfold.types import FloatArray


class ArrayCollection(Database):
    """Points by key; ``where`` is a function of what the user keeps with a point."""

    def __init__(
        self, keys: Sequence[Key], vectors: FloatArray, fields: Sequence[Any], metric: Metric
    ) -> None:
        self.points = dict(zip(keys, vectors, strict=True))
        self.fields = dict(zip(keys, fields, strict=True))
        self.records: dict[str, Record] = {}
        super().__init__(None, "docs", metric=metric, place="memory")

    def describe(self, vector: str | None, key: str | None, metric: Metric | None) -> None:
        self.metric, self.exact = metric or "euclidean", True
        self.n_features = len(next(iter(self.points.values())))

    def count(self) -> int:
        return len(self.points)

    def scan(self) -> Iterator[Points]:
        yield from portions(self.points.items(), self.points_at_once)

    def get(self, keys: Sequence[Key], what: What, where: Any = None) -> Points:
        self.round_trips += 1
        values = self.points if what == "vector" else self.fields
        there = [key for key in keys if key in self.points]
        return [(key, values[key]) for key in there if not where or where(self.fields[key])]

    def nearest(self, vectors: FloatArray, k: int, where: Any = None) -> list[Points]:
        return [self.get(list(self.points), "vector", where)] * len(vectors)

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        self.round_trips += 1
        return [self.records[name] for name in ids if name in self.records]

    def load_all(self) -> Iterator[list[Record]]:
        yield from portions(self.records.values(), self.records_at_once)

    def store(self, records: Sequence[Record]) -> None:
        self.records.update({record["id"]: record for record in records})

    def remove(self, ids: Sequence[str]) -> None:
        for name in ids:
            self.records.pop(name, None)

    def detach(self) -> None:
        self.records.clear()

    def close(self) -> None:
        pass
