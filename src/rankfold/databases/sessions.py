"""Which state of a table a thread reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

from rankfold.check import InputError
from rankfold.databases.contract import Session, Table, Writing


class Sessions:
    """The sessions of all threads with a table, each thread in one of its own.

    Parameters
    ----------
    table : Table
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._mine = local()

    @property
    def held(self) -> Session | None:
        """The session that this thread is in."""
        return getattr(self._mine, "session", None)

    @contextmanager
    def current(self) -> Iterator[Session]:
        """Read in the session that this thread is in, or in a new one."""
        if self.held is not None:
            yield self.held
            return
        with self.table.reading() as session, self._holding(session):
            yield session

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Read and change in a session of its own."""
        if self.held is not None:
            raise InputError("a change cannot be made inside of reading(); leave its block first.")
        with self.table.writing() as session, self._holding(session):
            yield session

    @contextmanager
    def _holding(self, session: Any) -> Iterator[None]:
        self._mine.session = session
        try:
            yield
        finally:
            self._mine.session = None
            self._mine.before = self._before + session.round_trips

    @property
    def _before(self) -> int:
        return getattr(self._mine, "before", 0)

    @property
    def round_trips(self) -> int:
        """How often this thread has waited for an answer."""
        return self._before + (0 if self.held is None else self.held.round_trips)
