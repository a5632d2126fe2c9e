"""Searches of a database, measured again: in double precision, and in the order of all lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.spatial.distance import cdist

from rankfold.databases.contract import Session
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors

SPARE, SPARE_SHARE = 8, 0.25
"""Points that are asked for beyond those that are needed, as a number and as a share."""

GROWTH = 4
"""How many more are asked for where these were not enough."""

MOST_FOUND = 2**25
"""Numbers in the vectors that are found at once."""

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
    again, for more. Copies of a vector are searched for once: where points have many copies, all
    of these are as near as the last of a list.

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
        Returns squared distances of points to the vector at a place, the same for copies of it;
        to ``held`` by default.
    """
    lists = Neighbors(
        np.full((len(held), k), NOBODY, dtype=np.int32), np.full((len(held), k), np.inf)
    )
    exact, n_alive = session.head.settings["search"] == "exact", session.head.n_alive
    rounding = (held.shape[1] + 8) * float(np.finfo(np.float32).eps)
    open_places, asked = np.arange(len(held)), k + max(SPARE, int(SPARE_SHARE * k)) + 1
    while len(open_places) and n_alive:
        asked, again = min(asked, n_alive), []
        for places, slots, vectors in _found(session, held, open_places, asked, where):
            if measure is None:
                near = cdist(held[places[:1]], vectors, "sqeuclidean")[0]
            else:
                near = measure(int(places[0]), vectors)
            order = np.lexsort((slots, near))
            slots, near = slots[order], near[order]
            for place in places.tolist():
                left = _left(slots, own if own is None else own[place : place + 1], gone)[:k]
                lists.indices[place, : len(left)] = slots[left]
                lists.sq_distances[place, : len(left)] = near[left]
                enough = len(left) == k
                if enough and exact:
                    enough = bool(near[left[-1]] < near[-1] * (1 - rounding))
                if not enough and asked <= len(slots) < n_alive:
                    again.append(place)
        open_places, asked = np.array(again, dtype=np.intp), GROWTH * asked
    return lists


def _found(
    session: Session, held: FloatArray, places: IntArray, k: int, where: str | None
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yield the places of vectors that are alike, and slots and vectors of what was found."""
    different, which = np.unique(held[places], axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    alike = np.split(places[order], np.cumsum(np.bincount(which.ravel()))[:-1])
    size = max(1, MOST_FOUND // (k * held.shape[1]))
    for start in range(0, len(different), size):
        block = slice(start, start + size)
        found = session.search(different[block], k, where)
        for some, (slots, vectors) in zip(alike[block], found, strict=True):
            yield some, slots, vectors


def _left(slots: IntArray, own: IntArray | None, gone: IntArray | None) -> IntArray:
    """Return the places of slots that are neither the own one nor gone."""
    left = np.ones(len(slots), dtype=bool)
    for others in (own, gone):
        if others is not None:
            left &= ~np.isin(slots, others)
    return np.flatnonzero(left)
