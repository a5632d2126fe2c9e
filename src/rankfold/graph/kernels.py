"""Kernels that link neighbour lists symmetrically, and that learn the collective graph. Compiled.

The latter push from every point, and find what the rows of scores have in common.
"""

from __future__ import annotations

import numpy as np

from rankfold.compilation import compiled, inner

UNTOUCHED, TOUCHED, QUEUED = np.uint8(0), np.uint8(1), np.uint8(2)


@inner()
def returned_weight(indices, weights, point, other):  # type: ignore[no-untyped-def]
    """Return the weight that another point gives back to this one; zero if it does not."""
    for place in range(indices.shape[1]):
        if indices[other, place] == point:
            return weights[other, place]
    return np.float32(0)


@compiled()
def count(indices, weights, counts):  # type: ignore[no-untyped-def]
    """Add up the number of entries in every row; making arrays takes longer to compile."""
    for point in range(indices.shape[0]):
        for place in range(indices.shape[1]):
            if weights[point, place] > 0:
                other = indices[point, place]
                counts[point] += 1
                if not returned_weight(indices, weights, point, other) > 0:
                    counts[other] += 1


@compiled()
def fill(indices, weights, ends, columns, data):  # type: ignore[no-untyped-def]
    """Write every row's entries from its current end on."""
    for point in range(indices.shape[0]):
        for place in range(indices.shape[1]):
            weight = weights[point, place]
            if weight > 0:
                other = indices[point, place]
                returned = returned_weight(indices, weights, point, other)
                columns[ends[point]] = other
                data[ends[point]] = weight / 2
                if returned > 0:
                    data[ends[point]] += returned / 2
                ends[point] += 1
                if not returned > 0:
                    columns[ends[other]] = point
                    data[ends[other]] = weight / 2
                    ends[other] += 1


@compiled()
def solve(indptr, indices, spread, inverse, first, end, tol):  # type: ignore[no-untyped-def]
    """Find rows of ``G = (I + 2 lambda L)^-1``, one after the other.

    Returns
    -------
    counts, columns, values : arrays
        The rows: so many entries each, all of them in one, which may be longer.
    diagonal : array
    missing : array
        What the exact row has more, at most, in the Euclidean norm.
    """
    n_points = len(inverse)
    value, residual = np.zeros(n_points), np.zeros(n_points)
    mark = np.zeros(n_points, dtype=np.uint8)
    touched = np.empty(n_points, dtype=np.int32)
    room = 1
    while room < n_points:
        room *= 2
    queue, wrap = np.empty(room, dtype=np.int32), room - 1
    counts = np.empty(end - first, dtype=np.int64)
    diagonal, missing = np.empty(end - first), np.empty(end - first)
    size, n = 128 * (end - first), 0
    columns, values = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
    for point in range(first, end):
        residual[point], mark[point] = 1.0, QUEUED
        touched[0], queue[0], n_touched = point, point, 1
        head, tail = 0, 1
        while head < tail:
            one = queue[head & wrap]
            head += 1
            mark[one] = TOUCHED
            step = residual[one] * inverse[one]
            residual[one] = 0.0
            value[one] += step
            for edge in range(indptr[one], indptr[one + 1]):
                other = indices[edge]
                residual[other] += spread[edge] * step
                if mark[other] == UNTOUCHED:
                    mark[other] = TOUCHED
                    touched[n_touched] = other
                    n_touched += 1
                if mark[other] == TOUCHED and residual[other] > tol:
                    mark[other] = QUEUED
                    queue[tail & wrap] = other
                    tail += 1
        if n + n_touched > size:
            size = 2 * size + n_touched
            more, larger = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
            for place in range(n):
                more[place], larger[place] = columns[place], values[place]
            columns, values = more, larger
        diagonal[point - first], before = value[point], n
        squares = 0.0
        for place in range(n_touched):
            one = touched[place]
            squares += residual[one] ** 2
            if value[one] > 0:
                columns[n], values[n] = one, value[one]
                n += 1
            value[one] = residual[one] = 0.0
            mark[one] = UNTOUCHED
        counts[point - first] = n - before
        missing[point - first] = np.sqrt(squares)
    return counts, columns, values, diagonal, missing


@compiled()
def scale(indptr, columns, values, diagonal, missing, tol):  # type: ignore[no-untyped-def]
    """Make rows of G those of F, of length one, in place; return how far off each can be."""
    largest = 1.0 / diagonal.min()
    bounds = np.empty(len(diagonal))
    for point in range(len(diagonal)):
        squares = weighted = 0.0
        for place in range(indptr[point], indptr[point + 1]):
            factor = 1.0 / diagonal[columns[place]]
            score = values[place] * factor
            weighted += (score * factor) ** 2
            squares += score**2
            values[place] = score
        length = np.sqrt(squares)
        for place in range(indptr[point], indptr[point + 1]):
            values[place] /= length
        bounds[point] = 2 * (largest * missing[point] + tol * np.sqrt(weighted)) / length
    return bounds


@compiled()
def lift(indptr, columns, values, indices, first, end):  # type: ignore[no-untyped-def]
    """Return the squared distance of the rows of some points to those of their candidates."""
    found = np.full((end - first, indices.shape[1]), np.inf)
    dense = np.zeros(len(indptr) - 1)
    for point in range(first, end):
        squares = 0.0
        for place in range(indptr[point], indptr[point + 1]):
            value = np.float64(values[place])
            dense[columns[place]] = value
            squares += value**2
        for candidate in range(indices.shape[1]):
            other = indices[point, candidate]
            if other >= 0:
                gap = squares  # in single precision no row is exactly of length one
                for place in range(indptr[other], indptr[other + 1]):
                    value = np.float64(values[place])
                    gap += value * (value - 2.0 * dense[columns[place]])
                found[point - first, candidate] = max(0.0, gap)
        for place in range(indptr[point], indptr[point + 1]):
            dense[columns[place]] = 0.0
    return found
