"""Lists of some points, and who lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rankfold.types import NOBODY, IntArray, Neighbors


@dataclass(frozen=True, eq=False)
class Rows:
    """What is known about some points of a graph: whom they list, and who lists them.

    Parameters
    ----------
    slots : array of int, shape (n_rows,)
        The points, ascending, each once.
    lists : Neighbors
        A list for each, as long as it is stored.
    starts : array of int, shape (n_rows + 1,)
    sources : array of int
        Those from ``starts[i]`` to ``starts[i + 1]`` have ``slots[i]`` in their list, ascending.

    Examples
    --------
    >>> lists = Neighbors(np.array([[1, 2], [0, 2], [1, 0]]), np.ones((3, 2)))
    >>> rows = Rows.of(np.arange(3), lists)
    >>> rows.sources_of(np.array([1, 2])).tolist()
    [0, 2, 0, 1]
    """

    slots: IntArray
    lists: Neighbors
    starts: IntArray
    sources: IntArray

    @classmethod
    def of(cls, slots: IntArray, lists: Neighbors) -> Self:
        """Read sources off lists that hold nobody but these points."""
        place, column = np.nonzero(lists.indices >= 0)
        targets = np.searchsorted(slots, lists.indices[place, column])
        order = np.lexsort((place, targets))
        counts = np.bincount(targets, minlength=len(slots))
        starts = np.concatenate([[0], np.cumsum(counts)])
        return cls(slots, lists, starts, slots[place[order]])

    def __len__(self) -> int:
        return len(self.slots)

    def sources_of(self, places: IntArray) -> IntArray:
        """Return who lists the points at some places, one point after the other."""
        starts = self.starts[places]
        return self.sources[runs(starts, self.starts[places + 1] - starts)]

    def take(self, places: IntArray) -> Self:
        """Return some of the rows; their places ascend."""
        counts = np.diff(self.starts)[places]
        starts = np.concatenate([[0], np.cumsum(counts)])
        lists = self.lists.take(places)
        return type(self)(self.slots[places], lists, starts, self.sources_of(places))

    def joined(self, other: Self) -> Self:
        """Return the rows of both; where they speak of the same point, the other one counts."""
        slots = np.concatenate([other.slots, self.slots])
        _, chosen = np.unique(slots, return_index=True)
        starts = np.concatenate([other.starts, self.starts[1:] + len(other.sources)])
        lists = Neighbors(
            np.concatenate([other.lists.indices, self.lists.indices]),
            np.concatenate([other.lists.sq_distances, self.lists.sq_distances]),
        )
        both = type(self)(slots, lists, starts, np.concatenate([other.sources, self.sources]))
        return both.take(chosen)

    def places_of(self, slots: IntArray) -> IntArray:
        """Return the place of each of some points, -1 where it is not here."""
        if not len(self.slots):
            return np.full(len(slots), NOBODY)
        places = np.minimum(np.searchsorted(self.slots, slots), len(self.slots) - 1)
        return np.where(self.slots[places] == slots, places, NOBODY)


def runs(starts: IntArray, counts: IntArray) -> IntArray:
    """Return whole numbers that count up from each start, so many each.

    Examples
    --------
    >>> runs(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    before = np.cumsum(counts) - counts
    places: IntArray = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return places
