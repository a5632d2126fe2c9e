"""Lists of some points, and who lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rankfold.types import IntArray, Neighbors


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
        parts = [self.sources[self.starts[place] : self.starts[place + 1]] for place in places]
        return np.concatenate([self.sources[:0], *parts])
