"""Tables of LanceDB, in a folder or wherever it connects to. Rows lie in a table beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from rankfold.databases import backend
from rankfold.databases.backend import FIELDS, SIDE, Backend, Metric, Record, portions
from rankfold.databases.protocol import Hits, Key, Page
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
MOST_KEYS = 10_000
REFINED = 10
"""Times as many candidates as are wanted are measured again where an index compresses vectors."""

ERRORS: list[backend.Explanation] = [
    (
        ("connect", "timed out", "timeout", "error sending request", "Generic S3", "Generic GCS"),
        UnreachableError,
        "see that the network is there, and try later",
    ),
    (("Schema error", "parser error"), InputError, "where must be a filter of its own language"),
]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("checksum", pa.int64()),
        ("nearest", pa.string()),
        ("edges", pa.string()),
    ]
)


class LanceDB(Backend):
    """A table of LanceDB.

    ``where`` is a filter of LanceDB in SQL, such as ``price < 10 AND color = 'red'``.

    Parameters
    ----------
    connection : DBConnection
        What ``lancedb.connect`` returns.
    table : str
    vector : str, optional
        The column of vectors; may be left out where there is one.
    key : str, optional
        The column of whole numbers or texts that names points, each once. Usually ``id``.
    metric : {"euclidean", "cosine"}, optional
        That of the vectors' index; Euclidean where there is none.
    place : str
        How messages call the database.
    """

    rows_at_once = 10_000  # each time is a new version of the table

    def __init__(
        self,
        connection: lancedb.DBConnection,
        table: str,
        vector: str | None = None,
        *,
        key: str | None = None,
        metric: str | None = None,
        place: str = "lancedb",
    ) -> None:
        self._connection = connection
        self._place = place
        self._side_name = table + SIDE
        self.name = f"{table!r} in {place}"
        known = self._names()
        self._table = self._call(
            connection.open_table, backend.chosen("table", table, known, place)
        )
        schema = self._call(lambda: self._table.schema)
        spaces = {field.name: field.type for field in schema if _is_vector(field.type)}
        names = {field.name: kind for field in schema if (kind := _key_type(field.type))}
        self._vector = backend.chosen("column of vectors", vector, spaces, self.name)
        self._key = backend.chosen("column of keys", key or "id", names, self.name)
        self._key_type = names[self._key]
        self._own = [name for name in schema.names if name not in (self._key, *spaces)]
        self.n_features = int(spaces[self._vector].list_size)
        self._read_index(metric)
        self._there = f"{_quoted(self._vector)} IS NOT NULL"
        self._side: Any = self._open_side() if self._side_name in known else None

    @classmethod
    def open(cls, address: str, table: str, vector: str | None = None, **options: Any) -> LanceDB:
        """Open a table at an address such as ``lancedb:///folder``.

        Examples
        --------
        >>> LanceDB.open("lancedb:///no/folder", "docs")
        Traceback (most recent call last):
        ...
        rankfold.errors.DatabaseError: there is no folder '/no/folder', where LanceDB's tables ...
        """
        at = backend.Address.of(address, "lancedb", 0, EXAMPLE)
        if at.host or not Path(at.path).is_dir():
            raise DatabaseError(
                f"there is no folder {at.path!r}, where LanceDB's tables should be; an address "
                f"looks like {EXAMPLE}. For other places connect first, and give that connection "
                "to rankfold.databases.lancedb.LanceDB."
            )
        connection = lancedb.connect(at.path, read_consistency_interval=timedelta(0))
        return cls(connection, table, vector, place=at.shown, **options)

    def count(self) -> int:
        """Return the number of points."""
        return int(self._call(self._table.count_rows, self._there))

    def scan(self, size: int) -> Iterator[Page]:
        """Yield every point once, in the order of keys, which are read first."""
        keys = sorted(self._read(self._table, self._there, [self._key])[self._key].to_pylist())
        for one, other in pairwise(keys):
            if one == other:
                raise DatabaseError(
                    f"{self.name} has {one!r} more than once in {self._key!r}, which is to name "
                    "points; choose another column by key."
                )
        column = _quoted(self._key)
        for some in portions(keys, size):
            within = f"{column} >= {_literal(some[0])} AND {column} <= {_literal(some[-1])}"
            page = self._page(f"{within} AND {self._there}")
            order = sorted(range(len(page.keys)), key=page.keys.__getitem__)
            yield Page([page.keys[place] for place in order], page.vectors[order])

    def vectors(self, keys: Sequence[Key]) -> Page:
        """Return those of some points that are there."""
        pages = [self._page(f"{only} AND {self._there}") for only in self._among(keys)]
        vectors = [vector for page in pages for vector in page.vectors]
        return backend.as_page(
            [key for page in pages for key in page.keys], vectors, self.n_features
        )

    def search(self, vectors: FloatArray, k: int, where: Any = None) -> list[Hits]:
        """Return the points nearest to each vector, one exchange for each."""
        return [self._search(vector, k, _checked(where)) for vector in vectors]

    def payload(self, keys: Sequence[Key]) -> Mapping[Key, dict[str, Any]]:
        """Return the other columns of points, without vectors."""
        found: dict[Key, dict[str, Any]] = {}
        for only in self._among(keys):
            for row in self._read(self._table, only, [self._key, *self._own]).to_pylist():
                found[row.pop(self._key)] = row
        return found

    def matching(self, keys: Sequence[Key], where: Any) -> set[Key]:
        """Return which of some points are there, and pass a filter."""
        also = "" if where is None else f" AND ({_checked(where)})"
        found: set[Key] = set()
        for only in self._among(keys):
            found.update(self._read(self._table, only + also, [self._key])[self._key].to_pylist())
        return found & set(keys)

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        """Return fields of some records, up to 10,000 in one exchange."""
        found: list[Record] = []
        for some in portions(ids if self._side is not None else (), MOST_KEYS):
            only = f"id IN ({','.join(map(_literal, some))})"
            found += self._read(self._side, only, ["id", *fields]).to_pylist()
        return found

    def load_all(self, size: int) -> Iterator[list[Record]]:
        """Yield all records."""
        if self._side is not None:
            names = sorted(self._read(self._side, "true", ["id"])["id"].to_pylist())
            for some in portions(names, size):
                yield self.load(some, FIELDS)

    def store(self, records: Sequence[Record]) -> None:
        """Write records, all of them at once."""
        if self._side is None:
            self._call(self._connection.create_table, self._side_name, schema=SCHEMA)
            self._side = self._open_side()
            self._call(self._side.create_index, "id", config=BTree())
        merge = self._side.merge_insert("id")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        self._call(merge.execute, pa.Table.from_pylist([dict(r) for r in records], schema=SCHEMA))

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Record it among the rows, and bring their index up to date."""
        super().write_manifest(manifest)
        self._call(self._side.optimize)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove some records."""
        for some in portions(ids if self._side is not None else (), MOST_KEYS):
            self._call(self._side.delete, f"id IN ({','.join(map(_literal, some))})")

    def detach(self) -> None:
        """Drop the table of the graph."""
        if self._side is not None:
            self._call(self._connection.drop_table, self._side_name)
            self._side = None

    def close(self) -> None:
        """Do nothing: tables of LanceDB need no closing."""

    def _names(self) -> list[str]:
        names: list[str] = []
        token = None
        while True:
            listed = self._call(self._connection.list_tables, page_token=token)
            names += listed.tables
            if not (token := listed.page_token):
                return names

    def _read_index(self, metric: str | None) -> None:
        indexes = [i for i in self._call(self._table.list_indices) if i.columns == [self._vector]]
        self.exact = not indexes
        kind = "cosine" if metric == "cosine" else "l2"
        if indexes:
            kind = self._call(self._table.index_stats, indexes[0].name).distance_type
        self.metric = backend.own_metric(kind, METRICS, metric, self.name)

    def _open_side(self) -> Any:
        return self._call(self._connection.open_table, self._side_name)

    def _among(self, keys: Sequence[Key]) -> Iterator[str]:
        own = (key for key in keys if type(key) is self._key_type)
        for some in portions(own, MOST_KEYS):
            yield f"{_quoted(self._key)} IN ({','.join(map(_literal, some))})"

    def _search(self, vector: FloatArray, k: int, where: str | None) -> Hits:
        query = self._table.search(vector, vector_column_name=self._vector, query_type="vector")
        query = query.distance_type("l2" if self.metric == "euclidean" else "cosine").limit(k)
        query = query.select([self._key, self._vector, "_distance"])
        if not self.exact:
            query = query.refine_factor(REFINED)
        if where is not None:
            query = query.where(where, prefilter=True)
        return backend.nearest_first(self._as_page(self._call(query.to_arrow)), vector, self.metric)

    def _page(self, only: str) -> Page:
        return self._as_page(self._read(self._table, only, [self._key, self._vector]))

    def _as_page(self, found: Any) -> Page:
        vectors = found[self._vector].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return backend.as_page(found[self._key].to_pylist(), vectors, self.n_features)

    def _read(self, table: Any, only: str, columns: list[str]) -> Any:
        return self._call(table.search().where(only).select(columns).to_arrow)

    def _call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a method of LanceDB, with errors that say what to do."""
        self.round_trips += 1
        try:
            return method(*args, **options)
        except (ValueError, RuntimeError, OSError) as error:
            raise backend.explained(str(error), str(error), self.name, ERRORS) from error


def _checked(where: Any) -> str | None:
    if where is None or isinstance(where, str):
        return where
    raise InputError(
        f"where is {where!r}, but must be a filter of LanceDB such as \"color = 'red'\".", "where"
    )


def _is_vector(kind: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type))


def _key_type(kind: Any) -> type | None:
    if pa.types.is_integer(kind):
        return int
    return str if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(value: Key) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
