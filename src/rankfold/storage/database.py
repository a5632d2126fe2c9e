"""The SQLite file of a store: connections, tables, the manifest, and one writer at a time."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from rankfold.errors import InputError, StorageError
from rankfold.parallel import StoppedError, is_stopped
from rankfold.storage.columns import Column, known_columns

LOCK = "writer.lock"

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

STEPS = 10_000
"""Steps of SQLite, well below a millisecond, after which it looks whether work was stopped."""

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second when it quotes damaged text in a message."""

Row = tuple[Any, ...]

DATABASE = "index.sqlite"

FORMAT = "rankfold"

FORMAT_VERSION = 1

APPLICATION = int.from_bytes(b"rnkf", "big")
"""Marks the SQLite file as ours."""

TABLES = (
    "CREATE TABLE manifest (format, version, generation, sequence, merged, segments, settings, "
    "columns, crc32)",
    "CREATE TABLE segments (name PRIMARY KEY, file, dtype, shape, n_bytes, crc32) WITHOUT ROWID",
    "CREATE TABLE files (file PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE changes (sequence INTEGER PRIMARY KEY, generation, n_arrays)",
    "CREATE TABLE change_arrays (sequence, name, dtype, shape, crc32, data)",
    "CREATE INDEX change_arrays_by_sequence ON change_arrays (sequence)",
)

POINTS_BY_ID = "CREATE UNIQUE INDEX points_by_id ON points (id)"

WORDS_LEFT_OUT = ("image",)
"""Text columns without words: pictures, as data URIs."""

TOKENS = "tokenize='unicode61 remove_diacritics 2'"

WORDS_PARTS = ("words_data", "words_idx", "words_docsize", "words_config")
"""Tables that FTS5 makes for itself."""


class SqlitePool:
    """As many connections as are in use at once; each serves one thread at a time.

    Parameters
    ----------
    path : Path
    mode : str
        As for `SqliteDatabase`.
    """

    def __init__(self, path: Path, mode: str) -> None:
        self._path, self._mode = path, mode
        self._lock = Lock()
        self._idle: list[SqliteDatabase] | None = []

    @contextmanager
    def borrowed(self) -> Iterator[SqliteDatabase]:
        """Yield a connection that nobody else uses; what it left unfinished is given up."""
        database = self.take()
        try:
            yield database
        finally:
            self.give_back(database)

    def close(self) -> None:
        """Close all that are not in use; the others are closed when they are given back."""
        with self._lock:
            idle, self._idle = self._idle, None
        for database in idle or ():
            database.close()

    def take(self) -> SqliteDatabase:
        """Return a connection that nobody else uses, until it is given back."""
        with self._lock:
            if self._idle is None:
                raise StorageError(f"{str(self._path)!r} was closed: open it again.")
            if self._idle:
                return self._idle.pop()
        return SqliteDatabase(self._path, self._mode)

    def give_back(self, database: SqliteDatabase) -> None:
        """Keep a connection, unless SQLite would not notice by it that the file has changed."""
        database.end()
        with self._lock:
            if self._idle is not None and not database.frozen:
                self._idle.append(database)
                return
        database.close()


class WriterLock:
    """The right to change a store, held until ``release`` or the end of the process.

    It is an open exclusive transaction on an empty SQLite file. SQLite knows how to lock
    files on every platform; the operating system releases them when a process dies, and
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


class SqliteDatabase:
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

    def begin(self) -> list[Row]:
        """Begin a snapshot and return the rows of the manifest in it."""
        with explained(self.path):
            self._connection.execute("BEGIN")
            return self._connection.execute("SELECT * FROM manifest").fetchall()

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
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?{options}",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
        connection.set_progress_handler(is_stopped, STEPS)
        return connection

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
        if primary_code(error) == sqlite3.SQLITE_INTERRUPT:
            raise StoppedError from None
        if isinstance(error, sqlite3.ProgrammingError):
            advice = "open it again if it was closed"
        else:
            advice = ADVICE.get(primary_code(error), "the file is damaged; " + MEND)
        raise StorageError(
            f"{str(path)!r} cannot be used ({in_one_line(error)}): {advice}."
        ) from error


def in_one_line(error: Exception) -> str:
    """Return what an error says; it may quote what somebody else wrote, even to a terminal."""
    text = " ".join(str(error).split())[:200]
    return "".join(letter if letter.isprintable() else "?" for letter in text).rstrip(".")


def checksum(values: Sequence[object]) -> int:
    """Return the CRC-32 of values as Python writes them in ASCII: fast, and the same everywhere."""
    return zlib.crc32(ascii(tuple(values)).encode())


def checksums(rows: Iterable[Sequence[object]]) -> list[int]:
    """Return the checksum of each of some rows."""
    return [checksum(row) for row in rows]


def intact(database: SqliteDatabase, rows: Iterable[Row | None]) -> list[Any]:
    """Return rows without the checksum before their values, after comparing it with these."""
    found = []
    for row in rows:
        if row is not None and row[0] != checksum(row[1:]):
            raise damaged(database, f"the point at slot {row[1]} has another checksum")
        found.append(None if row is None else row[1:])
    return found


def damaged(database: SqliteDatabase, reason: str) -> StorageError:
    """Return the error for a file whose contents contradict themselves."""
    return StorageError(f"{str(database.path)!r} is damaged: {reason}; {MEND}.")


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Turn whatever is raised by contents that nobody should have written into one line.

    What is read may have been written by anybody, so that almost any exception can come of it.
    """
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        reason = in_one_line(error)
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise StorageError(
            f"{str(path)!r} holds what no index holds ({kind}{reason}), so it is damaged or "
            f"foreign; {MEND}."
        ) from error


class Version(NamedTuple):
    """What a store holds: arrays of a generation, and changes up to a sequence number."""

    generation: int
    sequence: int


@dataclass(frozen=True)
class Manifest:
    """What is valid in a store.

    Parameters
    ----------
    generation : int
        That of the arrays.
    sequence : int
        Number of the last change.
    merged : int
        Number of the last change that the arrays contain.
    segments : int
        Checksum of what the database knows of their files.
    settings : str
        JSON of the user of the store.
    columns : tuple of Column
    """

    generation: int
    sequence: int
    merged: int
    segments: int
    settings: str
    columns: tuple[Column, ...]

    @property
    def version(self) -> Version:
        """The generation of the arrays and the number of the last change."""
        return Version(self.generation, self.sequence)

    def row(self) -> Row:
        """Return the manifest as it is stored, its checksum last."""
        columns = json.dumps([[column.name, column.kind] for column in self.columns])
        numbers = (self.generation, self.sequence, self.merged, self.segments)
        row = (FORMAT, FORMAT_VERSION, *numbers, self.settings, columns)
        return (*row, checksum(row))

    def write(self, database: SqliteDatabase) -> None:
        """Put the manifest in the place of the one before."""
        database.rows("DELETE FROM manifest")
        database.rows("INSERT INTO manifest VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self.row())


def read_manifest(database: SqliteDatabase) -> Manifest:
    """Read the manifest and check it."""
    return manifest_of(database, database.rows("SELECT * FROM manifest"))


def manifest_of(database: SqliteDatabase, rows: list[Row]) -> Manifest:
    """Return the manifest that rows of a database hold, after checking it."""
    if len(rows) != 1 or rows[0][-1] != checksum(rows[0][:-1]):
        raise damaged(database, "its manifest does not have the checksum that was written")
    _, _, *numbers, settings, columns, _ = rows[0]
    with understood(database.path):
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise InputError(f"the numbers of its manifest are {numbers}")
        generation, sequence, merged, segments = numbers
        named = known_columns(json.loads(columns))
        return Manifest(generation, sequence, merged, segments, settings, named)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings as JSON."""
    try:
        return json.dumps(dict(settings), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"settings cannot be written as JSON ({error}).") from error


def make_tables(database: SqliteDatabase) -> None:
    """Make all tables but that of the points, and mark the file as ours."""
    database.rows(f"PRAGMA application_id = {APPLICATION}")
    database.rows(f"PRAGMA user_version = {FORMAT_VERSION}")
    for statement in TABLES:
        database.rows(statement)


def points_table(columns: Sequence[Column]) -> str:
    """Return the statement that makes the table of points.

    The columns have no type: SQLite then keeps 1 and "1" apart, as they were given.
    """
    names = "".join(f", {column.key}" for column in columns)
    return f"CREATE TABLE points (slot INTEGER PRIMARY KEY, id NOT NULL, crc32{names})"


def text_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns in which words can be found."""
    return [one for one in columns if one.kind == "text" and one.name not in WORDS_LEFT_OUT]


def words_table(columns: Sequence[Column]) -> str | None:
    """Return the statement that makes the table of words; None where there are no texts.

    It holds where each word is, and not the texts, which it reads from the points.
    """
    chosen = text_columns(columns)
    if not chosen:
        return None
    keys = ", ".join(column.key for column in chosen)
    kept = "content='points', content_rowid='slot'"
    return f"CREATE VIRTUAL TABLE words USING fts5({keys}, {kept}, {TOKENS})"


def check_format(database: SqliteDatabase) -> None:
    """Require a file of ours, of a version that can be read."""
    ((application,),) = database.rows("PRAGMA application_id")
    ((version,),) = database.rows("PRAGMA user_version")
    if application != APPLICATION:
        raise StorageError(
            f"{str(database.path)!r} is not a rankfold index: its application id is "
            f"{application:#x}, not {APPLICATION:#x}. Name the folder of an index."
        )
    if version > FORMAT_VERSION:
        raise StorageError(
            f"{str(database.path)!r} has format version {version}, but this rankfold reads "
            f"version {FORMAT_VERSION}; upgrade rankfold."
        )
    if version != FORMAT_VERSION:
        raise damaged(database, f"its format version is {version}")
    # Before anything is selected from it: what has this name may be a view.
    if (TABLES[0],) not in database.rows("SELECT sql FROM sqlite_master WHERE name = 'manifest'"):
        raise damaged(database, "its tables are not those of the format")
    ((page,),) = database.rows("PRAGMA page_size")
    size = database.path.stat().st_size
    if size % page and not database.has_log():
        raise damaged(database, f"its {size} bytes are not whole pages of {page}")


def check_tables(database: SqliteDatabase, columns: Sequence[Column]) -> None:
    """Require exactly the tables of the format."""
    found = database.rows("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL")
    words = words_table(columns)
    known = {*TABLES, points_table(columns), POINTS_BY_ID, *filter(None, [words])}
    parts = {name for name, sql in found if name in WORDS_PARTS and sql.startswith("CREATE TABLE ")}
    # FTS5 words its own tables as it likes, and refuses others when they are read.
    own = {sql for name, sql in found if name not in parts}
    if own != known or parts != (set() if words is None else set(WORDS_PARTS)):
        raise damaged(database, "its tables are not those of the format")
