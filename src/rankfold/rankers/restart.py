"""Walks that return to the query: the linear system of PageRank and manifold ranking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankfold.check import InputError
from rankfold.rankers.asker import warn_asker
from rankfold.rankers.ordering import certain_scores
from rankfold.rankers.transition import symmetric_walk
from rankfold.solvers import DIRECT_LIMIT, SOLVERS, DirectSolver, Solver
from rankfold.solvers.contract import EPS, longest_row
from rankfold.types import BoolArray, FloatArray, IntArray, Solution, Weights


class Solved(NamedTuple):
    """Solutions in columns, and how each was come by."""

    columns: FloatArray
    n_iter: IntArray
    converged: BoolArray


class RestartSystem:
    """Solve ``(I - alpha S) h = b`` with ``S = D^-1/2 W D^-1/2`` for many right-hand sides.

    The eigenvalues of S lie between -1 and 1, so the matrix is symmetric and positive definite.
    Manifold ranking is this system itself; PageRank's is similar to it.

    Parameters
    ----------
    weights : W
    alpha : float
    solver : {"direct", "cg", "local", "iteration"}
        "local" answers what is asked of all points by conjugate gradients.
    max_iter, tol
        For the iteration ``h <- alpha S h + b`` alone. Its residual is its last change, so it
        ends once ``||change||_2 / (1 - alpha)``, a bound of the error, is within tol.
    """

    def __init__(
        self, weights: Weights, alpha: float, solver: str, max_iter: int = 10_000, tol: float = 1e-9
    ) -> None:
        self.walk = symmetric_walk(weights)
        self.alpha, self.max_iter, self.tol = alpha, max_iter, tol
        self.solver: Solver | None = None
        if solver != "iteration":
            # Rows of this matrix do not sum to one, as a local solver would have it.
            self.solver = SOLVERS["cg" if solver == "local" else solver]()
            identity = sparse.eye_array(weights.shape[0], format="csr")
            matrix = (
                (identity - alpha * self.walk).tocsr()
                if sparse.issparse(self.walk)
                else np.eye(len(self.walk)) - alpha * self.walk
            )
            self.state = self.solver.prepare(matrix)

    def solve(self, b: FloatArray) -> Solved:
        """Solve for every column."""
        if self.solver is None:
            return self._iterate(b)
        # CG's tolerance is absolute, so columns are brought to a common size.
        sizes = np.abs(b).max(axis=0, initial=0.0)
        sizes[sizes == 0] = 1.0
        n_columns = b.shape[1]
        if isinstance(self.solver, DirectSolver):
            columns = self.solver.solve(self.state, b / sizes).scores
            return Solved(columns * sizes, np.zeros(n_columns, int), np.ones(n_columns, bool))
        parts = [self.solver.solve(self.state, column) for column in (b / sizes).T]
        return Solved(
            np.column_stack([part.scores for part in parts]) * sizes,
            np.array([part.n_iter for part in parts]),
            np.array([part.converged for part in parts]),
        )

    def _iterate(self, b: FloatArray) -> Solved:
        columns = np.zeros_like(b)
        n_iter = np.zeros(b.shape[1], dtype=np.intp)
        active = np.arange(b.shape[1])
        for _ in range(self.max_iter):
            now = columns[:, active]
            change = self.alpha * (self.walk @ now) + b[:, active] - now
            bounds = np.linalg.norm(change, axis=0) / (1 - self.alpha)
            moving = bounds > self.tol
            active = active[moving]
            if not len(active):
                break
            columns[:, active] += change[:, moving]
            n_iter[active] += 1
        converged = np.ones(b.shape[1], dtype=bool)
        converged[active] = False
        return Solved(columns, n_iter, converged)


def certified(
    transition: Weights, alpha: float, seeds: FloatArray, solved: Solved, norm: int
) -> Iterator[Solution]:
    """Attach residual and bound to scores of ``f = alpha T f + (1 - alpha) y``.

    Where ``||T|| <= 1`` in a p-norm, ``||(I - alpha T)^-1|| <= 1 / (1 - alpha)`` and

        max |f - f*| <= ||f - f*||_p <= ||r||_p / (1 - alpha)

    with ``r = (1 - alpha) y - (f - alpha T f)``. Each entry of r is rounded by at most as many
    units in the last place of ``|f| + alpha T |f| + (1 - alpha) |y|`` as its row has terms, and a
    few; the norm of that is at most ``(1 + alpha) ||f|| + ||y||``, and is added to the residual's.
    """
    # Without negative seeds exact scores are not negative, so this can only bring them closer.
    scores = np.maximum(solved.columns, np.where((seeds < 0).any(axis=0), -np.inf, 0.0))
    residuals = (1 - alpha) * seeds - (scores - alpha * (transition @ scores))
    sizes = 2 * np.linalg.norm(scores, norm, axis=0) + np.linalg.norm(seeds, norm, axis=0)
    slack = (longest_row(transition) + 8) * EPS * sizes
    bounds = (np.linalg.norm(residuals, norm, axis=0) + slack) / (1 - alpha)
    unfinished = np.count_nonzero(~solved.converged)
    for column, bound in enumerate(bounds):
        solution = Solution(
            scores[:, column],
            float(np.abs(residuals[:, column]).max()),
            float(bound),
            int(solved.n_iter[column]),
            bool(solved.converged[column]),
        )
        yield certain_scores(solution)
    if unfinished:
        warn_asker(
            f"{unfinished} of {len(bounds)} queries were not solved to the tolerance (the largest "
            f"error is at most {bounds.max():.2g}); raise max_iter, lower alpha, or use "
            "solver='direct'.",
            ConvergenceWarning,
        )


def choose_solver(solver: str, weights: Weights) -> str:
    """Return the solver that "auto" stands for: by the number of points, and of their edges."""
    if solver == "local" and not sparse.issparse(weights):
        raise InputError(
            "solver='local' follows the edges of a graph, but every pair of points has one here; "
            "give the graph n_neighbors, or use solver='auto'."
        )
    if solver != "auto":
        return solver
    if weights.shape[0] <= DIRECT_LIMIT:
        return "direct"
    return "local" if sparse.issparse(weights) else "cg"
