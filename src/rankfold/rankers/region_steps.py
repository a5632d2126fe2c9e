"""The half-steps of Algorithm 1 on a region that stays as it is: what a budget allows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rankfold.parallel import check_stopped
from rankfold.rankers.graph_step import GraphStep
from rankfold.types import FloatArray, IntArray, Neighbors, Query, Solution


class Choosing(NamedTuple):
    """A graph at scores zero: who chooses which point, ``sum d_ij s_ij`` and ``sum s_ij^2``.

    Row j of ``choosers`` has the points that give a weight to j: it is S'.
    """

    choosers: sparse.csr_array
    cost: float
    squares: float


class Layout(NamedTuple):
    """A region with the edges that lead to it: who around chooses its points.

    Row i of these has the entries up to ``ends[i + 1]`` of ``columns`` and ``weights``, and
    ``received`` has their sums. ``cost`` and ``squares`` are those of all rows outside the region.
    """

    lists: IntArray
    sq_distances: FloatArray
    ends: IntArray
    columns: IntArray
    weights: FloatArray
    received: FloatArray
    n_all: int
    cost: float
    squares: float


class RegionRows(NamedTuple):
    """Rows of S for the points of a region; columns are places.

    ``sums`` are those of the rows and columns of S, twice the degrees of W.
    """

    layout: Layout
    counts: IntArray
    columns: IntArray
    weights: FloatArray
    sums: FloatArray
    costs: FloatArray
    squares: FloatArray


class RegionSteps:
    """The half-steps for one query whose region is fixed; rows outside of it keep their weights.

    Rows are learned from stored candidates. With the affinity S of now, of which rows of the region
    were learned, ``2 W = S + S'``: only S is ever made, and who around the region chooses a point
    of it is read from the graph at scores zero.

    Parameters
    ----------
    step : GraphStep
    lists : Neighbors
        Stored candidates of every point.
    bases : pair of Choosing
        The first graph, and the one that the S-step learns at scores zero.
    places : array of int32
        An entry for every point, all -1.
    query : Query
    unseen : Neighbors
        Lists of its vectors.
    first : Solution
        Scores on the first graph.
    tol : float
    """

    def __init__(
        self,
        step: GraphStep,
        lists: Neighbors,
        bases: tuple[Choosing, Choosing],
        places: IntArray,
        query: Query,
        unseen: Neighbors,
        first: Solution,
        tol: float,
    ) -> None:
        self.step, self.tol, self.n_points = step, tol, len(lists.indices)
        free = np.flatnonzero(first.scores)
        free = free[np.isin(first.points[free], query.indices, invert=True)]
        inside = np.concatenate([first.points[free], query.indices])
        vectors = np.arange(self.n_points, self.n_points + len(query.vectors))
        self.first_own, self.n_inside = len(free), len(inside)
        self.points, self.seeds = np.concatenate([inside, vectors]), query.weights
        self.start = np.concatenate([first.scores[free], query.weights])
        known = lists.take(inside)
        self.near = Neighbors(
            np.concatenate([known.indices, unseen.indices], dtype=np.int32),
            np.concatenate([known.sq_distances, unseen.sq_distances], dtype=np.float64),
        )
        self.near.sq_distances[:] /= step.unit
        before, later = bases
        self.first = self._at_zero(before, places, -1.0)
        self.later = self.first.layout
        if later is not before:
            self.later = self._at_zero(later, places, step.shared_gamma).layout

    def _at_zero(self, base: Choosing, places: IntArray, gamma: float) -> RegionRows:
        """Return the rows of a graph at scores zero."""
        from rankfold.rankers.alternation_kernels import lay_out

        lists, choosers = self.near.indices.copy(), base.choosers
        given = choosers.indptr, choosers.indices, choosers.data
        found = lay_out(self.points, self.n_points, lists, places, *given)
        ends, columns, weights, received, n_around = found
        n_all = len(self.points) + n_around
        distances = self.near.sq_distances
        layout = Layout(lists, distances, ends, columns, weights, received, n_all, 0.0, 0.0)
        rows, n = self._learned(layout, np.zeros(n_all), gamma), self.n_inside
        cost = base.cost - float(rows.costs[:n].sum())
        squares = base.squares - float(rows.squares[:n].sum())
        return rows._replace(layout=layout._replace(cost=cost, squares=squares))

    def _learned(self, layout: Layout, values: FloatArray, gamma: float) -> RegionRows:
        from rankfold.rankers.alternation_kernels import learn

        step, width = self.step, self.near.width
        if step.candidates == "local":
            width = min(width, step.n_neighbors + (gamma < 0))
        rows = learn(
            layout.lists, layout.sq_distances, layout.received, width, values, step.n_neighbors,
            step.smoothness, gamma,
        )  # fmt: skip
        return RegionRows(layout, *rows)

    def _values(self, layout: Layout, scores: Solution | None) -> FloatArray:
        """Return the scores of the region and around it; zero outside the query for None."""
        values = np.zeros(layout.n_all)
        if scores is not None:
            values[: len(self.points)] = scores.scores
        values[self.first_own : len(self.points)] = self.seeds
        return values

    def with_query(self, scores: Solution) -> Solution:
        """Return the scores of the region, those of the query at the end."""
        return replace(scores, points=self.points, scores=self.start)

    def without_unseen(self, scores: Solution) -> Solution:
        """Return the scores of points of the database."""
        n = self.n_inside
        return replace(scores, points=scores.points[:n], scores=scores.scores[:n])

    def first_graph(self, scores: Solution) -> RegionRows:
        """Return the rows of the first graph."""
        return self.first

    def learn_graph(self, scores: Solution) -> RegionRows:
        """Take the S-step for the rows of the region."""
        check_stopped()
        gamma = self.step.shared_gamma if self.step.gamma == "shared" else -1.0
        return self._learned(self.later, self._values(self.later, scores), gamma)

    def learn_scores(self, graph: RegionRows, start: Solution) -> Solution:
        """Take the f-step, Eq. (7), with the query eliminated exactly and zero around the region.

        Margins are 1 on the whole graph: no error is larger than the largest residual, and those of
        points around the region are part of it.
        """
        from rankfold.rankers.alternation_kernels import solve_region

        layout, values = graph.layout, self._values(graph.layout, start)
        lowest = min(0.0, float(self.seeds.min()))
        bound, steps = solve_region(
            (graph.counts, graph.columns, graph.weights),
            graph.sums,
            (layout.ends, layout.columns, layout.weights),
            values,
            self.first_own,
            self.step.smoothness,
            self.tol,
            lowest,
        )
        return replace(
            start,
            scores=values[: len(self.points)],
            bound=min(bound, float(np.abs(self.seeds).max()) - lowest),
            n_iter=start.n_iter + steps,
            n_touched=layout.n_all,
            certified=False,  # what was proven before was so on another graph
            stopped="tolerance" if bound <= self.tol else "budget",
        )

    def objective(self, graph: RegionRows, scores: Solution | None) -> float:
        """Return Eq. (5), for scores that agree with the query exactly."""
        from rankfold.rankers.alternation_kernels import roughness

        layout, values = graph.layout, self._values(graph.layout, scores)
        rough = roughness(graph.counts, graph.columns, graph.weights, layout.received, values)
        ridge = self.step.shared_gamma * (layout.squares + float(graph.squares.sum()))
        free, cost = values[: self.first_own], layout.cost + float(graph.costs.sum())
        return float(cost + ridge + self.step.smoothness * rough + free @ free)

    def query_degree(self, graph: RegionRows) -> float:
        """Return the smallest degree of a point of the query, negative ones among them."""
        return float(graph.sums[self.first_own :].min()) / 2

    def change(self, before: Solution, after: Solution) -> float:
        """Return the largest difference of a score."""
        return float(np.abs(after.scores - before.scores).max())
