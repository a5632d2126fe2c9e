"""Sparse factorisation: one for all queries, exact to rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
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


class DirectSolver:
    """Solve by SuperLU, ordered for symmetric matrices.

    The matrix is symmetric and diagonally dominant, so no pivoting is needed.

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
