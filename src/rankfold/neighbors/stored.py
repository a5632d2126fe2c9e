"""The lists of all points, in arrays with room for more, and who lists whom."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankfold.neighbors.growing import Growing
from rankfold.neighbors.repair import Patch, lengths, links_added, reaches
from rankfold.neighbors.reverse import ReverseLists
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors


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
        self.width = lists.width
        self._counts = Growing(lengths(lists) if counts is None else counts)
        self._indices, self._sq_distances = Growing(lists.indices), Growing(lists.sq_distances)
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
        places = np.full(len(self._indices), NOBODY, dtype=np.int32)
        places[slots] = np.arange(len(slots), dtype=np.int32)
        lists = self.take(slots)
        named = np.where(lists.indices == NOBODY, NOBODY, places[lists.indices])
        return StoredLists(Neighbors(named.astype(np.int32), lists.sq_distances))
