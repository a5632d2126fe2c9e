"""Ranking with Adaptive Neighbors: Algorithm 1 of Li, Li and Nie as an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from rankfold.check import (
    check_budget,
    check_choice,
    check_count,
    check_flag,
    check_neighbors,
    check_positive,
)
from rankfold.graph.adaptive import ClosedForm, candidate_lists
from rankfold.graph.collective import CANDIDATES, can_stay, graph_for_all, kept_by
from rankfold.neighbors import DynamicEngine, Learned, changed_rows
from rankfold.rankers.alternation import Alternation
from rankfold.rankers.base import Ranker, Unseen
from rankfold.rankers.flow import Edges, Flow, ran_flow
from rankfold.rankers.graph_step import GraphStep
from rankfold.rankers.ordering import FusionLike, ordered
from rankfold.solvers import SOLVERS, Boundary, Budget, GraphRows, Solvers, System, Wanted
from rankfold.types import (
    NEGATIVE_WEIGHT,
    NOBODY,
    FloatArray,
    IntArray,
    Neighbors,
    Query,
    Ranking,
    Solution,
    Trace,
)


class RAN(Ranker):
    """Ranking with Adaptive Neighbors: learn the neighbour graph and the scores together.

    Minimises Eq. (5) of the paper over the row-stochastic affinity S and the scores f,

        sum_ij (d_ij s_ij + gamma s_ij^2) + 2 lambda f' L_S f + (f - y)' U (f - y),

    by turns. One alternation is a graph followed by its scores; the first graph is the closed
    form at scores zero.

    Parameters
    ----------
    n_neighbors : int or "auto"
        Neighbours of every point, k in the paper. "auto" chooses 10 on clean manifolds and 20
        in diffuse data, by the intrinsic dimension; ``n_neighbors_`` says which.
    smoothness : float
        How much alike the scores of neighbours should be, lambda in the paper. Above zero, up to
        1e9. The larger, the further scores carry along the graph.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        For the last two, ``fit`` takes a matrix of distances between all points, which are
        squared, or used as they are; a sparse one where only those to neighbours are known.
    gamma : {"own", "shared"}
        How the graph is learned again after the first alternation: with exactly k neighbours
        ("own"), or with the mean gamma for all points ("shared"), for which the
        objective never increases.
    candidates : {"all", "local"}
        Whether any point may become a neighbour, or only those nearest in the data.
    scale : {"natural", None}
        The unit of squared distance where scores and distances are compared. "natural": the
        mean squared distance to the (k+1)-th neighbour counts as much as a difference of
        one in scores. None: as given, as in the paper; learned distances are in natural units.
    adapt : {"query", "collective"}
        For whom the graph is learned. "query": for each query on its own, as in the paper.
        "collective": once for all queries, when it is fitted; queries start from that graph, and
        with ``max_iter`` above 1 it is learned further for each, among the candidates of the
        learned lists. Where learning would do harm at this smoothness the plain graph is kept,
        and ``collective_`` says so. An index that keeps a learned graph hands it over as it is,
        judged at the smoothness that it was learned for, whatever that of the ranker.
    max_iter : int
        Most alternations of graph and scores. Ending there before they settle warns, unless
        it is 1, which asks for no iteration.
    tol : float
        Ends the alternations once neither scores nor objective change by more, and queries without
        a budget once no score can be further than this from the exact one.
    guard : bool
        Return the last healthy alternation when the query starts to cut itself off from
        its neighbours; ``ranking.collapsed`` says so.
    solver : {"auto", "direct", "cg", "region"}
        How linear systems are solved. "direct": one factorisation of the first graph for all
        queries. "cg": conjugate gradients on the whole graph. "region": only where a query
        reaches, and as far as the budget allows. "auto": "direct" for up to 5,000 points; beyond
        that "region", and "cg" where more than a quarter of the points is asked for.
    budget : int, "auto" or None
        How many points a query may give a score where only a region is solved. The region grows
        from the query along the graph; all points outside of it score zero. "auto" is 1,000, or 20
        times ``top`` where that is more: a query then takes about as long in a database of any
        size, and finds nearly the same best points. With ``fusion="none"`` it is three times as
        many where scores near the last of the best points are too close to call. A number is
        never exceeded. None goes on until the best points are proven, or no score can be off by
        more than ``tol``. ``ranking.solution`` says how it ended, and bounds the error of every
        score in any case. With a budget, later alternations learn the rows of the same region,
        from stored candidates.
    fusion : float, "auto", "reciprocal_rank" or "none"
        How shape and plain distance share in the order. "auto" blends them: the score by shape is
        multiplied by ``exp(-4 min(u, h))``, where u is the distance in the query's own unit, so
        that near points stay ahead and shape decides beyond the horizon h; see `Fusion`. A number
        is another weight than 4. "reciprocal_rank" adds up reciprocal ranks. "none" is the paper:
        shape alone. ``ranking.shape`` and ``ranking.distances`` have the parts, and
        ``ranking.solution.fused`` says what was taken, and why.

    Attributes
    ----------
    n_neighbors_ : int
        The k that is used: as given, as chosen by "auto", or as learned.
    mean_gamma_ : float
        Mean of the ``gamma_i`` of the first graph, in the unit of ``neighbors_``.
    unit_ : float
        The unit of squared distance, in that of ``neighbors_``.
    neighbors_ : Neighbors
        Stored candidates of every point, in the unit of the data; where a graph was learned, in
        the learned distance.
    collective_ : Learned
        With ``adapt="collective"``: the rounds that were made, and how far queries reached.
    affinity_ : sparse array, shape (n_points, n_points)
        The first graph, S; made when it is asked for.

    Examples
    --------
    >>> from rankfold import RAN, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = RAN(n_neighbors=10).fit(moons.X).rank(0, top=199)
    >>> (moons.labels[ranking.indices] == moons.labels[0]).all()
    np.True_
    """

    negative_weight = NEGATIVE_WEIGHT
    collective_: Learned

    def __init__(
        self,
        n_neighbors: int | Literal["auto"] = "auto",
        smoothness: float = 30.0,
        *,
        metric: str = "euclidean",
        gamma: Literal["own", "shared"] = "own",
        candidates: Literal["all", "local"] = "all",
        scale: Literal["natural"] | None = "natural",
        adapt: Literal["query", "collective"] = "query",
        max_iter: int = 1,
        tol: float = 1e-6,
        guard: bool = True,
        solver: Literal["auto", "direct", "cg", "region"] = "auto",
        budget: Budget = "auto",
        fusion: FusionLike = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothness = smoothness
        self.metric = metric
        self.gamma = gamma
        self.candidates = candidates
        self.scale = scale
        self.adapt = adapt
        self.max_iter = max_iter
        self.tol = tol
        self.guard = guard
        self.solver = solver
        self.budget = budget
        self.fusion = fusion

    def alternations(
        self, indices: Any, *, top: int | None = None, include_query: bool = False
    ) -> Iterator[Ranking]:
        """Yield the rankings by shape after one, two, three ... alternations: no guard, and no end.

        Parameters
        ----------
        indices : int or sequence of int
            Points of the database that serve as examples.
        top, include_query
            As for `rank`.

        Examples
        --------
        >>> from itertools import islice
        >>> from rankfold import RAN, datasets
        >>> ranker = RAN(n_neighbors=10).fit(datasets.load("moons").X)
        >>> [len(ranking) for ranking in islice(ranker.alternations(0, top=5), 3)]
        [5, 5, 5]
        """
        check_is_fitted(self)
        (query,), length = self._checked_queries([Query(indices)], top, include_query)
        (unseen,), (boundary,) = self._attached([query])
        name = "direct" if self._solvers.name() == "direct" else "cg"
        (first,) = self._solvers.solver(name).solve([boundary], [self._solvers.effort(0)])
        alternation = self._alternating(self._solvers.system.couplings)
        for solution in alternation.forever(query, unseen, first):
            yield Ranking(ordered(self.engine_, query, solution, length, include_query))

    def _check_parameters(self) -> None:
        check_neighbors(self.n_neighbors)
        check_positive(self.smoothness, "smoothness", most=1e9)
        check_choice(self.gamma, "gamma", ("own", "shared"))
        check_choice(self.candidates, "candidates", ("all", "local"))
        check_choice(self.scale, "scale", ("natural", None))
        check_choice(self.adapt, "adapt", ("query", "collective"))
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol")
        check_flag(self.guard, "guard")
        check_choice(self.solver, "solver", ("auto", *SOLVERS))
        check_budget(self.budget)

    def _fit(self) -> None:
        self._check_parameters()
        if hasattr(self, "collective_"):  # of an earlier fit
            del self.collective_
        engine, self._list_unit = self.engine_, 1.0
        # Parameters that are changed later wait for the next fit.
        self._smoothness, self._max_iter = float(self.smoothness), self.max_iter
        collective = self.adapt == "collective"
        learns = collective and kept_by(engine) is None
        lists, k = candidate_lists(engine, self.n_neighbors, 2, CANDIDATES if learns else 0)
        self.neighbors_, self.n_neighbors_, self._n_asked = lists, k, k
        if collective:
            learned = graph_for_all(engine, k, self.smoothness, lists if learns else None)
            self.collective_, self.n_neighbors_ = learned, learned.n_neighbors
            self.neighbors_, _ = learned.current(engine)
            self._list_unit = learned.unit
        self._list_width = self.neighbors_.indices.shape[1]
        self._closed_form: ClosedForm | None = None
        self._prepare(self._rows())

    def _rows(self) -> GraphRows:
        """Return ``2 lambda W`` of the first graph; an engine may keep W."""
        engine, factor = self.engine_, 2 * self._smoothness
        if not self._learned and isinstance(engine, DynamicEngine):
            kept = engine.graph
            if kept is not None and kept.n_neighbors == self.n_neighbors_:
                rows = GraphRows.scaled(kept.starts, kept.indices, kept.weights, factor)
                self._relink(rows, engine.changed_rows)
                return rows
        couplings = self._first.symmetric()
        couplings.data *= factor  # in place: nothing else needs W as it is
        return GraphRows.of(couplings)

    def _relink(self, rows: GraphRows, changed: IntArray) -> None:
        """Let ``2 lambda W`` follow lists of which some have changed."""
        if not len(changed):
            return
        from rankfold.graph.symmetric import relink  # compiled code, loaded when it is used

        k, lists, engine = self.n_neighbors_, self.neighbors_, self.engine_

        def lists_of(points: IntArray) -> tuple[IntArray, FloatArray]:
            form = ClosedForm.of(lists.take(points).head(k + 1), k)
            return form.indices, form.weights

        relink(rows, changed, lists_of, engine.n_points, 2 * self._smoothness)

    def _prepare(self, rows: GraphRows) -> None:
        """Do what all queries share; the lists are there, and ``2 lambda W`` of them."""
        engine = self.engine_
        self._unit_neighbors = self._n_asked
        self._lists = None if self._learned else self.neighbors_
        system = System.coupled(rows)
        self._relative_degrees = rows.sums / (2 * self._smoothness)  # their mean is one
        self._solvers = Solvers(system, self.solver, self.budget, self.tol, engine.n_alive)
        self._solvers.solver(self._solvers.name())
        if self._max_iter > 1:
            self._alternation = self._alternating(system.couplings)

    @property
    def _first(self) -> ClosedForm:
        """The first graph, S; made when it is first asked for."""
        if self._closed_form is None:
            n_alive = self.engine_.n_alive
            self._closed_form = ClosedForm.of(self.neighbors_, self.n_neighbors_, n_alive)
        return self._closed_form

    @property
    def mean_gamma_(self) -> float:
        """Mean of the ``gamma_i`` of the first graph."""
        check_is_fitted(self, "engine_")
        return self._first.gamma

    @property
    def unit_(self) -> float:
        """The unit of squared distance."""
        check_is_fitted(self, "engine_")
        return (self._first.end / self._smoothness or 1.0) if self.scale == "natural" else 1.0

    def _alternating(self, couplings: sparse.csr_array) -> Alternation:
        """Return how graph and scores are learned in turn."""
        step = GraphStep(
            self.n_neighbors_,
            self._smoothness,
            self.unit_,
            self.mean_gamma_ / self.unit_,
            self.gamma,
            self._step_candidates,
        )
        return Alternation(
            self.engine_,
            self.neighbors_,
            self._first,
            couplings,
            step,
            self.solver == "direct",
            self._max_iter,
            self.tol,
            self.guard,
        )

    def follow(self, rows: IntArray, width: int) -> bool:
        """Take up changes of the engine; possible for one alternation on regions."""
        engine = self.engine_
        most = max(1, engine.n_alive - 2)
        if self.n_neighbors != "auto" and min(self.n_neighbors, most) != self._n_asked:
            return False  # there were or are too few points for so many neighbours
        if self._learned and not can_stay(self.collective_, engine, self._n_asked):
            return False
        before, after_name = self._solvers.name(), self._solver_after(engine.n_alive)
        if self._max_iter > 1 or before != "region" or after_name != "region":
            return False
        if self.neighbors_.width > width and not self._learned:
            return False  # lists that were searched for this ranker may have changed anywhere
        lists, couplings = self.neighbors_, self._solvers.system.rows
        if couplings is None or not isinstance(engine, DynamicEngine):
            return False
        if self._learned:
            self.neighbors_, plain = self.collective_.current(engine)
            rows = np.union1d(rows, changed_rows(lists, self.neighbors_, plain))
        else:
            self.neighbors_ = engine.lists(lists.width)
        self._closed_form = None
        self._relink(couplings, rows)
        self._prepare(couplings)
        return True

    def _solver_after(self, n_alive: int) -> str:
        """Return the solver that would be used for so many points."""
        return Solvers(self._solvers.system, self.solver, self.budget, self.tol, n_alive).name()

    @property
    def _learned(self) -> bool:
        return self.adapt == "collective"

    @property
    def _step_candidates(self) -> Literal["all", "stored", "local"]:
        """Which neighbours further alternations choose from; learned distances end with lists."""
        if self._learned and self.collective_.n_rounds and self.candidates == "all":
            return "stored"
        return self.candidates

    def edges(self, point: int) -> Edges:
        """Return the neighbours of a point in the first graph, W."""
        rows = self._solvers.system.rows
        assert rows is not None  # noqa: S101
        points, couplings = rows.row(point)
        return Edges(points, couplings / (2 * self._smoothness))

    def flow(self, query: Query) -> Flow:
        """Return the walks on the first graph whose sum the scores on it are."""
        (unseen,), _ = self._attached([query])
        form = ClosedForm.of(unseen, self.n_neighbors_)
        flow = ran_flow(self.edges, self._smoothness, query, form)
        return replace(flow, first_graph=self._max_iter > 1)

    def scored(self, query: Query, point: int | None = None) -> Solution:
        """Score the points that a query reaches, or all of them."""
        (unseen,), (boundary,) = self._attached([query])
        budget = None if point is None else self._solvers.effort(0).budget
        solution = self._reached(query, unseen, boundary, budget)
        if budget is None or point in solution.points:
            return solution
        return self._reached(query, unseen, boundary, None)

    def _reached(
        self, query: Query, unseen: Neighbors, boundary: Boundary, budget: int | None
    ) -> Solution:
        solution = self._solvers.reach(boundary, budget)
        if self._max_iter > 1:
            solution, _ = self._alternation.run(query, unseen, solution, budget)
        return solution

    def _score_alone(self, query: Query, point: int, tol: float) -> float:
        """Score on the first graph, where scores are linear."""
        _, (boundary,) = self._attached([query])
        solution = self._solvers.reach(boundary, tol=tol)
        return float(solution.scores[solution.points == point].sum())

    @property
    def affinity_(self) -> sparse.csr_array:
        """The first graph, S."""
        check_is_fitted(self)
        return self._first.affinity(self.engine_.n_points)

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        lists, boundaries = self._attached(queries, unseen)
        if self._max_iter == 1:
            return zip(self._solvers.solve(boundaries, wanted), repeat(None))
        return self._alternated(queries, lists, boundaries, wanted)

    def _alternated(
        self,
        queries: Sequence[Query],
        lists: Sequence[Neighbors],
        boundaries: Sequence[Boundary],
        wanted: Sequence[Wanted],
    ) -> Iterator[tuple[Solution, Trace | None]]:
        for query, near, boundary, one in zip(queries, lists, boundaries, wanted, strict=True):
            budget = self._solvers.effort(one.top).budget
            if self._solvers.name(one.top) == "region":
                first = self._solvers.reach(boundary, budget)
            else:
                (first,) = self._solvers.solve([boundary], [one])
            yield self._alternation.run(query, near, first, budget)

    def _n_scores(self, top: int) -> int:
        return top if self._solvers.name(top) == "region" else self.engine_.n_points

    def _attached(
        self, queries: Sequence[Query], unseen: Unseen = None
    ) -> tuple[list[Neighbors], list[Boundary]]:
        """Return the neighbours of each query's unseen vectors, and each as a boundary.

        A point of the query is clamped at its weight. So is an unseen vector, whose edges of
        weight ``s / 2`` also pull on their other ends: they add to the diagonal.
        """
        width, unit = self._list_width, self._list_unit
        nobody = Neighbors(np.empty((0, width), dtype=np.intp), np.empty((0, width)))
        lists = [near or nobody for near in unseen or self._searched(queries)]
        if unit != 1:
            lists = [Neighbors(near.indices, near.sq_distances / unit) for near in lists]
        return lists, [self._boundary(*pair) for pair in zip(queries, lists, strict=True)]

    def _boundary(self, query: Query, unseen: Neighbors) -> Boundary:
        n_indices = len(query.indices)
        least = float(query.weights.min())
        boundary = Boundary(
            clamped=query.indices,
            values=query.weights[:n_indices],
            left_out=query.indices,
            size=max(1.0, -least),
            lowest=min(0.0, least),
        )
        if not len(query.vectors):
            return boundary
        form = ClosedForm.of(unseen, self.n_neighbors_)
        kept = form.indices != NOBODY
        points = form.indices[kept]
        pull = self._smoothness * form.weights.astype(np.float64)  # 2 lambda w with w = s / 2
        rhs = (pull * query.weights[n_indices:, None])[kept]
        return boundary._replace(points=points, rhs=rhs, pulled=points, pull=pull[kept])
