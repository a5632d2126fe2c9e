"""What residuals prove: bounds of every value, and which points are the best. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.push import CLAMPED, LEFT_OUT

HOPELESS = 0.3
"""Gap behind the top, in levels, below which a proof is not even tried."""


@njit(nogil=True, cache=True)
def best_values(system, work, n, top, least):  # type: ignore[no-untyped-def]
    """Return the ``top``-th and the next score, and how many scores are at least ``least``.

    ``least`` only saves work: scores below it are not looked at, and nothing is returned when
    there are too few others.
    """
    value, marks, touched, scale = work.value, work.marks, work.touched, system.scale
    scores = work.compact[0]
    found = 0
    for a in range(n):
        point = touched[a]
        score = scale[point] * value[point]
        if score >= least and not marks[point] & (CLAMPED | LEFT_OUT):
            scores[found] = score
            found += 1
    if found <= top:
        return 0.0, 0.0, found
    ordered = np.partition(scores[:found], found - top)
    last = ordered[found - top]
    following = ordered[: found - top].max()
    return last, following, found


@njit(nogil=True, cache=True)
def bounds(work, n, drift):  # type: ignore[no-untyped-def]
    """Return how far exact values can lie above and below."""
    residual, marks, touched = work.residual, work.marks, work.touched
    above = below = 0.0
    for a in range(n):
        point = touched[a]
        if not marks[point] & CLAMPED:
            above = max(above, residual[point])
            below = max(below, -residual[point])
    return above + drift, below + drift


@njit(nogil=True, cache=True)
def is_certain(system, work, n, top, last, above, below, drift):  # type: ignore[no-untyped-def]
    """Return whether the points with a score of at least ``last`` are the best, beyond doubt.

    With ``A 1 >= 1`` and ``A^-1 >= 0``, the error ``e = A^-1 r`` lies between the smallest
    and the largest residual (and zero). Put into its own row it is narrower:
    ``e_i <= (r_i + (c_i - 1) above) / c_i``, where the residual may be off by ``drift``. The
    top is certain when the lowest score of a member is above the highest of all others,
    untouched points among them.
    """
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    touched, scales = work.touched, system.scale
    lowest, highest, members = np.inf, system.largest_scale * above, 0
    for a in range(n):
        point = touched[a]
        if marks[point] & (CLAMPED | LEFT_OUT):
            continue
        scale, inv = scales[point], inverse[point]
        middle = value[point] + residual[point] * inv
        if scale * value[point] >= last:
            members += 1
            lowest = min(lowest, scale * (middle - (1 - inv) * below - inv * drift))
        else:
            highest = max(highest, scale * (middle + (1 - inv) * above + inv * drift))
    return members == top and lowest > highest


@njit(nogil=True, cache=True)
def judge(system, work, n, top, least, level, drift):  # type: ignore[no-untyped-def]
    """Return the ``top``-th score, bounds, and whether the top is certain.

    Bounds are measured only where the gap behind the top is not hopelessly small. An empty top,
    of a query that fills the answer by itself, is certain.
    """
    if top == 0:
        above, below = bounds(work, n, drift)
        return np.inf, above, below, True
    last, following, found = best_values(system, work, n, top, least)
    if found <= top:
        last, following, found = best_values(system, work, n, top, 0.0)
    if found <= top or last - following < HOPELESS * system.largest_scale * level:
        return last, level + drift, level + drift, False
    above, below = bounds(work, n, drift)
    certain = is_certain(system, work, n, top, last, above, below, drift)
    return last, above, below, certain
