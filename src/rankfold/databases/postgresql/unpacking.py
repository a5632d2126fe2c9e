"""Arrays from what PostgreSQL answers in its binary format, for many rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankfold.databases.postgresql.packing import DISTANCES
from rankfold.neighbors import Rows
from rankfold.types import FloatArray, IntArray, Neighbors

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

ARRAY_HEAD = 20
"""Bytes before the elements of an array that has any."""


def integers(answer: PGresult, column: int) -> IntArray:
    """Return a column of whole numbers of 32 bits."""
    return np.frombuffer(_bytes(answer, column), dtype=">i4").astype(np.int64)


def numbers(answer: PGresult, column: int) -> FloatArray:
    """Return a column of floats of 64 bits."""
    return np.frombuffer(_bytes(answer, column), dtype=">f8").astype(np.float64)


def vectors(answer: PGresult, column: int, n_features: int) -> FloatArray:
    """Return a column of vectors."""
    form = np.dtype([("head", ">i4"), ("features", ">f4", (n_features,))])
    return np.frombuffer(_bytes(answer, column), dtype=form)["features"].astype(np.float32)


def rows(answer: PGresult, settings: dict[str, Any]) -> Rows:
    """Return rows from columns of slots, lists and sources."""
    width = settings["stored_width"]
    form = np.dtype(
        [("indices", "<i4", (width,)), ("sq", DISTANCES[settings["precision"]], (width,))]
    )
    lists = np.frombuffer(_bytes(answer, 1), dtype=form)
    starts, sources = arrays(answer, 2)
    indices, sq_distances = (np.ascontiguousarray(lists[part]) for part in ("indices", "sq"))
    return Rows(integers(answer, 0), Neighbors(indices, sq_distances), starts, sources)


def arrays(answer: PGresult, column: int) -> tuple[IntArray, IntArray]:
    """Return where each array of whole numbers starts, and all their elements."""
    elements = [_value(answer, row, column)[ARRAY_HEAD:] for row in range(answer.ntuples)]
    counts = np.fromiter(map(len, elements), dtype=np.int64, count=len(elements)) // 8
    pairs = np.frombuffer(b"".join(elements), dtype=[("length", ">i4"), ("slot", ">i4")])
    return np.concatenate([[0], np.cumsum(counts)]), pairs["slot"].astype(np.int64)


def _bytes(answer: PGresult, column: int) -> bytes:
    return b"".join([_value(answer, row, column) for row in range(answer.ntuples)])


def _value(answer: PGresult, row: int, column: int) -> bytes:
    return answer.get_value(row, column) or b""
