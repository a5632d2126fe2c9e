"""Searches of a database, measured again: in double precision, and in the order of all lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from rankfold.databases.contract import Session
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors

SPARE, SPARE_SHARE = 8, 0.25
"""Points that are asked for beyond those that are needed, as a number and as a share."""

GROWTH = 4
"""How many more are asked for where these were not enough."""

Measure = Callable[[int, FloatArray], FloatArray]


def nearest(
    session: Session,
    held: FloatArray,
    k: int,
    *,
    own: IntArray | None = None,
    gone: IntArray | None = None,
    where: str | None = None,
    measure: Measure | None = None,
) -> Neighbors:
    """Return the ``k`` nearest points of each vector.

    A database measures in single precision, so it is asked for somewhat more. If it searches
    exactly, but points that were not returned may be as near as the last of a list, it is asked
    again, for more.

    Parameters
    ----------
    session : Session
    held : array of float32, shape (n_vectors, n_features)
        In the form of the stored ones.
    k : int
    own : array of int, optional
        The slot of each vector, which is left out of its list.
    gone : array of int, optional
        Slots that are in no list.
    where : str, optional
        A condition that all have to meet.
    measure : callable, optional
        Returns squared distances of points to the vector at a place; to ``held`` by default.
    """
    lists = Neighbors(
        np.full((len(held), k), NOBODY, dtype=np.int32), np.full((len(held), k), np.inf)
    )
    exact, n_alive = session.head.settings["search"] == "exact", session.head.n_alive
    rounding = (held.shape[1] + 8) * float(np.finfo(np.float32).eps)
    open_places, asked = np.arange(len(held)), k + max(SPARE, int(SPARE_SHARE * k)) + 1
    while len(open_places) and n_alive:
        asked, again = min(asked, n_alive), []
        found = session.search(held[open_places], asked, where)
        for place, (slots, vectors) in zip(open_places.tolist(), found, strict=True):
            if measure is None:
                near = cdist(held[place : place + 1], vectors, "sqeuclidean")[0]
            else:
                near = measure(place, vectors)
            left = _left(slots, own if own is None else own[place : place + 1], gone)
            order = np.flatnonzero(left)[np.lexsort((slots[left], near[left]))][:k]
            lists.indices[place, : len(order)] = slots[order]
            lists.sq_distances[place, : len(order)] = near[order]
            enough = len(order) == k
            if enough and exact:
                enough = bool(near[order[-1]] < near.max() * (1 - rounding))
            if not enough and asked <= len(slots) < n_alive:
                again.append(place)
        open_places, asked = np.array(again, dtype=np.intp), GROWTH * asked
    return lists


def _left(slots: IntArray, own: IntArray | None, gone: IntArray | None) -> IntArray:
    """Tell which slots are neither the own one nor gone."""
    left = np.ones(len(slots), dtype=bool)
    for others in (own, gone):
        if others is not None:
            left &= ~np.isin(slots, others)
    return left
