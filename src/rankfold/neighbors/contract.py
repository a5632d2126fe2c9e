"""What every engine offers: who is near whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from rankfold.types import FloatArray, IntArray, Neighbors, Query


@runtime_checkable
class Engine(Protocol):
    """Holds the points of a database and finds what is near.

    The metric decides what a squared distance is, see `ExactEngine`. Lists ascend in
    distance, ties go to the smaller index, and short lists are filled up with -1 and inf.
    """

    metric: str
    n_points: int
    n_features: int

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points of the database for vectors from anywhere."""

    def rows(self, ids: IntArray, k: int) -> Neighbors:
        """Find the ``k`` nearest neighbours of points of the database, themselves left out."""

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query of several examples: one row.

        The squared distance to a query is the mean of those to its positive examples, by weight.
        Its own points, negative ones too, are left out.
        """

    def sq_distances(self, ids: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything: one row of squared distances per id, then one per vector."""

    def pairs(self, ids: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the database to each other."""
