"""Algorithm 1: learn the graph and the scores in turn, and stop while it helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy import sparse

from rankfold.graph import degrees, objective, symmetrize, system_matrix
from rankfold.rankers.graph_step import CandidateLists, Graph, GraphStep
from rankfold.solvers import Solver
from rankfold.types import FloatArray, IntArray, Query, Solution, Stopped, Trace

HEALTHY_REACH = 0.9
"""An alternation whose reach falls below this share of the first one's has collapsed."""


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


@dataclass(frozen=True, eq=False)
class Alternation:
    """Algorithm 1 from the first graph and its scores.

    It ends when scores and objective both change by no more than ``tol`` (the objective
    in proportion), after ``max_iter`` alternations, or, with the guard, when the query starts
    to cut itself off: iterating pulls the query's score away from its neighbours', the next
    graph drops those edges, and the scores gather on fewer and fewer points. Their effective
    number, ``sum(f)^2 / sum(f^2)``, shows it without labels. The last healthy alternation is
    then the answer.
    """

    step: GraphStep
    solver: Solver
    max_iter: int
    tol: float
    guard: bool

    def run(
        self, lists: CandidateLists, query: Query, graph: Graph, first: Solution
    ) -> tuple[Solution, Trace]:
        """Return the scores of the last healthy alternation and how they were reached."""
        n_rows = len(first.scores)
        points = _points(lists, query, n_rows)
        seeds = np.zeros(n_rows)
        seeds[points] = query.weights
        course = _Course(self.step, points, n_rows)
        course.graph_learned(graph, seeds)
        course.scores_learned(graph, first.scores)
        best = first
        stopped: Stopped = "max_iter"
        for graph, solution in islice(self.walk(lists, query, first), self.max_iter - 1):
            course.graph_learned(graph, best.scores)
            course.scores_learned(graph, solution.scores)
            if self.guard and course.reach[-1] < HEALTHY_REACH * course.reach[0]:
                stopped = "collapse"
                break
            change = float(np.abs(solution.scores - best.scores).max())
            best = solution
            if change <= self.tol and course.objective_settled(self.tol):
                stopped = "converged"
                break
        return best, course.trace(stopped)

    def walk(
        self, lists: CandidateLists, query: Query, first: Solution
    ) -> Iterator[tuple[Graph, Solution]]:
        """Yield the graph and the scores of the second alternation, the third, ... without end."""
        points = _points(lists, query, len(first.scores))
        solution = first
        while True:
            graph = self.step(lists, solution.scores)
            solution = score_step(
                symmetrize(graph.affinity),
                self.step.smoothness,
                points,
                query.weights,
                self.solver,
                solution.scores,
            )
            yield graph, solution


def _points(lists: CandidateLists, query: Query, n_rows: int) -> IntArray:
    """Return the rows of the query's points, and of its unseen vectors after the database."""
    return np.concatenate([query.ids, np.arange(lists.engine.n_points, n_rows)])


class _Course:
    """Writes down what happens after every half-step."""

    def __init__(self, step: GraphStep, points: IntArray, n_rows: int) -> None:
        self.step = step
        self.points = points
        self.free = np.setdiff1d(np.arange(n_rows), points)
        self.objective: list[float] = []
        self.reach: list[float] = []
        self.query_degree: list[float] = []

    def graph_learned(self, graph: Graph, scores: FloatArray) -> None:
        gamma, smoothness = self.step.shared_gamma, self.step.smoothness
        self.objective.append(
            objective(graph.affinity, graph.cost, gamma, smoothness, scores, self.free)
        )

    def scores_learned(self, graph: Graph, scores: FloatArray) -> None:
        self.graph_learned(graph, scores)
        self.reach.append(float(scores.sum() ** 2 / np.sum(scores**2)))
        self.query_degree.append(float(degrees(graph.affinity)[self.points].min()))

    def objective_settled(self, tol: float) -> bool:
        before, now = self.objective[-3], self.objective[-1]
        return abs(now - before) <= tol * max(abs(now), 1.0)

    def trace(self, stopped: Stopped) -> Trace:
        n_alternations = len(self.reach) - (stopped == "collapse")
        return Trace(
            tuple(self.objective),
            tuple(self.reach),
            tuple(self.query_degree),
            n_alternations,
            stopped,
        )
