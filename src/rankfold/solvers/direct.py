"""Factorisation, sparse or dense: one for all queries, exact to rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from rankfold.solvers.contract import certify
from rankfold.types import FloatArray, Solution


@dataclass(frozen=True, eq=False)
class Factorization:
    """The matrix and its triangular factors."""

    matrix: sparse.csr_array
    factors: Any

    @property
    def n_entries(self) -> int:
        """Entries of the factors, all of which every right-hand side passes through."""
        return int(self.factors.nnz) if self.factors else 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy the matrix and factorise it anew, since SuperLU's factors have no copy."""
        return DirectSolver().prepare, (self.matrix,)


class _Cholesky:
    def __init__(self, matrix: FloatArray) -> None:
        self.factors = cho_factor(matrix)

    def solve(self, b: FloatArray) -> FloatArray:
        solution: FloatArray = cho_solve(self.factors, b)
        return solution


class DirectSolver:
    """Solve by SuperLU, ordered for symmetric matrices, or by Cholesky where A is dense.

    The matrix is symmetric and positive definite, so no pivoting is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> solver = DirectSolver()
    >>> state = solver.prepare(sparse.csr_array(np.array([[3.0, -1.0], [-1.0, 3.0]])))
    >>> solver.solve(state, np.array([8.0, 0.0])).scores
    array([3., 1.])
    """

    def prepare(self, matrix: sparse.csr_array) -> Factorization:
        """Factorise the matrix once."""
        if not matrix.shape[0]:
            return Factorization(matrix, None)
        if not sparse.issparse(matrix):
            return Factorization(matrix, _Cholesky(matrix))
        factors = splu(
            matrix.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return Factorization(matrix, factors)

    def solve(
        self, state: Factorization, b: FloatArray, start: FloatArray | None = None
    ) -> Solution:
        """Solve by forward and backward substitution; ``start`` is not needed."""
        scores = state.factors.solve(b) if state.factors else np.zeros_like(b)
        return certify(state.matrix, b, scores, n_iter=0, converged=True)
