"""Who lists whom after some lists have changed."""

from __future__ import annotations

import numpy as np

from rankfold.neighbors import Rows
from rankfold.neighbors.repair import Patch
from rankfold.types import FloatArray, IntArray, Neighbors

HALF = np.int64(2**32)
"""A link is one number: its target times this, and its source."""


def relisted(known: Rows, removed: IntArray, patch: Patch) -> Rows:
    """Return every row that is different, in its list or in its sources.

    Parameters
    ----------
    known : Rows
        As they are: those of the removed points, of all points whose lists change, and of all
        that these list now or then.
    removed : array of int
        Points that go.
    patch : Patch
        The lists that change, those of new points among them.

    Examples
    --------
    >>> lists = Neighbors(np.array([[1], [0], [1]]), np.ones((3, 1)))
    >>> known = Rows.of(np.arange(3), lists)
    >>> patch = Patch(np.array([2]), Neighbors(np.array([[0]]), np.ones((1, 1))))
    >>> rows = relisted(known, np.array([], dtype=int), patch)
    >>> rows.slots, np.split(rows.sources, rows.starts[1:-1])
    (array([0, 1, 2]), [array([1, 2]), array([0]), array([], dtype=int64)])
    """
    places = known.places_of(np.concatenate([removed, patch.rows]))
    before = known.take(np.sort(places[places >= 0]))
    then = _links(before.slots, before.lists.indices)
    now = _links(patch.rows, patch.lists.indices)
    lost, gained = np.setdiff1d(then, now), np.setdiff1d(now, then)
    touched = np.concatenate([lost, gained]) // HALF
    slots = np.setdiff1d(np.concatenate([patch.rows, touched]), removed)
    links = np.union1d(np.setdiff1d(_sources(known, slots), lost), gained)
    counts = np.bincount(np.searchsorted(slots, links // HALF), minlength=len(slots))
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Rows(slots, _lists(known, patch, slots), starts, links % HALF)


def _links(rows: IntArray, indices: IntArray) -> IntArray:
    place, column = np.nonzero(indices >= 0)
    links: IntArray = indices[place, column].astype(np.int64) * HALF + rows[place]
    return links


def _sources(known: Rows, slots: IntArray) -> IntArray:
    """Return the links that lead to some points, as they are."""
    places = known.places_of(slots)
    places = places[places >= 0]
    counts = np.diff(known.starts)[places]
    links: IntArray = np.repeat(known.slots[places] * HALF, counts) + known.sources_of(places)
    return links


def _lists(known: Rows, patch: Patch, slots: IntArray) -> Neighbors:
    """Return the lists of some points as they will be."""
    places = known.places_of(slots)
    shape = (len(slots), patch.lists.width)
    indices = np.empty(shape, dtype=patch.lists.indices.dtype)
    sq_distances: FloatArray = np.empty(shape, dtype=patch.lists.sq_distances.dtype)
    there = places >= 0
    stored = known.lists.take(places[there])
    indices[there], sq_distances[there] = stored.indices, stored.sq_distances
    changed, lists = patch.patched(slots)
    indices[changed], sq_distances[changed] = lists.indices, lists.sq_distances
    return Neighbors(indices, sq_distances)
