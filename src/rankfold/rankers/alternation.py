"""Algorithm 1: learn the graph and the scores in turn, and stop while it helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from rankfold.graph import ClosedForm
from rankfold.neighbors import Engine
from rankfold.parallel import check_stopped
from rankfold.rankers.graph_step import CandidateLists, GraphStep, IncomingEdges, Rows
from rankfold.solvers import Boundary, DirectSolver, Effort, GradientSolver, System
from rankfold.types import Ended, FloatArray, IntArray, Neighbors, Query, Solution, Trace

if TYPE_CHECKING:
    from rankfold.rankers.region_steps import RegionSteps

HEALTHY_REACH = 0.9
"""An alternation whose reach falls below this share of the first one's has collapsed."""


class Base(NamedTuple):
    """The graph where no score reaches: its weights W, ``sum d_ij s_ij`` and ``sum s_ij^2``.

    A row also depends on its (k+1)-th neighbour, at which weights end: row j of ``ending`` has
    the points whose weights end at j.
    """

    weights: sparse.csr_array
    cost: float
    squares: float
    ending: sparse.csr_array


class LearnedRows(NamedTuple):
    """Rows of W for the points of a region, and the scores for which they were learned.

    Columns are places in ``columns``, which begins with the points of the region itself. Of all
    other rows ``cost`` and ``squares`` have the sums.
    """

    points: IntArray
    columns: IntArray
    weights: sparse.csr_array
    cost: float
    squares: float


@dataclass(eq=False)
class Alternation:
    """Algorithm 1 for the queries of one database.

    It ends when scores and objective both change by no more than ``tol`` (the objective
    in proportion), after ``max_iter`` alternations, or, with the guard, when the query starts
    to cut itself off: iterating pulls the query's score away from its neighbours', the next
    graph drops those edges, and the scores gather on fewer and fewer points. Their effective
    number, ``sum(f)^2 / sum(f^2)``, shows it without labels. The last healthy alternation is
    then the answer. Negative scores are left out of that number: a negative example that cuts
    itself off does less than was asked of it, but no harm.

    Parameters
    ----------
    engine : Engine
    lists : Neighbors
        Stored candidates of every point.
    first : ClosedForm
        The first graph.
    couplings : sparse array
        ``2 lambda W`` of the first graph.
    step : GraphStep
        How the graph is learned again.
    direct : bool
        Whether later scores are found by factorisation, not by conjugate gradients.
    max_iter : int
    tol : float
    guard : bool
    """

    engine: Engine
    lists: Neighbors
    first: ClosedForm
    couplings: sparse.csr_array
    step: GraphStep
    direct: bool
    max_iter: int
    tol: float
    guard: bool

    def __post_init__(self) -> None:
        self._bases: dict[str, Base] = {}
        self._incoming: dict[str, IncomingEdges] = {}
        self._places: list[IntArray] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_places": []}

    def run(
        self, query: Query, unseen: Neighbors, first: Solution, budget: int | None
    ) -> tuple[Solution, Trace]:
        """Return the scores of the last healthy alternation and how they were reached.

        Parameters
        ----------
        query : Query
        unseen : Neighbors
            Lists of its vectors.
        first : Solution
            Scores on the first graph, of all points or of those that the query reaches.
        budget : int, optional
            Where it is given, only the points of ``first`` are ever given a score, and only their
            rows are learned again, from stored candidates.
        """
        everything = len(first.points) == self.engine.n_points
        turns: Any  # either kind has graphs of its own
        if budget is None or everything:
            turns = HalfSteps(self, query, unseen, everything)
        else:
            turns = self._on_region(query, unseen, first)
        best = turns.with_query(first)
        graph, course = turns.first_graph(best), _Course(turns)
        course.objective.append(turns.objective(graph, None))
        course.scores_learned(graph, best)
        ended: Ended = "max_iter"
        for _ in range(1, self.max_iter):
            graph = turns.learn_graph(best)
            course.objective.append(turns.objective(graph, best))
            scores = turns.learn_scores(graph, best)
            course.scores_learned(graph, scores)
            if self.guard and course.reach[-1] < HEALTHY_REACH * course.reach[0]:
                ended = "collapse"
                break
            change, best = turns.change(best, scores), scores
            if change <= self.tol and course.objective_settled(self.tol):
                ended = "converged"
                break
        return turns.without_unseen(best), course.trace(ended)

    def forever(self, query: Query, unseen: Neighbors, first: Solution) -> Iterator[Solution]:
        """Yield the scores of all points after one alternation, two, three, ... without end."""
        turns = HalfSteps(self, query, unseen, True)
        scores = turns.with_query(first)
        while True:
            yield turns.without_unseen(scores)
            scores = turns.learn_scores(turns.learn_graph(scores), scores)

    def _on_region(self, query: Query, unseen: Neighbors, first: Solution) -> RegionSteps:
        """Return the half-steps on the region of the first scores."""
        from rankfold.rankers.region_steps import RegionSteps  # compiled, loaded when used

        places = self._places.pop() if self._places else None
        if places is None:
            places = np.full(self.engine.n_points, -1, dtype=np.int32)
        step = self._stored_step
        bases = self._incoming_edges(False), self._incoming_edges(True)
        steps = RegionSteps(step, self.lists, bases, places, query, unseen, first, self.tol)
        self._places.append(places)
        return steps

    @property
    def _stored_step(self) -> GraphStep:
        stored = self.step.candidates == "all"
        return replace(self.step, candidates="stored") if stored else self.step

    def _incoming_edges(self, later: bool) -> IncomingEdges:
        """Return those of the first graph, or of what the S-step learns at scores zero."""
        name = "later" if later and self.step.gamma == "shared" else "first"
        if name not in self._incoming:
            if name == "first":
                rows = Rows(
                    self.first.affinity(self.engine.n_points), self.first.cost / self.step.unit
                )
            else:
                rows = self._learned_at_zero(self._stored_step)
            self._incoming[name] = IncomingEdges(rows.affinity.T.tocsr(), rows.cost, rows.squares)
        return self._incoming[name]

    def base(self, later: bool) -> Base:
        """Return the first graph, or the one that the S-step learns where no score reaches.

        The latter is another one with a shared gamma.
        """
        name = "later" if later and self.step.gamma == "shared" else "first"
        if name not in self._bases:
            self._bases[name] = self._first_base() if name == "first" else self._later_base()
        return self._bases[name]

    def _first_base(self) -> Base:
        weights = self.couplings / (2 * self.step.smoothness)
        squares = float(np.sum(self.first.weights.astype(np.float64) ** 2))
        ending = ending_at(self.lists, self.step.n_neighbors)
        return Base(weights, self.first.cost / self.step.unit, squares, ending)

    def _later_base(self) -> Base:
        rows = self._learned_at_zero(self.step)
        weights = ((rows.affinity + rows.affinity.T) / 2).tocsr()
        return Base(weights, rows.cost, rows.squares, self.base(False).ending)

    def _learned_at_zero(self, step: GraphStep) -> Rows:
        """Return the graph that the S-step learns at scores zero."""
        n_points = self.engine.n_points
        nobody = self.lists.take(np.empty(0, dtype=np.intp))
        lists = CandidateLists(
            self.engine, self.lists, np.empty((0, self.engine.n_features)), nobody
        )
        return step(lists, np.zeros(n_points), np.arange(n_points))


class HalfSteps:
    """The half-steps of Algorithm 1 for one query; unseen vectors are points after all others.

    Scores are zero outside a region, so rows of the graph that neither belong to a point with a
    score nor border on one stay as they are at scores zero. With the base graph ``W`` of scores
    zero and the change ``D`` of the rows of the region,

        W_now = W + (D + D') / 2,

    of which only the rows of the region are ever made. Where all points have a score, the region
    is everything, and ``W_now = (S + S') / 2``.
    """

    def __init__(
        self,
        alternation: Alternation,
        query: Query,
        unseen: Neighbors,
        everything: bool,
    ) -> None:
        engine = alternation.engine
        self.alternation, self.everything = alternation, everything
        self.step, self.n_points = alternation.step, engine.n_points
        self.n_all = engine.n_points + len(query.vectors)
        self.lists = CandidateLists(engine, alternation.lists, query.vectors, unseen)
        own = np.concatenate([query.indices, np.arange(self.n_points, self.n_all)])
        order = np.argsort(own)
        self.own, self.seeds = own[order], query.weights[order]

    def with_query(self, scores: Solution) -> Solution:
        """Return the scores with the query's own among them, points ascending."""
        points = np.union1d(scores.points, self.own)
        values = np.zeros(len(points))
        values[np.searchsorted(points, scores.points)] = scores.scores
        values[np.searchsorted(points, self.own)] = self.seeds
        return replace(scores, points=points, scores=values)

    def without_unseen(self, scores: Solution) -> Solution:
        """Return the scores of points of the database."""
        inside = scores.points < self.n_points
        return replace(scores, points=scores.points[inside], scores=scores.scores[inside])

    def first_graph(self, scores: Solution) -> LearnedRows:
        """Return the rows of the first graph that the scores touch."""
        unseen = ClosedForm.of(self.lists.unseen, self.step.n_neighbors)
        added = Rows(unseen.affinity(self.n_points), unseen.cost / self.step.unit)
        if self.everything:
            first, unit = self.alternation.first, self.step.unit
            return self._whole(Rows(first.affinity(self.n_points), first.cost / unit), added)
        return self._assemble(self._bordered(scores.points, False), False, None, added)

    def learn_graph(self, scores: Solution) -> LearnedRows:
        """Take the S-step: learn the rows of points with a score, and those bordering on them."""
        if self.everything:
            dense = self._dense(scores)
            learned = self.step(self.lists, dense, np.arange(self.n_points))
            added = self.step(self.lists, dense, np.arange(self.n_points, self.n_all))
            return self._whole(learned, added)
        scored = scores.points[scores.scores != 0]
        return self._rows(self._bordered(scored, True), scores)

    def learn_scores(self, graph: LearnedRows, start: Solution) -> Solution:
        """Take the f-step, Eq. (7), with the query eliminated exactly.

        The region grows while its border asks for more than the tolerance.
        """
        learned_for = start
        while True:
            check_stopped()
            scores, outside = self._solve(graph, start)
            outside = np.abs(outside)
            asking = np.flatnonzero(outside > self.alternation.tol / 2)
            if not len(asking):
                return replace(scores, bound=scores.bound + float(outside.max(initial=0.0)))
            start = scores
            new = graph.columns[len(graph.points) :][asking]
            region = np.union1d(graph.points, self._bordered(new, True))
            graph = self._rows(region, learned_for)

    def objective(self, graph: LearnedRows, scores: Solution | None) -> float:
        """Return Eq. (5), for scores that agree with the query exactly.

        ``sum_ij (d_ij s_ij + gamma s_ij^2) + lambda sum_ij s_ij (f_i - f_j)^2 + sum_free f_i^2``;
        edges that leave the region count from both their ends.
        """
        n_region = len(graph.points)
        values = np.zeros(len(graph.columns))
        values[:n_region] = self._values(scores, graph.points)
        row = np.repeat(np.arange(n_region), np.diff(graph.weights.indptr))
        gaps = (values[row] - values[graph.weights.indices]) ** 2
        ends = np.where(graph.weights.indices < n_region, 1.0, 2.0)
        rough = np.sum(graph.weights.data * gaps * ends)
        free = ~np.isin(graph.points, self.own)
        ridge = self.step.shared_gamma * graph.squares
        rest = np.sum(values[:n_region][free] ** 2)
        return float(graph.cost + ridge + self.step.smoothness * rough + rest)

    def query_degree(self, graph: LearnedRows) -> float:
        """Return the smallest degree of a point of the query, negative ones among them."""
        places = np.searchsorted(graph.points, self.own)
        return float(graph.weights[places].sum(axis=1).min())

    def change(self, before: Solution, after: Solution) -> float:
        """Return the largest difference of a score."""
        points = np.union1d(before.points, after.points)
        return float(np.abs(self._values(after, points) - self._values(before, points)).max())

    def _values(self, scores: Solution | None, points: IntArray) -> FloatArray:
        """Return the scores of some points, ascending; zero outside the query for None."""
        known, values = self.own, self.seeds
        if scores is not None:
            known, values = scores.points, scores.scores
        places = np.minimum(np.searchsorted(known, points), len(known) - 1)
        found: FloatArray = np.where(known[places] == points, values[places], 0.0)
        return found

    def _dense(self, scores: Solution | None) -> FloatArray:
        """Return the scores of all points and unseen vectors."""
        dense = np.zeros(self.n_all)
        if scores is not None:
            dense[scores.points] = scores.scores
        return dense

    def _bordered(self, points: IntArray, later: bool) -> IntArray:
        """Return these points, the query's, and all whose rows depend on them."""
        points = np.union1d(points, self.own)
        base = self.alternation.base(later)
        inside = points[points < self.n_points]
        met = np.zeros(self.n_all, dtype=bool)
        for some in (points, base.weights[inside].indices, base.ending[inside].indices):
            met[some] = True
        return np.flatnonzero(met)

    def _rows(self, points: IntArray, scores: Solution) -> LearnedRows:
        """Return rows learned for the scores."""
        inside = points[points < self.n_points]
        dense = self._dense(scores)
        learned = self.step(self.lists, dense, inside)
        added = self.step(self.lists, dense, points[len(inside) :])
        plain = self._plain(inside)
        change = Rows(learned.affinity - plain.affinity, learned.cost - plain.cost)
        graph = self._assemble(points, True, change, added)
        return graph._replace(squares=graph.squares + learned.squares - plain.squares)

    def _plain(self, inside: IntArray) -> Rows:
        """Return rows of the graph at scores zero."""
        if self.step.gamma == "shared":
            return self.alternation.step(self.lists, self._dense(None), inside)
        form = ClosedForm.of(self.lists.stored.take(inside), self.step.n_neighbors)
        return Rows(form.affinity(self.n_points), form.cost / self.step.unit)

    def _whole(self, learned: Rows, added: Rows) -> LearnedRows:
        """Return the graph of all points and unseen vectors."""
        affinity = sparse.vstack([learned.affinity, added.affinity], format="csr")
        affinity.resize((self.n_all, self.n_all))
        weights = ((affinity + affinity.T) / 2).tocsr()
        every_point = np.arange(self.n_all)
        squares = learned.squares + added.squares
        return LearnedRows(every_point, every_point, weights, learned.cost + added.cost, squares)

    def _assemble(
        self, points: IntArray, later: bool, change: Rows | None, added: Rows
    ) -> LearnedRows:
        """Return the rows of ``W + (D + D') / 2`` for the points of a region, ascending."""
        base, n_region = self.alternation.base(later), len(points)
        inside = points[points < self.n_points]
        rows = base.weights[inside]
        row = np.repeat(np.arange(len(inside)), np.diff(rows.indptr))
        parts = [(row, rows.indices, rows.data.astype(np.float64))]
        mirrored = []
        for first, graph in ((0, change), (len(inside), added)):
            if graph is not None:
                entries = graph.affinity.tocoo()
                parts.append((entries.row + first, entries.col, entries.data / 2))
                mirrored.append((entries.col, entries.row + first, entries.data / 2))
        place = np.full(self.n_points, -1)
        place[np.concatenate([part[1] for part in parts])] = 0
        place[inside] = -1
        around = np.flatnonzero(place == 0)
        place[inside], place[around] = np.arange(len(inside)), n_region + np.arange(len(around))
        placed = [(row, place[column], w) for row, column, w in parts]
        for column, row, w in mirrored:
            own = place[column] < n_region
            placed.append((place[column][own], row[own], w[own]))
        row, column, data = (np.concatenate(arrays) for arrays in zip(*placed, strict=True))
        shape = (n_region, n_region + len(around))
        weights = sparse.csr_array((data, (row, column)), shape=shape)
        # What cancels leaves a rounding error behind.
        rounding = 4 * float(np.finfo(base.weights.dtype).eps)
        weights.data = np.where(weights.data > rounding, weights.data, 0.0)
        weights.eliminate_zeros()
        cost = base.cost + added.cost + (change.cost if change is not None else 0.0)
        squares = base.squares + added.squares
        return LearnedRows(points, np.concatenate([points, around]), weights, cost, squares)

    def _solve(self, graph: LearnedRows, start: Solution) -> tuple[Solution, FloatArray]:
        """Return scores of the region, and the residuals at the points around it.

        The system of the region has the margins ``m = 1 + leak``, those of the whole graph are 1.
        A bound of the former, in whichever norm, is at least ``|r_i| / max m`` for every residual;
        and scores that it set to zero, each at most as large as it is, change the residuals
        around by no more than their couplings. So it is multiplied by both, and bounds, with the
        residuals outside, the error on the whole graph.
        """
        n_region, coupling = len(graph.points), 2 * self.step.smoothness
        inside, across = graph.weights[:, :n_region], graph.weights[:, n_region:]
        system = System.coupled(coupling * inside, coupling * across.sum(axis=1))
        boundary = Boundary(
            clamped=np.searchsorted(graph.points, self.own),
            values=self.seeds,
            size=float(np.abs(self.seeds).max()),
            lowest=min(0.0, float(self.seeds.min())),
        )
        if self.alternation.direct:
            (found,) = DirectSolver(system).solve([boundary], [Effort(self.alternation.tol)])
        else:
            solver, near = GradientSolver(system), self._values(start, graph.points)
            if not self.everything:
                solver.tol = self.alternation.tol / 10
            (found,) = solver.solve([boundary], [Effort(self.alternation.tol)], near)
        widening = float(system.margin.max())
        widening += coupling * float(across.sum(axis=0).max(initial=0.0))
        found = replace(found, bound=found.bound * widening)
        outside: FloatArray = coupling * (across.T @ found.scores)
        facts: dict[str, Any] = {"n_iter": start.n_iter + found.n_iter}
        if not self.everything:
            facts |= {"solver": "region", "stopped": "tolerance"}
        return replace(found, points=graph.points, **facts), outside


def ending_at(neighbors: Neighbors, n_neighbors: int) -> sparse.csr_array:
    """Return which points have which as their (k+1)-th neighbour, by rows of the latter."""
    n_points = len(neighbors.indices)
    last = neighbors.indices[:, n_neighbors : n_neighbors + 1]
    point, _ = np.nonzero(last >= 0)
    entries = (np.ones(len(point), dtype=bool), (last[last >= 0], point))
    return sparse.csr_array(entries, shape=(n_points, n_points))


class _Course:
    """Writes down what happens after every half-step."""

    def __init__(self, turns: Any) -> None:
        self.turns = turns
        self.objective: list[float] = []
        self.reach: list[float] = []
        self.query_degree: list[float] = []

    def scores_learned(self, graph: Any, scores: Solution) -> None:
        self.objective.append(self.turns.objective(graph, scores))
        positive = np.maximum(scores.scores, 0.0)
        self.reach.append(float(positive.sum() ** 2 / (positive @ positive)))
        self.query_degree.append(self.turns.query_degree(graph))

    def objective_settled(self, tol: float) -> bool:
        before, now = self.objective[-3], self.objective[-1]
        return abs(now - before) <= tol * max(abs(now), 1.0)

    def trace(self, ended: Ended) -> Trace:
        return Trace(
            tuple(self.objective),
            tuple(self.reach),
            tuple(self.query_degree),
            len(self.reach) - (ended == "collapse"),
            ended,
        )
