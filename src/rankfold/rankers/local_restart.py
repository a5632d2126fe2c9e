"""PageRank and manifold ranking where a query reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankfold.neighbors import Engine
from rankfold.rankers.flow import Scored
from rankfold.rankers.reached import best_found, others_wanted, rank_reached, with_those_below
from rankfold.rankers.transition import degrees
from rankfold.solvers import LocalSystem, Start
from rankfold.types import FloatArray, IntArray, Query, Ranking, Weights


class LocalRestart:
    """Solves ``f = alpha D^(p-1) W D^-p f + (1 - alpha) y`` locally.

    With ``f = D^p x`` this is ``(D - alpha W) x = (1 - alpha) D^(1-p) y``, the system of
    `LocalSystem` with margins ``(1 - alpha) D``: ``p = 1`` is PageRank, ``p = 1/2`` manifold
    ranking. A point without neighbours has its own row, with 1 for its degree.

    Parameters
    ----------
    engine : Engine
    weights : sparse array W
    alpha : float
    power : float
        p
    tol : float
        No score is to be further than this from the exact one, unless the answer is certain.
    """

    def __init__(
        self, engine: Engine, weights: Weights, alpha: float, power: float, tol: float
    ) -> None:
        self.engine, self.alpha = engine, alpha
        sums = degrees(weights.astype(np.float64))
        diagonal = np.where(sums > 0, sums, 1.0)
        margin = np.where(sums > 0, (1 - alpha) * sums, 1.0)
        self.lift = diagonal ** (1 - power)
        self.system = LocalSystem(weights, alpha, margin, diagonal**power)
        self.tol = tol / self.system.system.largest_scale

    def rank(
        self,
        queries: Sequence[Query],
        seeds: Sequence[tuple[IntArray, FloatArray]],
        top: int,
        include_query: bool,
    ) -> Iterator[Ranking]:
        """Answer each query; ``seeds`` has the points at which it stands, and how much of it."""
        pairs = zip(queries, seeds, strict=True)
        starts = [self._start(*pair) for pair in pairs]
        tops = [others_wanted(query, top, include_query) for query in queries]
        found = self.system.best(starts, tops, self.tol)
        largest, end = self.system.system.largest_scale, 0
        for query, best, start, n_others in zip(
            queries, best_found(found), starts, tops, strict=True
        ):
            own = found.own[end : end + len(query.ids)]
            end += len(query.ids)
            best = best._replace(bound=best.bound * largest)
            best = with_those_below(best, query, n_others, self.system, start, self.tol)
            yield rank_reached(self.engine, query, best, own, top, include_query)

    def scored(self, query: Query, seeds: tuple[IntArray, FloatArray], tol: float) -> Scored:
        """Return the scores of all points that a query reaches, in the unit of ``self.tol``."""
        reached = self.system.solve(self._start(query, seeds), tol)
        values = reached.values
        if (query.weights >= 0).all():  # then no exact score is negative
            values = np.maximum(values, 0.0)
        return Scored(reached.points, self.system.system.scale[reached.points] * values)

    def _start(self, query: Query, seeds: tuple[IntArray, FloatArray]) -> Start:
        points, weights = seeds
        # A point may be seeded by several vectors.
        points, places = np.unique(points, return_inverse=True)
        seeded = np.bincount(places, weights, minlength=len(points))
        margins = self.system.system.margin[points]
        given = (1 - self.alpha) * self.lift[points] * seeded / margins
        return Start(points, given, float(np.abs(given).max(initial=0.0)), left_out=query.ids)
