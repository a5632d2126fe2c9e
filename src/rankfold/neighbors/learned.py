"""A learned graph, as lists of neighbours in the learned distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rankfold.neighbors.contract import Engine
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors


@dataclass(frozen=True)
class Round:
    """One round of learning, and whether its graph was good enough to be kept.

    Parameters
    ----------
    n_neighbors : int
        Neighbours of every point in the graph of this round.
    number : int
        How many rounds the same attempt had made, this one counted.
    reach : float
        The effective number of points that a query reaches, relative to the graph that learning
        began from.
    share : float
        The same, relative to a plain graph of as many neighbours.
    kept : bool
        Whether it was good enough.
    """

    n_neighbors: int
    number: int
    reach: float
    share: float
    kept: bool


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """Lists in the learned distance ``d_ij / unit + mu ||F_i - F_j||^2``.

    Points that came after it was learned have their plain list, in the same unit. So has a
    point of whose learned neighbours so many were removed that too few are left. Where nothing
    was worth keeping, ``lists`` is empty and all points have plain lists.

    Parameters
    ----------
    lists : Neighbors
        One for every point that was there.
    n_neighbors : int
        Neighbours of every point.
    n_plain : int
        Neighbours in the plain graph that learning began with.
    unit : float
        The squared distance of the data that counts as one; 1 where nothing was kept.
    rounds : tuple of Round
        All that were tried, in order.
    """

    lists: Neighbors
    n_neighbors: int
    n_plain: int
    unit: float
    rounds: tuple[Round, ...]

    def __repr__(self) -> str:
        return (
            f"Learned(n_rounds={self.n_rounds}, n_neighbors={self.n_neighbors}, "
            f"reach={self.reach:.3g})"
        )

    @property
    def n_rounds(self) -> int:
        """Rounds that made the graph; zero where the plain one is kept."""
        return sum(made.kept for made in self.rounds)

    @property
    def reach(self) -> float:
        """The effective number of points that a query reaches, beside where learning began."""
        return next((made.reach for made in reversed(self.rounds) if made.kept), 1.0)

    def fits(self, n_plain: int, n_alive: int) -> bool:
        """Tell whether it stands for the plain graph of so many neighbours and points."""
        return self.n_plain == n_plain and self.n_neighbors <= max(1, n_alive - 2)

    def known(self, alive: BoolArray) -> BoolArray:
        """Tell of each slot whether it has a point with enough of its learned neighbours left."""
        indices = self.lists.indices
        left = (indices != NOBODY) & alive[indices] if len(indices) else indices != NOBODY
        known = np.zeros(len(alive), dtype=bool)
        known[: len(indices)] = left.sum(axis=1) > self.n_neighbors
        return known & alive

    def current(self, engine: Engine) -> tuple[Neighbors, IntArray]:
        """Return the lists of all points of an engine, and the live ones that are not learned."""
        n_points, width = engine.n_points, self.lists.width
        alive = np.ones(n_points, dtype=bool) if engine.alive is None else engine.alive
        indices = np.full((n_points, width), NOBODY, dtype=self.lists.indices.dtype)
        distances = np.full((n_points, width), np.inf, dtype=self.lists.sq_distances.dtype)
        known = self.known(alive)
        left = without(self.lists.take(np.flatnonzero(known)), ~alive)
        indices[known], distances[known] = left.indices, left.sq_distances
        rest = np.flatnonzero(alive & ~known)
        if len(rest):
            plain = engine.rows(rest, width)
            indices[rest], distances[rest] = plain.indices, plain.sq_distances / self.unit
        return Neighbors(indices, distances), rest

    def kept(self, slots: IntArray) -> Learned:
        """Return what is left for some slots, ascending, which are numbered anew in order."""
        known = slots[slots < len(self.lists.indices)]
        number = np.full(max(len(self.lists.indices), 1), NOBODY, dtype=np.int32)
        number[known] = np.arange(len(known))
        left = without(self.lists.take(known), number == NOBODY)
        named = np.where(left.indices == NOBODY, NOBODY, number[left.indices])
        return replace(self, lists=Neighbors(named.astype(np.int32), left.sq_distances))

    def arrays(self) -> dict[str, Any]:
        """Return arrays from which `restore` makes it again."""
        return {
            "learned_indices": self.lists.indices,
            "learned_distances": self.lists.sq_distances,
        }

    def settings(self) -> dict[str, Any]:
        """Return the rest of its state, as JSON can hold it."""
        return {
            "n_neighbors": self.n_neighbors,
            "n_plain": self.n_plain,
            "unit": self.unit,
            "rounds": [asdict(made) for made in self.rounds],
        }

    @classmethod
    def restore(
        cls, arrays: Mapping[str, Any], settings: Mapping[str, Any] | None
    ) -> Learned | None:
        """Make it from its state; None where nothing was learned."""
        if settings is None:
            return None
        lists = Neighbors(arrays["learned_indices"], arrays["learned_distances"])
        rounds = tuple(Round(**made) for made in settings["rounds"])
        counts = int(settings["n_neighbors"]), int(settings["n_plain"])
        return cls(lists, *counts, float(settings["unit"]), rounds)


def without(lists: Neighbors, removed: Any) -> Neighbors:
    """Return lists without some points, closed up.

    Examples
    --------
    >>> import numpy as np
    >>> lists = Neighbors(np.array([[1, 2], [2, 0]]), np.array([[1.0, 2.0], [1.0, 3.0]]))
    >>> without(lists, np.array([False, False, True])).indices
    array([[ 1, -1],
           [ 0, -1]])
    """
    gone = (lists.indices == NOBODY) | removed[lists.indices]
    if not (gone & (lists.indices != NOBODY)).any():
        return lists
    order = np.argsort(gone, axis=1, kind="stable")
    indices = np.take_along_axis(np.where(gone, NOBODY, lists.indices), order, 1)
    distances: FloatArray = np.where(gone, np.inf, lists.sq_distances)
    return Neighbors(
        indices.astype(lists.indices.dtype),
        np.take_along_axis(distances, order, 1).astype(lists.sq_distances.dtype),
    )


def changed_rows(before: Neighbors, after: Neighbors, plain: IntArray) -> IntArray:
    """Return the rows of lists that are not what they were, new ones among them.

    Parameters
    ----------
    before, after : Neighbors
    plain : array of int
        Rows that are not learned, which are taken to have changed.
    """
    n_before = len(before.indices)
    same = (before.indices == after.indices[:n_before]).all(axis=1)
    new = np.arange(n_before, len(after.indices))
    return np.union1d(np.flatnonzero(~same), np.union1d(plain, new))
