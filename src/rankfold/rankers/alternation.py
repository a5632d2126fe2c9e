"""Algorithm 1: learn the graph and the scores in turn, and stop while it helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from rankfold.graph import (
    adaptive_weights,
    affinity_matrix,
    degrees,
    objective,
    projected_weights,
    symmetrize,
    system_matrix,
)
from rankfold.neighbors import ExactEngine
from rankfold.solvers import Solver
from rankfold.types import FloatArray, IntArray, Neighbors, Query, Solution, Stopped, Trace

HEALTHY_REACH = 0.9
"""An alternation whose reach falls below this share of the first one's has collapsed."""


class Graph(NamedTuple):
    """A learned affinity S and what it costs, ``sum_ij d_ij s_ij``."""

    affinity: sparse.csr_array
    cost: float

    def extended(self, other: Graph) -> Graph:
        """Add the rows of points outside the database."""
        rows = sparse.vstack([self.affinity, other.affinity], format="csr")
        return Graph(rows, self.cost + other.cost)


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Neighbour lists of the database and of a query's unseen vectors, at any length.

    Row ``n_points + j`` belongs to the j-th unseen vector.
    """

    engine: ExactEngine
    stored: Neighbors
    vectors: FloatArray

    def rows(self, rows: IntArray, width: int) -> Neighbors:
        """Return sorted lists; longer ones than are stored are searched for anew."""
        if width <= self.stored.width:
            return self.stored.take(rows).head(width)
        inside = rows < self.engine.n_points
        found = self.engine.rows(rows[inside], width)
        unseen = self.engine.search(self.vectors[rows[~inside] - self.engine.n_points], width)
        return Neighbors(
            np.concatenate([found.indices, unseen.indices]),
            np.concatenate([found.sq_distances, unseen.sq_distances]),
        )


@dataclass(frozen=True)
class GraphStep:
    """The S-step, Eq. (12), in one of its readings.

    Parameters
    ----------
    n_neighbors : int
    smoothness : float
    unit : float
        Squared distances are divided by this before they meet the scores.
    shared_gamma : float
        Mean of the ``gamma_i``, Eq. (19), in that unit.
    gamma : {"own", "shared"}
        "own": the closed form again, k neighbours in every alternation. "shared": the
        projection with the mean gamma, for which the objective never increases.
    candidates : {"all", "local"}
        "all": any point may become a neighbour. "local": only those that are near in x;
        the k nearest for the projection, and the k+1 that the closed form reads.
    """

    n_neighbors: int
    smoothness: float
    unit: float
    shared_gamma: float
    gamma: Literal["own", "shared"]
    candidates: Literal["all", "local"]

    def __call__(self, lists: CandidateLists, scores: FloatArray) -> Graph:
        """Learn the graph for fixed scores, without ever looking at all pairs.

        The lifted distance ``d_ij = d^x_ij / unit + lambda (f_i - f_j)^2`` is never below
        ``d^x_ij / unit``. A list of the nearest in x therefore holds everything the row needs as
        soon as the distance at which weights end is not beyond the end of the list. Rows
        where it is get a list of twice the length, until it holds.
        """
        pending = np.arange(len(scores))
        local = self.candidates == "local"
        width = lists.stored.width
        if local:
            width = self.n_neighbors + (self.gamma == "own")
        parts, cost = [], 0.0
        while len(pending):
            neighbors = lists.rows(pending, width)
            lifted, order = self._lift(neighbors, pending, scores)
            weights, end = self._weights(np.take_along_axis(lifted, order, 1))
            certain = local | (end <= neighbors.sq_distances[:, -1] / self.unit)
            indices = np.take_along_axis(neighbors.indices, order, 1)[:, : weights.shape[1]]
            plain = np.take_along_axis(neighbors.sq_distances, order, 1)[:, : weights.shape[1]]
            kept = (weights > 0) & certain[:, None]
            rows = np.broadcast_to(pending[:, None], weights.shape)
            parts.append((weights[kept], rows[kept], indices[kept]))
            cost += float(np.sum(weights[kept] * plain[kept])) / self.unit
            pending = pending[~certain]
            # One more than there are points: the list then ends in inf, and is certain.
            width = min(2 * width, lists.engine.n_points + 1)
        data, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
        shape = (len(scores), lists.engine.n_points)
        return Graph(sparse.csr_array((data, (rows, columns)), shape=shape), cost)

    def _lift(
        self, neighbors: Neighbors, rows: IntArray, scores: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        gaps = scores[rows][:, None] - scores[neighbors.indices]
        lifted = neighbors.sq_distances / self.unit + self.smoothness * gaps**2
        return lifted, np.lexsort((neighbors.indices, lifted), axis=-1)

    def _weights(self, lifted: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.gamma == "shared":
            return projected_weights(lifted, self.shared_gamma)
        weights, _, end = adaptive_weights(lifted, self.n_neighbors)
        return weights, end


def closed_form_graph(neighbors: Neighbors, n_neighbors: int, n_points: int, unit: float) -> Graph:
    """Return the first graph: the closed form at scores zero."""
    weights, _, _ = adaptive_weights(neighbors.sq_distances, n_neighbors)
    indices = neighbors.indices[:, :n_neighbors]
    used = weights[:, : indices.shape[1]]
    distances = np.where(used > 0, neighbors.sq_distances[:, :n_neighbors], 0.0)
    cost = float(np.sum(used * distances)) / unit
    return Graph(affinity_matrix(indices, used, n_points), cost)


def score_step(
    weights: sparse.csr_array,
    smoothness: float,
    points: IntArray,
    seeds: FloatArray,
    solver: Solver,
    start: FloatArray | None = None,
) -> Solution:
    """Take the f-step, Eq. (7), with the query eliminated exactly.

    With ``U`` infinite at the query, ``f`` equals the seeds there, and the rest solves
    ``A_ff f_f = -A_fq y_q`` with ``A = 2 lambda L + I``.
    """
    matrix = system_matrix(weights, smoothness)
    free = np.setdiff1d(np.arange(matrix.shape[0]), points)
    rows = matrix[free]
    b = -(rows[:, points] @ seeds)
    state = solver.prepare(rows[:, free].tocsr())
    solution = solver.solve(state, b, None if start is None else start[free])
    scores = np.zeros(matrix.shape[0])
    scores[points] = seeds
    # The exact scores are not negative, so this can only bring them closer.
    scores[free] = np.maximum(solution.scores, 0.0)
    return replace(solution, scores=scores)


def alternate(
    lists: CandidateLists,
    query: Query,
    graph: Graph,
    first: Solution,
    step: GraphStep,
    solver: Solver,
    *,
    max_iter: int,
    tol: float,
    guard: bool,
) -> tuple[Solution, Trace]:
    """Run Algorithm 1 from the first graph and its scores.

    It ends when scores and objective both change by no more than ``tol`` (the objective
    in proportion), after ``max_iter`` alternations, or, with the guard, when the query starts
    to cut itself off: iterating pulls the query's score away from its neighbours', the next
    graph drops those edges, and the scores gather on fewer and fewer points. Their effective
    number, ``sum(f)^2 / sum(f^2)``, shows it without labels. The last healthy alternation is
    then the answer.
    """
    n_rows = len(first.scores)
    points = np.concatenate([query.ids, np.arange(lists.engine.n_points, n_rows)])
    free = np.setdiff1d(np.arange(n_rows), points)

    def value(graph: Graph, scores: FloatArray) -> float:
        return objective(
            graph.affinity, graph.cost, step.shared_gamma, step.smoothness, scores, free
        )

    seeds = np.zeros(n_rows)
    seeds[points] = query.weights
    course = _Course(value, points)
    course.graph_learned(graph, seeds)
    course.scores_learned(graph, first.scores)
    best = first
    stopped: Stopped = "max_iter"
    for _ in range(1, max_iter):
        graph = step(lists, best.scores)
        course.graph_learned(graph, best.scores)
        solution = score_step(
            symmetrize(graph.affinity), step.smoothness, points, query.weights, solver, best.scores
        )
        course.scores_learned(graph, solution.scores)
        if guard and course.reach[-1] < HEALTHY_REACH * course.reach[0]:
            stopped = "collapse"
            break
        change = float(np.abs(solution.scores - best.scores).max())
        best = solution
        if change <= tol and course.objective_settled(tol):
            stopped = "converged"
            break
    n_alternations = len(course.reach) - (stopped == "collapse")
    return best, course.trace(n_alternations, stopped)


class _Course:
    """Writes down what happens after every half-step."""

    def __init__(self, value: Callable[[Graph, FloatArray], float], points: IntArray) -> None:
        self.value = value
        self.points = points
        self.objective: list[float] = []
        self.reach: list[float] = []
        self.query_degree: list[float] = []

    def graph_learned(self, graph: Graph, scores: FloatArray) -> None:
        self.objective.append(self.value(graph, scores))

    def scores_learned(self, graph: Graph, scores: FloatArray) -> None:
        self.objective.append(self.value(graph, scores))
        self.reach.append(float(scores.sum() ** 2 / np.sum(scores**2)))
        self.query_degree.append(float(degrees(graph.affinity)[self.points].min()))

    def objective_settled(self, tol: float) -> bool:
        before, now = self.objective[-3], self.objective[-1]
        return abs(now - before) <= tol * max(abs(now), 1.0)

    def trace(self, n_alternations: int, stopped: Stopped) -> Trace:
        return Trace(
            tuple(self.objective),
            tuple(self.reach),
            tuple(self.query_degree),
            n_alternations,
            stopped,
        )
