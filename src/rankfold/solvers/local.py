"""Local, certified solves: only the points that a query reaches are ever touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rankfold.check import InputError
from rankfold.solvers.arrays import (
    AHEAD,
    NOT_BEGUN,
    PAUSED,
    Batch,
    Found,
    Rule,
    Stand,
    Start,
    System,
    Workspace,
)
from rankfold.solvers.chebyshev import term_weights
from rankfold.types import FloatArray, IntArray

PATIENCE, WHOLE_SHARE = 1.2, 0.25
"""When gradients take over from push, and when they leave the region: see `Rule`."""

BEYOND = 0.07
"""Part of the way from the best relaxation for all points at once to the largest that converges.

Points that are pushed one by one, where they lack something, do better with a little more.
"""

ROUNDINGS = 8
"""Most roundings of an entry that a proof puts into its row three times."""

BLOCK_ROWS = 2**14
"""Rows that are summed at once."""


class Reached(NamedTuple):
    """Values of the points that a query reached; those of all others are zero.

    Every exact value lies between ``value - below`` and ``value + above``, also where
    nothing was touched.
    """

    points: IntArray
    values: FloatArray
    above: float
    below: float
    n_steps: int


class LocalSystem:
    """Solves ``(C - beta W) x = b``, ``C = diag(m + beta W 1)``, where a query reaches.

    W is symmetric and not negative, and every margin ``m_i`` is positive. Divided by its margin,
    a row reads

        c_i x_i - sum_j B_ji x_j = b_i / m_i,    B_ji = beta w_ij / m_i,    c_i = 1 + sum_j B_ji,

    so rows sum to one: an M-matrix with ``A 1 = 1``, hence ``A^-1 >= 0`` and
    ``||A^-1||_inf <= 1``. **The exact value of every point, touched or not, differs from the
    given one by at most the largest residual.** Eliminating rows and adding to the diagonal
    keep ``A 1 >= 1``.

    * RAN: ``beta = 2 lambda``, ``m = 1``, scores ``f = x``.
    * PageRank: ``f = alpha P' f + (1 - alpha) y`` is, with ``f = D x``,
      ``(D - alpha W) x = (1 - alpha) y``; ``beta = alpha``, ``m = (1 - alpha) D``. The error of
      ``f_i`` is at most ``d_i`` times the largest residual.
    * Manifold ranking: ``f = alpha D^-1/2 W D^-1/2 f + (1 - alpha) y`` is, with
      ``f = D^1/2 x``, ``(D - alpha W) x = (1 - alpha) D^1/2 y``: the same matrix, with errors
      of at most ``d_i^1/2`` times the largest residual.

    Parameters
    ----------
    weights : sparse array W
    beta : float
    margin : array m
    scale : array
        Scores are values times this.
    patience, whole_share : float
        When conjugate gradients take over from push, and when they leave the region: see `Rule`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> path = sparse.diags_array([np.ones(9), np.ones(9)], offsets=[-1, 1]).tocsr()
    >>> system = LocalSystem(path, beta=1.0, margin=np.ones(10), scale=np.ones(10))
    >>> start = Start(clamped=np.array([0]), seeds=np.array([1.0]))
    >>> found = system.best([start], [2])
    >>> found.points, found.certified
    (array([[1, 2]]), array([ True]))
    """

    def __init__(
        self,
        weights: sparse.csr_array,
        beta: float,
        margin: FloatArray,
        scale: FloatArray,
        patience: float = PATIENCE,
        whole_share: float = WHOLE_SHARE,
    ) -> None:
        if not np.all(margin > 0):
            raise InputError(
                f"the smallest margin of a row is {margin.min():.3g}, but every one must be "
                "positive: each diagonal entry larger than the sum of its row's weights."
            )
        weights = sparse.csr_array(weights)
        indptr, indices = weights.indptr, weights.indices
        spread = weights.data if beta == 1.0 else beta * weights.data
        even = bool(np.all(margin == 1.0))
        if not even:  # in double precision, so that it is the system of the weights as given
            spread = beta * weights.data.astype(np.float64) / margin[indices]
        # Summed as they are stored, so that rows sum to one in any precision.
        received = (
            _row_sums(indptr, spread)
            if even
            else np.bincount(indices, weights=spread, minlength=len(margin))
        )
        plain = even and bool(np.all(scale == 1.0))
        self.inverse = np.asarray(1.0 / (1.0 + received), dtype=np.float64)
        self.system = System(
            indptr,
            indices,
            spread,
            np.ascontiguousarray(margin, dtype=np.float64),
            np.ascontiguousarray(scale, dtype=np.float64),
            float(scale.max(initial=0.0)),
            float(1 + received.max(initial=0.0)),
            int(np.diff(indptr).max(initial=0)),
            plain,
            0.0 if plain else ROUNDINGS * float(np.finfo(spread.dtype).eps),
        )
        rho = 1.0 - float(np.median(self.inverse)) if self.n_points else 0.0
        relaxation = 2.0 / (1.0 + float(np.sqrt(1.0 - rho**2)))
        relaxation += BEYOND * (2.0 - relaxation)
        self.rule = Rule(relaxation, float(patience), float(whole_share), term_weights(rho))
        self._idle: list[Workspace] = []

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.inverse)

    def solve(self, start: Start, tol: float = 1e-6) -> Reached:
        """Solve until no value can be off by more than about ``tol``.

        A tolerance below the rounding errors is raised to them.
        """
        from rankfold.solvers import answers, levels, push  # compiled code, read when it is used

        work, query = self._workspace(), start.prepared()
        level = max(tol, answers.FIRST_LEVEL * query.size)
        n_touched = push.begin(self.system, work, query)
        stand = Stand(n_touched, 0, False, level, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
        while stand.state == PAUSED:
            stand = levels.solve(self.system, work, stand, query, self.n_points, tol, self.rule)
        push.refine(work, stand.n_touched)
        touched = work.touched[: stand.n_touched].astype(np.intp)
        values = work.value[touched]
        push.clear(work, stand.n_touched, query, self.inverse)
        # A workspace that an exception left in use is not taken back.
        self._idle.append(work)
        return Reached(touched, values, stand.above, stand.below, stand.n_steps)

    def best(self, starts: Sequence[Start], tops: Sequence[int], tol: float = 1e-6) -> Found:
        """Find the best points of several queries, as many for each as ``tops`` says.

        Each is solved until its best are certain, or the bound is about ``tol``. Points
        of ``clamped`` and ``left_out`` are not among them.
        """
        from rankfold.solvers import answers

        work, batch = self._workspace(), Batch.of(starts, tops)
        found = Found.empty(len(starts), max(tops, default=0), len(batch.left_out))
        done, stand = 0, NOT_BEGUN
        while done < len(starts):
            done, stand = answers.answer(
                self.system, work, self.inverse, batch, found, done, stand, tol, self.rule
            )
        self._idle.append(work)
        return found

    def _workspace(self) -> Workspace:
        try:
            return self._idle.pop()
        except IndexError:
            n_points, n_edges = self.n_points, len(self.system.indices)
            return Workspace(
                np.zeros(n_points),
                np.zeros(n_points),
                self.inverse.copy(),
                np.zeros(n_points, dtype=np.uint8),
                np.empty(n_points, dtype=np.int32),
                np.empty(n_points + 1, dtype=np.int32),
                np.empty(n_points + 1, dtype=np.int32),
                np.zeros(1, dtype=np.int64),
                np.empty(n_points + 1, dtype=np.int32),
                np.zeros(1, dtype=np.int64),
                np.zeros(n_points + AHEAD, dtype=np.int32),
                np.empty(n_points, dtype=np.int64),
                np.empty(n_edges, dtype=np.int32),
                np.empty(n_edges, dtype=self.system.spread.dtype),
                np.empty((7, n_points)),
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}


def _row_sums(indptr: IntArray, data: FloatArray) -> FloatArray:
    """Sum rows in double precision, block by block; with even margins B is symmetric."""
    sums = np.zeros(len(indptr) - 1)
    for start in range(0, len(sums), BLOCK_ROWS):
        ends = indptr[start : start + BLOCK_ROWS + 1]
        first, filled = ends[0], np.diff(ends) > 0
        if filled.any():
            block = data[first : ends[-1]].astype(np.float64)
            sums[start : start + BLOCK_ROWS][filled] = np.add.reduceat(
                block, ends[:-1][filled] - first
            )
    return sums
