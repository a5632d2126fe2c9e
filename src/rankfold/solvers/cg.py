"""Preconditioned conjugate gradients: no factorisation, memory of the graph alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from rankfold.solvers.contract import certify
from rankfold.types import FloatArray, Solution


@dataclass(frozen=True, eq=False)
class Preconditioned:
    """The matrix and its Jacobi preconditioner."""

    matrix: sparse.csr_array
    preconditioner: sparse.dia_array


class ConjugateGradients:
    """Solve by SciPy's conjugate gradients with a Jacobi preconditioner.

    Parameters
    ----------
    tol : float
        The residual, and with it the error of every score, is to be brought below this, or
        to the size of its rounding error.
    max_iter : int
        Steps after which it stops regardless; the solution says so.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> solver = ConjugateGradients()
    >>> state = solver.prepare(sparse.csr_array(np.array([[3.0, -1.0], [-1.0, 3.0]])))
    >>> solver.solve(state, np.array([8.0, 0.0])).scores.round(9)
    array([3., 1.])
    """

    def __init__(self, tol: float = 1e-12, max_iter: int = 10_000) -> None:
        self.tol = tol
        self.max_iter = max_iter

    def prepare(self, matrix: sparse.csr_array) -> Preconditioned:
        """Invert the diagonal."""
        return Preconditioned(matrix, sparse.diags_array(1 / matrix.diagonal()))

    def solve(
        self, state: Preconditioned, b: FloatArray, start: FloatArray | None = None
    ) -> Solution:
        """Solve each right-hand side in turn, from ``start`` where it is given."""
        columns = b[:, None] if b.ndim == 1 else b
        starts = np.zeros_like(columns) if start is None else start.reshape(columns.shape)
        scores = np.empty_like(columns)
        steps = 0

        def count(_: FloatArray) -> None:
            nonlocal steps
            steps += 1

        for column in range(columns.shape[1]):
            scores[:, column], _ = cg(
                state.matrix,
                columns[:, column],
                x0=starts[:, column],
                rtol=0.0,
                atol=self.tol,
                maxiter=self.max_iter,
                M=state.preconditioner,
                callback=count,
            )
        solution = certify(state.matrix, b, scores.reshape(b.shape), steps, converged=True)
        # SciPy's own word is about a residual that it updates, not one that it measures.
        rounding = solution.bound - solution.residual
        return replace(solution, converged=solution.residual <= max(self.tol, rounding))
