"""Personalized PageRank: where a walk that keeps returning to the query is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from rankfold.check import check_choice, check_positive, check_share
from rankfold.rankers.flow import Flow, degree_or_one
from rankfold.rankers.graphs import GraphRecipe
from rankfold.rankers.local_restart import LocalRestart
from rankfold.rankers.restart import RestartSystem, certified, choose_solver
from rankfold.rankers.seeded import SeededRanker
from rankfold.rankers.transition import degrees, inverse, random_walk, transpose
from rankfold.solvers import SOLVERS
from rankfold.types import FloatArray, Query, Solution


class PersonalizedPageRank(SeededRanker):
    """Personalized PageRank, or random walk with restart (Haveliwala 2002; Tong et al. 2006).

    A walk takes a step of ``P = D^-1 W`` with probability alpha and returns to the query
    otherwise; the scores say how often it is at each point,

        f = (1 - alpha) (I - alpha P')^-1 y.

    ``f = D^1/2 h`` turns this into the symmetric system ``(I - alpha S) h = (1 - alpha) D^-1/2 y``
    with ``S = D^-1/2 W D^-1/2``. The columns of ``P'`` sum to at most one, so the largest error
    of any f is at most ``||r||_1 / (1 - alpha)`` for its residual r. A local solve has a bound
    of its own: ``f = D x`` turns the system into ``(D - alpha W) x = (1 - alpha) y``, an M-matrix
    whose rows sum to ``(1 - alpha) d_i``, so the error of ``x`` is at most the largest
    ``|r_i| / ((1 - alpha) d_i)``, and that of ``f_i`` at most ``d_i`` times it. The walk from a
    point without neighbours ends there.

    Parameters
    ----------
    alpha : float
        Probability of another step, between 0 and 1; the damping factor of PageRank.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.
    solver : {"auto", "direct", "cg", "local"}
        One factorisation for all queries ("auto" up to 5,000 points), conjugate gradients, or
        only where a query reaches ("auto" beyond, for up to a quarter of the points).
    tol : float
        A local solve ends when the answer is certain, or no score can be off by more.

    Examples
    --------
    >>> from rankfold import PersonalizedPageRank, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = PersonalizedPageRank().fit(moons.X).rank(ids=0, top=100)
    >>> (moons.labels[ranking.ids] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        alpha: float = 0.95,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
        solver: Literal["auto", "direct", "cg", "local"] = "auto",
        tol: float = 1e-9,
    ) -> None:
        self.alpha = alpha
        self.metric = metric
        self.graph = graph
        self.solver = solver
        self.tol = tol

    def _check_parameters(self) -> None:
        check_share(self.alpha, "alpha")
        check_choice(self.solver, "solver", ("auto", *SOLVERS))
        check_positive(self.tol, "tol")

    def _prepare(self) -> None:
        solver = choose_solver(self.solver, self.weights_)
        self._local = None
        if solver == "local":
            self._local = LocalRestart(self.engine_, self.weights_, self.alpha, 1.0, self.tol)
        self._system = RestartSystem(self.weights_, self.alpha, solver)
        self._steps = transpose(random_walk(self.weights_))
        # A point without neighbours has its own row in the system, in any unit.
        self._roots = np.sqrt(np.where(degrees(self.weights_) > 0, degrees(self.weights_), 1.0))

    def flow(self, query: Query) -> Flow:
        """Return the walks whose sum the scores are."""
        entries = self._entries(query, amount=1 - self.alpha)
        return Flow(self.edges, degree_or_one, entries, coupling=self.alpha, lean=1.0)

    def _spread(self, seeds: FloatArray) -> Iterator[Solution]:
        roots = self._roots[:, None]
        solved = self._system.solve((1 - self.alpha) * seeds * inverse(roots))
        solved = solved._replace(columns=solved.columns * roots)
        return certified(self._steps, self.alpha, seeds, solved, norm=1)
