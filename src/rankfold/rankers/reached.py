"""Answers of local solves: the points that a query reached, then the nearest others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rankfold.neighbors import Engine, n_live
from rankfold.rankers.ordering import query_points
from rankfold.solvers import Found
from rankfold.types import FloatArray, IntArray, Query, Ranking, Solution, Trace


class Best(NamedTuple):
    """The best of what a query reached, in order, its own points left out."""

    points: IntArray
    scores: FloatArray
    bound: float
    n_steps: int
    certified: bool
    converged: bool = True


def others_wanted(query: Query, top: int, include_query: bool) -> int:
    """Return how many points beside the query's own an answer has."""
    return max(0, top - len(query.ids)) if include_query else top


def best_found(found: Found) -> Iterator[Best]:
    """Yield the answers of a batch, one by one; bounds are those of values, not of scores."""
    bounds = np.maximum(found.above, found.below)
    for row, count in enumerate(found.counts):
        yield Best(
            found.points[row, :count],
            found.scores[row, :count],
            float(bounds[row]),
            int(found.n_steps[row]),
            bool(found.certified[row]),
        )


def rank_reached(
    engine: Engine,
    query: Query,
    best: Best,
    own: FloatArray,
    top: int,
    include_query: bool,
    trace: Trace | None = None,
) -> Ranking:
    """Fill an answer up by plain distance, and put the query's own points first if asked for.

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
    ids, scores = best.points, best.scores
    if include_query:
        first, first_scores = query_points(query, own)
        ids = np.concatenate([first, ids])[:top]
        scores = np.concatenate([first_scores, scores])[:top]
    if len(ids) < top:
        nearest = engine.nearest(query, min(n_live(engine), top + len(ids))).indices[0]
        nearest = nearest[(nearest >= 0) & ~np.isin(nearest, ids)][: top - len(ids)]
        ids = np.concatenate([ids, nearest.astype(np.intp)])
        scores = np.concatenate([scores, np.zeros(len(nearest))])
    everything = len(np.union1d(ids, query.ids)) == n_live(engine)
    certified = best.certified or everything or len(ids) == len(query.ids) * include_query
    solution = Solution(scores, best.bound, best.bound, best.n_steps, best.converged, certified)
    return Ranking(ids, solution, trace)
