"""The f-step for all points at once: how every point is scored by the queries around it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rankfold.rankers.parallel import in_order
from rankfold.types import FloatArray, IntArray

BLOCK_ROWS = 1024
"""Points that are solved at once."""

SINGLE = float(np.finfo(np.float32).eps)
"""Relative error with which values are kept."""


class Profiles(NamedTuple):
    """Rows of F, each scaled to length one: how a point is scored by the queries around it.

    Parameters
    ----------
    indptr : array of int, shape (n_points + 1,)
    queries : array of int
        Row i has the entries from ``indptr[i]`` to ``indptr[i + 1]``.
    values : array of float
    bounds : array of float, shape (n_points,)
        No row is further than this from the exact one, in the Euclidean norm.
    """

    indptr: IntArray
    queries: IntArray
    values: FloatArray
    bounds: FloatArray


def profiles(
    weights: sparse.csr_array, smoothness: float, tol: float, n_jobs: int, progress: str = ""
) -> Profiles:
    """Solve the f-step of every point as a query, where it reaches.

    With ``A = I + 2 lambda L`` and ``G = A^-1``, query q gives point i the score
    ``F_iq = G_iq / G_qq``. G is symmetric, so one local solve at i finds row i of G, and its
    diagonal on the way: no array of all pairs is made.

    *The bound.* Push starts from zero and leaves a residual ``0 <= r <= tol``, so ``g`` is
    short of the exact row by ``e = G r >= 0``. A is at least the identity, hence
    ``|e|_2 <= |r|_2``. The rows of G sum to one, hence ``|e|_inf <= tol``: the diagonal is short
    by at most that, and its inverse ``c_q`` too large by at most ``tol c_q^2``. Row i of F is
    therefore off by at most

        max_q c_q |r|_2 + tol |(g_iq c_q^2)_q|_2,

    and scaling a row and its exact one to length one at most doubles the distance, in units of
    its length. Values are kept in single precision, which adds less than eight of its roundings.

    Parameters
    ----------
    weights : sparse array, shape (n_points, n_points)
        W, symmetric.
    smoothness : float
    tol : float
        The largest residual that is left.
    n_jobs : int
    progress : str
        What the bar on stderr says; none if empty.
    """
    from rankfold.rankers.collective.pushing import scale, solve  # compiled, read when used

    n_points = weights.shape[0]
    spread = 2.0 * smoothness * weights.data.astype(np.float64)
    inverse = 1.0 / (1.0 + np.bincount(
        np.repeat(np.arange(n_points), np.diff(weights.indptr)), spread, n_points
    ))  # fmt: skip

    def solved(block: tuple[int, int]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = solve(
            weights.indptr, weights.indices, spread, inverse, *block, tol
        )
        return found

    parts = list(in_order(solved, _blocks(n_points), n_jobs, bool(progress), progress))
    counts, queries, values, diagonal, missing = (
        np.concatenate([part[place] for part in parts]) for place in range(5)
    )
    del parts
    indptr = np.zeros(n_points + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    bounds = scale(indptr, queries, values, diagonal, missing, tol)
    return Profiles(indptr, queries, values, bounds + 8 * SINGLE)


def lifts(found: Profiles, indices: IntArray, n_jobs: int, progress: str = "") -> FloatArray:
    """Return ``||F_i - F_j||^2`` for every candidate j of every point i; inf where there is none.

    Each is off by at most ``(b_i + b_j) (2 ||F_i - F_j|| + b_i + b_j)`` with the bounds b.
    """
    from rankfold.rankers.collective.pushing import lift  # compiled code, read when it is used

    def lifted(block: tuple[int, int]) -> FloatArray:
        rows: FloatArray = lift(found.indptr, found.queries, found.values, indices, *block)
        return rows

    rows = in_order(lifted, _blocks(len(indices)), n_jobs, bool(progress), progress)
    return np.concatenate(list(rows))


def _blocks(n_points: int) -> list[tuple[int, int]]:
    starts = range(0, n_points, BLOCK_ROWS)
    return [(first, min(first + BLOCK_ROWS, n_points)) for first in starts]
