"""Answers of local solves: the points that a query reached, then the nearest others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankfold.neighbors import Engine
from rankfold.rankers.ordering import query_points
from rankfold.solvers import Found, LocalSystem, Start
from rankfold.types import FloatArray, IntArray, Query, Ranking, Solution, Trace

NO_POINTS = np.empty(0, dtype=np.intp)


class Best(NamedTuple):
    """The best of what a query reached, in order, its own points left out.

    ``below`` are all points with a negative score, the least negative first, where the best are
    fewer than were asked for.
    """

    points: IntArray
    scores: FloatArray
    bound: float
    n_steps: int
    certified: bool
    converged: bool = True
    below: IntArray = NO_POINTS
    below_scores: FloatArray = np.empty(0)


def others_wanted(query: Query, top: int, include_query: bool) -> int:
    """Return how many points an answer has beside the query's own, which come first."""
    if not include_query:
        return top
    return max(0, top - int(np.count_nonzero(query.weights[: len(query.ids)] > 0)))


def with_those_below(
    best: Best, query: Query, top: int, system: LocalSystem, start: Start, tol: float
) -> Best:
    """Find the points of negative score as well, where an answer may come to them."""
    if len(best.points) >= top or (query.weights >= 0).all():
        return best
    reached = system.solve(start, tol / 2)  # what is cut off by zero adds as much to the bound
    others = ~np.isin(reached.points, query.ids)
    points = reached.points[others]
    scores = system.system.scale[points] * reached.values[others]
    bound = max(reached.above, reached.below) * system.system.largest_scale
    return signed_best(points, scores, top, Best(points, scores, bound, reached.n_steps, False))


def signed_best(points: IntArray, scores: FloatArray, top: int, found: Best) -> Best:
    """Part scores in positive and negative ones, without those that the bound blurs with zero."""
    certain = np.abs(scores) > found.bound
    cut = float(np.abs(scores[~certain]).max(initial=0.0))
    order = np.lexsort((points, -scores))
    order = order[certain[order]]
    n_positive = np.count_nonzero(scores[order] > 0)
    up, down = order[:n_positive][:top], order[n_positive:]
    return found._replace(
        points=points[up],
        scores=scores[up],
        bound=found.bound + cut,
        below=points[down],
        below_scores=scores[down],
    )


def best_found(found: Found) -> Iterator[Best]:
    """Yield the answers of a batch, one by one; bounds are those of values, not of scores."""
    rows = zip(found.counts.tolist(), found.bounds.tolist(), found.certified.tolist(), strict=True)
    for row, ((count, n_steps, _), bounds, certified) in enumerate(rows):
        points, scores = found.points[row, :count], found.scores[row, :count]
        yield Best(points, scores, max(bounds), n_steps, certified)


def with_round_trips(ranking: Ranking, n_trips: int) -> Ranking:
    """Count that a database was asked so many times more."""
    solution, n_before = ranking.solution, ranking.solution.round_trips
    return replace(ranking, solution=replace(solution, round_trips=n_before + n_trips))


def rank_reached(
    engine: Engine,
    query: Query,
    best: Best,
    own: FloatArray,
    top: int,
    include_query: bool,
    trace: Trace | None = None,
) -> Ranking:
    """Fill an answer up by plain distance, and put the query's own points around it if asked for.

    Parameters
    ----------
    engine : Engine
    query : Query
    best : Best
        At most ``top`` points.
    own : array
        Scores of the query's points, in the order of ``query.ids``.
    top : int
    include_query : bool
    trace : Trace, optional
    """
    ids, scores, n_first = best.points, best.scores, 0
    if include_query:
        first, last = query_points(query)
        n_first = len(first)
        ids = np.concatenate([query.ids[first], ids])[:top]
        scores = np.concatenate([own[first], scores])[:top]
    if len(ids) < top:
        known = np.concatenate([ids, best.below])
        nearest = engine.nearest(query, min(engine.n_alive, top + len(known))).indices[0]
        nearest = nearest[(nearest >= 0) & ~np.isin(nearest, known)][: top - len(ids)]
        ids = np.concatenate([ids, nearest.astype(np.intp), best.below])[:top]
        scores = np.concatenate([scores, np.zeros(len(nearest)), best.below_scores])[:top]
    n_points = engine.n_alive
    everything = len(ids) + len(query.ids) >= n_points and (
        len(np.union1d(ids, query.ids)) == n_points
    )
    certified = best.certified or everything or len(ids) == n_first
    if include_query and everything:
        ids = np.concatenate([ids, query.ids[last]])[:top]
        scores = np.concatenate([scores, own[last]])[:top]
    solution = Solution(scores, best.bound, best.bound, best.n_steps, best.converged, certified)
    return Ranking(ids, solution, trace)
