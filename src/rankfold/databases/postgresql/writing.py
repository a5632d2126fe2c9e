"""A session that changes an index: everything at once, or nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankfold.databases.contract import Head, TableChange
from rankfold.databases.postgresql.arguments import Integers
from rankfold.databases.postgresql.committing import commit
from rankfold.databases.postgresql.connecting import Connection, Connections
from rankfold.databases.postgresql.copying import copy_points, copy_rows
from rankfold.databases.postgresql.faults import explained
from rankfold.databases.postgresql.reading import PostgreSQLSession
from rankfold.databases.postgresql.schema import CHANGES_KEPT, TYPES, widening
from rankfold.storage.columns import EXACT, Column, too_large
from rankfold.types import IntArray

NEW_HEAD = """
UPDATE rankfold_tables SET version = version + %s, n_points = %s, n_alive = %s, columns = %s
WHERE number = %s RETURNING version, pg_current_xact_id()::text
"""


class PostgreSQLWriting(PostgreSQLSession):
    """Holds the lock on the head of an index, and thereby is alone in changing it.

    Another one of the ``connections`` is asked for the fate of a change where this one is lost.
    """

    def __init__(
        self, connection: Connection, connections: Connections, number: int, head: Head
    ) -> None:
        super().__init__(connection, connections.address, number, head)
        self._connections = connections

    def commit(self, change: TableChange) -> int:
        """Make a change, durably; return the new version."""
        number, settings, added = self._number, self.head.settings, change.added
        connection = self._connection
        with explained(self._address):
            connection.execute("SET LOCAL statement_timeout = 0")
            self._widen(change.columns)
            self._delete("points", change.removed)
            self._delete("lists", np.union1d(change.removed, change.rows.slots))
            if len(added.slots):
                copy_points(connection, number, added, change.columns, settings["n_features"])
            if len(change.rows):
                copy_rows(connection, number, change.rows, settings)
            changed = np.union1d(np.union1d(change.removed, added.slots), change.rows.slots)
            n_points = max([self.head.n_points, *(added.slots[-1:] + 1).tolist()])
            n_alive = self.head.n_alive + len(added.slots) - len(change.removed)
            version, transaction = self._write_head(1, n_points, n_alive, change.columns)
            self._note(version, changed)
        commit(self._connection, self._connections, transaction)
        return version

    def change_payload(
        self, slots: IntArray, payload: dict[str, list[Any]], columns: tuple[Column, ...]
    ) -> None:
        """Give points other values in some columns, durably; the version stays as it is."""
        head = self.head
        with explained(self._address):
            self._connection.execute("SET LOCAL statement_timeout = 0")
            self._widen(columns)
            self._update([column for column in columns if column.name in payload], slots, payload)
            _, transaction = self._write_head(0, head.n_points, head.n_alive, columns)
        commit(self._connection, self._connections, transaction)

    def _widen(self, columns: tuple[Column, ...]) -> None:
        for old, new in zip(self.head.columns, columns, strict=True):
            if (old.kind, new.kind) == ("integer", "number"):
                inexact = (
                    f"SELECT {new.key} FROM {self._points} WHERE {new.key} NOT BETWEEN %s AND %s"  # noqa: S608
                )
                for (value,) in self._fetch(f"{inexact} LIMIT 1", [-EXACT, EXACT]):
                    raise too_large(new.name, value)
        for statement in widening(self._number, self.head.columns, columns):
            self._connection.execute(statement.encode())

    def _delete(self, what: str, slots: IntArray) -> None:
        if len(slots):
            sql = f"DELETE FROM rankfold_{self._number}_{what} WHERE slot = ANY(%s)"  # noqa: S608
            self._connection.execute(sql.encode(), [Integers(slots)])

    def _update(
        self, columns: Sequence[Column], slots: IntArray, payload: dict[str, list[Any]]
    ) -> None:
        if not columns or not len(slots):
            return
        kinds = [TYPES[column.kind].partition(" COLLATE")[0] for column in columns]
        arrays = ", ".join(["%s", *(f"%s::{kind}[]" for kind in kinds)])
        keys = [column.key for column in columns]
        places = ", ".join(f"{key} = new.{key}" for key in keys)
        sql = (
            f"UPDATE {self._points} AS points SET {places} "  # noqa: S608
            f"FROM unnest({arrays}) AS new(slot, {', '.join(keys)}) WHERE points.slot = new.slot"
        )
        values = [_as_kept(column, payload[column.name]) for column in columns]
        self._connection.execute(sql.encode(), [Integers(np.asarray(slots)), *values])

    def _write_head(
        self, step: int, n_points: int, n_alive: int, columns: tuple[Column, ...]
    ) -> tuple[int, str]:
        written = as_json(columns)
        values = [step, n_points, n_alive, written, self._number]
        ((version, transaction),) = self._connection.execute(NEW_HEAD.encode(), values).fetchall()
        return int(version), str(transaction)

    def _note(self, version: int, slots: IntArray) -> None:
        """Write down what changed, and forget what changed long ago."""
        table = f"rankfold_{self._number}_changes"
        insert = f"INSERT INTO {table} VALUES (%s, %s)"  # noqa: S608
        self._connection.execute(insert.encode(), [version, Integers(slots)])
        forget = f"DELETE FROM {table} WHERE version <= %s"  # noqa: S608
        self._connection.execute(forget.encode(), [version - CHANGES_KEPT])


def as_json(columns: Sequence[Column]) -> str:
    """Write columns down."""
    return json.dumps([[column.name, column.kind, column.position] for column in columns])


def _as_kept(column: Column, values: Sequence[Any]) -> list[Any]:
    if column.kind == "number":  # SQLite keeps no negative zero, either
        return [None if value is None else float(value) + 0.0 for value in values]
    return list(values)
