"""What every engine of nearest-neighbour search offers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from rankfold.types import BoolArray, FloatArray, IntArray, Neighbors, Query


@runtime_checkable
class Engine(Protocol):
    """Holds the points of a database and finds what is near.

    The metric decides what a squared distance is, see `ExactEngine`. Lists ascend in
    distance, ties go to the smaller index, and short lists are filled up with -1 and inf.

    Points may have been removed: ``alive`` says which are left, None that all are. A removed
    point is in no list, its own is empty, and its distance to everything is inf.
    """

    metric: str
    """How distances are measured, one of `METRICS`."""

    n_features: int
    """Length of a vector; with a precomputed metric, the number of points."""

    @property
    def n_points(self) -> int:
        """The number of points, removed ones among them."""

    @property
    def n_alive(self) -> int:
        """The number of points that were not removed."""

    @property
    def alive(self) -> BoolArray | None:
        """Which points are left, where some may have been removed."""

    @property
    def exact(self) -> bool:
        """Whether a search looks at every point, so that none can be missed."""

    @property
    def tie_order(self) -> Callable[[IntArray], IntArray] | None:
        """Returns a number for each of some points, of which the smallest wins a tie.

        None where the smaller index does.
        """

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points of the database for vectors from anywhere."""

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Find the ``k`` nearest neighbours of points of the database, themselves left out."""

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query of several examples: one row.

        The squared distance to a query is the mean of those to its positive examples, by weight.
        Its own points, negative ones too, are left out.
        """

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything: one row of squared distances per point, then one per vector."""

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Measure the squared distances of some points to each example of a checked query.

        One row for each of its points, then one for each of its vectors.
        """

    def pairs(self, indices: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the database to each other."""


class VectorEngine(Engine, Protocol):
    """An engine of vectors, which it gives back, with lists that are read, not searched."""

    width: int
    """The length up to which they are."""

    def vectors(self, slots: IntArray) -> FloatArray:
        """Return points as they were given; scaled to length one for cosine."""


class Listing(Protocol):
    """The part of an engine that knows the lists of its points."""

    @property
    def n_points(self) -> int:
        """The number of points, removed ones among them."""

    @property
    def alive(self) -> BoolArray | None:
        """Which points are left, where some may have been removed."""

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Find the ``k`` nearest neighbours of points of the database, themselves left out."""


def live_points(engine: Listing) -> IntArray:
    """Return the points of the database that were not removed."""
    return np.arange(engine.n_points) if engine.alive is None else np.flatnonzero(engine.alive)
