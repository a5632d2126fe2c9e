"""What residuals prove: bounds of every value, and which points are the best. Compiled.

The error ``e = A^-1 r`` obeys ``c_i e_i = r_i + sum_j a_ij e_j``. Substituted into itself, it is a
known number plus a mean of the errors of points further away, whose weights, not negative, sum to
less than one. Each time the rows of one more ring around the point are read, and this unknown
share becomes smaller by about ``1 - m / c``. Clamped points have no error. A point whose row is
needed, but not here, is noted.
"""

from __future__ import annotations

import numpy as np

from rankfold.solvers.memory import ZERO, kernel, small
from rankfold.solvers.push import CLAMPED, NOT_IN_ANSWER, note_lacking, prefetch_row

LONG_ROW = 64
"""Entries of a row above which it is not read on the way to another point."""

FAR_RATIO, NEAR_RATIO = 0.25, 0.5
"""What residuals fall to before the top is judged again; sooner where a proof is near."""

HOPELESS = 0.5
"""Gap behind the top, in bounds, below which a proof is not even tried."""

MOST_DOUBTFUL = 24
"""Points around the end of the top above which a proof is not even tried."""

FIRST_GAP, GAP_RATIO = 1, 3
"""Gaps of Shell's sort: 1, 4, 13, 40, ..."""


@kernel
def error_twice(system, work, point):  # type: ignore[no-untyped-def]
    """Return the known error from the residuals of a point and its neighbours, and the share."""
    small()
    rows, indices, weights = system.rows, system.indices, system.weights
    plain, margin = system.plain, system.margin
    residual, inverse, marks = work.residual, work.inverse, work.marks
    known, unknown = 0.0, 0.0
    for edge in range(rows[2 * point], rows[2 * point + 1]):
        other = indices[edge]
        if not marks[other] & CLAMPED:
            inv = inverse[other]
            if inv == 0.0:
                note_lacking(work, other)
            known += weights[edge] * residual[other] * inv
            unknown += weights[edge] * (1.0 - (inv if plain else inv * margin[other]))
    inv = inverse[point]
    return inv * (residual[point] + known), inv * unknown


@kernel
def error_thrice(system, work, point):  # type: ignore[no-untyped-def]
    """Return the same, from one more ring of residuals."""
    small()
    rows, indices, weights = system.rows, system.indices, system.weights
    plain, margin = system.plain, system.margin
    residual, inverse, marks = work.residual, work.inverse, work.marks
    known, unknown = 0.0, 0.0
    for edge in range(rows[2 * point], rows[2 * point + 1]):
        prefetch_row(system, indices[edge])
    for edge in range(rows[2 * point], rows[2 * point + 1]):
        other = indices[edge]
        if marks[other] & CLAMPED:
            continue
        inv = inverse[other]
        if inv == 0.0:
            note_lacking(work, other)
        if inv == 0.0 or rows[2 * other + 1] - rows[2 * other] > LONG_ROW:
            of_known = residual[other] * inv
            of_unknown = 1.0 - (inv if plain else inv * margin[other])
        else:
            of_known, of_unknown = error_twice(system, work, other)
        known += weights[edge] * of_known
        unknown += weights[edge] * of_unknown
    inv = inverse[point]
    return inv * (residual[point] + known), inv * unknown


@kernel
def scale_of(system, point):  # type: ignore[no-untyped-def]
    """Return the factor between the value and the score of a point."""
    small()
    return 1.0 if system.plain else system.scale[point]


@kernel
def best_values(system, work, top, least):  # type: ignore[no-untyped-def]
    """Return the ``top``-th score, and how many scores are at least ``least``.

    Their points are kept in ``likely``; all others are not looked at again. No score is returned
    when they are too few.
    """
    small()
    value, marks, valued, likely = work.value, work.marks, work.valued, work.likely
    scores = work.spare
    found = ZERO
    for a in range(work.n_valued[0]):
        point = valued[a]
        score = scale_of(system, point) * value[point]
        likely[found], scores[found] = point, score
        found += (score >= least) & (marks[point] & NOT_IN_ANSWER == 0)
    n_found = work.n_likely[0] = found
    if n_found <= top:
        return 0.0, n_found
    put_largest_first(scores, n_found, top)
    return scores[top - 1], n_found


@kernel
def bounds(system, work, n, drift):  # type: ignore[no-untyped-def]
    """Return how far exact values can lie above and below."""
    small()
    residual, marks, touched = work.residual, work.marks, work.touched
    plain, margin = system.plain, system.margin
    above = below = 0.0
    for a in range(n):
        point = touched[a]
        if not marks[point] & CLAMPED:
            now = residual[point] if plain else residual[point] / margin[point]
            above = max(above, now)
            below = max(below, -now)
    return above + drift, below + drift


@kernel
def plain_side(scale, value, cut, above, below):  # type: ignore[no-untyped-def]
    """Return what the bounds alone prove: 1 for a score above the cut, -1 below it, else 0."""
    small()
    if scale * (value + above) < cut:
        return -1
    return 1 if scale * (value - below) > cut else 0


@kernel
def side(system, work, point, cut, above, below, drift):  # type: ignore[no-untyped-def]
    """Return 1 for a point that is proven to score above the cut, -1 below it, 0 for neither.

    With ``A 1 >= m`` and ``A^-1 >= 0``, the error ``e = A^-1 r`` lies between the smallest
    and the largest ``r / m`` (and zero), which may be off by ``drift``. What is known of it from
    the residuals around a point makes this narrower; as few of them are read as the proof needs.
    """
    small()
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


@kernel
def is_certain(system, work, top, cut, above, below, drift):  # type: ignore[no-untyped-def]
    """Return whether exactly ``top`` of the likely points score above the cut, proven.

    The others are proven to score below it.
    """
    small()
    value, likely = work.value, work.likely
    members = 0
    for a in range(work.n_likely[0]):
        point = likely[a]
        proven = plain_side(scale_of(system, point), value[point], cut, above, below)
        if proven == 0:  # a call that takes all arrays is expensive
            proven = side(system, work, point, cut, above, below, drift)
        if proven == 0:
            return False
        members += proven > 0
    return members == top


@kernel
def cut_behind(system, work, top, last, bound):  # type: ignore[no-untyped-def]
    """Return a score between the ``top`` best and all others, and the gap around it.

    ``last`` is the score of the last of them, as `best_values` has it. Of points near it the
    known part of the error is added; where they are many there is no gap that could be proven,
    and none is returned.
    """
    small()
    value, likely = work.value, work.likely
    scores, near = work.spare, 2 * system.largest_scale * bound
    n_above = doubtful = 0
    for a in range(work.n_likely[0]):
        n_above += scores[a] > last + near
        doubtful += abs(scores[a] - last) <= near
    if n_above + doubtful == top:  # nothing is near below
        return last - near / 2, near
    if doubtful > MOST_DOUBTFUL:
        return last, 0.0
    wanted, found = top - n_above, ZERO
    for a in range(work.n_likely[0]):
        point = likely[a]
        scale = scale_of(system, point)
        if abs(scale * value[point] - last) <= near:
            scores[found] = scale * (value[point] + error_twice(system, work, point)[0])
            found += 1
    put_largest_first(scores, found, wanted)
    following = -np.inf
    for a in range(wanted, found):
        following = max(following, scores[a])
    return (scores[wanted - 1] + following) / 2, scores[wanted - 1] - following


@kernel
def judge(system, work, top, last, above, below, drift):  # type: ignore[no-untyped-def]
    """Return the ``top``-th score, whether the top is certain, and whether it may soon be.

    ``last`` is what it was before: far below it nothing is looked at, unless others are too few.
    If the top is certain, the score returned lies between it and all others. An empty top, of a
    query that fills the answer by itself, is certain.
    """
    small()
    if top == 0:
        return np.inf, True, True
    unseen = system.largest_scale * above
    least = max(0.0, last / 2 - unseen)
    last, found = best_values(system, work, top, least)
    if found <= top:
        least = 0.0
        last, found = best_values(system, work, top, least)
    if found <= top:
        return last, False, False
    bound = max(above, below)
    cut, gap = cut_behind(system, work, top, last, bound)
    if gap < HOPELESS * system.largest_scale * bound:
        return last, False, gap > 0.0
    # Points that are not among the likely ones have no value, or a score below the least.
    certain = cut > least + unseen and is_certain(system, work, top, cut, above, below, drift)
    return cut if certain else last, certain, True


@kernel
def put_largest_first(values, n, k):  # type: ignore[no-untyped-def]
    """Exchange the first ``n`` values until the ``k`` largest are in front, the k-th last.

    Hoare's selection; the middle of three is the pivot.
    """
    small()
    low, high, wanted = 0, n - 1, k - 1
    while low < high:
        middle = (low + high) // 2
        a, b, c = values[low], values[middle], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        left, right = low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            return


@kernel
def sort_by_score(points, scores, n):  # type: ignore[no-untyped-def]
    """Sort the first ``n`` points by descending score, ties by index: Shell's sort."""
    small()
    gap = FIRST_GAP
    while gap < n:
        gap = GAP_RATIO * gap + 1
    while gap > 1:
        gap = (gap - 1) // GAP_RATIO
        for start in range(gap, n):
            point, score, place = points[start], scores[start], start
            while place >= gap and (
                scores[place - gap] < score
                or (scores[place - gap] == score and points[place - gap] > point)
            ):
                points[place], scores[place] = points[place - gap], scores[place - gap]
                place -= gap
            points[place], scores[place] = point, score
