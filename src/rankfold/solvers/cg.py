"""Preconditioned conjugate gradients on the whole graph: memory of the graph alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from rankfold.parallel import check_stopped
from rankfold.solvers.system import EPS, Boundary, Effort, System, longest_row, solution_of
from rankfold.types import FloatArray, IntArray, Solution

TOL = 1e-12
"""What the residual is brought to, in units of the largest right-hand side or value."""


class GradientSolver:
    """Solves by SciPy's conjugate gradients with a Jacobi preconditioner.

    Rows and columns are divided by the roots of the margins, so that degrees of any size do no
    harm: by System's p = 2, the residual of that system bounds the error of every value.

    Parameters
    ----------
    system : System
    tol : float
    max_iter : int
        Steps after which it gives up; the solution says so.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> query = Boundary(clamped=np.array([0]), values=np.ones(1))
    >>> (solution,) = GradientSolver(System.ran(pair, 0.5)).solve([query], [Effort(1e-6)])
    >>> solution.scores.round(9)
    array([1. , 0.5])
    """

    def __init__(self, system: System, tol: float = TOL, max_iter: int = 10_000) -> None:
        self.system, self.matrix = system, system.matrix
        self.tol, self.max_iter = tol, max_iter
        self._roots = np.sqrt(system.margin)

    def solve(
        self,
        boundaries: Sequence[Boundary],
        efforts: Sequence[Effort],
        start: FloatArray | None = None,
    ) -> Iterator[Solution]:
        """Solve for each boundary; ``start`` has values that are near to the solution."""
        for boundary in boundaries:
            yield self._solve(boundary, start)

    def _solve(self, boundary: Boundary, start: FloatArray | None) -> Solution:
        n_points, roots = self.system.n_points, self._roots
        x, pull = np.zeros(n_points), np.zeros(n_points)
        x[boundary.clamped] = boundary.values
        np.add.at(pull, boundary.pulled, boundary.pull)
        b = -(self.matrix @ x)
        np.add.at(b, boundary.points, boundary.rhs)
        free = np.setdiff1d(np.arange(n_points), boundary.clamped)
        scaled, size = (b / roots)[free], float(np.abs((b / roots)[free]).max(initial=0.0))
        if size == 0.0:
            return solution_of(self.system, self.matrix, boundary, x, solver="cg")
        among = _scaled(self.matrix, free, pull, roots)
        steps = 0

        def count(_: FloatArray) -> None:
            nonlocal steps
            steps += 1
            check_stopped()

        found, _ = cg(
            among,
            scaled / size,
            x0=None if start is None else (start * roots)[free] / size,
            rtol=0.0,
            atol=self.tol / max(1.0, size),
            maxiter=self.max_iter,
            M=sparse.diags_array(1 / among.diagonal()),
            callback=count,
        )
        # SciPy's own word is about a residual that it updates, not one that it measures.
        residual = float(np.abs(scaled / size - among @ found).max())
        largest = 2 * float(among.diagonal().max()) * float(np.abs(found).max())
        rounding = (longest_row(among) + 2) * EPS * (largest + 1.0)
        converged = residual <= max(self.tol / max(1.0, size), rounding)
        x[free] = size * found / roots[free]
        solution = solution_of(self.system, self.matrix, boundary, x, solver="cg", n_iter=steps)
        stopped = solution.stopped if converged else "max_iter"
        return replace(solution, converged=bool(converged), stopped=stopped)


def _scaled(matrix: Any, free: IntArray, pull: FloatArray, roots: FloatArray) -> Any:
    """Return the rows and columns that are solved for, divided by the roots of the margins."""
    if not sparse.issparse(matrix):
        dense: FloatArray = matrix[np.ix_(free, free)]
        dense = dense / roots[free] / roots[free, None]
        dense[np.diag_indices_from(dense)] += (pull / roots**2)[free]
        return dense
    scaling = sparse.diags_array(1 / roots[free])
    extra = sparse.diags_array((pull / roots**2)[free])
    return (scaling @ matrix[free][:, free] @ scaling + extra).tocsr()
