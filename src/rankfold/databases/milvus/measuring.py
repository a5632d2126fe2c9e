"""What is near vectors, by measuring all points that pass by."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rankfold.types import FloatArray, IntArray

SLACK = 1e-5
"""Distances of this share too far still count, as they may have been rounded elsewhere."""

Block = tuple[IntArray, FloatArray]


def nearest_of(blocks: Iterable[Block], vectors: FloatArray, k: int) -> list[Block]:
    """Return slots and vectors of the ``k`` nearest to each vector, by measuring everything."""
    best: list[Block] = []
    for slots, points in blocks:
        parts = [(slots, points)] * len(vectors)
        if best:
            parts = [
                (np.concatenate([old, slots]), np.concatenate([held, points])) for old, held in best
            ]
        best = [_nearest(*part, vector, k) for part, vector in zip(parts, vectors, strict=True)]
    return best or [_nobody(vectors)] * len(vectors)


def _nearest(slots: IntArray, points: FloatArray, vector: FloatArray, k: int) -> Block:
    if len(slots) <= k:
        return slots, points
    chosen = np.argpartition(_sq_distances(points, vector), k - 1)[:k]
    return slots[chosen], points[chosen]


def entered(
    blocks: Iterable[Block], slots: IntArray, reach: FloatArray, vectors: FloatArray
) -> list[Block]:
    """Return slots and vectors of the points for which each vector is within reach.

    Parameters
    ----------
    blocks : iterable of (slots, vectors)
        All points.
    slots : array of int, ascending
    reach : array of float
        The squared distance up to which each of these points lists others.
    vectors : array of float
    """
    found: list[list[Block]] = [[_nobody(vectors)] for _ in vectors]
    for held, points in blocks:
        limit = (1 + SLACK) * reach[np.searchsorted(slots, held)]
        for vector, parts in zip(vectors, found, strict=True):
            near = _sq_distances(points, vector) <= limit
            parts.append((held[near], points[near]))
    return [
        (np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))
        for parts in found
    ]


def _sq_distances(points: FloatArray, vector: FloatArray) -> FloatArray:
    away = points.astype(np.float64) - vector
    squares: FloatArray = np.einsum("ij,ij->i", away, away)
    return squares


def _nobody(vectors: FloatArray) -> Block:
    return np.empty(0, dtype=np.int64), np.empty((0, vectors.shape[1]), dtype=np.float32)
