"""The lists that new points enter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rankfold.neighbors.repair import Entering
from rankfold.neighbors.reverse import ReverseLists
from rankfold.types import BoolArray, FloatArray, IntArray

Reaches = Callable[[IntArray], FloatArray]
"""Returns the distance below which a new point enters the lists of some points."""


def measured_entering(
    measured: Iterator[FloatArray], reaches: Reaches, live: IntArray, first: int
) -> Entering:
    """Compare every point with every new one.

    Parameters
    ----------
    measured : iterator of arrays
        The squared distances of all points to each of the new ones.
    reaches : callable
    live : array of int
        The points that are left.
    first : int
        The slot of the first new point.
    """
    reach = reaches(live)
    parts = []
    for place, row in enumerate(measured):
        near = row[live]
        entered = np.flatnonzero(near < reach)
        parts.append((live[entered], np.full(len(entered), first + place), near[entered]))
    return _joined(parts)


def sought_entering(
    points: FloatArray,
    held: FloatArray,
    near: IntArray,
    reaches: Reaches,
    reverse: ReverseLists,
    alive: BoolArray,
) -> Entering:
    """Compare new points with those around them.

    A point that will list a new one lists a neighbour of the new one already, hardly ever none:
    the nearest, and those that list them, are compared.

    Parameters
    ----------
    points : array
        All points as they are held.
    held : array
        The new ones.
    near : array of int, shape (n_new, width)
        The nearest old points of each new one, -1 where there are no more.
    reaches : callable
    reverse : ReverseLists
    alive : array of bool
    """
    parts = []
    for place, (vector, row) in enumerate(zip(held, near, strict=True)):
        row = row[row >= 0]
        around = np.unique(np.concatenate([row, reverse.sources(row)]))
        around = around[alive[around]]
        differences = points[around].astype(np.float64) - vector
        sq_distances = np.einsum("ij,ij->i", differences, differences).astype(np.float32)
        entered = sq_distances < reaches(around)
        found = around[entered]
        parts.append((found, np.full(len(found), len(points) + place), sq_distances[entered]))
    return _joined(parts)


def _joined(parts: list[tuple[IntArray, IntArray, FloatArray]]) -> Entering:
    return Entering(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
