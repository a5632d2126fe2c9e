"""Searches for several vectors in one exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankfold.databases.postgresql import unpacking
from rankfold.types import FloatArray, IntArray

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

Shape = tuple[int, ...]
"""How many vectors, of how many features."""

WIDEST = 1000
"""Candidates that pgvector follows in an HNSW index at most."""

LEAST = 100

ITERATIVE = (
    "SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.max_scan_tuples = 2147483647;"
)
"""Let searches in an HNSW index go on until they have found enough."""

LEAST_MARGIN = 1e-4
"""Share by which the single precision of the database may be wrong about a squared distance; with
many features it is their number in units of the last place."""

ASKED = """
(SELECT place, ((%s)[place * {n_features} + 1:(place + 1) * {n_features}])::vector AS vector
 FROM generate_series(0, {n_vectors} - 1) AS place OFFSET 0) AS asked
"""
"""Vectors cut from one long array; OFFSET 0 keeps this from being done again for every point."""


def search_width(k: int) -> int:
    """Return how many candidates to follow in an HNSW index for ``k`` results."""
    return min(WIDEST, max(LEAST, 2 * k))


def nearest(number: int, shape: Shape, k: int, condition: str) -> str:
    """Return the SQL that finds the nearest points which meet a condition.

    Numbers stand in the SQL itself: with an unknown limit, PostgreSQL plans for a large one.
    """
    asked = ASKED.format(n_vectors=shape[0], n_features=shape[1])
    return f"""
SELECT place, found.slot, found.vector FROM {asked} CROSS JOIN LATERAL (
    SELECT slot, points.vector FROM rankfold_{number}_points AS points WHERE ({condition})
    ORDER BY points.vector <-> asked.vector LIMIT {k}
) AS found
"""  # noqa: S608


def listing(number: int, shape: Shape) -> str:
    """Return the SQL that finds points to whose list vectors are near enough."""
    asked = ASKED.format(n_vectors=shape[0], n_features=shape[1])
    margin = max(LEAST_MARGIN, (shape[1] + 8) * float(np.finfo(np.float32).eps))
    return f"""
SELECT place, slot, points.vector
FROM rankfold_{number}_points AS points JOIN rankfold_{number}_lists USING (slot), {asked}
WHERE (points.vector <-> asked.vector) ^ 2 < reach * {1 + margin}
"""  # noqa: S608


def by_vector(answer: PGresult, shape: Shape) -> list[tuple[IntArray, FloatArray]]:
    """Cut an answer of places, slots and vectors into one for each place."""
    places, slots = unpacking.integers(answer, 0), unpacking.integers(answer, 1)
    vectors = unpacking.vectors(answer, 2, shape[1])
    order = np.argsort(places, kind="stable")
    ends = np.searchsorted(places[order], np.arange(shape[0]), side="right")
    parts = np.split(order, ends[:-1])
    return [(slots[part], vectors[part]) for part in parts]
