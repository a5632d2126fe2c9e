"""Scores become an order: best first, and nothing is left to chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankfold.neighbors import ExactEngine
from rankfold.types import FloatArray, IntArray, Query, Solution


def plain_sq_distances(engine: ExactEngine, query: Query) -> FloatArray:
    """Return each point's squared distance to the query.

    For several examples this is the mean of the squared distances to each, by weight; up
    to a constant, the squared distance to their weighted centre.
    """
    weights = query.weights / query.weights.sum()
    total = np.zeros(engine.n_points)
    for weight, row in zip(weights, engine.sq_distances(query.ids, query.vectors), strict=True):
        total += weight * row
    return total


def certain_scores(solution: Solution) -> Solution:
    """Set scores to zero that the error bound of a linear system cannot tell from zero.

    Their order would be that of the solver's rounding. The bound grows by what was cut.
    Methods that only add up positive terms keep their small scores, whose error is as small.
    """
    uncertain = np.abs(solution.scores) <= solution.bound
    cut = np.abs(solution.scores[uncertain]).max(initial=0.0)
    scores = np.where(uncertain, 0.0, solution.scores)
    return replace(solution, scores=scores, bound=solution.bound + float(cut))


def order_points(
    engine: ExactEngine, query: Query, scores: FloatArray, top: int, include_query: bool
) -> IntArray:
    """Return the best ``top`` points.

    Scores descend. Points that score zero, because the graph does not connect them to the
    query or only by less than the error bound, follow in the order of plain distance; remaining
    ties go to the smaller index. The points of the query are left out, or come first.
    """
    first = query.ids[np.argsort(-query.weights[: len(query.ids)], kind="stable")]
    length = top - len(first) if include_query else top
    others = np.setdiff1d(np.arange(len(scores)), first, assume_unique=True)
    keys = [others, -scores[others]]
    unreached = scores[others] == 0
    if np.count_nonzero(~unreached) < min(length, len(others)):
        keys.insert(1, np.where(unreached, plain_sq_distances(engine, query)[others], 0.0))
    best = others[np.lexsort(keys)][: max(0, length)]
    return np.concatenate([first, best])[:top] if include_query else best
