"""The half-steps of Algorithm 1 on a region that stays as it is: what a budget allows. Compiled.

A region is laid out side by side: its points first, those of the query at its end, then all points
around it, whose score is zero. Rows of S have a number of entries each; their columns are places.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankfold.compilation import compiled, inner
from rankfold.parallel import check_stopped
from rankfold.rankers.graph_step import GraphStep, IncomingEdges
from rankfold.types import FloatArray, IntArray, Neighbors, Query, Solution

DEPTH, MOST_STEPS = 0.03, 200
"""How far below the residuals at the border those inside are brought, and in how many steps."""

EPS = float(np.finfo(np.float64).eps)


class Region(NamedTuple):
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

    region: Region
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
    bases : pair of IncomingEdges
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
        bases: tuple[IncomingEdges, IncomingEdges],
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
        self.later = self.first.region
        if later is not before:
            self.later = self._at_zero(later, places, step.shared_gamma).region

    def _at_zero(self, base: IncomingEdges, places: IntArray, gamma: float) -> RegionRows:
        """Return the rows of a graph at scores zero."""
        lists, sources = self.near.indices.copy(), base.sources
        given = sources.indptr, sources.indices, sources.data
        found = renumber(self.points, self.n_points, lists, places, *given)
        ends, columns, weights, received, n_around = found
        n_all = len(self.points) + n_around
        distances = self.near.sq_distances
        region = Region(lists, distances, ends, columns, weights, received, n_all, 0.0, 0.0)
        rows, n = self._learned(region, np.zeros(n_all), gamma), self.n_inside
        cost = base.cost - float(rows.costs[:n].sum())
        squares = base.squares - float(rows.squares[:n].sum())
        return rows._replace(region=region._replace(cost=cost, squares=squares))

    def _learned(self, region: Region, values: FloatArray, gamma: float) -> RegionRows:
        step, width = self.step, self.near.width
        if step.candidates == "local":
            width = min(width, step.n_neighbors + (gamma < 0))
        rows = learn(
            region.lists, region.sq_distances, region.received, width, values, step.n_neighbors,
            step.smoothness, gamma,
        )  # fmt: skip
        return RegionRows(region, *rows)

    def _values(self, region: Region, scores: Solution | None) -> FloatArray:
        """Return the scores of the region and around it; zero outside the query for None."""
        values = np.zeros(region.n_all)
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
        region, values = graph.region, self._values(graph.region, start)
        lowest = min(0.0, float(self.seeds.min()))
        bound, steps = solve_region(
            (graph.counts, graph.columns, graph.weights),
            graph.sums,
            (region.ends, region.columns, region.weights),
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
            n_touched=region.n_all,
            certified=False,  # what was proven before was so on another graph
            stopped="tolerance" if bound <= self.tol else "budget",
        )

    def objective(self, graph: RegionRows, scores: Solution | None) -> float:
        """Return Eq. (5), for scores that agree with the query exactly."""
        region, values = graph.region, self._values(graph.region, scores)
        rough = roughness(graph.counts, graph.columns, graph.weights, region.received, values)
        ridge = self.step.shared_gamma * (region.squares + float(graph.squares.sum()))
        free, cost = values[: self.first_own], region.cost + float(graph.costs.sum())
        return float(cost + ridge + self.step.smoothness * rough + free @ free)

    def query_degree(self, graph: RegionRows) -> float:
        """Return the smallest degree of a point of the query, negative ones among them."""
        return float(graph.sums[self.first_own :].min()) / 2

    def change(self, before: Solution, after: Solution) -> float:
        """Return the largest difference of a score."""
        return float(np.abs(after.scores - before.scores).max())


@compiled()
def renumber(points, n_points, lists, place, ends, sources, shares):  # type: ignore[no-untyped-def]
    """Replace points by places, in the lists in place; return who chooses points of the region.

    Parameters
    ----------
    points : array of int
        The region; unseen vectors are points from ``n_points`` on.
    lists : array of int32, shape (n_region, width)
    place : array of int32
        An entry for every point of the database, all -1, as they are afterwards.
    ends, sources, shares : arrays
        Rows of the transposed graph at scores zero: who chooses a point, with which weight.

    Returns
    -------
    ends, columns, weights : arrays
        The same for points of the region; only who is around it.
    received : array
        The sums of these rows.
    n_around : int
    """
    n_region, n_edges = len(points), 0
    for a in range(n_region):
        if points[a] < n_points:
            place[points[a]] = a
            n_edges += ends[points[a] + 1] - ends[points[a]]
    around, n = np.empty(lists.size + n_edges, dtype=np.int32), 0
    for a in range(n_region):
        for entry in range(lists.shape[1]):
            other = lists[a, entry]
            if other >= 0:
                if place[other] < 0:
                    place[other] = n_region + n
                    around[n] = other
                    n += 1
                lists[a, entry] = place[other]
    kept = np.zeros(n_region + 1, dtype=np.int64)
    columns, weights = np.empty(n_edges, dtype=np.int32), np.empty(n_edges)
    received, end = np.zeros(n_region), 0
    for a in range(n_region):
        if points[a] < n_points:
            for edge in range(ends[points[a]], ends[points[a] + 1]):
                other = sources[edge]
                if place[other] < 0:
                    place[other] = n_region + n
                    around[n] = other
                    n += 1
                if place[other] >= n_region:
                    columns[end], weights[end] = place[other], shares[edge]
                    received[a] += shares[edge]
                    end += 1
        kept[a + 1] = end
    for a in range(n_region):
        if points[a] < n_points:
            place[points[a]] = -1
    for a in range(n):
        place[around[a]] = -1
    return kept, columns[:end], weights[:end], received, n


@compiled()
def learn(lists, sq_distances, received, width, values, n_neighbors, smoothness, gamma):  # type: ignore[no-untyped-def]
    """Take the S-step from lists of so many candidates.

    With a negative ``gamma`` by `adaptive_weights`, else by `projected_weights`. Lists ascend, and
    no lifted distance is below that of the list: what is as far as the last that counts ends it.
    ``received`` is what points of the region get from those around it.

    Returns
    -------
    counts, columns, weights : arrays
        The rows of S.
    sums : array
        Those of the rows and columns of S: twice the degrees.
    costs, squares : arrays
        ``sum_j d_ij s_ij`` and ``sum_j s_ij^2``.
    """
    n_region, own = len(lists), gamma < 0
    most = min(width, n_neighbors + 1) if own else width
    counts = np.zeros(n_region, dtype=np.int32)
    columns = np.empty((n_region, most), dtype=np.int32)
    weights = np.empty((n_region, most))
    lifted, plain = np.empty(most), np.empty(most)
    sums, costs, squares = received.copy(), np.zeros(n_region), np.zeros(n_region)
    for a in range(n_region):
        row, n = columns[a], 0
        for entry in range(width):
            other, distance = lists[a, entry], sq_distances[a, entry]
            if other < 0 or (n == most and distance >= lifted[n - 1]):
                break
            far = distance + smoothness * (values[a] - values[other]) ** 2
            if n == most:
                if far >= lifted[n - 1]:
                    continue
                n -= 1
            at = n
            while at > 0 and lifted[at - 1] > far:
                lifted[at], plain[at], row[at] = lifted[at - 1], plain[at - 1], row[at - 1]
                at -= 1
            lifted[at], plain[at], row[at] = far, distance, other
            n += 1
        n = closed_form(lifted, n, weights[a]) if own else project(lifted, n, gamma, weights[a])
        counts[a] = n
        for entry in range(n):
            weight = weights[a, entry]
            costs[a] += weight * plain[entry]
            squares[a] += weight**2
            sums[a] += weight
            if row[entry] < n_region:
                sums[row[entry]] += weight
    return counts, columns, weights, sums, costs, squares


@inner()
def closed_form(distances, n, weights):  # type: ignore[no-untyped-def]
    """Write the closed-form weights of a row that ascends; return how many they are."""
    kept, total = min(n, max(n - 1, 1)), 0.0
    for entry in range(kept):
        weights[entry] = distances[n - 1] - distances[entry]
        total += weights[entry]
    for entry in range(kept):
        weights[entry] = weights[entry] / total if total > 0.0 else 1.0 / kept
    return kept


@inner()
def project(distances, n, gamma, weights):  # type: ignore[no-untyped-def]
    """Write the weights of a row that ascends by projection; return how many are positive."""
    kept, threshold, total = 0, 0.0, 2 * gamma
    while kept < n:
        beyond = distances[kept] - distances[0]
        if kept and (total + beyond) / (kept + 1) <= beyond:
            break
        total += beyond
        kept += 1
        threshold = total / kept
    total = 0.0
    for entry in range(kept):
        weights[entry] = max(threshold - (distances[entry] - distances[0]), 0.0)
        total += weights[entry]
    if total > 0.0:
        for entry in range(kept):
            weights[entry] /= total
        return kept
    kept = 0
    while kept < n and distances[kept] <= distances[0]:
        kept += 1
    for entry in range(kept):
        weights[entry] = 1.0 / kept
    return kept


@compiled()
def roughness(counts, columns, weights, received, values):  # type: ignore[no-untyped-def]
    """Return ``sum_ij s_ij (f_i - f_j)^2``."""
    rough = 0.0
    for a in range(len(counts)):
        rough += received[a] * values[a] ** 2
        for entry in range(counts[a]):
            rough += weights[a, entry] * (values[a] - values[columns[a, entry]]) ** 2
    return rough


@compiled()
def solve_region(graph, sums, around, values, first_own, smoothness, tol, lowest):  # type: ignore[no-untyped-def]
    """Take the f-step by conjugate gradients from ``values``, which become the scores.

    ``2 lambda W = lambda (S + S')`` is never made: each entry of S is passed once, both ways. The
    graph has the three arrays of the rows, ``around`` those of who is around.

    Returns
    -------
    bound : float
        The largest residual of any point, those around among them.
    steps : int
    """
    counts, columns, weights = graph
    ends, sources, shares = around
    n = len(counts)
    diagonal, terms = 1.0 + smoothness * sums, ends[1:] - ends[:-1] + 2
    inside, n_edges = np.empty(n + 1, dtype=np.int64), 0
    targets = np.empty(columns.size, dtype=np.int32)
    couplings = np.empty(columns.size)
    inside[0] = 0
    for a in range(n):
        for entry in range(counts[a]):
            other = columns[a, entry]
            if other < n:
                terms[other] += 2
                targets[n_edges], couplings[n_edges] = other, smoothness * weights[a, entry]
                n_edges += 1
        terms[a] += 2 * counts[a]
        inside[a + 1] = n_edges
    outside = np.zeros(len(values) - n)
    given = counts, columns, weights, ends, sources, shares, values, smoothness, outside
    target = max(tol, DEPTH * border(*given))
    r, u, q = np.empty(n), np.empty(n), np.empty(n)
    multiply(inside, targets, couplings, diagonal, values, r)
    square = worst = 0.0
    for a in range(n):
        r[a] = 0.0 if a >= first_own else -r[a]
        u[a] = r[a] / diagonal[a]
        square += u[a] * r[a]
        worst = max(worst, abs(r[a]))
    steps = 0
    while worst > target and steps < MOST_STEPS:
        multiply(inside, targets, couplings, diagonal, u, q)
        curvature = 0.0
        for a in range(first_own):
            curvature += u[a] * q[a]
        if curvature <= 0.0:  # what is left is too small for its square
            break
        length, following, worst = square / curvature, 0.0, 0.0
        for a in range(first_own):
            values[a] += length * u[a]
            r[a] -= length * q[a]
            following += r[a] * r[a] / diagonal[a]
            worst = max(worst, abs(r[a]))
        ratio, square = following / square, following
        for a in range(first_own):
            u[a] = r[a] / diagonal[a] + ratio * u[a]
        steps += 1
    largest = 0.0
    for a in range(n):
        if a < first_own:
            values[a] = max(values[a], lowest)  # no exact value is below
        largest = max(largest, abs(values[a]))
    multiply(inside, targets, couplings, diagonal, values, r)
    bound = border(*given)
    # Without negative scores, what is added up is at most the sum.
    bound += EPS * 2 * n * (bound if lowest >= 0.0 else 2 * n * smoothness * largest)
    for a in range(first_own):
        rounding = EPS * (terms[a] + 8) * 2 * diagonal[a] * largest
        bound = max(bound, abs(r[a]) + rounding)
    return bound, steps


@inner(fastmath={"contract"})
def multiply(ends, targets, couplings, diagonal, u, q):  # type: ignore[no-untyped-def]
    """Write the product of the region's matrix and u to q."""
    for a in range(len(diagonal)):
        q[a] = diagonal[a] * u[a]
    for a in range(len(diagonal)):
        total, own = 0.0, u[a]
        for edge in range(ends[a], ends[a + 1]):
            other, coupling = targets[edge], couplings[edge]
            total += coupling * u[other]
            q[other] -= coupling * own
        q[a] -= total


@inner()
def border(counts, columns, weights, ends, around, shares, values, smoothness, outside):  # type: ignore[no-untyped-def]
    """Return the largest residual around the region."""
    n, worst = len(counts), 0.0
    outside[:] = 0.0
    for a in range(n):
        coupling = smoothness * values[a]
        for entry in range(counts[a]):
            other = columns[a, entry]
            if other >= n:
                outside[other - n] += coupling * weights[a, entry]
        for edge in range(ends[a], ends[a + 1]):
            outside[around[edge] - n] += coupling * shares[edge]
    for other in range(len(outside)):
        worst = max(worst, abs(outside[other]))
    return worst
