"""A shortcut through all points for a few queries: most are ruled out by their leading directions.

Distances in a projection are never larger than true ones (Pythagoras). So points that are too far
from a query there are too far, and only the others are measured: the answer is that of measuring
all of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankfold.neighbors.lists import GrowableArray
from rankfold.types import BoolArray, FloatArray, IntArray

N_AXES = 64
"""Directions of the projection; it takes 256 bytes a point."""

LEAST_FEATURES, LEAST_SIZE = 4 * N_AXES, 2**24
"""With fewer features, or fewer numbers in all points, looking at everything is about as fast."""

PATIENCE = 16
"""So many queries look at all points first: a projection takes about as long to make as they."""

SAMPLE, PASSES = 2000, 3
"""Points by which the directions are found, and how often they are turned towards the leading."""

N_SEEDS = 2
"""Times the points that are looked for, nearest in the projection, are measured to begin with."""

MOST_LEFT = 0.125
"""Where a larger share of the points is left to measure, all are looked at."""

N_TRIALS, TRIAL_NEIGHBORS = 15, 50
"""Searches by which it is judged whether a projection rules out enough, and their length."""

FAINT = 1e-8
"""Directions with a smaller share than this of the largest spread are not stretched to length one:
rounding would make them longer than that."""

BLOCK_ROWS = 2**12
EPS, TINY = float(np.finfo(np.float32).eps), float(np.finfo(np.float32).tiny)


class Shortcut:
    """A projection of all points that is made when it pays, and given up where it does not.

    Threads that need it first at the same time each make one, and any of them will do.
    """

    def __init__(self, seed: int) -> None:
        self._seed, self.patience = seed, float(PATIENCE)
        """Queries that still look at all points before there is a projection."""
        self.projection: LeadingDirections | None = None

    def answer(
        self, points: FloatArray, queries: FloatArray, alive: BoolArray | None, found: IntArray
    ) -> IntArray:
        """Write the nearest points of queries into rows of ``found``; return the rows it cannot."""
        unanswered = np.arange(len(queries))
        projection = self.projection or self._made(points, len(queries))
        if projection is None:
            return unanswered
        answered = np.zeros(len(queries), dtype=bool)
        for row, query in enumerate(queries):
            near = projection.nearest(points, query, found.shape[1], alive)
            if near is not None:
                found[row], answered[row] = near, True
        return unanswered[~answered]

    def add(self, points: FloatArray, n_added: int) -> None:
        """Take in the last so many of all points; directions stay as they are."""
        if self.projection is not None:
            self.projection.add(points[len(points) - n_added :])

    def _made(self, points: FloatArray, n_queries: int) -> LeadingDirections | None:
        if points.shape[1] < LEAST_FEATURES or points.size < LEAST_SIZE:
            return None
        self.patience -= n_queries
        if self.patience >= 0:
            return None
        projection = LeadingDirections(points, self._seed)
        if projection.separates(points):
            self.projection = projection
        else:
            self.patience = math.inf
        return self.projection


class LeadingDirections:
    """Points along the orthogonal directions in which a sample of them differs most.

    Rounding is allowed for as if no two errors ever cancelled. A sum of d products is off by less
    than d times half of ``EPS``, by the lengths of its factors, and a projection has
    ``N_AXES`` such sums. Twice as much is allowed, which also covers what axes and distances are
    off by. A point within ``reach`` of a query is at most ``reach`` longer than the query,
    both from the centre, so that points further out play no part.
    """

    def __init__(self, points: FloatArray, seed: int) -> None:
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(points), min(SAMPLE, len(points)), replace=False)
        self._sample = np.sort(chosen)
        sample = points[self._sample].astype(np.float64)
        self._center = sample.mean(axis=0).astype(np.float32)
        sample -= self._center
        axes: FloatArray = rng.normal(size=(points.shape[1], N_AXES))
        for _ in range(PASSES):
            axes = _orthogonal(sample.T @ (sample @ axes))
        self._axes = axes.astype(np.float32)
        self._error = EPS * points.shape[1] * math.sqrt(N_AXES)
        self._held = GrowableArray(self.projected(points))

    def add(self, points: FloatArray) -> None:
        """Take in points."""
        self._held.append(self.projected(points))

    def separates(self, points: FloatArray) -> bool:
        """Say whether it leaves few enough points to measure, for most of some points."""
        trials = self._sample[:: -(-len(self._sample) // N_TRIALS)]
        answered = [self.nearest(points, points[i], TRIAL_NEIGHBORS, None) for i in trials]
        return sum(near is not None for near in answered) > len(trials) / 2

    def nearest(
        self, points: FloatArray, query: FloatArray, k: int, alive: BoolArray | None
    ) -> IntArray | None:
        """Return the ``k`` points nearest to a query; None where too many are left to measure."""
        from rankfold.neighbors.kernels import refine, rough_sq_distances_to

        n_seeds = N_SEEDS * k
        if n_seeds > MOST_LEFT * len(points):
            return None

        def measured(bound: float) -> tuple[IntArray, float] | None:
            """Measure what is within a bound in the projection, if that is not too much."""
            near = np.flatnonzero(rough <= bound)
            if len(near) > MOST_LEFT * len(points):
                return None
            lists, _ = refine(points, query[None, :], near[None, :], None, k)
            return lists.indices[0], float(lists.sq_distances[0, -1])

        rough = rough_sq_distances_to(self.coordinates, self.projected(query[None, :])[0])
        if alive is not None:
            rough[~alive] = np.inf
        edge = float(np.partition(rough, n_seeds - 1)[n_seeds - 1])
        seeds = measured(edge) if edge < math.inf else None
        if seeds is None:
            return None
        reach = math.sqrt(seeds[1])
        bound = (reach + float(self.error(query, reach))) ** 2 + TINY
        found = measured(bound) if bound >= edge else seeds
        return None if found is None else found[0]

    @property
    def coordinates(self) -> FloatArray:
        """All points in the projection."""
        return self._held.rows

    def error(self, query: FloatArray, distances: Any) -> Any:
        """Return by how much points at some distances from a query may seem further in it."""
        length = float(np.linalg.norm(query - self._center))
        return self._error * (distances + 2 * length)

    def projected(self, vectors: FloatArray) -> FloatArray:
        """Return vectors in the projection."""
        coordinates = np.empty((len(vectors), N_AXES), dtype=np.float32)
        for start in range(0, len(vectors), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            coordinates[rows] = (vectors[rows] - self._center) @ self._axes
        return coordinates


def _orthogonal(axes: FloatArray) -> FloatArray:
    """Return orthogonal axes of length one for the same directions, shorter ones for faint ones.

    A QR factorisation does it, too, but on a busy machine its threads wait for each other, up to a
    second.
    """
    for _ in range(2):  # the second time makes up for rounding, and lengthens faint ones
        sizes, turned = np.linalg.eigh(axes.T @ axes)
        axes = axes @ (turned / np.sqrt(np.maximum(sizes, FAINT * sizes[-1] or 1.0)))
    return axes
