"""The half-steps of Algorithm 1 for one query, on the points that it reaches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rankfold.rankers.closed_form import ClosedForm
from rankfold.rankers.graph_step import CandidateLists, Graph, GraphStep
from rankfold.rankers.reached import Best, signed_best
from rankfold.rankers.region import Base, LocalScores, RegionGraph, assemble, distinct
from rankfold.solvers import ConjugateGradients
from rankfold.types import FloatArray, IntArray, Query


@dataclass(eq=False)
class LocalTurns:
    """The half-steps for one query; unseen vectors are points after those of the database.

    Parameters
    ----------
    lists : CandidateLists
    query : Query
    step : GraphStep
    first, later : Base
        The first graph, and the graph at scores zero as the S-step learns it, which is another
        one with a shared gamma.
    dense : array
        Zeros, one for every point and unseen vector; left as they are found.
    tol : float
    """

    lists: CandidateLists
    query: Query
    step: GraphStep
    first: Base
    later: Base
    dense: FloatArray
    tol: float

    def __post_init__(self) -> None:
        n_points = self.lists.engine.n_points
        unseen = np.arange(n_points, n_points + len(self.query.vectors))
        own = np.concatenate([self.query.ids, unseen])
        order = np.argsort(own)
        self.own, self.seeds = own[order], self.query.weights[order]
        # No exact score is below zero and all seeds.
        self.lowest = min(0.0, self.seeds.min())

    def with_query(self, scores: LocalScores) -> LocalScores:
        """Return the scores with the query's own among them."""
        points = np.union1d(scores.points, self.own)
        values = np.zeros(len(points))
        values[np.searchsorted(points, scores.points)] = scores.values
        values[np.searchsorted(points, self.own)] = self.seeds
        return scores._replace(points=points, values=values)

    def best(self, scores: LocalScores, top: int) -> Best:
        """Return the best of all other points, and whether they are certain."""
        others = ~np.isin(scores.points, self.own) & (scores.values > 0)
        points, values = scores.points[others], scores.values[others]
        order = np.lexsort((points, -values))
        certain = False
        if len(order) > top > 0:
            last, following = values[order[[top - 1, top]]]
            certain = bool(last - following > 2 * scores.bound and last > 2 * scores.bound)
        order = order[:top]
        bound, n_steps = scores.bound, scores.n_steps
        best = Best(points[order], values[order], bound, n_steps, certain, scores.converged)
        if self.lowest == 0 or len(order) == top:
            return best
        others = ~np.isin(scores.points, self.own)
        return signed_best(scores.points[others], scores.values[others], top, best)

    def first_graph(self, scores: LocalScores) -> RegionGraph:
        """Return the rows of the first graph that the scores touch."""
        points = self._bordered(scores.points, self.first)
        n_points = self.lists.engine.n_points
        unseen = ClosedForm.of(self.lists.unseen, self.step.n_neighbors)
        added = Graph(unseen.affinity(n_points), unseen.cost / self.step.unit)
        return assemble(points, self.first, None, added, n_points)

    def learn_graph(self, scores: LocalScores) -> RegionGraph:
        """Learn the rows of all points with a score, and of those that border on them."""
        scored = scores.points[scores.values != 0]
        return self._rows(self._bordered(scored, self.later), self.later, scores)

    def learn_scores(self, graph: RegionGraph, start: LocalScores) -> LocalScores:
        """Solve on the region, and on a larger one while its border asks for more than tol."""
        while True:
            scores, outside = self._solve(graph, start)
            outside = np.abs(outside)
            asking = np.flatnonzero(outside > self.tol / 2)
            if not len(asking):
                bound = max(scores.bound, float(outside.max(initial=0.0)))
                return scores._replace(bound=bound)
            start = scores
            new = graph.columns[len(graph.points) :][asking]
            region = np.union1d(graph.points, self._bordered(new, self.later))
            graph = self._rows(region, self.later, graph.learned_for)

    def objective(self, graph: RegionGraph, scores: LocalScores | None) -> float:
        """Return Eq. (5); edges that leave the region count from both their ends."""
        n_region = len(graph.points)
        edges = graph.weights.tocoo()
        values = np.zeros(len(graph.columns))
        values[:n_region] = self._extended(scores or LocalScores(self.own, self.seeds), graph)
        gaps = (values[edges.row] - values[edges.col]) ** 2
        rough = np.sum(edges.data * gaps * np.where(edges.col < n_region, 1.0, 2.0))
        free = ~np.isin(graph.points, self.own)
        ridge = self.step.shared_gamma * graph.squares
        rest = np.sum(values[:n_region][free] ** 2)
        return float(graph.cost + ridge + self.step.smoothness * rough + rest)

    def query_degree(self, graph: RegionGraph) -> float:
        """Return the smallest degree of a point of the query."""
        places = np.searchsorted(graph.points, self.own)
        return float(graph.weights[places].sum(axis=1).min())

    def values(self, scores: LocalScores) -> FloatArray:
        """Return the scores of the region."""
        return scores.values

    def change(self, before: LocalScores, after: LocalScores) -> float:
        """Return the largest difference of a score."""
        points = np.union1d(before.points, after.points)
        difference = np.zeros(len(points))
        difference[np.searchsorted(points, after.points)] = after.values
        difference[np.searchsorted(points, before.points)] -= before.values
        return float(np.abs(difference).max())

    def _bordered(self, points: IntArray, base: Base) -> IntArray:
        """Return these points, the query's, and all whose rows depend on them."""
        points = np.union1d(points, self.own)
        inside = points[points < self.lists.engine.n_points]
        around = [points, base.weights[inside].indices, base.ending[inside].indices]
        return distinct(np.concatenate(around), len(self.dense)).astype(np.intp)

    def _rows(self, points: IntArray, base: Base, scores: LocalScores) -> RegionGraph:
        """Return rows learned for the scores."""
        n_points = self.lists.engine.n_points
        inside = points[points < n_points]
        plain = self.step(self.lists, self.dense, inside)
        self.dense[scores.points] = scores.values
        learned = self.step(self.lists, self.dense, inside)
        added = self.step(self.lists, self.dense, points[len(inside) :])
        self.dense[scores.points] = 0.0
        change = Graph(learned.affinity - plain.affinity, learned.cost - plain.cost)
        squares = float(np.sum(learned.affinity.data**2) - np.sum(plain.affinity.data**2))
        graph = assemble(points, base, change, added, n_points)
        return graph._replace(squares=graph.squares + squares, learned_for=scores)

    def _solve(self, graph: RegionGraph, start: LocalScores) -> tuple[LocalScores, FloatArray]:
        """Return scores of the region, and the residuals at the points around it."""
        smoothness, n_region = self.step.smoothness, len(graph.points)
        values = self._extended(start, graph)
        own = np.searchsorted(graph.points, self.own)
        values[own] = self.seeds
        free = np.setdiff1d(np.arange(n_region), own)
        rows = graph.weights[free]
        couplings = 2 * smoothness * rows
        diagonal = sparse.diags_array(1 + couplings.sum(axis=1))
        matrix = (diagonal - couplings[:, free]).tocsr()
        solver = ConjugateGradients(tol=self.tol / 10)
        b = couplings[:, own] @ self.seeds
        solution = solver.solve(solver.prepare(matrix), b, values[free])
        values[free] = np.maximum(solution.scores, self.lowest)
        outside = 2 * smoothness * (graph.weights[:, n_region:].T @ values)
        steps, converged = start.n_steps + solution.n_iter, solution.converged
        return LocalScores(graph.points, values, solution.bound, steps, converged), outside

    def _extended(self, scores: LocalScores, graph: RegionGraph) -> FloatArray:
        """Return scores for the points of a region."""
        self.dense[scores.points] = scores.values
        values = self.dense[graph.points]
        self.dense[scores.points] = 0.0
        return values
