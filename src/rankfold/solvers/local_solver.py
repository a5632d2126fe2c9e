"""The local solver for a matrix, in the terms of all solvers."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankfold.solvers.arrays import Start
from rankfold.solvers.local import LocalSystem
from rankfold.types import FloatArray, Solution


class LocalSolver:
    """Solve a system with row sums of at least one where its right-hand side reaches.

    Parameters
    ----------
    tol : float
        No score is to be further than this from the exact one.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> solver = LocalSolver()
    >>> state = solver.prepare(sparse.csr_array(np.array([[3.0, -1.0], [-1.0, 3.0]])))
    >>> solver.solve(state, np.array([8.0, 0.0])).scores.round(9)
    array([3., 1.])
    """

    def __init__(self, tol: float = 1e-12) -> None:
        self.tol = tol

    def prepare(self, matrix: sparse.csr_array) -> LocalSystem:
        """Read the matrix as a graph."""
        matrix = sparse.csr_array(matrix)
        margin = np.asarray(matrix.sum(axis=1))
        weights = (sparse.diags_array(matrix.diagonal()) - matrix).tocsr()
        weights.eliminate_zeros()
        return LocalSystem(weights, 1.0, margin, np.ones(len(margin)))

    def solve(self, state: LocalSystem, b: FloatArray, start: FloatArray | None = None) -> Solution:
        """Solve each right-hand side in turn; ``start`` is not needed."""
        columns = b[:, None] if b.ndim == 1 else b
        scores = np.zeros(columns.shape)
        bound, n_steps = 0.0, 0
        for column in range(columns.shape[1]):
            points = np.flatnonzero(columns[:, column])
            given = columns[points, column] / state.system.margin[points]
            size = float(np.abs(given).max(initial=0.0))
            reached = state.solve(Start(points, given, size), tol=self.tol)
            scores[reached.points, column] = reached.values
            bound = max(bound, reached.above, reached.below)
            n_steps += reached.n_steps
        return Solution(scores.reshape(b.shape), bound, bound, n_steps, converged=True)
