"""Neighbour lists that change: stored with room for more, repaired where points come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors

SPARE = 1.5
"""A full array is replaced by one of so many times its length."""

MOST_EXTRAS = 0.25
"""Links that came later are sorted in once there are so many for each that is sorted."""

BLOCK_ROWS = 2**12
"""Lists that are compared at once."""

Reaches = Callable[[IntArray], FloatArray]
"""Returns the distance below which a new point enters the lists of some points."""


class GrowableArray:
    """Rows that are appended and changed in place.

    The array it starts from belongs to somebody else, perhaps to a file, and is never written:
    the first change copies it, once.

    Examples
    --------
    >>> import numpy as np
    >>> growing = GrowableArray(np.array([1, 2]))
    >>> growing.append(np.array([3]))
    >>> growing.rows
    array([1, 2, 3])
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows: NDArray[Any] = np.asarray(rows)
        """All rows, as they lie; later changes may show in it."""
        self._store: NDArray[Any] | None = None

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        if not len(rows):
            return
        length = len(self.rows)
        end = length + len(rows)
        store = self._store
        if store is None or end > len(store):
            store = self._moved(max(end, int(SPARE * length)))
        store[length:end] = rows
        self.rows = store[:end]

    def write(self, places: NDArray[Any], rows: Any) -> None:
        """Change some rows."""
        if not len(places):
            return
        if self._store is None:
            self.rows = self._moved(len(self.rows))
        self.rows[places] = rows

    def _moved(self, capacity: int) -> NDArray[Any]:
        """Return an array with room for so many rows, into which all were copied."""
        store = np.empty((capacity, *self.rows.shape[1:]), dtype=self.rows.dtype)
        store[: len(self.rows)] = self.rows
        self._store = store
        return store


class ReverseLists:
    """For every point, those that may list it.

    Links are sorted once; later ones are kept beside. None is ever deleted, so an answer may
    hold points that do not list it any more, and whoever asks has to look.

    Parameters
    ----------
    starts : array of int, shape (n_points + 1,)
    sources : array of int
        Those from ``starts[j]`` to ``starts[j + 1]`` list point j.

    Examples
    --------
    >>> import numpy as np
    >>> reverse = ReverseLists.of(np.array([[1, 2], [0, -1], [1, 0]]))
    >>> reverse.link(np.array([3]), np.array([1]))
    >>> reverse.sources(np.array([1]))
    array([0, 2, 3])
    """

    def __init__(self, starts: IntArray, sources: IntArray) -> None:
        self.starts, self.sorted = starts, sources
        self._extras: dict[int, list[int]] = {}
        self._n_extras = 0

    @classmethod
    def of(cls, indices: IntArray) -> ReverseLists:
        """Read them off the lists of all points."""
        n_points, used = len(indices), indices >= 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        targets = indices[used]
        links = sparse.csr_array(
            (np.ones(len(targets), dtype=np.int8), targets, starts), shape=(n_points, n_points)
        ).tocsc()
        return cls(links.indptr.astype(np.int64), links.indices.astype(np.int32))

    @property
    def overgrown(self) -> bool:
        """Whether it is time to read them off the lists again."""
        return self._n_extras > MOST_EXTRAS * len(self.sorted) + len(self.starts)

    def link(self, sources: IntArray, targets: IntArray) -> None:
        """Note that each source has its target in its list from now on."""
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            self._extras.setdefault(target, []).append(source)
        self._n_extras += len(sources)

    def sources(self, targets: IntArray) -> IntArray:
        """Return the points that may list any of the targets, once for each."""
        known = targets[targets < len(self.starts) - 1]
        bounds = zip(self.starts[known].tolist(), self.starts[known + 1].tolist(), strict=True)
        parts = [self.sorted[start:end] for start, end in bounds]
        extras = [self._extras[target] for target in targets.tolist() if target in self._extras]
        parts.append(np.array([source for some in extras for source in some], dtype=np.int32))
        return np.concatenate(parts, dtype=np.intp)


class StoredLists:
    """One list per point, of the nearest in order; removed points have empty ones.

    Parameters
    ----------
    lists : Neighbors
    counts : array of int, optional
        Their lengths.
    reverse : ReverseLists, optional
        Both are read off the lists by default.
    """

    def __init__(
        self,
        lists: Neighbors,
        counts: IntArray | None = None,
        reverse: ReverseLists | None = None,
    ) -> None:
        self.width: int = lists.indices.shape[1]
        self._counts = GrowableArray(lengths(lists) if counts is None else counts)
        self._indices, self._sq_distances = (
            GrowableArray(lists.indices),
            GrowableArray(lists.sq_distances),
        )
        self.reverse = ReverseLists.of(lists.indices) if reverse is None else reverse

    @classmethod
    def restore(cls, arrays: dict[str, Any]) -> StoredLists:
        """Make them from their arrays."""
        lists = Neighbors(arrays["list_indices"], arrays["list_sq_distances"])
        reverse = ReverseLists(arrays["reverse_starts"], arrays["reverse_sources"])
        return cls(lists, arrays["list_counts"], reverse)

    @property
    def lists(self) -> Neighbors:
        """All lists, as they lie; later changes may show in them."""
        return Neighbors(self._indices.rows, self._sq_distances.rows)

    def arrays(self) -> dict[str, Any]:
        """Return what `restore` needs."""
        reverse = ReverseLists.of(self._indices.rows)
        return {
            "list_indices": self._indices.rows.copy(),
            "list_sq_distances": self._sq_distances.rows.copy(),
            "list_counts": self._counts.rows.copy(),
            "reverse_starts": reverse.starts,
            "reverse_sources": reverse.sorted,
        }

    def take(self, rows: IntArray) -> Neighbors:
        """Return a copy of some lists."""
        return self.lists.take(rows)

    def present(self, rows: IntArray, patch: Patch) -> Neighbors:
        """Return a copy of some lists: those of a patch, and else the stored ones."""
        lists = self.take(rows)
        known, patched = patch.patched(rows)
        lists.indices[known], lists.sq_distances[known] = patched.indices, patched.sq_distances
        return lists

    def reaches(self, rows: IntArray, patch: Patch, n_others: int) -> FloatArray:
        """Return the distance below which a new point enters each of those lists."""
        counts = self._counts.rows[rows]
        found = reaches(self._sq_distances.rows, rows, counts, n_others)
        known, patched = patch.patched(rows)
        if known.any():
            places, counts = np.arange(len(patched.indices)), lengths(patched)
            found[known] = reaches(patched.sq_distances, places, counts, n_others)
        return found

    def nothing(self, n_rows: int) -> Neighbors:
        """Return empty lists."""
        shape = (n_rows, self.width)
        return Neighbors(
            np.full(shape, NOBODY, dtype=np.int32),
            np.full(shape, np.inf, dtype=self._sq_distances.rows.dtype),
        )

    def shaped(self, lists: Neighbors) -> Neighbors:
        """Return lists in the types of these."""
        sq_distances = lists.sq_distances.astype(self._sq_distances.rows.dtype, copy=False)
        return Neighbors(lists.indices.astype(np.int32, copy=False), sq_distances)

    def apply(self, n_added: int, removed: IntArray, patch: Patch) -> None:
        """Make room for new points, empty the lists of removed ones, and write others."""
        fresh = self.nothing(n_added)
        self._indices.append(fresh.indices)
        self._sq_distances.append(fresh.sq_distances)
        self._counts.append(lengths(fresh))
        links = links_added(patch.rows, self._indices.rows[patch.rows], patch.lists.indices)
        gone = self.nothing(len(removed))
        for rows, lists in ((removed, gone), (patch.rows, patch.lists)):
            self._indices.write(rows, lists.indices)
            self._sq_distances.write(rows, lists.sq_distances)
            self._counts.write(rows, lengths(lists))
        self.reverse.link(*links)
        if self.reverse.overgrown:
            self.reverse = ReverseLists.of(self._indices.rows)

    def kept(self, slots: IntArray) -> StoredLists:
        """Return the lists of some points, which list each other alone, by their new slots."""
        places = np.full(len(self._indices.rows), NOBODY, dtype=np.int32)
        places[slots] = np.arange(len(slots), dtype=np.int32)
        lists = self.take(slots)
        named = np.where(lists.indices == NOBODY, NOBODY, places[lists.indices])
        return StoredLists(Neighbors(named.astype(np.int32), lists.sq_distances))


class Insertions(NamedTuple):
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


def inserted(lists: Neighbors, places: IntArray, entering: Insertions) -> Neighbors:
    """Put points in; what does not fit any more falls out at the end.

    Parameters
    ----------
    lists : Neighbors
    places : array of int
        The row of ``lists`` that each of the entering points enters.
    entering : Insertions

    Examples
    --------
    >>> import numpy as np
    >>> lists = Neighbors(np.array([[2, 0]]), np.array([[1.0, 3.0]]))
    >>> new = Insertions(np.array([9]), np.array([5]), np.array([1.0]))
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


def measured_entering(
    measured: Iterator[FloatArray], reaches: Reaches, live: IntArray, first: int
) -> Insertions:
    """Compare every point with every new one.

    Parameters
    ----------
    measured : iterator of arrays
        The squared distances of all points to each of the new ones.
    reaches : callable
    live : array of int
        The points that are left.
    first : int
        The slot of the first new point.
    """
    reach = reaches(live)
    parts = []
    for place, row in enumerate(measured):
        near = row[live]
        entered = np.flatnonzero(near < reach)
        parts.append((live[entered], np.full(len(entered), first + place), near[entered]))
    return _joined(parts)


def sought_entering(
    points: FloatArray,
    held: FloatArray,
    near: IntArray,
    reaches: Reaches,
    reverse: ReverseLists,
    alive: BoolArray,
) -> Insertions:
    """Compare new points with those around them.

    A point that will list a new one lists a neighbour of the new one already, hardly ever none:
    the nearest, and those that list them, are compared.

    Parameters
    ----------
    points : array
        All points as they are held.
    held : array
        The new ones.
    near : array of int, shape (n_new, width)
        The nearest old points of each new one, -1 where there are no more.
    reaches : callable
    reverse : ReverseLists
    alive : array of bool
    """
    parts = []
    for place, (vector, row) in enumerate(zip(held, near, strict=True)):
        row = row[row >= 0]
        around = np.unique(np.concatenate([row, reverse.sources(row)]))
        around = around[alive[around]]
        differences = points[around].astype(np.float64) - vector
        sq_distances = np.einsum("ij,ij->i", differences, differences).astype(np.float32)
        entered = sq_distances < reaches(around)
        found = around[entered]
        parts.append((found, np.full(len(found), len(points) + place), sq_distances[entered]))
    return _joined(parts)


def _joined(parts: list[tuple[IntArray, IntArray, FloatArray]]) -> Insertions:
    return Insertions(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
