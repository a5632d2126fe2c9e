"""Manifold ranking: scores that are smooth on the graph and stay near the query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rankfold.check import check_choice, check_count, check_positive, check_share
from rankfold.rankers.graphs import GraphRecipe
from rankfold.rankers.restart import RestartSystem, certified
from rankfold.rankers.seeded import SeededRanker
from rankfold.solvers import SOLVERS
from rankfold.types import FloatArray, Solution


class ManifoldRanking(SeededRanker):
    """Ranking on data manifolds (Zhou, Weston, Gretton, Bousquet and Schoelkopf, NIPS 2003).

    With ``S = D^-1/2 W D^-1/2`` the scores are the limit of ``f <- alpha S f + (1 - alpha) y``,

        f = (1 - alpha) (I - alpha S)^-1 y.

    S is symmetric with eigenvalues between -1 and 1, so the largest error of any f is at most
    ``||r||_2 / (1 - alpha)`` for its residual r; ``ranking.solution.bound`` says how much.

    Parameters
    ----------
    alpha : float
        Weight of the graph term, between 0 and 1.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
    graph : {"adaptive", "gaussian"} or a graph
    solver : {"auto", "direct", "cg", "iteration"}
        The closed form by one factorisation for all queries ("auto" up to 5,000 points) or by
        conjugate gradients ("auto" beyond), or the paper's iteration.
    max_iter : int
        Most steps of the iteration.
    tol : float
        The iteration ends when no score is further than this from its limit.

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
        solver: Literal["auto", "direct", "cg", "iteration"] = "auto",
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
        self._system = RestartSystem(
            self.weights_, self.alpha, self.solver, self.max_iter, self.tol
        )

    def _spread(self, seeds: FloatArray) -> Iterator[Solution]:
        solved = self._system.solve((1 - self.alpha) * seeds)
        return certified(self._system.walk, self.alpha, seeds, solved, norm=2)
