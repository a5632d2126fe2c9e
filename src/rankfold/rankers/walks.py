"""Random walks on the graph: personalised PageRank and manifold ranking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from rankfold.check import (
    check_budget,
    check_choice,
    check_count,
    check_graph,
    check_positive,
    check_share,
)
from rankfold.graph import GraphRecipe, make_graph
from rankfold.graph.symmetric import degrees, inverse, scale_rows
from rankfold.parallel import check_stopped
from rankfold.rankers.base import Ranker, Unseen
from rankfold.rankers.flow import Edges, Entry, Flow, degree_or_one
from rankfold.rankers.ordering import FUSION_NEIGHBORS, FusionLike
from rankfold.solvers import (
    SOLVERS,
    Boundary,
    Budget,
    Effort,
    Solvers,
    System,
    Wanted,
)
from rankfold.solvers.system import solution_of
from rankfold.types import FloatArray, IntArray, Query, Solution, Trace, Weights


class GraphRanker(Ranker):
    """Base of the methods that run on any graph."""

    graph: str | GraphRecipe

    def _fit(self) -> None:
        self._check_parameters()
        self.graph_ = make_graph(self.graph)
        self.weights_ = self.graph_.build(self.engine_)
        check_graph(self.weights_, self.engine_.n_points)
        if sparse.issparse(self.weights_):
            self.weights_ = sparse.csr_array(self.weights_)
        sums, most = degrees(self.weights_), max(1, self.engine_.n_alive - 2)
        self._relative_degrees = sums / (sums[sums > 0].mean() if (sums > 0).any() else 1.0)
        n_neighbors = getattr(self.graph_, "n_neighbors_", None) or FUSION_NEIGHBORS
        self._unit_neighbors = min(int(n_neighbors), most)
        self._list_width = self._unit_neighbors + 1
        self._prepare()

    def edges(self, point: int) -> Edges:
        """Return the neighbours of a point in the graph."""
        return Edges.of(self.weights_, point)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used."""

    @abstractmethod
    def _prepare(self) -> None:
        """Do what all queries share; ``weights_`` is there."""

    def _attached(self, queries: Sequence[Query]) -> list[Weights]:
        """Return each query's rows of weights, one row per unseen vector."""
        vectors = np.concatenate([query.vectors for query in queries])
        rows: Weights = sparse.csr_array((0, self.engine_.n_points))
        if len(vectors):
            rows = self.graph_.attach(self.engine_, vectors)
        ends = np.cumsum([len(query.vectors) for query in queries])
        return [
            rows[end - len(query.vectors) : end] for query, end in zip(queries, ends, strict=True)
        ]


class SeededRanker(GraphRanker):
    """Base of the methods whose scores are linear in the query's seeds.

    A point of the query seeds itself with its weight. An unseen vector is a source from which
    a walk can only leave: it seeds its neighbours with its weight, shared among them by
    its row of the graph.
    """

    def flow(self, query: Query) -> Flow | None:
        """Return the walks on the graph, which only illustrate what a method does in general."""
        return Flow(self.edges, degree_or_one, self._entries(query), lean=1.0, exact=False)

    def _entries(self, query: Query, amount: float = 1.0) -> tuple[Entry, ...]:
        """Return where a query seeds the graph; so much flows out of an example of weight 1."""
        n_indices = len(query.indices)
        pairs = enumerate(zip(query.indices, query.weights[:n_indices], strict=True))
        own = [Entry(e, int(point), amount * float(weight)) for e, (point, weight) in pairs]
        (rows,) = self._attached([query])
        for vector, weight in enumerate(query.weights[n_indices:]):
            to, weights = Edges.of(rows, vector)
            parts = weights * inverse(weights.sum(keepdims=True))
            example, total = n_indices + vector, amount * float(weight)
            for point, edge, part in zip(to, weights, parts, strict=True):
                own.append(Entry(example, int(point), total, float(edge), float(part)))
        return tuple(own)

    def _seeds(self, queries: Sequence[Query]) -> list[tuple[IntArray, FloatArray]]:
        """Return the points that each query seeds, each once, and how much of it they get."""
        return [_seeded(*pair) for pair in zip(queries, self._attached(queries), strict=True)]


def _seeded(query: Query, rows: Weights) -> tuple[IntArray, FloatArray]:
    own = query.weights[: len(query.indices)]
    if not len(query.vectors):
        return query.indices, own
    shares = sparse.csr_array(scale_rows(rows, inverse(degrees(rows)))).tocoo()
    unseen = query.weights[len(query.indices) :][shares.row] * shares.data
    # A point may be seeded by several vectors.
    points, places = np.unique(np.concatenate([query.indices, shares.col]), return_inverse=True)
    amounts = np.concatenate([own, unseen]).astype(np.float64)
    seeds: FloatArray = np.bincount(places, amounts, minlength=len(points)).astype(np.float64)
    return points, seeds


class RestartRanker(SeededRanker):
    """Base of the methods whose scores are the limit of a walk with restart.

    They solve ``f = alpha D^(p-1) W D^-p f + (1 - alpha) y``: with ``f = D^p x`` this is
    ``(D - alpha W) x = (1 - alpha) D^(1-p) y``, see `System`.
    """

    alpha: float
    solver: str
    budget: Budget
    power: ClassVar[float]
    own_solvers: ClassVar[tuple[str, ...]] = ()
    when_unsolved = "Raise max_iter, lower alpha, or use solver='direct'."

    def _check_parameters(self) -> None:
        check_share(self.alpha, "alpha")
        check_choice(self.solver, "solver", ("auto", *SOLVERS, *self.own_solvers))
        check_budget(self.budget)
        check_positive(self.tol, "tol")

    def _prepare(self) -> None:
        system = System.walk(self.weights_, self.alpha, self.power)
        self._lift = system.scale ** ((1 - self.power) / self.power)
        n_alive = self.engine_.n_alive
        self._solvers = Solvers(system, self.solver, self.budget, self.tol, n_alive)
        if self.solver != "iteration":
            self._solvers.solver(self._solvers.name())

    def flow(self, query: Query) -> Flow:
        """Return the walks whose sum the scores are."""
        entries = self._entries(query, amount=1 - self.alpha)
        return Flow(self.edges, degree_or_one, entries, coupling=self.alpha, lean=self.power)

    def scored(self, query: Query, point: int | None = None) -> Solution:
        """Score the points that a query reaches, or all of them."""
        (boundary,) = self._boundaries([query])
        budget = None if point is None else self._solvers.effort(0).budget
        solution = self._solvers.reach(boundary, budget)
        if budget is None or point in solution.points:
            return solution
        return self._solvers.reach(boundary)

    def _score_alone(self, query: Query, point: int, tol: float) -> float:
        (boundary,) = self._boundaries([query])
        solution = self._solvers.reach(boundary, tol=tol)
        return float(solution.scores[solution.points == point].sum())

    def _boundaries(self, queries: Sequence[Query]) -> list[Boundary]:
        margin, boundaries = self._solvers.system.margin, []
        for query, (points, seeds) in zip(queries, self._seeds(queries), strict=True):
            rhs = (1 - self.alpha) * self._lift[points] * seeds
            size = float(np.abs(rhs / margin[points]).max(initial=0.0))
            lowest = -size if query.weights.min() < 0 else 0.0
            boundaries.append(
                Boundary(points, rhs, left_out=query.indices, size=size, lowest=lowest)
            )
        return boundaries

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        for solution in self._solvers.solve(self._boundaries(queries), wanted):
            yield solution, None

    def _n_scores(self, top: int) -> int:
        return top if self._solvers.name(top) == "region" else self.engine_.n_points


class PersonalizedPageRank(RestartRanker):
    """Personalized PageRank, or random walk with restart (Haveliwala 2002; Tong et al. 2006).

    A walk takes a step of ``P = D^-1 W`` with probability alpha and returns to the query
    otherwise; the scores say how often it is at each point,

        f = (1 - alpha) (I - alpha P')^-1 y.

    ``f = D x`` turns this into ``(D - alpha W) x = (1 - alpha) y``, see `System`. The columns of
    ``P'`` sum to at most one, so the largest error of any f is at most ``||r||_1 / (1 - alpha)``
    for its residual r; where only a region is solved, ``d_i`` times the largest
    ``|r_j| / ((1 - alpha) d_j)``. The walk from a point without neighbours ends there.

    Parameters
    ----------
    alpha : float
        Probability of another step, between 0 and 1; the damping factor of PageRank.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.
    solver : {"auto", "direct", "cg", "region"}
        One factorisation for all queries ("auto" up to 5,000 points), conjugate gradients, or
        only where a query reaches ("auto" beyond, for up to a quarter of the points).
    budget : int, "auto" or None
        How many points a query may give a score beyond 5,000 points: about 1,000, or 20 times
        ``top`` where that is more; see `RAN`.
    tol : float
        Without a budget, a query ends when its best points are proven, or no score can be off by
        more than this.
    fusion : float, "auto", "reciprocal_rank" or "none"
        How plain distance shares in the order; not at all by default, see `RAN`.

    Examples
    --------
    >>> from rankfold import PersonalizedPageRank, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = PersonalizedPageRank().fit(moons.X).rank(0, top=100)
    >>> (moons.labels[ranking.indices] == moons.labels[0]).all()
    np.True_
    """

    power = 1.0

    def __init__(
        self,
        alpha: float = 0.95,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
        solver: Literal["auto", "direct", "cg", "region"] = "auto",
        budget: Budget = "auto",
        tol: float = 1e-9,
        fusion: FusionLike = "none",
    ) -> None:
        self.alpha = alpha
        self.metric = metric
        self.graph = graph
        self.solver = solver
        self.budget = budget
        self.tol = tol
        self.fusion = fusion


class ManifoldRanking(RestartRanker):
    """Ranking on data manifolds (Zhou, Weston, Gretton, Bousquet and Schoelkopf, NIPS 2003).

    With ``S = D^-1/2 W D^-1/2`` the scores are the limit of ``f <- alpha S f + (1 - alpha) y``,

        f = (1 - alpha) (I - alpha S)^-1 y.

    ``f = D^1/2 x`` turns this into ``(D - alpha W) x = (1 - alpha) D^1/2 y``, see `System`. S is
    symmetric with eigenvalues between -1 and 1, so the largest error of any f is at most
    ``||r||_2 / (1 - alpha)`` for its residual r; where only a region is solved, ``d_i^1/2`` times
    the largest ``|r_j| / ((1 - alpha) d_j)`` of the system in x.

    Parameters
    ----------
    alpha : float
        Weight of the graph term, between 0 and 1.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.
    solver : {"auto", "direct", "cg", "region", "iteration"}
        The closed form by one factorisation for all queries ("auto" up to 5,000 points), by
        conjugate gradients, or only where a query reaches ("auto" beyond, for up to a quarter
        of the points); or the paper's iteration.
    budget : int, "auto" or None
        How many points a query may give a score beyond 5,000 points: about 1,000, or 20 times
        ``top`` where that is more; see `RAN`.
    max_iter : int
        Most steps of the iteration.
    tol : float
        The iteration ends when no score is further than this from its limit. Without a budget, so
        does a query whose best points are not proven before.
    fusion : float, "auto", "reciprocal_rank" or "none"
        How plain distance shares in the order; not at all by default, see `RAN`.

    Examples
    --------
    >>> from rankfold import ManifoldRanking, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = ManifoldRanking().fit(moons.X).rank(0, top=150)
    >>> (moons.labels[ranking.indices] == moons.labels[0]).all()
    np.True_
    """

    power = 0.5
    own_solvers = ("iteration",)

    def __init__(
        self,
        alpha: float = 0.98,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
        solver: Literal["auto", "direct", "cg", "region", "iteration"] = "auto",
        budget: Budget = "auto",
        max_iter: int = 10_000,
        tol: float = 1e-9,
        fusion: FusionLike = "none",
    ) -> None:
        self.alpha = alpha
        self.metric = metric
        self.graph = graph
        self.solver = solver
        self.budget = budget
        self.max_iter = max_iter
        self.tol = tol
        self.fusion = fusion

    def _check_parameters(self) -> None:
        check_count(self.max_iter, "max_iter")
        super()._check_parameters()

    def _prepare(self) -> None:
        super()._prepare()
        if self.solver == "iteration":
            system, alpha = self._solvers.system, self.alpha
            self._solvers.use(Iteration(system, alpha, self.max_iter, self.tol))


class Iteration:
    """The paper's iteration, ``f <- alpha S f + (1 - alpha) y``, as a solver.

    Its residual is its last change, so it ends once ``||change||_2 / (1 - alpha)``, a bound of the
    error, is within the tolerance.

    Parameters
    ----------
    system : System
        That of manifold ranking.
    alpha : float
    max_iter : int
    tol : float
    """

    def __init__(self, system: System, alpha: float, max_iter: int, tol: float) -> None:
        self.system, self.matrix = system, system.matrix
        self.alpha, self.max_iter, self.tol = alpha, max_iter, tol

    def solve(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]
    ) -> Iterator[Solution]:
        """Iterate for each boundary."""
        for boundary in boundaries:
            yield self._solve(boundary)

    def _solve(self, boundary: Boundary) -> Solution:
        scale = self.system.scale
        degrees = scale**2
        b = np.zeros(len(scale))
        b[boundary.points] = boundary.rhs
        x, steps, converged = np.zeros(len(scale)), 0, False
        while not converged and steps < self.max_iter:
            check_stopped()
            change = (b - self.matrix @ x) / degrees
            converged = bool(np.linalg.norm(scale * change) / (1 - self.alpha) <= self.tol)
            if not converged:
                x += change
                steps += 1
        return solution_of(
            self.system,
            self.matrix,
            boundary,
            x,
            n_iter=steps,
            converged=converged,
            stopped="tolerance" if converged else "max_iter",
        )
