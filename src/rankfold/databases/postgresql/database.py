"""A PostgreSQL database with all its indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from rankfold.check import DatabaseError
from rankfold.databases.postgresql.address import Address
from rankfold.databases.postgresql.connecting import Connection, Connections, answers, end
from rankfold.databases.postgresql.faults import explained
from rankfold.databases.postgresql.filling import (
    PostgreSQLFilling,
    check_settings,
    taken,
    unknown,
)
from rankfold.databases.postgresql.schema import LEFT_OVER, SETUP, names_of
from rankfold.databases.postgresql.table import Known, PostgreSQLTable
from rankfold.storage.columns import Column

OLDEST = (0, 8)
"""The version of pgvector that first let searches with a condition go on until they find enough."""

SWEEP_PATIENCE = "200ms"
"""How long dropping a table may wait for those who read it; meanwhile others have to wait, too."""


class PostgreSQL:
    """Indexes in a PostgreSQL database, by address.

    Parameters
    ----------
    address : str
        As libpq reads it, ``postgresql://user:password@host:port/database?options``; the option
        ``timeout`` is the number of seconds that an answer may take.
    """

    def __init__(self, address: str) -> None:
        self._address = Address.of(address)

    def names(self) -> list[str]:
        """Return the names of all tables of rankfold."""
        with self._connected() as connection:
            return _names(connection)

    def open(self, name: str) -> PostgreSQLTable:
        """Open a table."""
        connections = Connections(self._address)
        try:
            with explained(self._address), connections.borrowed() as connection:
                known = self._known(connection, name)
                self._check_extension(connection)
        except BaseException:
            connections.close()
            raise
        return PostgreSQLTable(connections, name, known)

    def check_place(self, name: str, *, replace: bool) -> None:
        """Require that `create` may make a table, before work is done for it."""
        with self._connected() as connection:
            if not replace and name in _names(connection):
                raise taken(self._address, name)
            self._set_up(connection)

    @contextmanager
    def create(
        self, name: str, settings: dict[str, Any], columns: tuple[Column, ...], *, replace: bool
    ) -> Iterator[PostgreSQLFilling]:
        """Begin to make a table; without `finish` in the block nothing is left of it."""
        check_settings(name, settings)
        self.check_place(name, replace=replace)
        with self._connections() as connections, connections.borrowed() as connection:
            _sweep(connection)
            try:
                yield PostgreSQLFilling(
                    connections, connection, name, settings, columns, replace=replace
                )
            finally:
                end(connection)
            _sweep(connection)

    def drop(self, name: str) -> None:
        """Delete a table."""
        patience = f"SET LOCAL lock_timeout = {int(1000 * self._address.timeout)}"
        sql = "UPDATE rankfold_tables SET number = NULL, version = version + 1 WHERE name = %s"
        with self._connected() as connection:
            self._known(connection, name)
            try:
                answers(connection, f"BEGIN; {patience}")
                connection.execute(sql, [name])
                connection.execute("COMMIT")
            finally:
                end(connection)
            _sweep(connection)

    def _known(self, connection: Connection, name: str) -> Known:
        """Return where the tables of an index are, which has to be there."""
        names = _names(connection)
        sql = "SELECT number, version, settings FROM rankfold_tables WHERE name = %s"
        found = connection.execute(sql, [name]).fetchall() if name in names else []
        if not found or found[0][0] is None:  # someone may delete it just now
            raise unknown(self._address, name, names)
        return Known(*found[0])

    @contextmanager
    def _connections(self) -> Iterator[Connections]:
        connections = Connections(self._address)
        try:
            yield connections
        finally:
            connections.close()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        connected = self._connections()
        with connected as all_, all_.borrowed() as connection, explained(self._address):
            yield connection

    def _set_up(self, connection: Connection) -> None:
        """Make what all indexes need, where it is not there yet."""
        ((present,),) = connection.execute(
            "SELECT to_regtype('vector') IS NOT NULL AND to_regclass('rankfold_tables') IS NOT NULL"
        ).fetchall()
        if not present:
            self._add_extension(connection)
            try:
                answers(connection, f"BEGIN; {SETUP}; COMMIT")
            finally:
                end(connection)
        self._check_extension(connection)

    def _add_extension(self, connection: Connection) -> None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.UniqueViolation:  # someone else is doing the same
            return
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as error:
            raise DatabaseError(
                f"{self._address.place} lacks the extension pgvector ({error.diag.message_primary})"
                ": see that it is installed on the server, and ask an administrator to run CREATE "
                "EXTENSION vector in this database."
            ) from error

    def _check_extension(self, connection: Connection) -> None:
        sql = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        for (version,) in connection.execute(sql).fetchall():
            if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
                oldest = ".".join(map(str, OLDEST))
                raise DatabaseError(
                    f"{self._address.place} has pgvector {version}, but {oldest} or newer is "
                    "needed: install it on the server, then run ALTER EXTENSION vector UPDATE."
                )


def _names(connection: Connection) -> list[str]:
    ((present,),) = connection.execute("SELECT to_regclass('rankfold_tables')").fetchall()
    if present is None:
        return []
    sql = "SELECT name FROM rankfold_tables WHERE number IS NOT NULL ORDER BY name"
    return [name for (name,) in connection.execute(sql).fetchall()]


def _sweep(connection: Connection) -> None:
    """Drop tables that were replaced or deleted, except those that someone is reading just now."""
    with suppress(psycopg.Error):  # whoever comes next tries again
        for (number,) in connection.execute(LEFT_OVER.encode()).fetchall():
            patience = f"SET LOCAL lock_timeout = '{SWEEP_PATIENCE}'"
            try:
                answers(connection, f"BEGIN; {patience}; DROP TABLE {names_of(number)}; COMMIT")
            except (psycopg.errors.LockNotAvailable, psycopg.errors.UndefinedTable):
                continue  # it is in use, or someone else was faster
            finally:
                end(connection)
