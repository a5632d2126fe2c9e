"""Algorithm 1: learn the graph and the scores in turn, and stop while it helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from rankfold.rankers.graph_step import GraphStep
from rankfold.solvers import Solver
from rankfold.types import FloatArray, Stopped, Trace

HEALTHY_REACH = 0.9
"""An alternation whose reach falls below this share of the first one's has collapsed."""

G = TypeVar("G")
S = TypeVar("S")


class Turns(Protocol[G, S]):
    """The two half-steps for one query, and what is to be known after each."""

    def learn_graph(self, scores: S) -> G:
        """Take the S-step for fixed scores."""

    def learn_scores(self, graph: G, start: S) -> S:
        """Take the f-step on a fixed graph, from the scores before."""

    def objective(self, graph: G, scores: S | None) -> float:
        """Return Eq. (5); None for scores that are zero outside the query."""

    def query_degree(self, graph: G) -> float:
        """Return the smallest degree of a point of the query, negative ones among them."""

    def values(self, scores: S) -> FloatArray:
        """Return the scores that are not zero, and perhaps others."""

    def change(self, before: S, after: S) -> float:
        """Return the largest difference of a score."""


@dataclass(frozen=True, eq=False)
class Alternation:
    """Algorithm 1 from the first graph and its scores.

    It ends when scores and objective both change by no more than ``tol`` (the objective
    in proportion), after ``max_iter`` alternations, or, with the guard, when the query starts
    to cut itself off: iterating pulls the query's score away from its neighbours', the next
    graph drops those edges, and the scores gather on fewer and fewer points. Their effective
    number, ``sum(f)^2 / sum(f^2)``, shows it without labels. The last healthy alternation is
    then the answer. Negative scores are left out of that number: a negative example that cuts
    itself off does less than was asked of it, but no harm.
    """

    step: GraphStep
    solver: Solver
    max_iter: int
    tol: float
    guard: bool

    def run(self, turns: Turns[G, S], graph: G, first: S) -> tuple[S, Trace]:
        """Return the scores of the last healthy alternation and how they were reached."""
        course = _Course(turns)
        course.objective.append(turns.objective(graph, None))
        course.scores_learned(graph, first)
        best = first
        stopped: Stopped = "max_iter"
        for _ in range(1, self.max_iter):
            graph = turns.learn_graph(best)
            course.objective.append(turns.objective(graph, best))
            scores = turns.learn_scores(graph, best)
            course.scores_learned(graph, scores)
            if self.guard and course.reach[-1] < HEALTHY_REACH * course.reach[0]:
                stopped = "collapse"
                break
            change = turns.change(best, scores)
            best = scores
            if change <= self.tol and course.objective_settled(self.tol):
                stopped = "converged"
                break
        return best, course.trace(stopped)


class _Course(Generic[G, S]):
    """Writes down what happens after every half-step."""

    def __init__(self, turns: Turns[G, S]) -> None:
        self.turns = turns
        self.objective: list[float] = []
        self.reach: list[float] = []
        self.query_degree: list[float] = []

    def scores_learned(self, graph: G, scores: S) -> None:
        values = self.turns.values(scores)
        self.objective.append(self.turns.objective(graph, scores))
        positive = np.maximum(values, 0.0)
        self.reach.append(float(positive.sum() ** 2 / (positive @ positive)))
        self.query_degree.append(self.turns.query_degree(graph))

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
