"""One writer at a time, also after a crash."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rankfold.check import StorageError
from rankfold.storage.database import primary_code

LOCK = "writer.lock"


class WriterLock:
    """The right to change a store, held until ``release`` or the end of the process.

    It is an open exclusive transaction on an empty SQLite file. SQLite knows how to lock
    files on every platform; the operating system lets go of them when a process dies, and
    a forked process does not keep them.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._connection = sqlite3.connect(
                folder / LOCK, timeout=0, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if hasattr(self, "_connection"):
                self._connection.close()
            if primary_code(error) != sqlite3.SQLITE_BUSY:
                raise StorageError(
                    f"{str(folder / LOCK)!r} cannot be locked ({error}), so nothing can be "
                    "written; see that its folder may be written to. If the lock file holds "
                    "anything, delete it: it should be empty."
                ) from error
            raise StorageError(
                f"{str(folder)!r} is open for writing elsewhere, and can have one writer at a "
                "time: close the other one, or open it for reading."
            ) from None

    def release(self) -> None:
        """Let others write."""
        self._connection.close()


def is_locked(folder: Path) -> bool:
    """Tell whether a process has the right to change a store."""
    try:
        WriterLock(folder).release()
    except StorageError:
        return True
    return False
