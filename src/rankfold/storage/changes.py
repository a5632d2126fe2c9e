"""The log of changes since the arrays were written: each a set of named arrays."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.storage.database import Database, damaged, understood
from rankfold.storage.manifest import Manifest, Version
from rankfold.storage.segments import NUMBERS, Array

LARGEST = 900_000_000
"""Bytes of one array in a change; SQLite holds no more than 1,000,000,000 in one place."""


def log_change(database: Database, version: Version, arrays: Mapping[str, Array]) -> None:
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
    for name, array in arrays.items():
        form = (array.dtype.str, json.dumps(array.shape))
        data = array.tobytes()
        database.rows(
            "INSERT INTO change_arrays VALUES (?, ?, ?, ?, ?, ?)",
            (version.sequence, name, *form, _checksum(name, *form, data), data),
        )


def read_changes(
    database: Database, manifest: Manifest, after: int
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
        yield number, dict(_array(database, number, *row) for row in rows)


def size_of_changes(database: Database) -> int:
    """Return the bytes of the arrays of all changes, without reading these."""
    ((size,),) = database.rows("SELECT coalesce(sum(length(data)), 0) FROM change_arrays")
    return int(size)


def clear_changes(database: Database) -> None:
    """Forget all changes, and give their space back to the disk."""
    database.rows("DELETE FROM changes")
    database.rows("DELETE FROM change_arrays")
    ((n_free,),) = database.rows("PRAGMA freelist_count")
    for _ in range(n_free):  # Python's sqlite3 lets this pragma free a single page
        database.rows("PRAGMA incremental_vacuum")


def _array(
    database: Database, number: int, name: Any, dtype: Any, shape: Any, crc32: Any, data: Any
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
