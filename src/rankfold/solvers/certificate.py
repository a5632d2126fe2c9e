"""What residuals prove: bounds of every value, and which points are the best. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.push import CLAMPED, LEFT_OUT, ONE, at
from rankfold.solvers.selecting import put_largest_first

HOPELESS = 0.3
"""Gap behind the top, in levels, below which a proof is not even tried."""


@njit(nogil=True, cache=True)
def scale_of(system, point):  # type: ignore[no-untyped-def]
    """Return the factor between the value and the score of a point."""
    return 1.0 if system.plain else system.scale[point]


@njit(nogil=True, cache=True)
def best_values(system, work, top, least):  # type: ignore[no-untyped-def]
    """Return the ``top``-th and the next score, and how many scores are at least ``least``.

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
        return 0.0, 0.0, found
    put_largest_first(scores, found, top)
    following = -np.inf
    for a in range(top, found):
        following = max(following, scores[a])
    return scores[top - 1], following, found


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
def improved(system, work, point):  # type: ignore[no-untyped-def]
    """Return a value after two steps of Jacobi's method, and how much of the bounds is left.

    The error ``e = A^-1 r`` obeys ``c_i e_i = r_i + sum_j B_ji e_j``. Put in twice, it is

        e_i = (r_i + sum_j B_ji r_j / c_j) / c_i   plus   a mean of the e of neighbours' neighbours

    whose weights, not negative, sum to ``sum_j B_ji (1 - 1 / c_j) / c_i``, less than one. Clamped
    points have no error.
    """
    indices, spread, plain = system.indices, system.spread, system.plain
    residual, inverse, marks = work.residual, work.inverse, work.marks
    known, unknown = 0.0, 0.0
    for edge in range(at(system.indptr[point]), at(system.indptr[point + ONE])):
        other = at(indices[edge])
        if not marks[other] & CLAMPED:
            received = spread[edge] if plain else spread[edge] * system.margin[other]
            known += received * residual[other] * inverse[other]
            unknown += received * (1.0 - inverse[other])
    inv, margin = inverse[point], 1.0 if plain else system.margin[point]
    step = inv * (residual[point] + known / margin)
    return work.value[point] + step, inv * unknown / margin


@njit(nogil=True, cache=True)
def is_certain(system, work, top, last, above, below, drift):  # type: ignore[no-untyped-def]
    """Return whether the points with a score of at least ``last`` are the best, beyond doubt.

    With ``A 1 >= 1`` and ``A^-1 >= 0``, the error ``e = A^-1 r`` lies between the smallest
    and the largest residual (and zero), which may be off by ``drift``. Put into its own row it
    is narrower: ``e_i <= (r_i + (c_i - 1) above) / c_i``; twice, narrower still, see `improved`.
    The top is certain when the lowest score of a member is above the highest of all others;
    of points without a value, touched or not, that is the largest residual.
    """
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    valued = work.valued
    lowest, members = np.inf, 0
    for a in range(work.n_valued[0]):
        point = at(valued[a])
        scale = scale_of(system, point)
        if scale * value[point] >= last and not marks[point] & (CLAMPED | LEFT_OUT):
            members += 1
            middle, share = improved(system, work, point)
            lowest = min(lowest, scale * (middle - share * below - drift))
    if members != top or lowest <= system.largest_scale * above:
        return False
    for a in range(work.n_valued[0]):
        point = at(valued[a])
        scale, inv = scale_of(system, point), inverse[point]
        if scale * value[point] >= last or marks[point] & (CLAMPED | LEFT_OUT):
            continue
        once = value[point] + residual[point] * inv + (1 - inv) * above + inv * drift
        if scale * once >= lowest:
            middle, share = improved(system, work, point)
            if scale * (middle + share * above + drift) >= lowest:
                return False
    return True


@njit(nogil=True, cache=True)
def judge(system, work, n, top, least, level, drift):  # type: ignore[no-untyped-def]
    """Return the ``top``-th score, bounds, and whether the top is certain.

    Bounds are measured only where the gap behind the top is not hopelessly small. An empty top,
    of a query that fills the answer by itself, is certain.
    """
    if top == 0:
        above, below = bounds(work, n, drift)
        return np.inf, above, below, True
    last, following, found = best_values(system, work, top, least)
    if found <= top:
        last, following, found = best_values(system, work, top, 0.0)
    if found <= top or last - following < HOPELESS * system.largest_scale * level:
        return last, level + drift, level + drift, False
    above, below = bounds(work, n, drift)
    certain = is_certain(system, work, top, last, above, below, drift)
    return last, above, below, certain
