"""Rows in the binary format of PostgreSQL's COPY, made by numpy for many rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from rankfold.neighbors import Rows
from rankfold.types import FloatArray, IntArray

BEGINNING = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"
MISSING = b"\xff\xff\xff\xff"

_length = Struct(">i").pack
_array_head = Struct(">iiiiii").pack
INT4 = 23
EMPTY_ARRAY = Struct(">iiii").pack(12, 0, 0, INT4)


def copied(columns: Sequence[Iterable[bytes]]) -> bytes:
    """Return rows for COPY from packed columns."""
    head = len(columns).to_bytes(2, "big")
    rows = zip(*columns, strict=True)
    return BEGINNING + b"".join(chain.from_iterable((head, *row) for row in rows)) + END


def packed(values: Iterable[Any], kind: str) -> list[bytes]:
    """Pack the values of a column of some kind, which may be missing."""
    pack = PACKERS[kind]
    return [MISSING if value is None else pack(value) for value in values]


def packed_integers(values: IntArray) -> list[bytes]:
    """Pack whole numbers of 32 bits."""
    return _cut(values.astype(">i4")[:, None])


def packed_numbers(values: FloatArray) -> list[bytes]:
    """Pack floats of 64 bits."""
    return _cut(values.astype(">f8")[:, None])


def packed_vectors(vectors: FloatArray) -> list[bytes]:
    """Pack vectors as pgvector writes them: the number of features, zero, the features."""
    heads = np.zeros((len(vectors), 2), dtype=">i2")
    heads[:, 0] = vectors.shape[1]
    return _cut(_joined(heads, vectors.astype(">f4")))


def packed_lists(rows: Rows, precision: str) -> list[bytes]:
    """Pack lists as bytes, smallest first: all slots, then all squared distances."""
    lists = rows.lists
    return _cut(
        _joined(lists.indices.astype("<i4"), lists.sq_distances.astype(DISTANCES[precision]))
    )


def packed_sources(rows: Rows) -> list[bytes]:
    """Pack arrays of those who list each point."""
    elements = np.empty(len(rows.sources), dtype=[("length", ">i4"), ("slot", ">i4")])
    elements["length"], elements["slot"] = 4, rows.sources
    data = elements.tobytes()
    return [
        _array_head(20 + 8 * (end - start), 1, 0, INT4, end - start, 1) + data[8 * start : 8 * end]
        if end > start
        else EMPTY_ARRAY
        for start, end in zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True)
    ]


def _joined(*parts: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Put the bytes of arrays beside each other, row by row."""
    return np.hstack([np.ascontiguousarray(part).view(np.uint8) for part in parts])


def _cut(rows: npt.NDArray[Any]) -> list[bytes]:
    """Return the bytes of each row, after their number."""
    if not len(rows):
        return []
    lengths = np.full((len(rows), 1), rows.shape[1] * rows.itemsize, dtype=">i4")
    whole = _joined(lengths, rows)
    data, size = whole.tobytes(), whole.shape[1]
    return [data[start : start + size] for start in range(0, len(data), size)]


def _text(value: str) -> bytes:
    data = value.encode()
    return _length(len(data)) + data


_boolean, _integer, _number = Struct(">i?").pack, Struct(">iq").pack, Struct(">id").pack
PACKERS = {
    "boolean": lambda value: _boolean(1, bool(value)),
    "integer": lambda value: _integer(8, int(value)),
    "number": lambda value: _number(8, float(value) + 0.0),  # SQLite has no negative zero, either
    "text": _text,
    "unknown": _text,
}
DISTANCES = {"single": "<f4", "double": "<f8"}
