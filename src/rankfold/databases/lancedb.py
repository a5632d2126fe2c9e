"""Tables of LanceDB, in a folder or wherever it connects to. Rows lie in a table beside."""
# ruff: noqa: D102 (`Database` says what each method does)

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from rankfold.databases import backend
from rankfold.databases.backend import FIELDS, Database, Key, Metric, Points, Record, What, portions
from rankfold.errors import DatabaseError, InputError, MissingExtraError, UnreachableError
from rankfold.types import FloatArray

try:
    import lancedb
    import pyarrow as pa
    from lancedb.index import BTree
except ImportError:
    raise MissingExtraError("lancedb", "lancedb") from None

EXAMPLE = "lancedb:///folder (lancedb:///./folder in this one)"
METRICS: dict[str, Metric] = {"l2": "euclidean", "cosine": "cosine"}
REFINED = 10
"""Times as many candidates as are wanted are measured again where an index compresses vectors."""

LOST = "connect|timed out|timeout|error sending request|Generic S3|Generic GCS"
ERRORS: list[backend.ErrorPattern] = [
    (LOST, UnreachableError, "see that the network is there, and try later"),
    ("Schema error|parser error", InputError, "where must be a filter of its own language"),
]
KINDS = {"id": pa.string(), "checksum": pa.int64(), "nearest": pa.string(), "edges": pa.string()}
SCHEMA = pa.schema(list(KINDS.items()))


class LanceDB(Database):
    """A table of LanceDB, from what ``lancedb.connect`` returns.

    ``where`` is a filter of LanceDB in SQL, such as ``price < 10 AND color = 'red'``. ``key`` is
    the column of whole numbers or texts that names points, each once; ``id`` by default. The metric
    is that of the vectors' index, where there is one.
    """

    rows_at_once = 10_000  # each time is a new version of the table
    failures, errors = (ValueError, RuntimeError, OSError), ERRORS

    @classmethod
    def connect(cls, address: str) -> Any:
        at = backend.Address.of(address, "lancedb", 0, EXAMPLE)
        if at.host or not Path(at.path).is_dir():
            raise InputError(
                f"there is no folder {at.path!r}, where LanceDB's tables should be; an address "
                f"looks like {EXAMPLE}. For other places connect first, and give that connection "
                "to rankfold.databases.lancedb.LanceDB."
            )
        return lancedb.connect(at.path, read_consistency_interval=timedelta(0))

    def describe(self, vector: str | None, key: str | None, metric: Metric | None) -> None:
        known = self._table_names()
        backend.chosen("table", self.table, known, self.place)
        self._table = self.call(self.client.open_table, self.table)
        self._side = None
        if self.table + backend.SIDE in known:
            self._side = self.call(self.client.open_table, self.table + backend.SIDE)
        schema = self.call(lambda: self._table.schema)
        spaces = {field.name: field.type for field in schema if _is_vector(field.type)}
        keys = {field.name: is_key for field in schema if (is_key := _key_kind(field.type))}
        vector, key, before = self.as_attached(vector, key, metric)
        self._vector = backend.chosen("column of vectors", vector, spaces, self.name)
        self._key = backend.chosen("column of keys", key or "id", keys, self.name)
        self.is_key = keys[self._key]
        self.columns = {"vector": self._vector, "key": self._key}
        self._own = [name for name in schema.names if name not in (self._key, *spaces)]
        self.n_features = int(spaces[self._vector].list_size)
        self._there = f"{_quoted(self._vector)} IS NOT NULL"
        indexes = [i for i in self.call(self._table.list_indices) if i.columns == [self._vector]]
        self.exact, self.metric = not indexes, before or "euclidean"
        if indexes:
            kind = self.call(self._table.index_stats, indexes[0].name).distance_type
            self.metric = backend.own_metric(kind, METRICS, metric, self.name)

    def count(self) -> int:
        return int(self.call(self._table.count_rows, self._there))

    def scan(self) -> Iterator[Points]:
        keys = sorted(
            self._read_table(self._table, self._there, [self._key])[self._key].to_pylist()
        )
        for one, other in pairwise(keys):
            if one == other:
                raise DatabaseError(
                    f"{self.name} has {one!r} more than once in {self._key!r}, which is to name "
                    "points; choose another column by key."
                )
        column, columns = _quoted(self._key), [self._key, self._vector]
        for some in portions(keys, self.points_at_once):
            within = f"{column} >= {_literal(some[0])} AND {column} <= {_literal(some[-1])}"
            found = self._read_table(self._table, f"{within} AND {self._there}", columns)
            yield sorted(self._vectors(found), key=lambda pair: pair[0])

    def get(self, keys: Sequence[Key], what: What, where: Any = None) -> Points:
        only = f"{_among(_quoted(self._key), keys)} AND {self._there}"
        if where is not None:
            only += f" AND ({_checked(where)})"
        more = {"vector": [self._vector], "payload": self._own, "nothing": []}[what]
        found = self._read_table(self._table, only, [self._key, *more])
        if what == "vector":
            return self._vectors(found)
        return [(row.pop(self._key), row) for row in found.to_pylist()]

    def nearest(self, vectors: FloatArray, k: int, where: Any = None) -> Iterator[Points]:
        only, kind = _checked(where), "l2" if self.metric == "euclidean" else "cosine"
        for vector in vectors:
            query = self._table.search(vector, vector_column_name=self._vector, query_type="vector")
            query = query.distance_type(kind).limit(k)
            query = query.select([self._key, self._vector, "_distance"])
            if not self.exact:
                query = query.refine_factor(REFINED)
            if only is not None:
                query = query.where(only, prefilter=True)
            yield self._vectors(self.call(query.to_arrow))

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        if self._side is None:
            return []
        found = self._read_table(self._side, _among("id", ids), ["id", *fields])
        return list(found.to_pylist())

    def load_all(self) -> Iterator[list[Record]]:
        if self._side is not None:
            names = sorted(self._read_table(self._side, "true", ["id"])["id"].to_pylist())
            for some in portions(names, self.records_at_once):
                yield self.load(some, FIELDS)

    def store(self, records: Sequence[Record]) -> None:
        if self._side is None:
            side = self.table + backend.SIDE
            self._side = self.call(self.client.create_table, side, schema=SCHEMA)
            self.call(self._side.create_index, "id", config=BTree())
        merge = self._side.merge_insert("id")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        self.call(merge.execute, pa.Table.from_pylist([dict(r) for r in records], schema=SCHEMA))

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        super().write_manifest(manifest)
        if self._side is not None:
            self.call(self._side.optimize)

    def remove(self, ids: Sequence[str]) -> None:
        if self._side is not None:
            self.call(self._side.delete, _among("id", ids))

    def detach(self) -> None:
        if self._side is not None:
            self.call(self.client.drop_table, self.table + backend.SIDE)
            self._side = None

    def close(self) -> None:
        pass  # tables of LanceDB need no closing

    def _table_names(self) -> list[str]:
        names: list[str] = []
        token = None
        while True:
            listed = self.call(self.client.list_tables, page_token=token)
            names += listed.tables
            if not (token := listed.page_token):
                return names

    def _read_table(self, table: Any, only: str, columns: list[str]) -> Any:
        return self.call(table.search().where(only).select(columns).to_arrow)

    def _vectors(self, found: Any) -> Points:
        vectors = found[self._vector].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return zip(found[self._key].to_pylist(), vectors.reshape(-1, self.n_features), strict=True)


def _checked(where: Any) -> str | None:
    if where is None or isinstance(where, str):
        return where
    raise InputError(
        f"where is {where!r}, but must be a filter of LanceDB such as \"color = 'red'\".", "where"
    )


def _is_vector(kind: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type))


def _key_kind(kind: Any) -> Any:
    """Return the function that knows the keys of a column; None where it can hold none."""
    if pa.types.is_integer(kind):
        return backend.is_whole
    return backend.is_text if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _among(column: str, values: Sequence[Key]) -> str:
    return f"{column} IN ({','.join(map(_literal, values))})"


def _literal(value: Key) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
