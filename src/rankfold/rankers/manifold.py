"""Manifold ranking: scores that are smooth on the graph and stay near the query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rankfold.check import check_choice, check_count, check_positive, check_share
from rankfold.rankers.flow import Flow, degree_or_one
from rankfold.rankers.graphs import GraphRecipe
from rankfold.rankers.local_restart import LocalRestart
from rankfold.rankers.restart import RestartSystem, certified, choose_solver
from rankfold.rankers.seeded import SeededRanker
from rankfold.solvers import SOLVERS
from rankfold.types import FloatArray, Query, Solution


class ManifoldRanking(SeededRanker):
    """Ranking on data manifolds (Zhou, Weston, Gretton, Bousquet and Schoelkopf, NIPS 2003).

    With ``S = D^-1/2 W D^-1/2`` the scores are the limit of ``f <- alpha S f + (1 - alpha) y``,

        f = (1 - alpha) (I - alpha S)^-1 y.

    S is symmetric with eigenvalues between -1 and 1, so the largest error of any f is at most
    ``||r||_2 / (1 - alpha)`` for its residual r; ``ranking.solution.bound`` says how much. A
    local solve has a bound of its own: ``f = D^1/2 x`` turns the system into ``(D - alpha W) x =
    (1 - alpha) D^1/2 y``, an M-matrix whose rows sum to ``(1 - alpha) d_i``, so the error of
    ``x`` is at most the largest ``|r_i| / ((1 - alpha) d_i)``, and that of ``f_i`` at most
    ``d_i^1/2`` times it.

    Parameters
    ----------
    alpha : float
        Weight of the graph term, between 0 and 1.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.
    solver : {"auto", "direct", "cg", "local", "iteration"}
        The closed form by one factorisation for all queries ("auto" up to 5,000 points), by
        conjugate gradients, or only where a query reaches ("auto" beyond, for up to a quarter
        of the points); or the paper's iteration.
    max_iter : int
        Most steps of the iteration.
    tol : float
        The iteration ends when no score is further than this from its limit; so does a local
        solve, unless the answer is certain before.

    Examples
    --------
    >>> from rankfold import ManifoldRanking, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = ManifoldRanking().fit(moons.X).rank(ids=0, top=150)
    >>> (moons.labels[ranking.ids] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        alpha: float = 0.98,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
        solver: Literal["auto", "direct", "cg", "local", "iteration"] = "auto",
        max_iter: int = 10_000,
        tol: float = 1e-9,
    ) -> None:
        self.alpha = alpha
        self.metric = metric
        self.graph = graph
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self) -> None:
        check_share(self.alpha, "alpha")
        check_choice(self.solver, "solver", ("auto", *SOLVERS, "iteration"))
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol")

    def _prepare(self) -> None:
        solver = choose_solver(self.solver, self.weights_)
        self._local = None
        if solver == "local":
            self._local = LocalRestart(self.engine_, self.weights_, self.alpha, 0.5, self.tol)
        self._system = RestartSystem(self.weights_, self.alpha, solver, self.max_iter, self.tol)

    def flow(self, query: Query) -> Flow:
        """Return the walks whose sum the scores are."""
        entries = self._entries(query, amount=1 - self.alpha)
        return Flow(self.edges, degree_or_one, entries, coupling=self.alpha, lean=0.5)

    def _spread(self, seeds: FloatArray) -> Iterator[Solution]:
        solved = self._system.solve((1 - self.alpha) * seeds)
        return certified(self._system.walk, self.alpha, seeds, solved, norm=2)
