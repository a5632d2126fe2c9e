"""Connections to one database, so that threads need not wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from rankfold.check import StorageError
from rankfold.storage.database import Database


class Connections:
    """As many connections as are in use at once; each serves one thread at a time.

    Parameters
    ----------
    path : Path
    mode : str
        As for `Database`.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self._path, self._mode = path, mode
        self._lock = Lock()
        self._idle: list[Database] | None = []

    @contextmanager
    def borrowed(self) -> Iterator[Database]:
        """Yield a connection that nobody else uses; what it left unfinished is given up."""
        database = self._taken()
        try:
            yield database
        finally:
            database.end()
            self._give_back(database)

    def close(self) -> None:
        """Close all that are not in use; the others are closed when they are given back."""
        with self._lock:
            idle, self._idle = self._idle, None
        for database in idle or ():
            database.close()

    def _taken(self) -> Database:
        with self._lock:
            if self._idle is None:
                raise StorageError(f"{str(self._path)!r} was closed: open it again.")
            if self._idle:
                return self._idle.pop()
        return Database(self._path, self._mode)

    def _give_back(self, database: Database) -> None:
        """Keep a connection, unless SQLite would not notice by it that the file has changed."""
        with self._lock:
            if self._idle is not None and not database.frozen:
                self._idle.append(database)
                return
        database.close()
