"""Neighbour lists become a symmetric graph, in memory proportional to it."""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse

from rankfold.types import FloatArray, IntArray


def link(indices: IntArray, weights: FloatArray) -> sparse.csr_array:
    """Return ``W = (S + S') / 2`` of lists, like ``symmetrize(affinity_matrix(...))``.

    S itself and its transpose are never made, which is what takes the memory there. Entries of
    a row are not sorted: first the point's own neighbours, then those that chose it.

    Parameters
    ----------
    indices : array of int, shape (n_points, width)
    weights : array of float, shape (n_points, width)
        Rows of S; an entry that is not positive is no edge.

    Examples
    --------
    >>> import numpy as np
    >>> link(np.array([[1], [2], [1]], dtype=np.int32), np.ones((3, 1))).toarray()
    array([[0. , 0.5, 0. ],
           [0.5, 0. , 1. ],
           [0. , 1. , 0. ]])
    """
    n_points = len(indices)
    counts = _count(indices, weights)
    total = int(counts.sum())
    wide = np.int32 if total < np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(n_points + 1, dtype=wide)
    np.cumsum(counts, out=indptr[1:])
    columns = np.empty(total, dtype=wide)
    data = np.empty(total, dtype=weights.dtype)
    _fill(indices, weights, indptr[:-1].copy(), columns, data)
    return sparse.csr_array((data, columns, indptr), shape=(n_points, n_points))


@njit(cache=True, nogil=True)
def _returned(indices, weights, point, other):  # type: ignore[no-untyped-def]
    """Return the weight that another point gives back to this one; zero if it does not."""
    for place in range(indices.shape[1]):
        if indices[other, place] == point:
            return weights[other, place]
    return weights.dtype.type(0)


@njit(cache=True, nogil=True)
def _count(indices, weights):  # type: ignore[no-untyped-def]
    counts = np.zeros(len(indices), dtype=np.int64)
    for point in range(len(indices)):
        for place in range(indices.shape[1]):
            if weights[point, place] > 0:
                other = indices[point, place]
                counts[point] += 1
                if not _returned(indices, weights, point, other) > 0:
                    counts[other] += 1
    return counts


@njit(cache=True, nogil=True)
def _fill(indices, weights, ends, columns, data):  # type: ignore[no-untyped-def]
    """Write every row's entries from its current end on."""
    for point in range(len(indices)):
        for place in range(indices.shape[1]):
            weight = weights[point, place]
            if weight > 0:
                other = indices[point, place]
                returned = _returned(indices, weights, point, other)
                columns[ends[point]] = other
                data[ends[point]] = (weight + max(returned, 0)) / 2
                ends[point] += 1
                if not returned > 0:
                    columns[ends[other]] = point
                    data[ends[other]] = weight / 2
                    ends[other] += 1
