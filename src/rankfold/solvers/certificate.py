"""What residuals prove: bounds of every value, and which points are the best. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.errors import error_thrice, error_twice
from rankfold.solvers.push import CLAMPED, LEFT_OUT, at
from rankfold.solvers.selecting import put_largest_first

HOPELESS = 0.5
"""Gap behind the top, in levels, below which a proof is not even tried."""

MOST_DOUBTFUL = 24
"""Points around the end of the top above which a proof is not even tried."""


@njit(nogil=True, cache=True)
def scale_of(system, point):  # type: ignore[no-untyped-def]
    """Return the factor between the value and the score of a point."""
    return 1.0 if system.plain else system.scale[point]


@njit(nogil=True, cache=True)
def best_values(system, work, top, least):  # type: ignore[no-untyped-def]
    """Return the ``top``-th score, and how many scores are at least ``least``.

    ``least`` only saves work: scores below it are not looked at, and nothing is returned when
    there are too few others.
    """
    value, marks, valued = work.value, work.marks, work.valued
    scores = work.compact[6]
    found = 0
    for a in range(work.n_valued[0]):
        point = at(valued[a])
        score = scale_of(system, point) * value[point]
        if score >= least and not marks[point] & (CLAMPED | LEFT_OUT):
            scores[found] = score
            found += 1
    if found <= top:
        return 0.0, found
    put_largest_first(scores, found, top)
    return scores[top - 1], found


@njit(nogil=True, cache=True)
def bounds(work, n, drift):  # type: ignore[no-untyped-def]
    """Return how far exact values can lie above and below."""
    residual, marks, touched = work.residual, work.marks, work.touched
    above = below = 0.0
    for a in range(n):
        point = at(touched[a])
        if not marks[point] & CLAMPED:
            above = max(above, residual[point])
            below = max(below, -residual[point])
    return above + drift, below + drift


@njit(nogil=True, cache=True)
def side(system, work, point, cut, above, below, drift):  # type: ignore[no-untyped-def]
    """Return 1 for a point that is proven to score above the cut, -1 below it, 0 for neither.

    With ``A 1 >= 1`` and ``A^-1 >= 0``, the error ``e = A^-1 r`` lies between the smallest
    and the largest residual (and zero), which may be off by ``drift``. What is known of it from
    the residuals around a point makes this narrower, see `errors`; as few of them are read as
    the proof needs.
    """
    scale, value = scale_of(system, point), work.value[point]
    for deep in (False, True):
        if deep:
            known, share = error_thrice(system, work, point)
        else:
            known, share = error_twice(system, work, point)
        if scale * (value + known - share * below - drift) > cut:
            return 1
        if scale * (value + known + share * above + drift) < cut:
            return -1
    return 0


@njit(nogil=True, cache=True)
def is_certain(system, work, top, cut, above, below, drift):  # type: ignore[no-untyped-def]
    """Return whether exactly ``top`` points score above the cut and all others below, proven.

    The score of points without a value, touched or not, is at most the largest residual.
    """
    value, marks, valued = work.value, work.marks, work.valued
    if cut <= system.largest_scale * above:
        return False
    members = 0
    for a in range(work.n_valued[0]):
        point = at(valued[a])
        scale = scale_of(system, point)
        if scale * (value[point] + above) < cut or marks[point] & (CLAMPED | LEFT_OUT):
            continue
        if scale * (value[point] - below) <= cut:
            proven = side(system, work, point, cut, above, below, drift)
            if proven == 0:
                return False
            members += proven > 0
        else:
            members += 1
    return members == top


@njit(nogil=True, cache=True)
def cut_behind(system, work, top, last, n_scores, level):  # type: ignore[no-untyped-def]
    """Return a score between the ``top`` best and all others, and the gap around it.

    ``last`` is the score of the last of them, as `best_values` has it. Of points near it the
    known part of the error is added; where they are many there is no gap that could be proven,
    and none is returned.
    """
    value, marks, valued = work.value, work.marks, work.valued
    scores, near = work.compact[6], 2 * system.largest_scale * level
    doubtful = 0
    for a in range(n_scores):
        doubtful += abs(scores[a] - last) <= near
    if doubtful > MOST_DOUBTFUL:
        return last, 0.0
    n_above, found = 0, 0
    for a in range(work.n_valued[0]):
        point = at(valued[a])
        if marks[point] & (CLAMPED | LEFT_OUT):
            continue
        scale = scale_of(system, point)
        apart = scale * value[point] - last
        n_above += apart > near
        if abs(apart) <= near:
            scores[found] = scale * (value[point] + error_twice(system, work, point)[0])
            found += 1
    wanted = top - n_above
    if found == wanted:  # nothing is near below
        return last - near / 2, near
    put_largest_first(scores, found, wanted)
    following = -np.inf
    for a in range(wanted, found):
        following = max(following, scores[a])
    return (scores[wanted - 1] + following) / 2, scores[wanted - 1] - following


@njit(nogil=True, cache=True)
def judge(system, work, n, top, least, level, drift):  # type: ignore[no-untyped-def]
    """Return the ``top``-th score, bounds, whether the top is certain, or may soon be.

    If it is certain, the score returned lies between the top and all others. Bounds are measured
    only where the gap behind the top is not hopelessly small. An empty top, of a query that fills
    the answer by itself, is certain.
    """
    if top == 0:
        above, below = bounds(work, n, drift)
        return np.inf, above, below, True, True
    last, found = best_values(system, work, top, least)
    if found <= top:
        last, found = best_values(system, work, top, 0.0)
    if found <= top:
        return last, level + drift, level + drift, False, False
    cut, gap = cut_behind(system, work, top, last, found, level)
    if gap < HOPELESS * system.largest_scale * level:
        return last, level + drift, level + drift, False, gap > 0.0
    above, below = bounds(work, n, drift)
    certain = is_certain(system, work, top, cut, above, below, drift)
    return cut if certain else last, above, below, certain, True
