"""The tables of a store, and its manifest: the one row that says what is valid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankfold.check import InputError, StorageError
from rankfold.storage.columns import Column, check_columns
from rankfold.storage.database import Database, Row, checksum, damaged, understood

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

    def write(self, database: Database) -> None:
        """Put the manifest in the place of the one before."""
        database.rows("DELETE FROM manifest")
        database.rows("INSERT INTO manifest VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self.row())


def read_manifest(database: Database) -> Manifest:
    """Read the manifest and check it."""
    rows = database.rows("SELECT * FROM manifest")
    if len(rows) != 1 or rows[0][-1] != checksum(rows[0][:-1]):
        raise damaged(database, "its manifest does not have the checksum that was written")
    _, _, *numbers, settings, columns, _ = rows[0]
    with understood(database.path):
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise InputError(f"the numbers of its manifest are {numbers}")
        named = tuple(Column(name, kind, i) for i, (name, kind) in enumerate(json.loads(columns)))
        check_columns(named)
        generation, sequence, merged, segments = numbers
        return Manifest(generation, sequence, merged, segments, settings, named)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings as JSON."""
    try:
        return json.dumps(dict(settings), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"settings cannot be written as JSON ({error}).") from error


def make_tables(database: Database) -> None:
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


def check_format(database: Database) -> None:
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


def check_tables(database: Database, columns: Sequence[Column]) -> None:
    """Require exactly the tables of the format."""
    found = {sql for (sql,) in database.rows("SELECT sql FROM sqlite_master WHERE sql NOT NULL")}
    if found != {*TABLES, points_table(columns), POINTS_BY_ID}:
        raise damaged(database, "its tables are not those of the format")
