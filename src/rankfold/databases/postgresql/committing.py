"""Commits, of which it is known whether they were made even where the answer is lost."""

from __future__ import annotations

import time

import psycopg

from rankfold.check import DatabaseError, UnreachableError
from rankfold.databases.postgresql.connecting import Connection, Connections

PAUSES = (0.1, 0.4, 1.6)
"""Seconds between questions for the fate of a change whose connection was lost."""


def commit(connection: Connection, connections: Connections, transaction: str) -> None:
    """Commit; where the answer is lost, ask another connection what became of it."""
    try:
        connection.execute("COMMIT")
    except psycopg.OperationalError as error:
        if not _was_made(connections, transaction):
            raise UnreachableError(
                f"the connection to {connections.address.place} was lost before the change was "
                "made; nothing was changed, try again."
            ) from error


def _was_made(connections: Connections, transaction: str) -> bool:
    for pause in PAUSES:
        time.sleep(pause)
        try:
            with connections.borrowed(fresh=True) as other:
                sql = "SELECT pg_xact_status(%s::xid8)"
                ((status,),) = other.execute(sql, [transaction]).fetchall()
        except (psycopg.Error, UnreachableError):
            continue
        if status != "in progress":
            return bool(status == "committed")
    raise DatabaseError(
        f"the connection to {connections.address.place} was lost while a change was being made, "
        "and it is unknown whether it was: compare the number of points, or the version, before "
        "trying again."
    )
