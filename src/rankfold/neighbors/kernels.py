"""Distances in compiled code; candidates become lists, sorted, the own point left out."""

from __future__ import annotations

import numpy as np

from rankfold.compilation import compiled
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors


def refine(
    points: FloatArray, queries: FloatArray, candidates: IntArray, own: IntArray | None, k: int
) -> tuple[Neighbors, FloatArray]:
    """Return the ``k`` nearest of each query's candidates, and the farthest of all of them.

    Sums run in float64, in no fixed order, and decide the order; what is returned is rounded to
    float32.
    The farthest is inf where fewer candidates came than were asked for.

    Parameters
    ----------
    points, queries : array of float32
    candidates : array of int64, shape (n_queries, n_candidates)
        No index twice in a row; -1 where the search ran out.
    own : array of int, optional
        The index each query has in the database; it never enters its own list.
    """
    n_queries = len(queries)
    if own is None:
        own = np.full(n_queries, NOBODY)
    indices = np.full((n_queries, k), NOBODY, dtype=np.int32)
    sq_distances = np.full((n_queries, k), np.inf, dtype=np.float32)
    farthest = np.empty(n_queries)
    _refine(
        _read(points),
        _read(queries),
        np.ascontiguousarray(candidates, dtype=np.int64),
        own.astype(np.int64),
        indices,
        sq_distances,
        farthest,
        np.empty(candidates.shape[1]),
        np.empty(candidates.shape[1], dtype=np.int64),
    )
    return Neighbors(indices, sq_distances), farthest


def sq_distances_to(points: FloatArray, query: FloatArray) -> FloatArray:
    """Return the squared distance of every point to one vector, summed as `refine` does.

    Points are read as they are held; a copy in float64 would take most of the time.

    Parameters
    ----------
    points : array of float32, shape (n_points, n_features)
    query : array of float32, shape (n_features,)
    """
    row = np.empty(len(points))
    _measure(_read(points), _read(query), row)
    return row


def sq_distances_among(points: FloatArray, rows: IntArray, query: FloatArray) -> FloatArray:
    """Return the squared distances of some points to one vector, summed as `refine` does.

    Parameters
    ----------
    points : array of float32, shape (n_points, n_features)
    rows : array of int
        Which of them.
    query : array of float32, shape (n_features,)
    """
    row = np.empty(len(rows))
    _measure_some(_read(points), np.ascontiguousarray(rows, dtype=np.int64), _read(query), row)
    return row


def rough_sq_distances_to(points: FloatArray, query: FloatArray) -> FloatArray:
    """Return what `sq_distances_to` does in single precision, in half the time.

    Parameters
    ----------
    points : array of float32, shape (n_points, n_features)
    query : array of float32, shape (n_features,)
    """
    row = np.empty(len(points), dtype=np.float32)
    _measure_roughly(_read(points), _read(query), row)
    return row


def _read(array: FloatArray) -> FloatArray:
    """Return an array as one that is only read, whether it could be written to or not.

    These are two types, and everything would be compiled for both.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@compiled(fastmath={"reassoc"})
def _measure(points, query, row):  # type: ignore[no-untyped-def]
    for i in range(points.shape[0]):
        total = 0.0
        for f in range(points.shape[1]):
            difference = np.float64(points[i, f]) - np.float64(query[f])
            total += difference * difference
        row[i] = total


@compiled(fastmath={"reassoc"})
def _measure_some(points, rows, query, row):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        point = np.uint64(rows[i])
        total = 0.0
        for f in range(points.shape[1]):
            difference = np.float64(points[point, f]) - np.float64(query[f])
            total += difference * difference
        row[i] = total


@compiled(fastmath={"reassoc"})
def _measure_roughly(points, query, row):  # type: ignore[no-untyped-def]
    for i in range(points.shape[0]):
        total = np.float32(0)
        for f in range(points.shape[1]):
            difference = points[i, f] - query[f]
            total += difference * difference
        row[i] = total


@compiled(fastmath={"reassoc"})
def _refine(points, queries, candidates, own, indices, sq_distances, farthest, near, who):  # type: ignore[no-untyped-def]
    n_queries, n_candidates = candidates.shape
    width = indices.shape[1]
    for i in range(n_queries):
        count = 0
        last = 0.0
        for c in range(n_candidates):
            j = candidates[i, c]
            if j < 0:
                last = np.inf
                continue
            total = 0.0
            for f in range(points.shape[1]):
                difference = np.float64(points[j, f]) - np.float64(queries[i, f])
                total += difference * difference
            last = max(last, total)
            if j == own[i]:
                continue
            # They mostly come nearly sorted, so that hardly anything moves.
            place = count
            if count == width:
                place -= 1
                if width == 0 or near[place] < total or (near[place] == total and who[place] < j):
                    continue
            else:
                count += 1
            while place > 0 and (
                near[place - 1] > total or (near[place - 1] == total and who[place - 1] > j)
            ):
                near[place] = near[place - 1]
                who[place] = who[place - 1]
                place -= 1
            near[place] = total
            who[place] = j
        farthest[i] = last
        for c in range(count):
            indices[i, c] = who[c]
            sq_distances[i, c] = near[c]
