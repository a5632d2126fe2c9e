"""A table of PostgreSQL with a column of pgvector; the graph lies in a table beside it."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from math import isfinite
from threading import local
from typing import Any, Literal, NoReturn
from urllib.parse import quote, unquote
from uuid import UUID

import numpy as np

from rankfold.databases.protocol import Edges, Hits, Key, Page, Row
from rankfold.errors import DatabaseError, InputError, MissingExtraError, UnreachableError
from rankfold.types import FloatArray

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import TransactionStatus
except ImportError:
    raise MissingExtraError("psycopg", "postgresql") from None

TIMEOUT = 30.0
"""Seconds that a question may take; ``?timeout=...`` in the address says otherwise."""

EXAMPLE = "postgresql://user:password@host:5432/database?timeout=30"
PAUSES = (0.1, 0.4)
"""Seconds before a server that does not answer is tried again; a restart may take that long."""

MOST_IDLE, REAL_ARRAY = 16, 1021
"""Connections that are kept, and the number of the type ``real[]``."""

KEYS = {
    "smallint": "int", "integer": "int", "bigint": "int", "text": "str",
    "character varying": "str", "uuid": "uuid",
}  # fmt: skip
"""Types that a primary key may have."""

SETUP = "SET hnsw.ef_search = 200; SET hnsw.iterative_scan = relaxed_order; SET ivfflat.probes = 10"
"""Let searches in an approximate index of the table look further than by default."""

TRANSIENT = ("40001", "40P01", "53300", "57P01", "57P02", "57P03", "57P05")
ADVICE = {
    "25006": "this server may only be read, like a standby; changes need the address of the "
    "primary server",
    "42501": "ask an administrator for the rights to read this table, and to create tables in its "
    "schema",
    "53100": "make room on the disk of the server; what was stored is unharmed",
    "55P03": "others are using the table just now; try again later",
}
FACTS = """
SELECT format_type(a.atttypid, a.atttypmod), a.attname, t.typname, a.atttypmod, tn.nspname,
       coalesce(a.attnum = ANY(i.indkey) AND i.indnkeyatts = 1, false), n.nspname, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.oid = to_regclass(%s) ORDER BY a.attnum
"""
APPROXIMATE = """
SELECT count(*) FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
JOIN pg_am m ON m.oid = x.relam
WHERE i.indrelid = to_regclass(%s) AND m.amname IN ('hnsw', 'ivfflat')
"""


class PostgreSQL:
    """A table with vectors, and ``NAME_rankfold`` beside it for the graph.

    Parameters
    ----------
    address : str
        As libpq reads it; the option ``timeout`` is the number of seconds that an answer may take.
    table : str
        Its name, or ``schema.name``.
    vector, key : str, optional
        The column of vectors, where there are several; and that of keys, the primary key by
        default, of whole numbers, text or uuid.
    metric : {"euclidean", "cosine"}, optional
        What is left out is as it was attached; "euclidean" is the first metric.
    """

    metric: Literal["euclidean", "cosine"]

    def __init__(
        self,
        address: str,
        table: str,
        vector: str | None = None,
        key: str | None = None,
        metric: Literal["euclidean", "cosine"] | None = None,
    ) -> None:
        self._connections = _Connections(address)
        schema, dot, name = table.partition(".")
        parts = (schema, name) if dot else (table,)
        self._here = local()
        self.name = f"{self._connections.place}, table {table}"
        quoted = sql.Identifier(*parts).as_string(None)
        try:
            self._describe(quoted, vector, key, metric)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls,
        address: str,
        table: str,
        vector: str | None = None,
        *,
        key: str | None = None,
        metric: Literal["euclidean", "cosine"] | None = None,
    ) -> PostgreSQL:
        """Open a table at an address."""
        return cls(address, table, vector, key, metric)

    def _no_table(self, quoted: str) -> DatabaseError:
        query = (
            "SELECT DISTINCT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
            "JOIN pg_type t ON t.oid = a.atttypid WHERE t.typname = 'vector' AND c.relkind = 'r'"
        )
        known = sorted(repr(name) for (name,) in self._ask(sql.SQL(query), {}))
        return DatabaseError(
            f"{self._connections.place} has no table {quoted.replace(chr(34), chr(39))}; it has: "
            f"{', '.join(known) or 'none with vectors'}."
        )

    def _describe(self, quoted: str, vector: str | None, key: str | None, metric: Any) -> None:
        found = self._ask(sql.SQL(FACTS), (quoted,))
        if not found:
            raise self._no_table(quoted)
        *_, schema, relation = found[0]
        side = f"{relation}_rankfold"
        if len(side.encode()) > 63:
            raise InputError(f"{self.name}: the name is too long for a table {side!r} beside it.")
        self._side = sql.Identifier(schema, side).as_string(None)
        ((noted,),) = self._ask(sql.SQL("SELECT obj_description(to_regclass(%s))"), (self._side,))
        before = {} if noted is None else json.loads(noted)
        self.metric = metric or before.get("manifest", {}).get("metric", "euclidean")
        vector, key = vector or before.get("vector"), key or before.get("key")
        columns = {row[1]: row for row in found}
        vectors = [row[1] for row in found if row[2] == "vector"]
        chosen = vector or (vectors[0] if len(vectors) == 1 else None)
        known = ", ".join(map(repr, vectors)) or "none"
        if chosen is None:
            raise InputError(
                f"{self.name} has several columns of vectors, or none: {known}; name one.", "vector"
            )
        if chosen not in vectors:
            raise DatabaseError(
                f"{self.name} has no column of vectors {chosen!r}; it has: {known}."
            )
        keys = [row[1] for row in found if row[5]]
        key = key or (keys[0] if len(keys) == 1 else None)
        kind = columns[key][0].partition("(")[0] if key in columns else ""
        if key is None or chosen is None or kind not in KEYS:
            raise InputError(
                f"{self.name}: the key is {key!r} of type {kind or 'none'!r}, but must be a column "
                f"of {', '.join(KEYS)} that names every row once; give it as key.",
                "key",
            )
        spot = columns[chosen]
        self._uuids = kind == "uuid"
        self._payload = [name for name in columns if name not in (key, *vectors)]
        self._noted = {"vector": chosen, "key": key}
        index = self._ask(sql.SQL(APPROXIMATE), (quoted,))
        self.exact = not index[0][0]
        order = _name(key) + sql.SQL(' COLLATE "C"' if KEYS[kind] == "str" else "")
        self._parts = {
            "table": _name(schema, relation),
            "side": _name(schema, side),
            "key": _name(key),
            "order": order,
            "keys": sql.SQL(f"%(keys)s::{kind}[]"),
            "kind": sql.SQL(kind),
            "vector": _name(chosen),
            "vector_type": _name(spot[4], "vector"),
            "sign": sql.SQL("OPERATOR({}.{})").format(
                _name(spot[4]), sql.SQL("<->" if self.metric == "euclidean" else "<=>")
            ),
        }
        self.n_features = spot[3]
        if self.n_features < 1:
            first = self._run("SELECT {vector} FROM {table} WHERE {vector} IS NOT NULL LIMIT 1")
            self.n_features = len(first[0][0]) // 4 - 1 if first else 1

    @property
    def round_trips(self) -> int:
        """How often this thread has waited for an answer."""
        return getattr(self._here, "round_trips", 0)

    def count(self) -> int:
        """Return the number of points."""
        return int(self._run("SELECT count(*) FROM {table} WHERE {vector} IS NOT NULL")[0][0])

    def scan(self, size: int) -> Iterator[Page]:
        """Yield every point once, in the order of keys."""
        query = "SELECT {key}, {vector} FROM {table} WHERE {vector} IS NOT NULL ORDER BY {order}"
        for rows in self._stream(query, size):
            yield self._page(rows)

    def vectors(self, keys: Sequence[Key]) -> Page:
        """Return those of some points that are there."""
        query = (
            "SELECT {key}, {vector} FROM {table} WHERE {key} = ANY({keys}) AND {vector} IS NOT NULL"
        )
        return self._page(self._run(query, keys=keys))

    def search(self, vectors: FloatArray, k: int, where: Any = None) -> list[Hits]:
        """Return the points nearest to each vector, among those that a filter lets through."""
        condition, values = _condition(where)
        query = (
            "SELECT a.place, near.* FROM (SELECT one::{vector_type} AS one, place "
            "FROM unnest(%(vectors)s::text[]) WITH ORDINALITY b(one, place) OFFSET 0) a "
            "CROSS JOIN LATERAL (SELECT {key}, {vector} {sign} a.one AS distance FROM {table} "
            "WHERE {vector} IS NOT NULL AND {condition} ORDER BY {vector} {sign} a.one "
            "LIMIT %(k)s) near"
        )
        texts = [_text(vector) for vector in np.atleast_2d(vectors)]
        with self._filtering(where):
            rows = self._run(query, {"condition": condition}, vectors=texts, k=k, **values)
        found: list[list[tuple[Key, float]]] = [[] for _ in texts]
        for place, key, distance in rows:
            found[place - 1].append((self._named(key), self._squared(distance)))
        lists = [sorted(hits, key=lambda hit: hit[1]) for hits in found]
        return [Hits([key for key, _ in one], np.array([d for _, d in one])) for one in lists]

    def distances(self, vector: FloatArray, keys: Sequence[Key]) -> Hits:
        """Return how far points are from a vector, those that are there."""
        query = (
            "SELECT {key}, {vector} {sign} %(vector)s::{vector_type} FROM {table} "
            "WHERE {key} = ANY({keys}) AND {vector} IS NOT NULL"
        )
        rows = self._run(query, keys=keys, vector=_text(vector))
        return Hits(
            [self._named(row[0]) for row in rows], np.array([self._squared(row[1]) for row in rows])
        )

    def payload(self, keys: Sequence[Key]) -> Mapping[Key, dict[str, Any]]:
        """Return what the user keeps with points: all columns but key and vectors."""
        columns = sql.SQL(", ").join(map(_name, self._payload))
        fields = sql.SQL("(SELECT to_jsonb(p) FROM (SELECT {}) p)").format(columns)
        query = (
            "SELECT {key}, {fields} FROM {table} WHERE {key} = ANY({keys}) AND {vector} IS NOT NULL"
        )
        rows = self._run(query, {"fields": fields}, keys=keys)
        return {self._named(key): fields for key, fields in rows}

    def matching(self, keys: Sequence[Key], where: Any) -> set[Key]:
        """Return which of some points are there, and pass a filter, if any."""
        condition, values = _condition(where)
        query = (
            "SELECT {key} FROM {table} WHERE {key} = ANY({keys}) AND {vector} IS NOT NULL "
            "AND {condition}"
        )
        with self._filtering(where):
            rows = self._run(query, {"condition": condition}, keys=keys, **values)
        return {self._named(key) for (key,) in rows}

    def begin(self, keys: Sequence[Key]) -> tuple[dict[str, Any] | None, Mapping[Key, Row]]:
        """Return the manifest and rows of some points, in one exchange."""
        if not keys:
            return self.read_manifest(), {}
        query = (
            "SELECT NULL, obj_description(to_regclass(%(side)s)), NULL, NULL, NULL, NULL "
            "UNION ALL SELECT key, checksum::text, nearest, sq_distances, neighbors, weights "
            "FROM {side} WHERE key = ANY({keys})"
        )
        try:
            (_, manifest, *_), *rows = self._run(query, keys=keys, side=self._side)
        except _MissingTableError:
            return None, {}
        found = {self._named(row[0]): self._row(row) for row in rows}
        return _manifest(manifest), found

    def read_manifest(self) -> dict[str, Any] | None:
        """Return what is recorded of the graph: the comment of the table beside."""
        query = "SELECT obj_description(to_regclass(%(side)s))"
        ((manifest,),) = self._run(query, side=self._side)
        return _manifest(manifest)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Record it as the comment of the table beside, which is made if it is not there."""
        self._run(
            "CREATE TABLE IF NOT EXISTS {side} (key {kind} PRIMARY KEY, checksum bigint NOT NULL, "
            "nearest {kind}[] NOT NULL, sq_distances real[] NOT NULL, "
            "neighbors {kind}[] NOT NULL, weights real[] NOT NULL)"
        )
        noted = json.dumps({"manifest": dict(manifest), **self._noted})
        text = sql.Literal(noted.replace("%", "%%"))
        self._run("COMMENT ON TABLE {side} IS {text}", {"text": text})

    def edges(self, keys: Sequence[Key]) -> Mapping[Key, Edges]:
        """Return rows of the graph, in one exchange."""
        query = "SELECT key, neighbors, weights FROM {side} WHERE key = ANY({keys})"
        return self._edges(self._stored(query, keys=keys))

    def around(self, key: Key, n: int) -> Mapping[Key, Edges]:
        """Return rows of about the ``n`` points nearest to a point, in one exchange."""
        query = (
            "SELECT key, neighbors, weights FROM {side} WHERE key IN (SELECT {key} FROM {table} "
            "WHERE {vector} IS NOT NULL ORDER BY {vector} {sign} "
            "(SELECT {vector} FROM {table} WHERE {key} = ANY({keys})) LIMIT %(n)s)"
        )
        return self._edges(self._stored(query, keys=[key], n=n))

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        """Return all that is stored for some points."""
        found = self._stored("SELECT * FROM {side} WHERE key = ANY({keys})", keys=keys)
        return {self._named(row[0]): self._row(row) for row in found}

    def scan_rows(self, size: int) -> Iterator[list[Row]]:
        """Yield all that is stored."""
        with suppress(_MissingTableError):
            for rows in self._stream("SELECT * FROM {side}", size):
                yield [self._row(row) for row in rows]

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Store rows, in place of those of the same points."""
        some = list(rows)
        with self._explained(), self._connection() as connection:
            self.remove_rows([row.key for row in some])
            self._waited()
            into = f"COPY {self._side} FROM STDIN".encode()  # quoted; nothing is bound here
            with connection.cursor().copy(into) as copy:
                for row in some:
                    copy.write_row((
                        row.key, row.checksum, list(row.nearest),
                        np.asarray(row.sq_distances, np.float64).tolist(), list(row.neighbors),
                        np.asarray(row.weights, np.float64).tolist(),
                    ))  # fmt: skip

    def remove_rows(self, keys: Sequence[Key]) -> None:
        """Remove what is stored for some points."""
        self._stored("DELETE FROM {side} WHERE key = ANY({keys})", keys=keys)

    def detach(self) -> None:
        """Remove the table beside."""
        self._run("DROP TABLE IF EXISTS {side}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Group what is written; one at a time for a table."""
        with self._explained(), self._connections.borrowed() as connection:
            self._here.connection = connection
            try:
                with connection.transaction():
                    connection.execute("SET LOCAL statement_timeout = 0")
                    connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [self._side])
                    yield
            finally:
                self._here.connection = None

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def _page(self, rows: Sequence[tuple[Any, bytes]]) -> Page:
        vectors = np.empty((len(rows), self.n_features), np.float32)
        for place, (_, data) in enumerate(rows):
            found = np.frombuffer(data, ">f4", offset=4)
            if len(found) != self.n_features:
                raise DatabaseError(
                    f"{self.name} has vectors of {self.n_features} numbers, but that of "
                    f"{rows[place][0]!r} has {len(found)}; a graph needs vectors of one length."
                )
            vectors[place] = found
        return Page([self._named(key) for key, _ in rows], vectors)

    def _edges(self, rows: Iterable[tuple[Any, Any, Any]]) -> dict[Key, Edges]:
        return {self._named(key): Edges(self._names(near), w) for key, near, w in rows}

    def _row(self, row: Sequence[Any]) -> Row:
        key, checksum, nearest, sq_distances, neighbors, weights = row
        lists = self._names(nearest), sq_distances, self._names(neighbors), weights
        return Row(self._named(key), int(checksum), *lists)

    def _named(self, key: Any) -> Key:
        return str(key) if self._uuids else key

    def _names(self, keys: Any) -> Sequence[Key]:
        return list(map(str, keys)) if self._uuids else keys

    def _squared(self, distance: float) -> float:
        return float(distance) ** 2 if self.metric == "euclidean" else 2.0 * float(distance)

    def _query(self, text: str, more: Mapping[str, Any] | None = None) -> sql.Composed:
        return sql.SQL(text).format(**self._parts, **(more or {}))

    def _run(self, text: str, more: Mapping[str, Any] | None = None, **values: Any) -> list[Any]:
        if "keys" in values:
            values["keys"] = self._checked(values["keys"])
        return self._ask(self._query(text, more), values)

    def _stored(self, text: str, **values: Any) -> list[Any]:
        """Run what reads or removes rows; where nothing is attached, there are none."""
        with suppress(_MissingTableError):
            return self._run(text, **values)
        return []

    def _checked(self, keys: Sequence[Key]) -> list[Any]:
        """Return keys as the column holds them; others name no point."""
        if self._uuids:
            return [found for found in map(_uuid, keys) if found is not None]
        whole = self._parts["kind"].as_string(None) not in ("text", "character varying")
        kept = int if whole else str
        return [key for key in keys if isinstance(key, kept) and not isinstance(key, bool)]

    def _ask(self, query: sql.Composable, values: Any) -> list[Any]:
        """Ask one question; once more where a connection turns out to be cut off."""
        own = getattr(self._here, "connection", None)
        with self._explained():
            if own is None:
                with suppress(psycopg.OperationalError), self._connections.borrowed() as connection:
                    return self._answered(connection, query, values)
                self._connections.forget()
            with self._connection() as connection:
                return self._answered(connection, query, values)

    def _answered(self, connection: Any, query: sql.Composable, values: Any) -> list[Any]:
        self._waited()
        cursor = connection.execute(query, values, binary=True)
        return list(cursor.fetchall()) if cursor.description else []

    def _stream(self, text: str, size: int) -> Iterator[list[Any]]:
        """Read through a cursor of the server, in one state."""
        with (
            self._explained(),
            self._connections.borrowed() as connection,
            connection.transaction(),
            connection.cursor("rankfold", binary=True) as cursor,
        ):
            connection.execute("SET LOCAL statement_timeout = 0")
            cursor.execute(self._query(text), {})
            while rows := cursor.fetchmany(size):
                self._waited()
                yield rows

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        own = getattr(self._here, "connection", None)
        if own is not None:
            yield own
            return
        with self._connections.borrowed() as connection:
            yield connection

    def _waited(self) -> None:
        self._here.round_trips = self.round_trips + 1

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of PostgreSQL into ones that name the place and say what to do."""
        try:
            yield
        except psycopg.errors.UndefinedTable as error:
            raise _MissingTableError(f"{self.name}: {_said(error)}; see what is there.") from error
        except psycopg.Error as error:
            raise _explanation(error, self._connections) from error

    @contextmanager
    def _filtering(self, where: Any) -> Iterator[None]:
        """Let errors name the filter, where it is that which the server does not understand."""
        try:
            yield
        except DatabaseError as error:
            cause = error.__cause__
            if where is None or not isinstance(cause, psycopg.ProgrammingError | psycopg.DataError):
                raise
            raise InputError(
                f"where is {where!r}, which the database refuses: {_said(cause)}.", "where"
            ) from error


class _MissingTableError(DatabaseError):
    """A table is not there."""


def _manifest(noted: str | None) -> dict[str, Any] | None:
    return None if noted is None else dict(json.loads(noted)["manifest"])


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


def _text(vector: FloatArray) -> str:
    return "[" + ",".join(f"{value:.9g}" for value in np.asarray(vector).tolist()) + "]"


def _uuid(key: Key) -> UUID | None:
    with suppress(ValueError, AttributeError, TypeError):
        return UUID(str(key))
    return None


class _Connections:
    """Connections to a database, by address; each is used by one thread at a time."""

    def __init__(self, address: str) -> None:
        start, _, options = address.partition("?")
        if "@" in start.partition("@")[2] or "@" in start.partition("://")[2].partition("/")[2]:
            _unreadable()  # libpq would take part of a password for a host, which is shown
        pairs = [option.partition("=") for option in options.split("&")]
        rest = "&".join("".join(pair) for pair in pairs if pair[0] != "timeout")
        try:
            self._parameters = conninfo_to_dict(f"{start}?{rest}" if rest else start)
        except psycopg.ProgrammingError:  # whose message may quote the password
            _unreadable()
        given = {name: unquote(value) for name, _, value in pairs}.get("timeout")
        self.timeout = _seconds(given)
        self._idle: deque[Any] = deque()
        self._closed = False

    @property
    def place(self) -> str:
        """How people are told where it is: without the password."""
        part = self._parameters.get
        user = f"{part('user')}@" if part("user") else ""
        host, database = str(part("host") or part("hostaddr") or ""), str(part("dbname") or "")
        port = f":{part('port')}" if part("port") else ""
        name = quote(database, safe="")
        if host.startswith("/"):  # the folder of a socket
            return f"postgresql://{user}{port}/{name}?host={host}"
        return f"postgresql://{user}{host}{port}/{name}"

    @contextmanager
    def borrowed(self) -> Iterator[Any]:
        """Lend a connection; it is kept where it comes back without a transaction."""
        connection = None
        with suppress(IndexError):
            connection = self._idle.pop()
        connection = connection or self._connect()
        try:
            yield connection
        finally:
            idle = connection.info.transaction_status == TransactionStatus.IDLE
            if self._closed or not idle or len(self._idle) >= MOST_IDLE:
                connection.close()
            else:
                self._idle.append(connection)

    def forget(self) -> None:
        """Close all that nobody uses: where one was cut off, so probably were the others."""
        for connection in islice(iter(lambda: self._idle.pop() if self._idle else None, None), 99):
            connection.close()

    def close(self) -> None:
        """Close all that nobody uses, and the others once they come back."""
        self._closed = True
        self.forget()

    def __del__(self) -> None:
        with suppress(AttributeError):  # of an address that could not be read
            self.forget()

    def _connect(self) -> Any:
        if self._closed:
            raise InputError(f"{self.place} was closed; open it again.")
        for pause in (*PAUSES, None):
            try:
                return self._opened()
            except psycopg.Error as error:
                fault = _refusal(error, self.place)
                if pause is None or not isinstance(fault, UnreachableError):
                    raise fault from error
            time.sleep(pause)
        raise AssertionError("the last attempt either connects or fails")

    def _opened(self) -> Any:
        parameters: dict[str, Any] = {
            "connect_timeout": "10",
            "fallback_application_name": "rankfold",
            "keepalives_idle": "10",  # a server that vanished is missed after half a minute
            "keepalives_interval": "5",
            "keepalives_count": "4",
            "tcp_user_timeout": str(int(1000 * self.timeout)),
            **self._parameters,
            "client_encoding": "utf8",
        }
        connection = psycopg.connect(autocommit=True, **parameters)
        connection.adapters.register_loader(REAL_ARRAY, _Floats)
        connection.execute(f"SET statement_timeout = {int(1000 * self.timeout)}; {SETUP}".encode())
        return connection


class _Floats(psycopg.adapt.Loader):
    """Reads ``real[]`` without missing values."""

    format = psycopg.pq.Format.BINARY

    def load(self, data: Any) -> FloatArray:
        kind = [("length", ">i4"), ("value", ">f4")]
        pairs = np.frombuffer(bytes(data)[20:], kind)  # an empty array has no more than its head
        return pairs["value"].astype(np.float32)


def _unreadable() -> NoReturn:
    raise InputError(
        f"the address of the database cannot be read; it is written like {EXAMPLE}, where "
        "characters such as @ : / % in a password are written as %40 %3A %2F %25. Options are "
        "those of libpq, and timeout.",
        "address",
    ) from None


def _seconds(text: str | None) -> float:
    with suppress(ValueError):
        seconds = TIMEOUT if text is None else float(text)
        if seconds > 0 and isfinite(seconds):
            return seconds
    raise InputError(
        f"timeout in the address of the database is {text!r}, but must be a number of seconds "
        "above zero.",
        "address",
    )


def _refusal(error: psycopg.Error, place: str) -> DatabaseError:
    """Return the error for a connection that did not come about; servers send no codes then."""
    said = _said(error)
    later = any(word in said for word in ("starting up", "shutting down", "too many"))
    if "FATAL:" in str(error) and not later:
        return DatabaseError(
            f"{place} refuses the connection ({said}): see that the user, the database and the "
            "password are right, which is best given in PGPASSWORD or ~/.pgpass."
        )
    return UnreachableError(
        f"{place} cannot be reached ({said}): see that the server runs and can be reached, then "
        "try again."
    )


def _explanation(error: psycopg.Error, connections: _Connections) -> DatabaseError:
    """Return the error for a statement that failed."""
    code, place, said = error.sqlstate, connections.place, _said(error)
    if code == "57014":
        return UnreachableError(
            f"{place} took longer than {connections.timeout:g} seconds: try again when it has less "
            "to do, or allow it more by ?timeout=... in the address."
        )
    if code is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return UnreachableError(f"the connection to {place} was lost ({said}): try again.")
    if code in TRANSIENT:
        return UnreachableError(f"{place} gave up ({said}): try again later.")
    return DatabaseError(f"{place} refuses ({said}): {ADVICE.get(code or '', 'mend it')}.")


def _said(error: psycopg.Error) -> str:
    """Return the first thing that the server said, without where it listens."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    return said.rsplit("FATAL:", 1)[-1].strip()
