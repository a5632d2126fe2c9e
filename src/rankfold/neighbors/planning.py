"""What a change of the points does to their lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankfold.neighbors.change import Change
from rankfold.neighbors.entering import measured_entering, sought_entering
from rankfold.neighbors.exact_points import ExactPoints
from rankfold.neighbors.faiss_points import FaissPoints
from rankfold.neighbors.repair import Patch, inserted, lengths, without
from rankfold.neighbors.stored import StoredLists
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors

Points = ExactPoints | FaissPoints


class Planning(NamedTuple):
    """Finds out what a change will be, and leaves points and lists as they are.

    Parameters
    ----------
    points : ExactPoints or FaissPoints
    stored : StoredLists
    width : int
        Lists that would fall below this length are searched again.
    """

    points: Points
    stored: StoredLists
    width: int

    def change(self, removed: IntArray, added: FloatArray) -> Change:
        """Return what removing points and then adding others does to the lists."""
        self.points.bury(removed)
        try:
            patch = self._shortened(removed)
            if len(added):
                patch = self._lengthened(patch, added)
        finally:
            self.points.revive(removed)
        lists = self.stored.shaped(patch.lists)
        return Change(added, removed, patch.rows, lists.indices, lists.sq_distances)

    def _shortened(self, removed: IntArray) -> Patch:
        """Take removed points out of the lists of others."""
        if not len(removed):
            return Patch(removed, self.stored.nothing(0))
        rows = np.unique(self.stored.reverse.sources(removed))
        rows = rows[self.points.alive[rows]]
        before = self.stored.take(rows)
        after = without(before, self.points.alive)
        lost = lengths(after) < lengths(before)
        rows, after = rows[lost], after.take(np.flatnonzero(lost))
        short = lengths(after) < min(self.width, self.points.n_alive - 1)
        if short.any():
            found = self.points.rows(rows[short], self.stored.width)
            after.indices[short], after.sq_distances[short] = found.indices, found.sq_distances
        return Patch(rows, after)

    def _lengthened(self, patch: Patch, added: FloatArray) -> Patch:
        """Search the lists of new points, and put them into those of others."""
        first, width, own = self.points.n_points, self.stored.width, np.arange(len(added))

        def reaches(rows: IntArray) -> FloatArray:
            return self.stored.reaches(rows, patch, self.points.n_alive - 1)

        old = self.points.find(added, width)
        if isinstance(self.points, ExactPoints):
            live = np.flatnonzero(self.points.alive)
            entering = measured_entering(self.points.measured(added), reaches, live, first)
        else:
            around = (self.points.points, added, old.indices, reaches, self.stored.reverse)
            entering = sought_entering(*around, self.points.alive)
        fresh = old
        if len(added) > 1:
            new = self.points.among(added, width)
            named = np.where(new.indices == NOBODY, NOBODY, new.indices + first)
            fresh = Neighbors.merge([old, Neighbors(named, new.sq_distances)], width)
        rows, places = np.unique(entering.lists, return_inverse=True)
        entered = Patch(rows, inserted(self.stored.present(rows, patch), places, entering))
        return patch.joined(entered).joined(Patch(first + own, self.stored.shaped(fresh)))
