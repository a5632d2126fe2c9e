"""Answers to many queries in one call of compiled code, which lets go of the interpreter."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.arrays import CERTIFIED, PAUSED, Stand, Start
from rankfold.solvers.certificate import improved, scale_of
from rankfold.solvers.levels import WORK_BETWEEN_PAUSES, solve
from rankfold.solvers.push import CLAMPED, LEFT_OUT, at, begin, clear, prefetch_row
from rankfold.solvers.selecting import put_largest_first, sort_by_score

FIRST_LEVEL = 0.1
"""Share of the largest value below which residuals are brought first."""

SURPLUS, FEW = 4, 8
"""Points from which an uncertain top is chosen: a share of it more, and a few."""

NEAR_AHEAD = 4
"""Candidates whose rows are asked for in advance."""


@njit(nogil=True, cache=True)
def answer(system, work, inverses, batch, found, first, stand, tol, rule):  # type: ignore[no-untyped-def]
    """Answer queries from the first on.

    After much work it returns early, so that it can be stopped: the query that is next, or the one
    that is not finished, and where that one stands.
    """
    n_edges = 0
    for i in range(first, len(batch.sizes)):
        query = query_of(batch, i)
        top = batch.tops[i]
        if stand.n_touched == 0:
            level = max(tol, FIRST_LEVEL * query.size)
            n = begin(system, work, query)
            stand = Stand(n, 0, False, level, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
        before = stand.n_edges
        stand = solve(system, work, stand, query, top, tol, rule)
        if stand.state == PAUSED:
            return i, stand
        found.counts[i] = extract(system, work, stand, top, found.points[i], found.scores[i])
        found.above[i], found.below[i] = stand.above, stand.below
        found.n_steps[i], found.n_touched[i] = stand.n_steps, stand.n_touched
        found.certified[i] = stand.state == CERTIFIED
        for place in range(batch.ends[i, 2], batch.ends[i + 1, 2]):
            found.own[place] = best_guess(system, work, at(batch.left_out[place]))
        clear(work, stand.n_touched, query, inverses)
        n_edges += stand.n_edges - before
        stand = Stand(0, 0, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
        if n_edges > WORK_BETWEEN_PAUSES:
            return i + 1, stand
    return len(batch.sizes), stand


@njit(nogil=True, cache=True)
def query_of(batch, i):  # type: ignore[no-untyped-def]
    """Return one query of several."""
    points, clamped, left_out, pulled = batch.ends[i]
    next_points, next_clamped, next_left_out, next_pulled = batch.ends[i + 1]
    return Start(
        batch.points[points:next_points],
        batch.given[points:next_points],
        batch.sizes[i],
        batch.clamped[clamped:next_clamped],
        batch.seeds[clamped:next_clamped],
        batch.left_out[left_out:next_left_out],
        batch.pulled[pulled:next_pulled],
        batch.pull[pulled:next_pulled],
    )


@njit(nogil=True, cache=True)
def best_guess(system, work, point):  # type: ignore[no-untyped-def]
    """Return a score without the part of its error that is known."""
    if work.marks[point] & CLAMPED:
        return scale_of(system, point) * work.value[point]
    return scale_of(system, point) * improved(system, work, point)[0]


@njit(nogil=True, cache=True)
def extract(system, work, stand, top, points, scores):  # type: ignore[no-untyped-def]
    """Write the best points and their scores, ties by index; return how many there are.

    Once the top is certain these are its members. Until then, somewhat more than are asked for
    are taken by a quicker guess, to choose from.
    """
    residual, value, inverse = work.residual, work.value, work.inverse
    marks = work.marks
    certain = stand.state == CERTIFIED
    least = stand.last if certain else max(0.0, stand.last - 2 * system.largest_scale * stand.level)
    candidates, guesses, ordered = work.queue, work.compact[5], work.compact[6]
    reached, n_reached = work.valued, work.n_valued[0]
    if least == 0.0:  # then points without a value may be among the best
        reached, n_reached = work.touched, stand.n_touched
    n, most = 0, top + top // SURPLUS + FEW
    for a in range(n_reached):
        point = at(reached[a])
        scale = scale_of(system, point)
        if scale * value[point] >= least and not marks[point] & (CLAMPED | LEFT_OUT):
            candidates[n] = point
            guesses[n] = scale * (value[point] + residual[point] * inverse[point])
            ordered[n] = guesses[n]
            n += 1
    lowest = -np.inf
    if not certain and n > most:
        put_largest_first(ordered, n, most)
        lowest = ordered[most - 1]
    n_guessed, n_chosen = n, 0
    n = 0
    for a in range(n_guessed):
        candidates[n] = candidates[a]
        n += guesses[a] >= lowest
    for a in range(n):
        if a + NEAR_AHEAD < n:
            prefetch_row(system, at(candidates[a + NEAR_AHEAD]))
        ordered[n_chosen] = best_guess(system, work, at(candidates[a]))
        candidates[n_chosen] = candidates[a]
        n_chosen += ordered[n_chosen] > 0.0
    sort_by_score(candidates, ordered, n_chosen)
    count = min(top, n_chosen)
    for a in range(count):
        points[a], scores[a] = candidates[a], ordered[a]
    return count
