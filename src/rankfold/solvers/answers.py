"""Answers to many queries in one call of compiled code, which lets go of the interpreter."""

from __future__ import annotations

from numba import njit

from rankfold.solvers.arrays import CERTIFIED, PAUSED, Stand, Start
from rankfold.solvers.certificate import plain_side, scale_of, side
from rankfold.solvers.errors import error_thrice, error_twice
from rankfold.solvers.levels import solve
from rankfold.solvers.push import CLAMPED, NOT_IN_ANSWER, at, begin, clear
from rankfold.solvers.selecting import put_largest_first, sort_by_score

FIRST_LEVEL = 0.1
"""Share of the largest value below which residuals are brought first."""

LIKELY, DOUBTFUL = 0.2, 0.05
"""Distances from the end of an uncertain top, in levels, within which guesses are made better."""

FEW = 8
"""Most points on either side for which the dearest guess is made."""


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
        count = extract(system, work, stand, top, rule.terms, found.points[i], found.scores[i])
        found.counts[i] = count, stand.n_steps, stand.n_touched
        found.bounds[i] = stand.above, stand.below
        found.certified[i] = stand.state == CERTIFIED
        for place in range(batch.ends[i, 2], batch.ends[i + 1, 2]):
            found.own[place] = best_guess(system, work, at(batch.left_out[place]))
        clear(work, stand.n_touched, query, inverses)
        n_edges += stand.n_edges - before
        stand = Stand(0, 0, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
        if n_edges > rule.pause:
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
    """Return a score without the part of its error that is known from its neighbours."""
    value = work.value[point]
    if not work.marks[point] & CLAMPED:
        value += error_twice(system, work, point)[0]
    return scale_of(system, point) * value


@njit(nogil=True, cache=True)
def better_guess(system, work, point, stand, terms):  # type: ignore[no-untyped-def]
    """Return a score without what its error is likely to be, within what is proven of it.

    The error lies between ``thrice - share below`` and ``thrice + share above``. The guess is
    nowhere further than the larger bound from any of that, so that it is a bound for it, too.
    """
    once = work.residual[point] * work.inverse[point]
    twice, _ = error_twice(system, work, point)
    thrice, share = error_thrice(system, work, point)
    error = terms[0] * once + terms[1] * (twice - once) + terms[2] * (thrice - twice)
    low, high, bound = share * stand.below, share * stand.above, max(stand.above, stand.below)
    error = max(error, thrice - low, thrice + high - bound)
    error = min(error, thrice + high, thrice - low + bound)
    return scale_of(system, point) * (work.value[point] + error)


@njit(nogil=True, cache=True)
def extract(system, work, stand, top, terms, points, scores):  # type: ignore[no-untyped-def]
    """Write the best points and their scores, ties by index; return how many there are.

    Once the top is certain these are its members. Until then they are chosen by guesses that
    become better, and dearer, the nearer a point is to the end of the top.
    """
    candidates, guesses = work.queue, work.compact[6]
    if stand.state == CERTIFIED:
        kept = take_members(system, work, stand, candidates, guesses)
    else:
        kept = take_likely(system, work, stand, top, candidates, guesses)
    sort_by_score(candidates, guesses, kept)
    if kept > top:
        cut = (guesses[top - 1] + guesses[top]) / 2
        window = DOUBTFUL * system.largest_scale * stand.level
        for a in range(max(0, top - FEW), min(kept, top + FEW)):
            if abs(guesses[a] - cut) <= window:
                guesses[a] = better_guess(system, work, at(candidates[a]), stand, terms)
        sort_by_score(candidates, guesses, kept)
    count = min(top, kept)
    while count > 0 and guesses[count - 1] <= 0.0:
        count -= 1
    for a in range(count):
        points[a], scores[a] = candidates[a], guesses[a]
    return count


@njit(nogil=True, cache=True)
def take_members(system, work, stand, members, guesses):  # type: ignore[no-untyped-def]
    """Write the points that are proven to be above the cut; return how many they are."""
    value, likely = work.value, work.likely
    cut, above, below, drift = stand.last, stand.above, stand.below, stand.drift
    n = 0
    for a in range(work.n_likely[0]):
        point = at(likely[a])
        proven = plain_side(scale_of(system, point), value[point], cut, above, below)
        if proven == 0:
            proven = side(system, work, point, cut, above, below, drift)
        if proven > 0:
            members[n], guesses[n] = point, max(cut, best_guess(system, work, point))
            n += 1
    return n


@njit(nogil=True, cache=True)
def take_likely(system, work, stand, top, likely, guesses):  # type: ignore[no-untyped-def]
    """Write points that may be among the best, and guesses; return how many they are."""
    residual, value, inverse = work.residual, work.value, work.inverse
    ordered = work.compact[5]
    level = system.largest_scale * stand.level
    reached, n_reached = work.valued, work.n_valued[0]
    if stand.last <= level:  # then points without a value may be among the best
        reached, n_reached = work.touched, stand.n_touched
    n, least = 0, max(0.0, stand.last - 2 * level)
    for a in range(n_reached):
        point = at(reached[a])
        scale = scale_of(system, point)
        if scale * value[point] >= least and not work.marks[point] & NOT_IN_ANSWER:
            likely[n] = point
            ordered[n] = guesses[n] = scale * (value[point] + residual[point] * inverse[point])
            n += guesses[n] > 0.0
    if n <= top:
        return n
    put_largest_first(ordered, n, top)
    high, low = ordered[top - 1] + LIKELY * level, ordered[top - 1] - LIKELY * level
    kept = 0
    for a in range(n):
        if guesses[a] >= low:
            point = likely[kept] = likely[a]
            near = guesses[a] <= high
            guesses[kept] = best_guess(system, work, at(point)) if near else guesses[a]
            kept += 1
    return kept
