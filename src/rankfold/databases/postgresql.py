"""Tables of PostgreSQL with a column of pgvector. Rows lie in a table beside."""
# ruff: noqa: D102 (`Database` says what each method does)

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from threading import local
from typing import Any

import numpy as np

from rankfold.databases import backend
from rankfold.databases.backend import (
    FIELDS,
    SIDE,
    Database,
    GoneError,
    Key,
    Page,
    Points,
    Record,
    What,
)
from rankfold.errors import DatabaseError, InputError, MissingExtraError, UnreachableError
from rankfold.parallel import StoppedError, check_stopped
from rankfold.solvers import Adjacency
from rankfold.types import FloatArray

try:
    import psycopg
    from psycopg import capabilities, sql
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import TransactionStatus
except ImportError:
    raise MissingExtraError("psycopg", "postgresql") from None

RECORD = ("id", *FIELDS)
EXAMPLE = "postgresql://user:password@host:5432/database"
MOST_IDLE, LONGEST_NAME = 16, 63
"""Connections that are kept, and bytes of the name of a table."""

CANCELLING = 1.0
"""Seconds to wait until a server knows that nobody waits for its answer."""

KEYS = {
    "int2": "bigint", "int4": "bigint", "int8": "bigint", "text": "text", "varchar": "text",
    "uuid": "uuid",
}  # fmt: skip
"""Types that a key may have, and those in which keys are sent."""

IS_KEY = {"bigint": backend.is_whole, "text": backend.is_text, "uuid": backend.is_uuid}
TIMEOUT = f"SET statement_timeout = '{backend.WAITING:g}s'"
FARTHER = (
    "SET hnsw.ef_search = 200; SET hnsw.iterative_scan = relaxed_order; SET ivfflat.probes = 10"
)
"""Let searches in an approximate index of the table look further than by default."""

TABLES = """
SELECT DISTINCT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_type t ON t.oid = a.atttypid WHERE t.typname = 'vector' AND c.relkind IN ('r', 'p')
"""
FACTS = """
SELECT a.attname, t.typname, a.atttypmod, tn.nspname,
       coalesce(a.attnum = ANY(i.indkey) AND i.indnkeyatts = 1, false), n.nspname, c.relname,
       EXISTS (SELECT FROM pg_index v JOIN pg_class x ON x.oid = v.indexrelid
               JOIN pg_am m ON m.oid = x.relam
               WHERE v.indrelid = c.oid AND m.amname IN ('hnsw', 'ivfflat'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.oid = to_regclass(%s) ORDER BY a.attnum
"""
NO_PARTS: Mapping[str, Any] = {}
STOPPED = "57014"
RIGHT = (
    "see that the user, the database and the password are right; PGPASSWORD or ~/.pgpass is best"
)
LONGER = (
    "try again when it has less to do, or allow it more in the address, by "
    "?options=-cstatement_timeout%3D60s"
)
ERRORS: list[backend.ErrorPattern] = [
    ("where", InputError, "where must be an SQL condition"),
    ("42P01", GoneError, "it is not there, or no longer"),
    (STOPPED, UnreachableError, LONGER),
    ("40001|40P01|53300|57P0|too many", UnreachableError, "try again later"),
    ("starting|shutting|terminating", UnreachableError, "try again when it runs"),
    ("FATAL:", DatabaseError, RIGHT),
    ("no code", UnreachableError, "see that the server runs and can be reached, then try again"),
    ("25006", DatabaseError, "changes need the address of the primary server"),
    ("42501", DatabaseError, "ask to be let read this table, and create tables in its schema"),
    ("53100", DatabaseError, "make room on its disk; what was stored is unharmed"),
]


class PostgreSQL(Database):
    """A table with vectors, or ``schema.table``, from a `Connections`.

    ``where`` is an SQL condition, or a pair of one and a dict of values to bind. ``key`` is a
    column of whole numbers, text or uuid; the primary key by default.
    """

    failures, errors = (psycopg.Error,), ERRORS

    @classmethod
    def connect(cls, address: str) -> Any:
        return Connections(address)

    def describe(self, vector: str | None, key: str | None, metric: backend.Metric | None) -> None:
        self._here = local()
        parts = self.table.split(".", 1)
        found = self._ask(FACTS, [sql.Identifier(*parts).as_string(None)])
        if not found:
            known = [name for (name,) in self._ask(TABLES, {})]
            backend.chosen("table", self.table, known, self.place)
        *_, schema, table, approximate = found[0]
        if len((table + SIDE).encode()) > LONGEST_NAME:
            raise InputError(f"{self.name}: the name is too long for a table {table + SIDE!r}.")
        self._lock_name = sql.Identifier(schema, table + SIDE).as_string(None)
        self._parts: dict[str, sql.Composable] = {
            "table": _name(schema, table),
            "side": _name(schema, table + SIDE),
            "nothing": sql.NULL,
        }
        vector, key, metric = self.as_attached(vector, key, metric)
        self.metric, self.exact = metric or "euclidean", not approximate
        spaces = {name: row for name, *row in found if row[0] == "vector"}
        keys = {name: row for name, *row in found if row[0] in KEYS}
        primary = next((row[0] for row in found if row[4]), None)
        vector = backend.chosen("column of vectors", vector, spaces, self.name)
        key = backend.chosen(f"column of keys ({', '.join(KEYS)})", key or primary, keys, self.name)
        self.columns, self._names = {"vector": vector, "key": key}, [row[0] for row in found]
        _, size, vectors_schema, *_ = spaces[vector]
        kind = KEYS[keys[key][0]]
        self.is_key = IS_KEY[kind]
        payload = [_name(row[0]) for row in found if row[0] != key and row[0] not in spaces]
        sign = sql.SQL("<->" if self.metric == "euclidean" else "<=>")
        self._parts |= {
            "key": _name(key),
            "shown": _name(key) + sql.SQL("::text" if kind == "uuid" else ""),
            "order": _name(key) + sql.SQL(' COLLATE "C"' if kind == "text" else ""),
            "keys": sql.SQL(f"%(keys)s::{kind}[]"),
            "vector": _name(vector),
            "vector_type": _name(vectors_schema, "vector"),
            "sign": sql.SQL("OPERATOR({}.{})").format(_name(vectors_schema), sign),
            "payload": sql.SQL("(SELECT to_jsonb(p) FROM (SELECT {}) p)").format(
                sql.SQL(", ").join(payload)
            ),
        }
        self.n_features = size
        if size < 1:  # the column takes vectors of any length
            one = self._run("SELECT {vector} FROM {table} WHERE {vector} IS NOT NULL LIMIT 1")
            self.n_features = len(_floats(one[0][0])) if one else 1

    def count(self) -> int:
        return int(self._run("SELECT count(*) FROM {table} WHERE {vector} IS NOT NULL")[0][0])

    def scan(self) -> Iterator[Points]:
        query = "SELECT {shown}, {vector} FROM {table} WHERE {vector} IS NOT NULL ORDER BY {order}"
        for rows in self._stream(query, self.points_at_once):
            yield [(key, _floats(data)) for key, data in rows]

    def get(self, keys: Sequence[Key], what: What, where: Any = None) -> Points:
        query = (
            "SELECT {shown}, {value} FROM {table} "
            "WHERE {key} = ANY({keys}) AND {vector} IS NOT NULL AND {condition}"
        )
        rows = self._run(query.replace("value", what), where, keys=keys)
        return [(key, _floats(data)) for key, data in rows] if what == "vector" else rows

    def nearest(self, vectors: FloatArray, k: int, where: Any = None) -> list[Points]:
        query = (
            "SELECT a.place, near.* FROM (SELECT one::{vector_type} AS one, place "
            "FROM unnest(%(vectors)s::text[]) WITH ORDINALITY b(one, place) OFFSET 0) a "
            "CROSS JOIN LATERAL (SELECT {shown}, {vector} FROM {table} "
            "WHERE {vector} IS NOT NULL AND {condition} ORDER BY {vector} {sign} a.one "
            "LIMIT %(k)s) near"
        )
        texts = [str(vector) for vector in vectors.tolist()]
        found: list[list[tuple[Key, Any]]] = [[] for _ in texts]
        for place, key, data in self._run(query, where, vectors=texts, k=k):
            found[place - 1].append((key, _floats(data)))
        return [*found]

    def around(self, key: Key, n: int) -> dict[Key, Adjacency]:
        query = (
            "SELECT id, edges FROM {side} WHERE id IN (SELECT to_json({key})::text FROM {table} "
            "WHERE {vector} IS NOT NULL ORDER BY {vector} {sign} "
            "(SELECT {vector} FROM {table} WHERE {key} = ANY({keys})) LIMIT %(n)s)"
        )
        return backend.unpacked_edges(self._beside(query, ("id", "edges"), keys=[key], n=n))

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        names = ("id", *fields)
        query = f"SELECT {', '.join(names)} FROM {{side}} WHERE id = ANY(%(ids)s)"  # noqa: S608
        return self._beside(query, names, ids=ids)

    def load_all(self) -> Iterator[list[Record]]:
        query = "SELECT id, checksum, nearest, edges FROM {side}"
        with suppress(GoneError):
            for rows in self._stream(query, self.records_at_once):
                yield [dict(zip(RECORD, row, strict=True)) for row in rows]

    def store(self, records: Sequence[Record]) -> None:
        self._run(
            'CREATE TABLE IF NOT EXISTS {side} (id text COLLATE "C" PRIMARY KEY, '
            "checksum bigint NOT NULL, nearest text NOT NULL, edges text NOT NULL)"
        )
        values: dict[str, Any] = {name: [record[name] for record in records] for name in RECORD}
        self._run(
            "INSERT INTO {side} SELECT * FROM unnest(%(id)s::text[], %(checksum)s::bigint[], "
            "%(nearest)s::text[], %(edges)s::text[]) ON CONFLICT (id) DO UPDATE SET "
            "checksum = EXCLUDED.checksum, nearest = EXCLUDED.nearest, edges = EXCLUDED.edges",
            **values,
        )

    def remove(self, ids: Sequence[str]) -> None:
        with suppress(GoneError):
            self._run("DELETE FROM {side} WHERE id = ANY(%(ids)s)", ids=ids)

    def detach(self) -> None:
        self._run("DROP TABLE IF EXISTS {side}")

    def check_vectors(self, name: str, size: int) -> None:
        if name in self._names:
            raise InputError(
                f"{self.name} has a column {name!r} already; drop it, or choose another name.",
                "as_vector",
            )

    def write_vectors(self, name: str, size: int, pages: Iterable[Page]) -> None:
        parts = {"new": _name(name), "size": sql.SQL(str(int(size)))}
        with self.transaction():
            self._run("ALTER TABLE {table} ADD COLUMN {new} {vector_type}({size})", None, parts)
            for keys, vectors in pages:
                self._run(
                    "UPDATE {table} SET {new} = b.one::{vector_type} FROM unnest({keys}, "
                    "%(vectors)s::text[]) b(key, one) WHERE {key} = b.key",
                    None, parts, keys=keys, vectors=[str(one) for one in vectors.tolist()],
                )  # fmt: skip

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.exchange(), self.client.borrowed() as connection, connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._lock_name])
            self._here.connection = connection
            try:
                yield
            finally:
                self._here.connection = None

    @staticmethod
    def told(error: Exception) -> tuple[str, str]:
        code, text = getattr(error, "sqlstate", None), str(error)
        return code or f"no code: {text}", text.rsplit("FATAL:", 1)[-1]

    def _run(
        self, text: str, where: Any = None, parts: Mapping[str, Any] = NO_PARTS, **values: Any
    ) -> list[Any]:
        condition, bound = _condition(where)
        if taken := values.keys() & bound.keys():
            raise InputError(f"where binds {min(taken)!r}: give the value another name.", "where")
        query = sql.SQL(text).format(**self._parts, **parts, condition=condition)
        try:
            return self._ask(query, {**values, **bound})
        except DatabaseError as error:
            cause = error.__cause__
            if where is None or not isinstance(cause, psycopg.ProgrammingError | psycopg.DataError):
                raise
            raise backend.explained("where", str(cause), self.place, ERRORS) from cause

    def _beside(self, text: str, names: Sequence[str], **values: Any) -> list[Record]:
        """Return records; none where no table is beside."""
        with suppress(GoneError):
            return [dict(zip(names, row, strict=True)) for row in self._run(text, **values)]
        return []

    def _ask(self, query: Any, values: Any) -> list[Any]:
        """Ask one question; once more where a connection turns out to be cut off."""
        own = getattr(self._here, "connection", None)
        try:
            return self._answer(own, query, values)
        except UnreachableError as error:
            if own is not None or getattr(error.__cause__, "sqlstate", None) == STOPPED:
                raise
        self.client.forget()
        return self._answer(None, query, values)

    def _answer(self, own: Any, query: Any, values: Any) -> list[Any]:
        borrowed = nullcontext(own) if own is not None else self.client.borrowed()
        with self.exchange(), borrowed as connection:
            cursor = connection.execute(query, values, binary=True)
            return list(cursor.fetchall()) if cursor.description else []

    def _stream(self, text: str, size: int) -> Iterator[list[Any]]:
        """Read through a cursor of the server, in one state."""
        with (
            self.exchange(),
            self.client.borrowed() as connection,
            connection.transaction(),
            connection.cursor("rankfold", binary=True) as cursor,
        ):
            connection.execute("SET LOCAL statement_timeout = 0")
            cursor.execute(sql.SQL(text).format(**self._parts), {})
            while rows := cursor.fetchmany(size):
                self.round_trips += 1
                yield rows


class _Connection(psycopg.Connection[Any]):
    """A connection that waits for an answer only as long as somebody waits for it."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for what a generator of psycopg is about; it is resumed ten times a second."""
        try:
            return super().wait(_while_wanted(gen), *args, **options)
        except StoppedError:
            if capabilities.has_cancel_safe():  # the older way may never come back
                with suppress(psycopg.Error):
                    self.cancel_safe(timeout=CANCELLING)
            raise


def _while_wanted(gen: Any) -> Any:
    """Pass everything on, and look whether work was stopped whenever there is no answer yet."""
    ready = None
    while True:
        try:
            wanted = gen.send(ready)
        except StopIteration as end:
            return end.value
        ready = yield wanted
        if not ready:
            check_stopped()


class Connections:
    """Connections to an address that nobody uses just now; each serves one thread at a time."""

    def __init__(self, address: str) -> None:
        self._idle: deque[Any] = deque()
        self._closed = False
        start = address.partition("?")[0].partition("://")[2]
        # libpq would take what follows a second @ for a host, which is shown; it may be a password.
        readable = "@" not in start.partition("@")[2] and "@" not in start.partition("/")[2]
        try:
            self._parameters = conninfo_to_dict(address) if readable else {}
        except psycopg.ProgrammingError:  # whose message may quote the password
            readable = False
        if not readable:
            raise InputError(
                f"the address of the database cannot be read; it is written like {EXAMPLE}, where "
                "characters such as @ : / % in a password are written as %40 %3A %2F %25. Options "
                "are those of libpq.",
                "address",
            )

    @contextmanager
    def borrowed(self) -> Iterator[Any]:
        """Lend a connection; it is kept where it comes back without a transaction."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        finally:
            is_idle = connection.info.transaction_status == TransactionStatus.IDLE
            if self._closed or not is_idle or len(self._idle) >= MOST_IDLE:
                connection.close()
            else:
                self._idle.append(connection)

    def forget(self) -> None:
        """Close all that nobody uses: where one was cut off, so probably were the others."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        """Close all that nobody uses, and the others once they come back."""
        self._closed = True
        self.forget()

    def __del__(self) -> None:
        self.forget()

    def _connect(self) -> Any:
        if self._closed:
            raise InputError("the connection to this database was closed; open it again.")
        parameters: dict[str, Any] = {
            "connect_timeout": "10",
            "fallback_application_name": "rankfold",
            "keepalives_idle": "10",  # a server that vanished is missed after half a minute
            "keepalives_interval": "5",
            "keepalives_count": "4",
            "tcp_user_timeout": str(int(1000 * backend.WAITING)),
            **self._parameters,
            "client_encoding": "utf8",
        }
        connection = _Connection.connect(autocommit=True, **parameters)
        timeout = [] if "options" in self._parameters else [TIMEOUT]
        connection.execute("; ".join([*timeout, FARTHER]).encode())
        return connection


def _name(*parts: str) -> sql.Identifier:
    """Quote a name for a statement with values to bind, in which % is doubled."""
    return sql.Identifier(*(part.replace("%", "%%") for part in parts))


def _condition(where: Any) -> tuple[sql.Composable, dict[str, Any]]:
    """Return a filter as SQL, and the values to bind."""
    if where is None:
        return sql.SQL("TRUE"), {}
    pair = (where.replace("%", "%%"), {}) if isinstance(where, str) else where
    text, values = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (None, None)
    if not isinstance(text, str) or not isinstance(values, Mapping):
        raise InputError(
            f"where is {where!r}, but must be an SQL condition, or a pair of one and a dict of "
            "values, such as ('price < %(most)s', {'most': 10}).",
            "where",
        )
    return sql.SQL("({})").format(sql.SQL(text)), dict(values)


def _floats(data: bytes) -> FloatArray:
    """Return a vector as pgvector sends it."""
    return np.frombuffer(data, ">f4", offset=4)
