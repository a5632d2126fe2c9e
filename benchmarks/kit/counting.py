"""A database that counts what is asked of it."""

from contextlib import contextmanager
from typing import NamedTuple


class Counts(NamedTuple):
    """Exchanges that were waited for, and rows that came."""

    trips: int
    rows: int


class CountedDatabase:
    """A database as it is, whose tables count.

    Parameters
    ----------
    database : Database
    trips_of_end : int
        Exchanges that end a session, which sessions themselves do not count.
    """

    def __init__(self, database, trips_of_end=0):
        self._database, self.trips_of_end = database, trips_of_end
        self._trips = self._rows = 0

    def __getattr__(self, name):
        return getattr(self._database, name)

    def open(self, name):
        """Open a table that counts."""
        return _CountedTable(self._database.open(name), self)

    def counting(self, ask):
        """Return an answer, and what was asked for it."""
        trips, rows = self._trips, self._rows
        answer = ask()
        return answer, Counts(self._trips - trips, self._rows - rows)

    @contextmanager
    def counted(self, session):
        """Count what a session does until it ends."""
        read = session.rows

        def rows(*arguments, **settings):
            found = read(*arguments, **settings)
            self._rows += len(found)
            return found

        session.rows = rows
        try:
            yield session
        finally:
            self._trips += session.round_trips + self.trips_of_end


class _CountedTable:
    def __init__(self, table, counts):
        self._table, self._counts = table, counts

    def __getattr__(self, name):
        return getattr(self._table, name)

    @contextmanager
    def reading(self):
        with self._table.reading() as session, self._counts.counted(session):
            yield session
