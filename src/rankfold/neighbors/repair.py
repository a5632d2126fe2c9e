"""Neighbour lists when points come and go: entries are taken out and put in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors

BLOCK_ROWS = 2**12
"""Lists that are compared at once."""


class Entering(NamedTuple):
    """New points that enter lists: whose, who, and at what squared distance."""

    lists: IntArray
    points: IntArray
    sq_distances: FloatArray


class Patch(NamedTuple):
    """Lists that differ from the stored ones: ascending rows, and what stands there now."""

    rows: IntArray
    lists: Neighbors

    def patched(self, rows: IntArray) -> tuple[BoolArray, Neighbors]:
        """Return which of these rows the patch speaks of, and their lists."""
        if not len(self.rows):
            return np.zeros(len(rows), dtype=bool), self.lists
        place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        known = self.rows[place] == rows
        return known, self.lists.take(place[known])

    def joined(self, other: Patch) -> Patch:
        """Return both; where they speak of the same row, the other one counts."""
        if not len(self.rows):
            return other
        kept = ~np.isin(self.rows, other.rows)
        rows = np.concatenate([self.rows[kept], other.rows])
        mine = self.lists.take(np.flatnonzero(kept))
        indices = np.concatenate([mine.indices, other.lists.indices])
        sq_distances = np.concatenate([mine.sq_distances, other.lists.sq_distances])
        order = np.argsort(rows)
        return Patch(rows[order], Neighbors(indices[order], sq_distances[order]))


def lengths(lists: Neighbors) -> IntArray:
    """Return how many neighbours every list has."""
    counts: IntArray = np.count_nonzero(lists.indices >= 0, axis=1).astype(np.int32)
    return counts


def reaches(
    sq_distances: FloatArray, rows: IntArray, counts: IntArray, n_others: int
) -> FloatArray:
    """Return the distance below which a new point enters each of some lists.

    Nothing is known of what lies beyond the end of a list, unless it holds all others.
    """
    last = sq_distances[rows, np.maximum(counts - 1, 0)]
    return np.where(counts >= n_others, np.inf, np.where(counts > 0, last, -np.inf))


def without(lists: Neighbors, alive: BoolArray) -> Neighbors:
    """Take points out that are not alive; what follows moves up.

    Examples
    --------
    >>> import numpy as np
    >>> lists = Neighbors(np.array([[2, 0, 1]]), np.array([[1.0, 2.0, 3.0]]))
    >>> without(lists, np.array([False, True, True])).indices
    array([[ 2,  1, -1]])
    """
    return moved_up(lists, (lists.indices >= 0) & alive[lists.indices])


def moved_up(lists: Neighbors, kept: BoolArray) -> Neighbors:
    """Keep some entries of every list; what follows those that go moves up."""
    order = np.argsort(~kept, axis=1, kind="stable")
    kept = np.take_along_axis(kept, order, 1)
    return Neighbors(
        np.where(kept, np.take_along_axis(lists.indices, order, 1), NOBODY),
        np.where(kept, np.take_along_axis(lists.sq_distances, order, 1), np.inf),
    )


def inserted(lists: Neighbors, places: IntArray, entering: Entering) -> Neighbors:
    """Put points in; what does not fit any more falls out at the end.

    Parameters
    ----------
    lists : Neighbors
    places : array of int
        The row of ``lists`` that each of the entering points enters.
    entering : Entering

    Examples
    --------
    >>> import numpy as np
    >>> lists = Neighbors(np.array([[2, 0]]), np.array([[1.0, 3.0]]))
    >>> new = Entering(np.array([9]), np.array([5]), np.array([1.0]))
    >>> inserted(lists, np.array([0]), new).indices
    array([[2, 5]])
    """
    n_rows, width = lists.indices.shape
    order = np.lexsort((entering.points, entering.sq_distances, places))
    places = places[order]
    rank = np.arange(len(places)) - np.searchsorted(places, places)
    order, places, rank = order[rank < width], places[rank < width], rank[rank < width]
    shape = (n_rows, width + int(rank.max(initial=-1)) + 1)
    indices = np.full(shape, NOBODY, dtype=lists.indices.dtype)
    sq_distances = np.full(shape, np.inf, dtype=lists.sq_distances.dtype)
    indices[:, :width], sq_distances[:, :width] = lists.indices, lists.sq_distances
    indices[places, width + rank] = entering.points[order]
    sq_distances[places, width + rank] = entering.sq_distances[order]
    # New points have the larger numbers, so that a stable order leaves ties as they should be.
    chosen = np.argsort(sq_distances, axis=1, kind="stable")[:, :width]
    return Neighbors(
        np.take_along_axis(indices, chosen, 1), np.take_along_axis(sq_distances, chosen, 1)
    )


def links_added(rows: IntArray, before: IntArray, after: IntArray) -> tuple[IntArray, IntArray]:
    """Return the links of lists that were not there before: whose, and to whom."""
    sources, targets = [rows[:0]], [after[:0, 0]]
    for start in range(0, len(rows), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        known = (after[block, :, None] == before[block, None, :]).any(axis=2)
        which, place = np.nonzero(~known & (after[block] >= 0))
        sources.append(rows[block][which])
        targets.append(after[block][which, place])
    return np.concatenate(sources), np.concatenate(targets)
