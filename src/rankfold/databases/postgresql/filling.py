"""An index in the making: one transaction, of which nobody sees anything before it ends.

Whatever stops it, Ctrl-C, a crash or a lost connection, PostgreSQL itself takes everything back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from rankfold.check import DatabaseError, InputError
from rankfold.databases.contract import Head, NewPoints
from rankfold.databases.postgresql.address import Address
from rankfold.databases.postgresql.committing import commit
from rankfold.databases.postgresql.connecting import Connection, Connections, answers
from rankfold.databases.postgresql.copying import copy_points, copy_rows
from rankfold.databases.postgresql.faults import explained
from rankfold.databases.postgresql.reading import PostgreSQLSession
from rankfold.databases.postgresql.schema import (
    MOST_FEATURES,
    MOST_INDEXED,
    creation,
    hnsw_indexed,
    ids_indexed,
    names_of,
)
from rankfold.databases.postgresql.searching import ITERATIVE
from rankfold.databases.postgresql.writing import as_json
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column
from rankfold.storage.ids import few

BEGIN = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL lock_timeout = {timeout};
SET LOCAL jit = off;
SELECT nextval('rankfold_numbers')::integer
"""
APPEAR = """
INSERT INTO rankfold_tables AS there (name, number, version, n_points, n_alive, columns, settings)
VALUES (%(name)s, %(number)s, 1, %(n_points)s, %(n_alive)s, %(columns)s, %(settings)s)
ON CONFLICT (name) DO UPDATE SET
    number = excluded.number, version = there.version + 1, n_points = excluded.n_points,
    n_alive = excluded.n_alive, columns = excluded.columns, settings = excluded.settings
WHERE there.number IS NULL OR %(replace)s
RETURNING pg_current_xact_id()::text
"""


class PostgreSQLFilling:
    """Fills new tables, and gives them a name at the end."""

    def __init__(
        self, connections: Connections, connection: Connection, name: str,
        settings: dict[str, Any], columns: tuple[Column, ...], *, replace: bool,
    ) -> None:  # fmt: skip
        self._connection, self._connections = connection, connections
        self._address = address = connections.address
        self._name, self._replace = name, replace
        self._settings, self._columns = settings, columns
        self._n_points = self._n_alive = 0
        self._searchable = settings["search"] == "exact"
        with explained(address):
            ((row,),) = answers(connection, BEGIN.format(timeout=int(1000 * address.timeout)))
            self._number = int(row[0])
            answers(connection, creation(self._number, settings, columns))

    def add(self, points: NewPoints, rows: Rows | None) -> None:
        """Write some points and their rows; in ascending order of slots."""
        if not len(points.slots):
            return
        with explained(self._address):
            n_features = self._settings["n_features"]
            copy_points(self._connection, self._number, points, self._columns, n_features)
        self._n_points = int(points.slots[-1]) + 1
        self._n_alive += len(points.slots)
        if rows is not None:
            self.write_rows(rows)

    def write_rows(self, rows: Rows) -> None:
        """Write rows of points that are there."""
        with explained(self._address):
            copy_rows(self._connection, self._number, rows, self._settings)

    @contextmanager
    def session(self) -> Iterator[PostgreSQLSession]:
        """Search among the points so far, to make lists of them."""
        with explained(self._address):
            self._make_searchable()
        head = Head(0, self._n_points, self._n_alive, self._settings, self._columns)
        yield PostgreSQLSession(self._connection, self._address, self._number, head)

    def finish(self) -> None:
        """Build the index for searches, then let the table appear, or replace the one there."""
        with explained(self._address):
            self._make_searchable()
            self._index_ids()
            answers(self._connection, f"ANALYZE {names_of(self._number)}")
            values = {
                "name": self._name, "number": self._number, "replace": self._replace,
                "n_points": self._n_points, "n_alive": self._n_alive,
                "columns": as_json(self._columns), "settings": json.dumps(self._settings),
            }  # fmt: skip
            made = self._connection.execute(APPEAR.encode(), values).fetchall()
        if not made:
            raise taken(self._address, self._name)
        commit(self._connection, self._connections, made[0][0])

    def _index_ids(self) -> None:
        try:
            answers(self._connection, ids_indexed(self._number))
        except psycopg.errors.UniqueViolation as error:
            raise InputError(
                f"ids are given more than once ({error.diag.message_detail}); every point needs "
                "its own."
            ) from None

    def _make_searchable(self) -> None:
        """Build the HNSW index, by one process where the server has no memory for several."""
        if self._searchable:
            return
        build = hnsw_indexed(self._number, self._n_points, self._settings["n_features"])
        answers(self._connection, f"{ITERATIVE} SAVEPOINT unindexed")
        try:
            answers(self._connection, build)
        except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
            alone = "SET LOCAL max_parallel_maintenance_workers = 0"
            answers(self._connection, f"ROLLBACK TO unindexed; {alone}; {build}")
        self._searchable = True


def check_settings(name: str, settings: dict[str, Any]) -> None:
    """Require a name and vectors that PostgreSQL can hold."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise InputError(
            f"the index is called {name!r}, but names are texts of 1 to 200 printable characters."
        )
    n_features, search = settings["n_features"], settings["search"]
    if not 0 < n_features <= MOST_FEATURES:
        raise DatabaseError(
            f"vectors have {n_features} features, but pgvector holds up to {MOST_FEATURES}; reduce "
            "them, for example by PCA."
        )
    if search == "hnsw" and n_features > MOST_INDEXED:
        raise DatabaseError(
            f"vectors have {n_features} features, but the HNSW index of pgvector takes up to "
            f"{MOST_INDEXED}; let the database search exactly, or reduce them, for example by PCA."
        )


def taken(address: Address, name: str) -> DatabaseError:
    """Return the error for a name that is in use."""
    return DatabaseError(
        f"{address.place} has an index {name!r} already; choose another name, or give "
        "replace=True to put this one into its place."
    )


def unknown(address: Address, name: str, names: Sequence[str]) -> DatabaseError:
    """Return the error for a name that is not in use."""
    there = f"there are {few(names)}" if names else "there are none"
    return DatabaseError(f"{address.place} has no index {name!r}; {there}.")
