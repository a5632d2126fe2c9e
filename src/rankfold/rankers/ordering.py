"""Scores become an order: best first, and nothing is left to chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankfold.neighbors import Engine, live_points, plain_sq_distances
from rankfold.types import FloatArray, IntArray, Query, Solution


def certain_scores(solution: Solution) -> Solution:
    """Set scores to zero that the error bound of a linear system cannot tell from zero.

    Their order would be that of the solver's rounding. The bound grows by what was cut.
    Methods that only add up positive terms keep their small scores, whose error is as small.
    """
    uncertain = np.abs(solution.scores) <= solution.bound
    cut = np.abs(solution.scores[uncertain]).max(initial=0.0)
    scores = np.where(uncertain, 0.0, solution.scores)
    return replace(solution, scores=scores, bound=solution.bound + float(cut))


def query_points(query: Query) -> tuple[IntArray, IntArray]:
    """Return the places of positive and of negative examples in ``query.ids``, best first."""
    weights = query.weights[: len(query.ids)]
    order = np.argsort(-weights, kind="stable")
    n_positive = np.count_nonzero(weights > 0)
    return order[:n_positive], order[n_positive:]


def order_points(
    engine: Engine, query: Query, scores: FloatArray, top: int, include_query: bool
) -> IntArray:
    """Return the best ``top`` points.

    Scores descend. Points that score zero, because the graph does not connect them to the
    query or only by less than the error bound, are in the order of plain distance to its positive
    examples, after positive scores and before negative ones; remaining ties go to the smaller
    index. The points of the query are left out, or come first and its negative ones last.
    """
    first, last = (query.ids[places] for places in query_points(query))
    length = top - len(first) if include_query else top
    others = np.setdiff1d(live_points(engine), query.ids, assume_unique=True)
    if 0 < length < len(others):  # few are sorted where few are wanted
        worst = np.partition(-scores[others], length - 1)[length - 1]
        others = others[-scores[others] <= worst]
    keys = [others, -scores[others]]
    unreached = scores[others] == 0
    if unreached.any() and np.count_nonzero(scores[others] > 0) < length:
        keys.insert(1, np.where(unreached, plain_sq_distances(engine, query)[others], 0.0))
    best = others[np.lexsort(keys)][: max(0, length)]
    return np.concatenate([first, best, last])[:top] if include_query else best


def is_certain(engine: Engine, solution: Solution, query: Query, ids: IntArray) -> bool:
    """Return whether no point outside an answer can score higher than one of it.

    The scores are those of all points, each within the bound. The query's own points, which are
    left out or come first or last by rule, do not count.
    """
    everything = np.ones(engine.n_points, dtype=bool)
    outside = everything if engine.alive is None else engine.alive.copy()
    outside[ids] = outside[query.ids] = False
    inside = np.setdiff1d(ids, query.ids)
    if not outside.any() or not len(inside):
        return True
    best_outside = solution.scores[outside].max()
    return bool(solution.scores[inside].min() > best_outside + 2 * solution.bound)
