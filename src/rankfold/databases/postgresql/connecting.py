"""Connections that are kept for the next who needs one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from rankfold.check import InputError, UnreachableError
from rankfold.databases.postgresql.address import Address
from rankfold.databases.postgresql.faults import refused

PAUSES = (0.1, 0.4)
"""Seconds before a server that does not answer is tried again; a restart may take that long."""

MOST_IDLE = 16

Connection = psycopg.Connection[Any]


class Connections:
    """Connections to a database; each is used by one thread at a time."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: deque[Connection] = deque()
        self._closed = False

    @contextmanager
    def borrowed(self, fresh: bool = False) -> Iterator[Connection]:
        """Lend a connection, by choice one that nobody has used yet.

        It is kept where it comes back without a transaction, and else closed.
        """
        connection = self._connect() if fresh else self._idle_or_new()
        try:
            yield connection
        finally:
            status = connection.info.transaction_status
            if self._closed or len(self._idle) >= MOST_IDLE or status != TransactionStatus.IDLE:
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

    def _idle_or_new(self) -> Connection:
        with suppress(IndexError):
            return self._idle.pop()
        return self._connect()

    def _connect(self) -> Connection:
        if self._closed:
            raise InputError(f"{self.address.place} was closed; open it again.")
        for pause in (*PAUSES, None):
            try:
                return self.address.connect()
            except psycopg.Error as error:
                fault = refused(error, self.address)
                if pause is None or not isinstance(fault, UnreachableError):
                    raise fault from error
            time.sleep(pause)
        raise AssertionError("the last attempt either connects or fails")


def answers(connection: Connection, sql: str) -> list[list[tuple[Any, ...]]]:
    """Run several statements in one exchange; return the rows of each that yields any."""
    with connection.cursor() as cursor:
        cursor.execute(sql.encode(), prepare=False)
        found = []
        while True:
            if cursor.description is not None:
                found.append(cursor.fetchall())
            if not cursor.nextset():
                return found


def end(connection: Connection) -> None:
    """Give up the transaction, if there is one; a connection that is lost has none."""
    with suppress(psycopg.Error):
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
