"""Arrays in files that never change, each with its checksum."""

from __future__ import annotations

import json
import mmap
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankfold.check import InputError, StorageError
from rankfold.storage.database import MEND, Database

FOLDER = "segments"
NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")

Array = npt.NDArray[Any]


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
        if array.dtype.kind not in "biuf":
            raise InputError(f"array {name!r} holds {array.dtype} values, but must hold numbers.")
        checked[name] = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return checked


def write_segments(folder: Path, arrays: Mapping[str, Array], generation: int) -> list[Segment]:
    """Write arrays durably; what a failure leaves behind is named by no database."""
    (folder / FOLDER).mkdir(exist_ok=True)
    segments = [
        _write(folder / FOLDER / f"{name}-{generation}.npy", name, array)
        for name, array in arrays.items()
    ]
    sync_folder(folder / FOLDER)
    return segments


def read_segments(folder: Path, database: Database, generation: int) -> dict[str, Array]:
    """Map the arrays of a generation into memory after checking every byte.

    Raises
    ------
    FileNotFoundError
        If a file is not there: it is missing, or was replaced by a merge just now.
    """
    names = ", ".join(Segment._fields)
    segments = [Segment(*row) for row in database.rows(f"SELECT {names} FROM segments")]  # noqa: S608
    contents = [_sized(folder, segment, generation) for segment in segments]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # checksums let other threads run
        checksums = list(pool.map(zlib.crc32, contents))
    return {
        segment.name: _array(folder, segment, content, checksum)
        for segment, content, checksum in zip(segments, contents, checksums, strict=True)
    }


def record_segments(database: Database, segments: Iterable[Segment]) -> None:
    """Let the database name these files and no others."""
    database.rows("DELETE FROM segments")
    database.run_many("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?)", segments)


def remove_segments(folder: Path, database: Database) -> None:
    """Delete all files that the database does not name."""
    files = {file for (file,) in database.rows("SELECT file FROM segments")}
    for path in (folder / FOLDER).iterdir():
        if path.name not in files:
            try:
                path.unlink()
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
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    content = _mapped(path)
    shape = json.dumps(array.shape)
    return Segment(name, path.name, array.dtype.str, shape, len(content), zlib.crc32(content))


def _sized(folder: Path, segment: Segment, generation: int) -> mmap.mmap:
    """Map the file of a segment, whose name and size must be as recorded."""
    name = f"{segment.name}-{generation}.npy"
    if segment.file != name:
        raise StorageError(
            f"'index.sqlite' in {str(folder)!r} names the file {segment.file!r} where {name!r} is "
            f"expected, so it is damaged; {MEND}."
        )
    path = folder / FOLDER / name
    size = path.stat().st_size
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
    shape, _, dtype = np.lib.format.read_array_header_1_0(content)
    if (dtype.str, json.dumps(shape)) != (segment.dtype, segment.shape):
        raise StorageError(
            f"{str(path)!r} holds {dtype.str} values of shape {list(shape)}, but {segment.dtype} "
            f"values of shape {segment.shape} are recorded; {MEND}."
        )
    return np.ndarray(shape, dtype, buffer=content, offset=content.tell())


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
