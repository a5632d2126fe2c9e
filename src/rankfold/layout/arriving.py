"""Places of new points among those that are there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankfold.graph.adaptive import adaptive_weights, interpolating
from rankfold.neighbors import Change, LivingEngine
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors

N_NEAREST = 3
"""Neighbours between which a new point is put."""


def among_neighbors(places: FloatArray, engine: LivingEngine, change: Change) -> FloatArray:
    """Return the weighted mean place of the nearest old points of each new one.

    The weights are those with which RAN links an unseen vector, so that a copy of a point lies
    upon it.

    Parameters
    ----------
    places : array, shape (n_points, 2)
        Of all slots before the change.
    engine : LivingEngine
        In the state before the change.
    change : Change
    """
    if not engine.n_points:
        return np.zeros((len(change.added), 2), dtype=np.float32)
    return between(_nearest_old(engine, change), lambda slots: places[slots])


def between(lists: Neighbors, places_of: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Return the weighted mean place of the first points of every list.

    Parameters
    ----------
    lists : Neighbors
        The nearest old points of each new one, one more than get any weight at least.
    places_of : callable
        Returns the places of some slots.
    """
    weights, _, reach = adaptive_weights(lists.sq_distances, N_NEAREST)
    nearest = lists.head(N_NEAREST)
    relative = nearest.sq_distances / np.where(reach > 0, reach, 1.0)[:, None]
    shares = interpolating(weights, relative)
    total = shares.sum(axis=1)[:, None]
    shares /= np.where(total > 0, total, 1.0)  # where everybody has left, the centre is the place
    slots, back = np.unique(nearest.indices, return_inverse=True)
    known = np.zeros((len(slots), 2))
    known[slots != NOBODY] = places_of(slots[slots != NOBODY])
    places = known[back.reshape(nearest.indices.shape)]
    means: FloatArray = np.einsum("ij,ijk->ik", shares, places)
    return means.astype(np.float32)


def _nearest_old(engine: LivingEngine, change: Change) -> Neighbors:
    """Return the nearest old points of each new one, one more than get any weight.

    Lists of points that came together may hold nobody else; those are searched.
    """
    width = N_NEAREST + 1
    new = change.rows >= engine.n_points
    lists = change.lists.take(np.flatnonzero(new))
    known = lists.indices < engine.n_points
    old = Neighbors.merge(
        [Neighbors(np.where(known, lists.indices, NOBODY), lists.sq_distances)], width
    )
    alone = old.indices[:, 0] == NOBODY
    if alone.any() and engine.n_alive:
        found = engine.search(engine.new_vectors(change)[alone], width)
        old.indices[alone], old.sq_distances[alone] = found.indices, found.sq_distances
    return old
