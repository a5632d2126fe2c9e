"""An index in PostgreSQL: how its sessions begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.sql import Literal

from rankfold.check import DatabaseError, UnreachableError
from rankfold.databases.contract import Head
from rankfold.databases.postgresql.connecting import Connection, Connections, answers, end
from rankfold.databases.postgresql.faults import explain, explained
from rankfold.databases.postgresql.reading import PostgreSQLSession
from rankfold.databases.postgresql.schema import names_of
from rankfold.databases.postgresql.searching import ITERATIVE
from rankfold.databases.postgresql.writing import PostgreSQLWriting
from rankfold.storage.columns import Column

S = TypeVar("S")

ATTEMPTS = 5
"""How often to follow an index that is being replaced, again and again."""

FEW_SLOTS = 1000
"""Slots of a change that are sent to every session that has not seen it."""

READING = """
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
{settings}
LOCK TABLE {tables} IN ACCESS SHARE MODE;
{head};
SELECT version, slots FROM rankfold_{number}_changes
WHERE version > {version} AND cardinality(slots) <= {few}
"""
"""The lock comes before the snapshot, which the first SELECT takes: so nobody can drop or rewrite
a table between what the head says and the first question to it. Large changes are not sent to
those who may not need them."""

WRITING = """
BEGIN ISOLATION LEVEL READ COMMITTED;
{settings}
SET LOCAL lock_timeout = {timeout};
SET LOCAL idle_in_transaction_session_timeout = 0;
{head} FOR UPDATE
"""

HEAD = """
SELECT number, version, n_points, n_alive, columns,
CASE WHEN number = {number} THEN NULL ELSE settings END
FROM rankfold_tables WHERE name = {name} AND number IS NOT NULL
"""


class Known(NamedTuple):
    """What was read last: saves sending the same again."""

    number: int
    version: int
    settings: dict[str, Any]


class ReplacedError(Exception):
    """The tables are no longer those of this index."""


class PostgreSQLTable:
    """An index by its name; each session gets a connection of its own."""

    def __init__(self, connections: Connections, name: str, known: Known) -> None:
        self.place = f"{connections.address.place} {name!r}"
        self._name = name
        self._connections = connections
        self._known = known

    @contextmanager
    def reading(self) -> Iterator[PostgreSQLSession]:
        """Begin a session."""
        with self._begun(self._read) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[PostgreSQLWriting]:
        """Begin a session that may change the table, once nobody else does."""
        with self._begun(self._write) as session:
            yield session

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    @contextmanager
    def _begun(self, begin: Callable[[Connection], S]) -> Iterator[S]:
        """Begin; with another connection where one had been cut off, as nothing was read yet."""
        fresh = False
        for _ in range(ATTEMPTS):
            with self._connections.borrowed(fresh) as connection:
                try:
                    session = begin(connection)
                except ReplacedError:
                    end(connection)
                    self._follow(connection)
                    continue
                except psycopg.Error as error:
                    end(connection)
                    fault = explain(error, self._connections.address)
                    if fresh or not (isinstance(fault, UnreachableError) and connection.closed):
                        raise fault from error
                    self._connections.forget()
                    fresh = True
                    continue
                try:
                    yield session
                finally:
                    end(connection)
                return
        raise UnreachableError(f"{self.place} is being replaced all the time; try again later.")

    def _read(self, connection: Connection) -> PostgreSQLSession:
        known = self._known
        sql = READING.format(
            settings=self._settings(1),
            tables=names_of(known.number),
            head=self._head_of(known.number, connection),
            number=known.number,
            version=known.version,
            few=FEW_SLOTS,
        )
        try:
            found, changes = answers(connection, sql)
        except psycopg.errors.UndefinedTable:
            raise ReplacedError from None
        head = self._head(found, known)
        return PostgreSQLSession(
            connection, self._connections.address, known.number, head, dict(changes)
        )

    def _write(self, connection: Connection) -> PostgreSQLWriting:
        known = self._known
        timeout = int(1000 * self._connections.address.timeout)
        sql = WRITING.format(
            settings=self._settings(2),
            timeout=timeout,
            head=self._head_of(known.number, connection),
        )
        (found,) = answers(connection, sql)
        head = self._head(found, known)
        return PostgreSQLWriting(connection, self._connections, known.number, head)

    def _settings(self, patience: int) -> str:
        timeout = int(1000 * patience * self._connections.address.timeout)
        settings = f"SET LOCAL statement_timeout = {timeout}; SET LOCAL jit = off;"
        if self._known.settings["search"] == "hnsw":
            settings += ITERATIVE
        return settings

    def _head_of(self, number: int, connection: Connection) -> str:
        return HEAD.format(number=number, name=Literal(self._name).as_string(connection))

    def _head(self, found: list[tuple[Any, ...]], known: Known) -> Head:
        """Return the head, where it is that of the tables that are known."""
        if not found:
            raise self._gone()
        number, version, n_points, n_alive, columns, _ = found[0]
        if number != known.number:
            raise ReplacedError
        self._known = known._replace(version=max(version, known.version))
        return Head(version, n_points, n_alive, known.settings, as_columns(columns))

    def _follow(self, connection: Connection) -> None:
        """Learn the tables that this index has now."""
        with explained(self._connections.address):
            (found,) = answers(connection, self._head_of(-1, connection))
        if not found:
            raise self._gone()
        number, version, *_, settings = found[0]
        self._known = Known(number, version, settings)

    def _gone(self) -> DatabaseError:
        return DatabaseError(f"{self.place} is no longer there: someone has deleted it.")


def as_columns(written: list[list[Any]]) -> tuple[Column, ...]:
    """Read columns that were written down."""
    return tuple(Column(*fields) for fields in written)
