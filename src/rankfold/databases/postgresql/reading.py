"""A session: questions to one state of an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfold.check import InputError
from rankfold.databases.contract import Head
from rankfold.databases.postgresql import unpacking
from rankfold.databases.postgresql.address import Address
from rankfold.databases.postgresql.arguments import Floats, Integers
from rankfold.databases.postgresql.conditions import PostgreSQLDialect
from rankfold.databases.postgresql.connecting import Connection
from rankfold.databases.postgresql.faults import explained
from rankfold.databases.postgresql.portions import check_present, order_of, portions, together
from rankfold.databases.postgresql.searching import by_vector, listing, nearest, search_width
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column
from rankfold.storage.conditions import translate
from rankfold.storage.ids import WHOLE
from rankfold.types import FloatArray, IntArray

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

BLOCK_BYTES = 2**23
"""Size of the blocks in which everything is read."""

MOST_NUMBERS = 2**20
"""Numbers in the vectors that are searched for in one exchange."""

MOST_VECTORS = 128
"""Vectors searched for in one exchange, so that an answer comes within seconds."""

ROWS = "SELECT slot, lists, sources FROM {lists} WHERE slot = ANY(%s) ORDER BY slot"
AROUND = """
WITH asked AS MATERIALIZED (SELECT slot, sources FROM {lists} WHERE slot = ANY(%s))
SELECT slot, lists, sources FROM {lists} WHERE slot = ANY(ARRAY(
    SELECT slot FROM asked UNION SELECT unnest(sources) FROM asked)) ORDER BY slot
"""


class PostgreSQLSession:
    """Reads the tables of one number by one connection, which is inside of a transaction.

    ``changes`` are versions that are known already, with the slots that changed.
    """

    def __init__(
        self, connection: Connection, address: Address, number: int, head: Head,
        changes: Mapping[int, Any] | None = None,
    ) -> None:  # fmt: skip
        self.head = head
        self.round_trips = 1
        self._connection = connection
        self._address = address
        self._number = number
        self._points = f"rankfold_{number}_points"
        self._changes = dict(changes or {})
        self._search_width = 0

    def changed_since(self, version: int) -> IntArray | None:
        """Return the slots whose rows came, went or changed since a version."""
        since = range(version + 1, self.head.version + 1)
        if version > self.head.version:
            return None
        if not all(v in self._changes for v in since):
            sql = f"SELECT version::integer, slots FROM rankfold_{self._number}_changes"  # noqa: S608
            answer = self._ask(f"{sql} WHERE version > %s", [version])
            starts, slots = unpacking.arrays(answer, 1)
            parts = np.split(slots, starts[1:-1])
            versions = unpacking.integers(answer, 0).tolist()
            self._changes.update(zip(versions, parts, strict=False))
        if not all(v in self._changes for v in since):
            return None
        nothing = np.empty(0, dtype=np.int64)
        return np.unique(np.concatenate([nothing, *(self._changes[v] for v in since)]))

    def rows(self, slots: IntArray, around: bool = False) -> Rows:
        """Return the rows of points; with ``around`` also those of all that list them."""
        sql = (AROUND if around else ROWS).format(lists=f"rankfold_{self._number}_lists")
        answers = [self._ask(sql, [Integers(part)]) for part in portions(slots)]
        return together([unpacking.rows(answer, self.head.settings) for answer in answers])

    def search(
        self, vectors: FloatArray, k: int, where: str | None = None
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return slots and vectors of about the ``k`` nearest points of each vector."""
        condition, values = "TRUE", list[object]()
        if where is not None:
            condition, values = translate(where, self.head.columns, PostgreSQLDialect())
        found = []
        for part in self._vectors_cut(vectors):
            sql = nearest(self._number, part.shape, k, condition)
            answer = self._ask(sql, [Floats(part), *values], self._widened(k))
            found += by_vector(answer, part.shape)
        return found

    def listers(self, vectors: FloatArray) -> list[tuple[IntArray, FloatArray]] | None:
        """Return slots and vectors of all points to whose list each vector is near enough."""
        if self.head.settings["search"] != "exact":
            return None
        found = []
        for part in self._vectors_cut(vectors):
            answer = self._ask(listing(self._number, part.shape), [Floats(part)])
            found += by_vector(answer, part.shape)
        return found

    def vectors(self, slots: IntArray) -> FloatArray:
        """Return vectors in the order of slots, all of which have a point."""
        slots = np.asarray(slots, dtype=np.int64)
        found = np.empty((len(slots), self._n_features), dtype=np.float32)
        for place in portions(np.arange(len(slots))):
            answer = self._about("slot, vector", slots[place])
            order = order_of(unpacking.integers(answer, 0), slots[place])
            found[place] = unpacking.vectors(answer, 1, self._n_features)[order]
        return found

    def scan(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield slots and vectors of all points, block by block, in ascending order."""
        size = max(1, BLOCK_BYTES // (4 * self._n_features))
        sql = f"SELECT slot, vector FROM {self._points} WHERE slot > %s ORDER BY slot LIMIT {size}"  # noqa: S608
        last = -1
        while True:
            answer = self._ask(sql, [last])
            slots = unpacking.integers(answer, 0)
            if len(slots):
                yield slots, unpacking.vectors(answer, 1, self._n_features)
                last = int(slots[-1])
            if len(slots) < size:
                return

    def slots(self) -> IntArray:
        """Return the slots of all points, ascending."""
        return unpacking.integers(
            self._ask(f"SELECT slot FROM {self._points} ORDER BY slot", []),  # noqa: S608
            0,
        )

    def find(self, ids: Sequence[Any]) -> IntArray:
        """Return the slot of each id, -1 where there is none; 1 and "1" are different ids."""
        table: dict[Any, int] = {}
        sql = (
            f"SELECT slot, id_number, id_text FROM {self._points} "  # noqa: S608
            "WHERE id_number = ANY(%s::bigint[]) OR id_text = ANY(%s::text[])"
        )
        for places in portions(np.arange(len(ids))):
            part = [ids[place] for place in places]
            numbers = [i for i in part if not isinstance(i, str) and i in WHOLE]
            texts = [i for i in part if isinstance(i, str) and "\0" not in i]
            for slot, number, text in self._fetch(sql, [numbers, texts]):
                table[text if number is None else number] = slot
        return np.array([table.get(i, -1) for i in ids], dtype=np.int64)

    def points(
        self, slots: IntArray, columns: Sequence[Column]
    ) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return ids and payload in the order of slots, all of which have a point."""
        keys = "".join(f", {column.key}" for column in columns)
        sql = f"SELECT slot, id_number, id_text{keys} FROM {self._points} WHERE slot = ANY(%s)"  # noqa: S608
        found = {
            row[0]: row for part in portions(slots) for row in self._fetch(sql, [Integers(part)])
        }
        check_present(slots, found)
        rows = [found[slot] for slot in np.asarray(slots).tolist()]
        ids = [text if number is None else number for _, number, text, *_ in rows]
        return ids, {c.name: [row[3 + i] for row in rows] for i, c in enumerate(columns)}

    def matching(self, where: str, slots: IntArray | None = None) -> IntArray:
        """Return the slots, of these or of all, that meet a condition, ascending."""
        condition, values = translate(where, self.head.columns, PostgreSQLDialect())
        sql = f"SELECT slot FROM {self._points} WHERE ({condition})"  # noqa: S608
        if slots is None:
            return unpacking.integers(self._ask(f"{sql} ORDER BY slot", values), 0)
        parts = [
            unpacking.integers(self._ask(f"{sql} AND slot = ANY(%s)", [*values, Integers(part)]), 0)
            for part in portions(slots)
        ]
        return np.unique(np.concatenate(parts))

    def places(self, slots: IntArray) -> FloatArray:
        """Return x and y of points in the order of slots."""
        found = []
        for part in portions(slots):
            answer = self._about("slot, x, y", part)
            both = np.stack([unpacking.numbers(answer, column) for column in (1, 2)], axis=1)
            found.append(both[order_of(unpacking.integers(answer, 0), part)])
        return np.concatenate(found)

    def largest_number(self) -> int | None:
        """Return the largest id that is a number."""
        sql = f"SELECT max(id_number) FROM {self._points} WHERE id_number IS NOT NULL"  # noqa: S608
        ((largest,),) = self._fetch(sql, [])
        return None if largest is None else int(largest)

    @property
    def _n_features(self) -> int:
        return int(self.head.settings["n_features"])

    def _vectors_cut(self, vectors: FloatArray) -> Iterator[FloatArray]:
        """Cut vectors into those of one exchange each."""
        vectors = np.atleast_2d(vectors)
        if vectors.shape[1] != self._n_features:
            raise InputError(
                f"vectors have {vectors.shape[1]} features, but those of the index have "
                f"{self._n_features}; give vectors from the same source."
            )
        size = max(1, min(MOST_VECTORS, MOST_NUMBERS // self._n_features))
        return (vectors[start : start + size] for start in range(0, len(vectors), size))

    def _widened(self, k: int) -> str | None:
        """Return the setting by which a search in an HNSW index finds more, where it is needed."""
        width = search_width(k) if self.head.settings["search"] == "hnsw" else 0
        if width <= self._search_width:
            return None
        self._search_width = width
        return f"SET LOCAL hnsw.ef_search = {width}"

    def _about(self, what: str, slots: IntArray) -> PGresult:
        sql = f"SELECT {what} FROM {self._points} WHERE slot = ANY(%s) ORDER BY slot"  # noqa: S608
        return self._ask(sql, [Integers(slots)])

    def _ask(self, sql: str, values: Sequence[object], before: str | None = None) -> PGresult:
        """Ask in one exchange, after another statement if need be; answer in binary format."""
        self.round_trips += 1
        cursor = self._connection.cursor(binary=True)
        with explained(self._address), self._connection.pipeline() if before else nullcontext():
            if before:
                self._connection.execute(before.encode())
            cursor.execute(sql.encode(), values)
        if cursor.pgresult is None:
            raise AssertionError("a question has an answer once its exchange is over")
        return cursor.pgresult

    def _fetch(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        self.round_trips += 1
        with explained(self._address):
            return self._connection.execute(sql.encode(), values, binary=True).fetchall()
