"""What every solver offers, and the error bound that holds for all of them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from rankfold.types import FloatArray, Solution

EPS = float(np.finfo(np.float64).eps)


class Solver(Protocol):
    """Solves ``A f = b`` for a symmetric, positive definite matrix, sparse or dense."""

    def prepare(self, matrix: sparse.csr_array) -> Any:
        """Do what can be shared by all right-hand sides."""

    def solve(self, state: Any, b: FloatArray, start: FloatArray | None = None) -> Solution:
        """Solve for one right-hand side, or for every column of several."""


def certify(
    matrix: sparse.csr_array, b: FloatArray, scores: FloatArray, n_iter: int, converged: bool
) -> Solution:
    """Attach residual and error bound to scores that any solver found for RAN's system.

    ``A`` is an M-matrix with ``A 1 >= 1``: its off-diagonal entries are not positive, and
    every row sum of ``2 lambda L + I``, or of a principal part of it, is at least one. Hence
    ``||A^-1||_inf <= 1`` and ``|f - f*| = |A^-1 (A f - b)| <= max |A f - b|`` for every point.
    The residual is itself rounded; that error is at most a few units in the last place of
    ``|A| |f| + |b|``, which is added.
    """
    residual = float(np.abs(matrix @ scores - b).max(initial=0.0))
    return Solution(scores, residual, residual + rounding(matrix, b, scores), n_iter, converged)


def longest_row(matrix: Any) -> int:
    """Return the largest number of terms that a row adds up."""
    if sparse.issparse(matrix):
        return int(np.diff(matrix.indptr).max(initial=0))
    return int(matrix.shape[1])


def rounding(matrix: sparse.csr_array, b: FloatArray, scores: FloatArray) -> float:
    """Bound the rounding error of ``A f - b`` as it is computed."""
    if not matrix.shape[0]:
        return 0.0
    largest = float(abs(matrix).sum(axis=1).max()) * float(np.abs(scores).max(initial=0.0))
    return (longest_row(matrix) + 2) * EPS * (largest + float(np.abs(b).max(initial=0.0)))
