"""Scores become an order: best first, and nothing is left to chance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rankfold.neighbors import Engine, live_points
from rankfold.solvers.system import EPS, without_noise
from rankfold.types import BoolArray, FloatArray, IntArray, Query, Solution


def query_points(query: Query) -> tuple[IntArray, IntArray]:
    """Return the points of the query that are positive examples, best first, and all others."""
    weights = query.weights[: len(query.ids)]
    order = np.argsort(-weights, kind="stable")
    n_positive = np.count_nonzero(weights > 0)
    return query.ids[order[:n_positive]], query.ids[order[n_positive:]]


def others_wanted(query: Query, top: int, include_query: bool) -> int:
    """Return how many points an answer has beside the query's own, which come first."""
    if not include_query:
        return top
    return max(0, top - int(np.count_nonzero(query.weights[: len(query.ids)] > 0)))


def ordered(
    engine: Engine, query: Query, solution: Solution, top: int, include_query: bool
) -> Solution:
    """Return the best ``top`` points of a solution, in order.

    Scores descend, ties go to the smaller index. Points that score zero, because the graph does
    not connect them to the query or only by less than the error bound, are in the order of plain
    distance to its positive examples, after positive scores and before negative ones. The points
    of the query are left out, or come first and its negative ones last.

    The answer is certified if no point outside of it can score higher than one of it. The query's
    own points, which are left out or come first or last by rule, do not count.
    """
    n_found = len(solution.points) - len(query.ids)
    if not (solution.complete or include_query) and n_found == top:
        # The best, in order, and then the query's own: nothing is left to do.
        points, scores = solution.points[:top], solution.scores[:top]
        certified = solution.certified or top >= engine.n_alive - len(query.ids)
        return replace(solution, points=points, scores=scores, certified=certified)
    own = _among(solution.points, query.ids)
    points, scores = solution.points[~own], solution.scores[~own]
    if len(solution.points) > engine.n_alive and engine.alive is not None:
        left = engine.alive[points]
        points, scores = points[left], scores[left]
    wanted = others_wanted(query, top, include_query)
    n_others = engine.n_alive - len(query.ids)
    by_distance = solution.solver == "distance"  # every score counts, none stands for "unreached"
    up = _best(points, scores, (scores > 0) | by_distance, wanted)
    ids, values = points[up], scores[up]
    outside = -np.inf  # the score of the best point that is left out
    if len(ids) > wanted:
        outside, ids, values = values[wanted], ids[:wanted], values[:wanted]
    elif n_others > wanted or len(ids) < n_others:
        negative = scores < 0
        n_zero = n_others - len(ids) - int(np.count_nonzero(negative))
        missing = wanted - len(ids)
        if missing < n_zero:
            outside = 0.0
        if missing:
            down = _best(points, scores, negative, max(0, missing - n_zero))
            known = np.concatenate([ids, points[negative]])
            near = _unreached(engine, query, known, min(missing, n_zero))
            ids = np.concatenate([ids, near, points[down]])
            values = np.concatenate([values, np.zeros(len(near)), scores[down]])
        elif not n_zero:
            outside = float(scores[negative].max(initial=-np.inf))
        if len(ids) > wanted:
            outside, ids, values = max(outside, values[wanted]), ids[:wanted], values[:wanted]
    lowest = float(values.min(initial=np.inf))
    certified = (
        solution.certified
        or len(ids) >= n_others
        or len(ids) == 0
        or (solution.complete and lowest > outside + 2 * solution.bound)
    )
    if include_query:
        first, last = query_points(query)
        score_of = dict(zip(solution.points[own].tolist(), solution.scores[own], strict=True))
        last = last if len(ids) >= n_others else last[:0]
        ends = [np.array([score_of.get(int(p), 0.0) for p in some]) for some in (first, last)]
        ids = np.concatenate([first, ids, last])[:top]
        values = np.concatenate([ends[0], values, ends[1]])[:top]
    return replace(solution, points=ids, scores=values, certified=bool(certified))


def _among(points: IntArray, ids: IntArray) -> BoolArray:
    """Return which points are those of the query."""
    if len(ids) == 1:
        found: BoolArray = points == ids[0]
        return found
    return np.isin(points, ids)


def _best(points: IntArray, scores: FloatArray, use: BoolArray, wanted: int) -> IntArray:
    """Return the places of the best of some points, one more than are wanted if there are."""
    (places,) = np.nonzero(use)
    if len(places) > wanted + 1:  # few are sorted where few are wanted
        least = np.partition(-scores[places], wanted)[wanted]
        places = places[-scores[places] <= least]
    order: IntArray = places[np.lexsort((points[places], -scores[places]))]
    return order[: wanted + 1]


def _unreached(engine: Engine, query: Query, known: IntArray, wanted: int) -> IntArray:
    """Return so many points besides those that are known, by plain distance."""
    length = min(engine.n_alive, wanted + len(known))
    near = engine.nearest(query, length).indices[0].astype(np.intp)
    near = near[(near >= 0) & ~np.isin(near, known)][:wanted]
    if len(near) < wanted and len(near) + len(known) + len(query.ids) < engine.n_alive:
        # Distances of the others are unknown: a graph was given.
        others = np.setdiff1d(live_points(engine), np.concatenate([near, known, query.ids]))
        near = np.concatenate([near, others])[:wanted]
    found: IntArray = near
    return found


def one_sided(queries: Sequence[Query]) -> list[Query]:
    """Return two queries for each that has a negative weight, and all others as they are.

    Both have all its examples: one with positive weights as they are and zero for the others, one
    with negative weights turned positive and zero for the others.
    """
    parts = []
    for query in queries:
        if (query.weights >= 0).all():
            parts.append(query)
        else:
            parts.append(replace(query, weights=np.maximum(query.weights, 0.0)))
            parts.append(replace(query, weights=np.maximum(-query.weights, 0.0)))
    return parts


def joined(queries: Sequence[Query], solutions: Iterable[Solution]) -> Iterator[Solution]:
    """Subtract the parts of `one_sided` again, for a method that is linear in its weights.

    Each part only adds up positive terms, so its error is known; errors of both add up. A score
    that they cannot tell from zero is zero.
    """
    parts = iter(solutions)
    for query in queries:
        up = next(parts)
        if (query.weights >= 0).all():
            yield up
            continue
        down = next(parts)
        scores: FloatArray = up.scores - down.scores
        rounding = EPS * float(np.abs(scores).max(initial=0.0))
        scores, bound = without_noise(scores, up.bound + down.bound + rounding)
        n_iter, converged = max(up.n_iter, down.n_iter), up.converged and down.converged
        yield replace(up, scores=scores, bound=bound, n_iter=n_iter, converged=converged)
    # Whoever solves may have something to say at the end.
    next(parts, None)
