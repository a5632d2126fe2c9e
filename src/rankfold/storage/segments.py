"""Arrays on disk: files that never change, and a log of changes since they were written."""

from __future__ import annotations

import json
import mmap
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankfold.errors import InputError, StorageError
from rankfold.storage.database import (
    MEND,
    Manifest,
    SqliteDatabase,
    Version,
    checksum,
    damaged,
    understood,
)

LARGEST = 900_000_000
"""Bytes of one array in a change; SQLite holds no more than 1,000,000,000 in one place."""

FOLDER = "segments"

NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")

FILE = re.compile(rf"{NAME.pattern}-[1-9][0-9]{{0,18}}\.npy")

NUMBERS = "biuf"
"""The kinds of values that an array may hold."""

Array = npt.NDArray[Any]


def log_change(database: SqliteDatabase, version: Version, arrays: Mapping[str, Array]) -> None:
    """Write down a change; its number is that of the version."""
    for name, array in arrays.items():
        if array.nbytes > LARGEST:
            raise InputError(
                f"array {name!r} of the change has {array.nbytes} bytes, but may have up to "
                f"{LARGEST}; make several smaller changes."
            )
    database.rows(
        "INSERT INTO changes VALUES (?, ?, ?)", (version.sequence, version.generation, len(arrays))
    )
    rows = [(version.sequence, *_logged(name, array)) for name, array in arrays.items()]
    database.run_many("INSERT INTO change_arrays VALUES (?, ?, ?, ?, ?, ?)", rows)


def _logged(name: str, array: Array) -> tuple[Any, ...]:
    """Return an array of a change as it is logged."""
    form, data = (array.dtype.str, json.dumps(array.shape)), array.tobytes()
    return name, *form, _checksum(name, *form, data), data


def read_changes(
    database: SqliteDatabase, manifest: Manifest, after: int
) -> Iterator[tuple[int, dict[str, Array]]]:
    """Read the changes after a number that the arrays do not contain yet, one at a time."""
    first = max(after, manifest.merged) + 1
    numbers = database.rows(
        "SELECT sequence, generation, n_arrays FROM changes WHERE sequence >= ? ORDER BY sequence",
        (first,),
    )
    expected = [(number, manifest.generation) for number in range(first, manifest.sequence + 1)]
    if [(number, generation) for number, generation, _ in numbers] != expected:
        raise damaged(database, f"changes {first} to {manifest.sequence} are not all there")
    for number, _, n_arrays in numbers:
        rows = database.rows(
            "SELECT name, dtype, shape, crc32, data FROM change_arrays WHERE sequence = ? "
            "ORDER BY rowid",
            (number,),
        )
        if len(rows) != n_arrays:
            raise damaged(database, f"arrays of change {number} are missing")
        yield number, dict(_logged_array(database, number, *row) for row in rows)


def size_of_changes(database: SqliteDatabase) -> int:
    """Return the bytes of the arrays of all changes, without reading these."""
    ((size,),) = database.rows("SELECT coalesce(sum(length(data)), 0) FROM change_arrays")
    return int(size)


def clear_changes(database: SqliteDatabase) -> None:
    """Forget all changes, and give their space back to the disk."""
    database.rows("DELETE FROM changes")
    database.rows("DELETE FROM change_arrays")
    ((n_free,),) = database.rows("PRAGMA freelist_count")
    for _ in range(n_free):  # Python's sqlite3 lets this pragma free a single page
        database.rows("PRAGMA incremental_vacuum")


def _logged_array(
    database: SqliteDatabase, number: int, name: Any, dtype: Any, shape: Any, crc32: Any, data: Any
) -> tuple[str, Array]:
    if not isinstance(data, bytes) or crc32 != _checksum(name, dtype, shape, data):
        raise damaged(database, f"array {name!r} of change {number} has another checksum")
    with understood(database.path):
        form = np.dtype(dtype)
        if form.kind not in NUMBERS:
            raise InputError(f"array {name!r} of change {number} holds {form} values")
        return name, np.frombuffer(data, form).reshape(json.loads(shape))


def _checksum(name: Any, dtype: Any, shape: Any, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{name} {dtype} {shape}".encode()))


class Segment(NamedTuple):
    """What the database knows of a file; ``shape`` is a JSON list."""

    name: str
    file: str
    dtype: str
    shape: str
    n_bytes: int
    crc32: int


def checked_arrays(arrays: Mapping[str, Any]) -> dict[str, Array]:
    """Require named arrays of numbers; return them in C order and little-endian."""
    if not isinstance(arrays, Mapping):
        raise InputError(f"arrays is {type(arrays).__name__}, but must map names to arrays.")
    checked = {}
    for name, given in arrays.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(
                f"an array is called {name!r}, but names are small letters, digits and "
                "underscores, and begin with a letter."
            )
        array = np.asarray(given, order="C")
        if array.dtype.kind not in NUMBERS:
            raise InputError(f"array {name!r} holds {array.dtype} values, but must hold numbers.")
        checked[name] = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return checked


def own_folder(folder: Path) -> Path:
    """Return where a store keeps its segments: a folder of its own, never one that is linked."""
    path = folder / FOLDER
    if path.is_symlink():
        raise StorageError(
            f"{str(path)!r} is a symbolic link, but an index writes and deletes only in its own "
            "folder; move the segments back into it. To keep an index on another disk move its "
            "whole folder there, and link to that."
        )
    return path


def make_folder(folder: Path) -> None:
    """Make the folder of the segments of a new store."""
    (folder / FOLDER).mkdir()


def write_segments(folder: Path, arrays: Mapping[str, Array], generation: int) -> list[Segment]:
    """Write arrays durably, as files that were announced; none of them may be there already."""
    place = own_folder(folder)
    segments = [
        _write(place / file, name, array)
        for (name, array), file in zip(arrays.items(), _files(arrays, generation), strict=True)
    ]
    sync_folder(place)
    return segments


def read_segments(
    folder: Path, database: SqliteDatabase, generation: int, expected: int
) -> dict[str, Array]:
    """Map the arrays of a generation into memory after checking every byte.

    Parameters
    ----------
    folder : Path
        Of the store.
    database : SqliteDatabase
    generation : int
    expected : int
        The checksum of what the database knows of them.

    Raises
    ------
    FileNotFoundError
        If a file is not there: it is missing, or was replaced by a merge just now.
    """
    names = ", ".join(Segment._fields)
    rows = database.rows(f"SELECT {names} FROM segments ORDER BY name")  # noqa: S608
    if checksum(rows) != expected:
        raise damaged(database, "its list of segments does not have the checksum that was written")
    segments = list(map(Segment._make, rows))
    with understood(database.path):
        contents = [_sized(folder, segment, generation) for segment in segments]
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # checksums let other threads run
            checksums = list(pool.map(zlib.crc32, contents))
        return {
            segment.name: _array(folder, segment, content, found)
            for segment, content, found in zip(segments, contents, checksums, strict=True)
        }


def announce_segments(
    folder: Path, database: SqliteDatabase, names: Iterable[str], generation: int
) -> None:
    """Write down which files are about to be written; forget those that are gone.

    What a failure leaves behind is known by it: nothing else in the folder is ever deleted.
    """
    place = own_folder(folder)
    gone = [row for row in database.rows("SELECT file FROM files") if not _is_there(place, *row)]
    database.run_many("DELETE FROM files WHERE file = ?", gone)
    files = ((file,) for file in _files(names, generation))
    database.run_many("INSERT OR IGNORE INTO files VALUES (?)", files)


def record_segments(database: SqliteDatabase, segments: Iterable[Segment]) -> int:
    """Let the database name these files and no others; return the checksum of what it knows."""
    rows = sorted(tuple(segment) for segment in segments)
    database.rows("DELETE FROM segments")
    database.run_many("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?)", rows)
    return checksum(rows)


def remove_segments(folder: Path, database: SqliteDatabase) -> None:
    """Delete files of older generations, and what an interrupted merge left behind.

    These are the files that the store has announced and that are not valid. Others, links and
    folders are left alone, whatever their names are.
    """
    place = own_folder(folder)
    valid = "SELECT file FROM files WHERE file NOT IN (SELECT file FROM segments)"
    for (file,) in database.rows(valid):
        if _is_there(place, file):
            try:
                (place / file).unlink()
            except PermissionError:  # Windows, while a reader maps it: the next writer does it
                continue


def sync_folder(folder: Path) -> None:
    """Make names of files in a folder durable, where the platform has a way to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write(path: Path, name: str, array: Array) -> Segment:
    try:
        file = path.open("xb")  # follows no link, and overwrites nothing
    except FileExistsError:
        raise StorageError(
            f"{str(path)!r} is in the way, and was not written by this index; move it elsewhere."
        ) from None
    with file:
        np.lib.format.write_array(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    content = _mapped(path)
    shape = json.dumps(array.shape)
    return Segment(name, path.name, array.dtype.str, shape, len(content), zlib.crc32(content))


def _sized(folder: Path, segment: Segment, generation: int) -> mmap.mmap:
    """Map the file of a segment, whose name and size must be as recorded."""
    (name,) = _files([segment.name], generation)
    if segment.file != name or not FILE.fullmatch(name):
        raise StorageError(
            f"'index.sqlite' in {str(folder)!r} names the file {segment.file!r} where {name!r} is "
            f"expected, so it is damaged; {MEND}."
        )
    path = own_folder(folder) / name
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"{str(path)!r} is a link or no file, but must be a file; {MEND}.")
    size = found.st_size
    if size != segment.n_bytes:
        raise StorageError(
            f"{str(path)!r} has {size} bytes, but {segment.n_bytes} were written, so it is "
            f"damaged; {MEND}."
        )
    return _mapped(path)


def _array(folder: Path, segment: Segment, content: mmap.mmap, checksum: int) -> Array:
    """Return the array in a file; its checksum and its form must be as recorded."""
    path = folder / FOLDER / segment.file
    if checksum != segment.crc32:
        raise StorageError(
            f"{str(path)!r} has the checksum {checksum}, but {segment.crc32} was written, so it "
            f"is damaged; {MEND}."
        )
    np.lib.format.read_magic(content)
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(content)
    if (dtype.str, json.dumps(shape)) != (segment.dtype, segment.shape):
        raise StorageError(
            f"{str(path)!r} holds {dtype.str} values of shape {list(shape)}, but {segment.dtype} "
            f"values of shape {segment.shape} are recorded; {MEND}."
        )
    if is_fortran or dtype.kind not in NUMBERS:
        raise InputError(f"array {segment.name!r} holds {dtype} values, or not row by row")
    return np.ndarray(shape, dtype, buffer=content, offset=content.tell())


def _files(names: Iterable[str], generation: int) -> list[str]:
    return [f"{name}-{generation}.npy" for name in names]


def _is_there(folder: Path, file: object) -> bool:
    """Tell whether there is a file of such a name as segments have, and no link or folder."""
    if not isinstance(file, str) or not FILE.fullmatch(file):
        return False
    try:
        return stat.S_ISREG((folder / file).lstat().st_mode)
    except FileNotFoundError:
        return False


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
