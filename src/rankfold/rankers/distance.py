"""Plain distance: the baseline that every other method has to beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankfold.neighbors import Engine, mean_sq_distances, plain_sq_distances, positive_shares
from rankfold.rankers.base import Ranker, Unseen
from rankfold.solvers import Wanted
from rankfold.types import FloatArray, Query, Solution, Trace


class Euclidean(Ranker):
    """Rank by plain distance to the query.

    The score is minus the squared distance; for several examples, minus the weighted mean
    of the squared distances to them. Negative examples push away: the mean over them of
    the squared distance, each times the size of its weight, is added. Up to a constant and a
    factor this is minus the squared distance to ``(p - b n) / (1 - b)``, where p is the centre of
    the positive examples, n that of the negative ones and b < 1 their mean weight: Rocchio's query.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.

    Examples
    --------
    >>> import numpy as np
    >>> Euclidean().fit(np.array([[0.0], [1.0], [5.0]])).rank(ids=1).ids
    array([0, 2])
    """

    def __init__(self, metric: str = "euclidean") -> None:
        self.metric = metric

    def _fit(self) -> None:
        pass

    def amounts(self, query: Query, point: int, tol: float) -> FloatArray:
        """Return what each example adds to the score."""
        rows = self.engine_.sq_distances(query.ids, query.vectors)
        distances = np.array([row[point] for row in rows])
        amounts: FloatArray = signed_shares(query) * distances
        return amounts

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        engine = self.engine_
        for query in queries:
            scores = plain_scores(engine, query, plain_sq_distances(engine, query))
            points = np.arange(len(scores))
            yield Solution(points, scores, 0.0, solver="distance", n_touched=len(points)), None


def plain_scores(engine: Engine, query: Query, sq_distances: FloatArray) -> FloatArray:
    """Return minus the squared distances to the positive examples, pushed by the negative ones."""
    scores, shares = -sq_distances, _negative_shares(query)
    if shares.any():
        push = mean_sq_distances(engine, query, shares)
        scores[np.isfinite(push)] += push[np.isfinite(push)]  # removed points are at inf
    return scores


def signed_shares(query: Query) -> FloatArray:
    """Return the factor of each example's distance in the score; below 0 for positive ones."""
    return _negative_shares(query) - positive_shares(query)


def _negative_shares(query: Query) -> FloatArray:
    """Return how much each negative example pushes away."""
    negative = np.maximum(-query.weights, 0.0)
    shares: FloatArray = negative / max(1, np.count_nonzero(negative))
    return shares
