"""The SQLite file of a store: how it is opened, and its errors in plain words."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankfold.check import InputError, StorageError

PATIENCE = 30.0
"""Seconds to wait for another process that is just writing."""

LARGEST_LOG = 64 * 2**20
"""Bytes of write-ahead log that are kept on disk once they are no longer needed."""

MEND = "restore it from a copy, or delete the index and build it again"
ACCESS = "see that the file and its folder may be read, and written to for changes"
ADVICE = {
    sqlite3.SQLITE_FULL: "make room on the disk and try again; what was stored is unharmed",
    sqlite3.SQLITE_BUSY: "another process is writing to it; try again later",
    sqlite3.SQLITE_READONLY: ACCESS,
    sqlite3.SQLITE_CANTOPEN: ACCESS,
    sqlite3.SQLITE_PERM: ACCESS,
    sqlite3.SQLITE_IOERR: "see that the disk works and has room; what was stored is unharmed",
}

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second when it quotes damaged text in a message."""

Row = tuple[Any, ...]


class Database:
    """A connection whose errors name the file.

    Parameters
    ----------
    path : Path
    mode : str
        "ro" to read, "rw" to write, "rwc" to make the file as well.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self.path = path
        self.frozen = False
        self._connection = self._connect(f"mode={mode}")
        try:
            if mode == "rwc":
                self.rows("PRAGMA auto_vacuum = INCREMENTAL")  # heeded only while there is no page
            if mode != "ro":
                self._prepare_to_write()
            elif self._must_be_frozen():
                self.close()
                self._connection = self._connect("immutable=1")
                self.frozen = True
            self.rows("PRAGMA trusted_schema = OFF")
            self.rows("PRAGMA cell_size_check = ON")
        except BaseException:
            self.close()
            raise

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Run a statement and return everything that it yields."""
        with explained(self.path):
            return self._connection.execute(sql, values).fetchall()

    def first_rows(self, sql: str, values: Iterable[object]) -> list[Row | None]:
        """Run a query of one parameter for each value; return the first row of each answer."""
        with explained(self.path):
            execute = self._connection.execute
            return [execute(sql, (value,)).fetchone() for value in values]

    def run_many(self, sql: str, values: Iterable[Sequence[object]]) -> int:
        """Run a statement for each set of values; return how many rows it changed."""
        with explained(self.path):
            return self._connection.executemany(sql, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all changes of a block, durably, or none of them."""
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Give up the transaction, if there is one."""
        with explained(self.path):
            if self._connection.in_transaction:
                self._connection.rollback()

    def has_log(self) -> bool:
        """Tell whether there may be changes that are not in the file itself yet."""
        log = self.path.with_name(f"{self.path.name}-wal")
        return log.exists() and log.stat().st_size > 0

    def close(self) -> None:
        """Close the file."""
        with explained(self.path):
            self._connection.close()

    def _connect(self, options: str) -> sqlite3.Connection:
        with explained(self.path):
            return sqlite3.connect(
                f"{self.path.absolute().as_uri()}?{options}",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )

    def _prepare_to_write(self) -> None:
        self.rows("PRAGMA journal_mode = WAL")
        self.rows("PRAGMA synchronous = FULL")
        self.rows(f"PRAGMA journal_size_limit = {LARGEST_LOG}")

    def _must_be_frozen(self) -> bool:
        """Tell whether the folder may only be read, so that SQLite cannot put its files there.

        Without a log of changes to consider, the file alone is the whole truth.
        """
        try:
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except FAILURES as error:
            forbidden = primary_code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            return forbidden and not self.has_log()
        return False


def primary_code(error: Exception) -> int:
    """Return what went wrong, without the details in the upper bits."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into ones that name the file and say what to do."""
    try:
        yield
    except FAILURES as error:
        if isinstance(error, sqlite3.ProgrammingError):
            advice = "open it again if it was closed"
        else:
            advice = ADVICE.get(primary_code(error), "the file is damaged; " + MEND)
        raise StorageError(f"{str(path)!r} cannot be used ({error}): {advice}.") from error


def checksum(values: Sequence[object]) -> int:
    """Return the CRC-32 of values as Python writes them in ASCII: fast, and the same everywhere."""
    return zlib.crc32(ascii(tuple(values)).encode())


def damaged(database: Database, reason: str) -> StorageError:
    """Return the error for a file whose contents contradict themselves."""
    return StorageError(f"{str(database.path)!r} is damaged: {reason}; {MEND}.")


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Turn whatever is raised by contents that nobody should have written into one line.

    What is read may have been written by anybody, so that almost any exception can come of it.
    """
    try:
        yield
    except (StorageError, OSError, MemoryError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise StorageError(
            f"{str(path)!r} holds what no index holds ({kind}{reason}), so it is damaged or "
            f"foreign; {MEND}."
        ) from error
