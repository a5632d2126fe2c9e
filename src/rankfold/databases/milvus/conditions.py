"""Conditions on payload, which SQLite judges here: Milvus knows too few of them.

Its patterns tell A from a, and it has no rule for missing values that all versions share. So
payload travels to whoever asks, and answers are those of an index in a folder, to the letter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from rankfold.databases.milvus.client import Entity
from rankfold.databases.milvus.packing import unpack_records
from rankfold.storage.columns import Column
from rankfold.storage.conditions import translate
from rankfold.storage.manifest import points_table
from rankfold.types import IntArray


def meeting(where: str, columns: Sequence[Column], cells: Sequence[Entity]) -> IntArray:
    """Return the slots of those records that meet a condition, ascending."""
    condition, values = translate(where, columns)
    ids, payload = unpack_records(cells, columns)
    slots = [cell["slot"] for cell in cells]
    rows = zip(slots, ids, *(payload[column.name] for column in columns), strict=True)
    marks = ", ?" * len(columns)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(points_table(columns))
        connection.executemany(f"INSERT INTO points VALUES (?, ?, NULL{marks})", rows)  # noqa: S608
        found = connection.execute(
            f"SELECT slot FROM points WHERE {condition} ORDER BY slot",  # noqa: S608
            values,
        )
        return np.array([slot for (slot,) in found], dtype=np.int64)
