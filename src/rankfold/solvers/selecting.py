"""The largest of many numbers, in order. Compiled, which takes far longer for NumPy's own."""

from __future__ import annotations

from numba import njit

FIRST_GAP, GAP_RATIO = 1, 3
"""Gaps of Shell's sort: 1, 4, 13, 40, ..."""


@njit(nogil=True, cache=True)
def put_largest_first(values, n, k):  # type: ignore[no-untyped-def]
    """Exchange the first ``n`` values until the ``k`` largest are in front, the k-th last.

    Hoare's selection; the middle of three is the pivot.
    """
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


@njit(nogil=True, cache=True)
def sort_by_score(points, scores, n):  # type: ignore[no-untyped-def]
    """Sort the first ``n`` points by descending score, ties by index: Shell's sort."""
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
