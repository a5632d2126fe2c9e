"""Points and rows on their way into tables, by COPY: the fastest there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.databases.contract import NewPoints
from rankfold.databases.postgresql.connecting import Connection
from rankfold.databases.postgresql.packing import (
    MISSING,
    copied,
    packed,
    packed_integers,
    packed_lists,
    packed_numbers,
    packed_sources,
    packed_vectors,
)
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column
from rankfold.types import FloatArray, Neighbors

LONGEST_ID = 2600
"""Bytes; what is longer may not fit into an index of PostgreSQL."""

PIECE = 2**18
"""Bytes handed over together."""


def copy_points(
    connection: Connection,
    number: int,
    points: NewPoints,
    columns: Sequence[Column],
    n_features: int,
) -> None:
    """Write points that are new."""
    vectors = np.asarray(points.vectors)
    if vectors.shape != (len(points.slots), n_features):
        raise InputError(
            f"vectors have shape {vectors.shape}, but must have shape "
            f"({len(points.slots)}, {n_features}), like those of the index."
        )
    _check_lengths(points.ids)
    packed_columns = [
        packed_integers(points.slots),
        packed((i if isinstance(i, str) else None for i in points.ids), "text"),
        packed((None if isinstance(i, str) else i for i in points.ids), "integer"),
        packed_vectors(vectors),
        *_packed_places(points.places, len(vectors)),
        *(packed(points.payload[column.name], column.kind) for column in columns),
    ]
    keys = "".join(f", {column.key}" for column in columns)
    target = f"rankfold_{number}_points (slot, id_text, id_number, vector, x, y{keys})"
    _copy(connection, target, packed_columns)


def copy_rows(connection: Connection, number: int, rows: Rows, settings: dict[str, Any]) -> None:
    """Write rows that are new."""
    packed_columns = [
        packed_integers(rows.slots),
        packed_lists(rows, settings["precision"]),
        packed_numbers(_reach(rows.lists, settings["width"])),
        packed_sources(rows),
    ]
    target = f"rankfold_{number}_lists (slot, lists, reach, sources)"
    _copy(connection, target, packed_columns)


def _copy(connection: Connection, target: str, columns: Sequence[Iterable[bytes]]) -> None:
    data = memoryview(copied(columns))
    with connection.cursor().copy(f"COPY {target} FROM STDIN (FORMAT binary)".encode()) as copy:
        for start in range(0, len(data), PIECE):
            copy.write(data[start : start + PIECE])


def _check_lengths(ids: Sequence[Any]) -> None:
    for i in ids:
        if isinstance(i, str) and len(i) > LONGEST_ID // 4 and len(i.encode()) > LONGEST_ID:
            raise InputError(
                f"the id {i[:20]!r}... has {len(i.encode())} bytes, but PostgreSQL finds ids of up "
                f"to {LONGEST_ID} bytes; give shorter ones, and keep long texts as payload."
            )


def _packed_places(places: FloatArray | None, n_points: int) -> list[list[bytes]]:
    if places is None:
        return [[MISSING] * n_points] * 2
    return [packed_numbers(np.asarray(places)[:, axis]) for axis in (0, 1)]


def _reach(lists: Neighbors, width: int) -> FloatArray:
    """Return the squared distance of the last of each list, infinity for those below a width.

    Lists that are shorter hold all others.
    """
    counts = np.count_nonzero(lists.indices >= 0, axis=1)
    if not lists.width:
        return np.full(len(counts), np.inf)
    last = lists.sq_distances[np.arange(len(counts)), np.maximum(counts - 1, 0)]
    return np.where(counts < width, np.inf, last.astype(np.float64))
