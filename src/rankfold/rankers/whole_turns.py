"""The half-steps of Algorithm 1 for one query, on all points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from rankfold.graph import degrees, objective, symmetrize, system_matrix
from rankfold.rankers.graph_step import CandidateLists, Graph, GraphStep
from rankfold.solvers import Solver
from rankfold.types import FloatArray, IntArray, Query, Solution


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
    # No exact score is below zero and all seeds, so this can only bring them closer.
    scores[free] = np.maximum(solution.scores, min(0.0, seeds.min()))
    return replace(solution, scores=scores)


class WholeTurns:
    """The half-steps for one query; unseen vectors are points after those of the database."""

    def __init__(
        self, lists: CandidateLists, query: Query, step: GraphStep, solver: Solver
    ) -> None:
        n_points, n_rows = lists.engine.n_points, lists.engine.n_points + len(query.vectors)
        self.lists, self.query, self.step, self.solver = lists, query, step, solver
        self.points = np.concatenate([query.ids, np.arange(n_points, n_rows)])
        self.free = np.setdiff1d(np.arange(n_rows), self.points)
        self.seeds = np.zeros(n_rows)
        self.seeds[self.points] = query.weights

    def learn_graph(self, scores: Solution) -> Graph:
        """Learn all rows anew."""
        return self.step(self.lists, scores.scores, np.arange(len(self.seeds)))

    def learn_scores(self, graph: Graph, start: Solution) -> Solution:
        """Solve for all points that are not the query's."""
        weights = symmetrize(graph.affinity)
        smoothness, seeds = self.step.smoothness, self.query.weights
        return score_step(weights, smoothness, self.points, seeds, self.solver, start.scores)

    def objective(self, graph: Graph, scores: Solution | None) -> float:
        """Return Eq. (5)."""
        values = self.seeds if scores is None else scores.scores
        gamma, smoothness = self.step.shared_gamma, self.step.smoothness
        return objective(graph.affinity, graph.cost, gamma, smoothness, values, self.free)

    def query_degree(self, graph: Graph) -> float:
        """Return the smallest degree of a point of the query."""
        return float(degrees(graph.affinity)[self.points].min())

    def values(self, scores: Solution) -> FloatArray:
        """Return all scores."""
        return scores.scores

    def change(self, before: Solution, after: Solution) -> float:
        """Return the largest difference of a score."""
        return float(np.abs(after.scores - before.scores).max())
