"""Kernels of the symmetric graph, which numba compiles when they are first called."""

from __future__ import annotations

import numpy as np

from rankfold.compilation import compiled, inner


@inner()
def returned_weight(indices, weights, point, other):  # type: ignore[no-untyped-def]
    """Return the weight that another point gives back to this one; zero if it does not."""
    for place in range(indices.shape[1]):
        if indices[other, place] == point:
            return weights[other, place]
    return weights.dtype.type(0)


@compiled()
def count(indices, weights):  # type: ignore[no-untyped-def]
    """Return the number of entries in every row."""
    counts = np.zeros(len(indices), dtype=np.int64)
    for point in range(len(indices)):
        for place in range(indices.shape[1]):
            if weights[point, place] > 0:
                other = indices[point, place]
                counts[point] += 1
                if not returned_weight(indices, weights, point, other) > 0:
                    counts[other] += 1
    return counts


@compiled()
def fill(indices, weights, ends, columns, data):  # type: ignore[no-untyped-def]
    """Write every row's entries from its current end on."""
    for point in range(len(indices)):
        for place in range(indices.shape[1]):
            weight = weights[point, place]
            if weight > 0:
                other = indices[point, place]
                returned = returned_weight(indices, weights, point, other)
                columns[ends[point]] = other
                data[ends[point]] = (weight + max(returned, 0)) / 2
                ends[point] += 1
                if not returned > 0:
                    columns[ends[other]] = point
                    data[ends[other]] = weight / 2
                    ends[other] += 1
