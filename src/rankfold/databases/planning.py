"""What a change of the points does to the rows of a table."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from rankfold.databases.contract import Session
from rankfold.databases.relisting import relisted
from rankfold.databases.searching import nearest
from rankfold.neighbors import Rows, choose_engine
from rankfold.neighbors.repair import Entering, Patch, inserted, lengths, moved_up, reaches
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors

BLOCK_ADDED = 256
"""New points that are compared at once with those that may list them."""


class Planning:
    """Finds out what removing points and then adding others does, without doing it.

    The lists are those that `LivingEngine` comes to by the same changes: exactly so where the
    database searches exactly, and to its recall elsewhere.

    Parameters
    ----------
    session : Session
        That of the change.
    removed : array of int
        Slots, ascending.
    added : array of float32
        New points, in the form of the stored ones.
    """

    def __init__(self, session: Session, removed: IntArray, added: FloatArray) -> None:
        self._session, self._removed, self._added = session, removed, added
        settings = session.head.settings
        self._width, self._stored = settings["width"], settings["stored_width"]
        self._recall, self._type = settings["recall"], np.dtype(settings["precision"])
        self._n_left = session.head.n_alive - len(removed)
        self._known = session.rows(removed, around=True)
        self._searched = removed[:0], added[:0]

    def rows(self) -> tuple[Rows, Neighbors]:
        """Return all rows that will be different, and the nearest old points of the new ones."""
        patch = self._shortened()
        old = self._nobody(0)
        if len(self._added):
            patch, old = self._lengthened(patch)
        before = self._fetched(np.union1d(self._removed, self._there(patch.rows)))
        targets = np.union1d(_named(before.lists.indices), _named(patch.lists.indices))
        self._fetched(self._there(targets))
        return relisted(self._known, self._removed, patch), old

    def _shortened(self) -> Patch:
        """Take removed points out of the lists of others."""
        rows = self._known.take(np.flatnonzero(~np.isin(self._known.slots, self._removed)))
        kept = (rows.lists.indices >= 0) & ~np.isin(rows.lists.indices, self._removed)
        after = self._shaped(moved_up(rows.lists, kept))
        short = lengths(after) < min(self._width, self._n_left - 1)
        if short.any():
            slots = rows.slots[short]
            vectors = self._session.vectors(slots)
            self._searched = slots, vectors
            found = nearest(self._session, vectors, self._stored, own=slots, gone=self._removed)
            after.indices[short], after.sq_distances[short] = found.indices, found.sq_distances
        return Patch(rows.slots, after)

    def _lengthened(self, patch: Patch) -> tuple[Patch, Neighbors]:
        """Search the lists of new points, and put them into those of others."""
        first, n_added = self._session.head.n_points, len(self._added)
        old = nearest(self._session, self._added, self._stored, gone=self._removed)
        fresh = old
        if n_added > 1:
            engine = choose_engine(self._added, "euclidean", self._recall)
            new = engine.rows(np.arange(n_added), self._stored)
            named = np.where(new.indices == NOBODY, NOBODY, new.indices + first)
            fresh = Neighbors.merge([old, Neighbors(named, new.sq_distances)], self._stored)
        entering = self._entering(patch, old)
        rows, places = np.unique(entering.lists, return_inverse=True)
        entered = Patch(rows, inserted(self._present(rows, patch), places, entering))
        arrived = Patch(first + np.arange(n_added), self._shaped(fresh))
        return patch.joined(entered).joined(arrived), old

    def _entering(self, patch: Patch, old: Neighbors) -> Entering:
        """Compare new points with all that may list them."""
        parts = []
        for start in range(0, len(self._added), BLOCK_ADDED):
            block = slice(start, start + BLOCK_ADDED)
            near = old.take(np.arange(len(self._added))[block])
            candidates = self._session.listers(self._added[block]) or self._around(near)
            self._fetched(np.unique(np.concatenate([slots for slots, _ in candidates])))
            for place, (slots, vectors) in enumerate(candidates, start):
                parts.append(self._entered(place, *self._with_searched(slots, vectors), patch))
        return Entering(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _with_searched(self, slots: IntArray, vectors: FloatArray) -> tuple[IntArray, FloatArray]:
        """Join the points whose lists were searched again: these reach further than before."""
        more = ~np.isin(self._searched[0], slots)
        return (
            np.concatenate([slots, self._searched[0][more]]),
            np.concatenate([vectors, self._searched[1][more]]),
        )

    def _entered(self, place: int, slots: IntArray, vectors: FloatArray, patch: Patch) -> Entering:
        """Return the lists, of some points, that one of the new points enters."""
        left = ~np.isin(slots, self._removed)
        slots, vectors = slots[left], vectors[left]
        near = cdist(self._added[place : place + 1], vectors, "sqeuclidean")[0].astype(self._type)
        lists = self._present(slots, patch)
        places = np.arange(len(slots))
        reach = reaches(lists.sq_distances, places, lengths(lists), self._n_left - 1)
        entered = near < reach
        who = np.full(np.count_nonzero(entered), self._session.head.n_points + place)
        return Entering(slots[entered], who, near[entered])

    def _around(self, old: Neighbors) -> list[tuple[IntArray, FloatArray]]:
        """Return the nearest old points of each new one, and those that list them.

        A point that will list a new one lists a neighbour of the new one already, hardly ever none.
        """
        rows = self._session.rows(np.unique(_named(old.indices)), around=True)
        self._known = self._known.joined(rows)
        vectors = self._session.vectors(rows.slots)
        candidates = []
        for row in old.indices:
            places = rows.places_of(np.unique(_named(row)))
            slots = np.union1d(rows.slots[places], rows.sources_of(places))
            candidates.append((slots, vectors[rows.places_of(slots)]))
        return candidates

    def _present(self, slots: IntArray, patch: Patch) -> Neighbors:
        """Return some lists: those of a patch, and else the stored ones."""
        lists = self._known.lists.take(self._known.places_of(slots))
        known, patched = patch.patched(slots)
        lists.indices[known], lists.sq_distances[known] = patched.indices, patched.sq_distances
        return lists

    def _fetched(self, slots: IntArray) -> Rows:
        """Return rows; those that are not known yet are read, in one exchange."""
        missing = slots[self._known.places_of(slots) == NOBODY]
        if len(missing):
            self._known = self._known.joined(self._session.rows(missing))
        return self._known.take(self._known.places_of(slots))

    def _there(self, slots: IntArray) -> IntArray:
        """Return those that are not new."""
        return slots[slots < self._session.head.n_points]

    def _shaped(self, lists: Neighbors) -> Neighbors:
        sq_distances = lists.sq_distances.astype(self._type)
        return Neighbors(lists.indices.astype(np.int32), sq_distances)

    def _nobody(self, n_rows: int) -> Neighbors:
        shape = (n_rows, self._stored)
        return Neighbors(np.full(shape, NOBODY, dtype=np.int32), np.full(shape, np.inf))


def _named(indices: IntArray) -> IntArray:
    """Return all points that lists name."""
    named: BoolArray = indices >= 0
    return indices[named].astype(np.int64)
