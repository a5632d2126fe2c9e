"""Plain distance: the baseline that every other method has to beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankfold.neighbors import (
    DistantEngine,
    Engine,
    is_distant,
    mean_sq_distances,
    plain_sq_distances,
    positive_shares,
)
from rankfold.rankers.base import Ranker
from rankfold.rankers.reached import Best, others_wanted, rank_reached, with_round_trips
from rankfold.types import FloatArray, Query, Ranking, Solution, Trace


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
        amounts: FloatArray = (_negative_shares(query) - positive_shares(query)) * distances
        return amounts

    def _answers(
        self, queries: Sequence[Query], top: int, include_query: bool, traced: bool
    ) -> Iterator[Ranking]:
        for query in queries:
            engine = self.engine_
            if is_distant(engine) and _search_suffices(query, include_query):
                yield _searched(engine, query, top, include_query)
            else:
                yield from super()._answers([query], top, include_query, traced)

    def _score(
        self, queries: Sequence[Query], traced: bool
    ) -> Iterator[tuple[Solution, Trace | None]]:
        for query in queries:
            scores = plain_scores(self.engine_, query, plain_sq_distances(self.engine_, query))
            yield Solution(scores, residual=0.0, bound=0.0, n_iter=0, converged=True), None


def _search_suffices(query: Query, include_query: bool) -> bool:
    """Return whether an answer can be found without measuring all points.

    Negative examples change the order. The score of a point of the query needs its distances to
    all examples, which are to be had for points of the database.
    """
    return not (query.weights < 0).any() and not (include_query and len(query.vectors))


def _searched(engine: DistantEngine, query: Query, top: int, include_query: bool) -> Ranking:
    """Answer by a search; one more is looked for, to know whether the last one is certain.

    That it is certain can be known only where a search finds the nearest without fail.
    """
    before = engine.round_trips
    wanted = others_wanted(query, top, include_query)
    found = engine.nearest(query, wanted + 1)
    ids, sq_distances = (
        row[0][found.indices[0] >= 0] for row in (found.indices, found.sq_distances)
    )
    clear = len(ids) <= wanted or wanted == 0 or sq_distances[wanted] > sq_distances[wanted - 1]
    certain = engine.exact and bool(clear)
    best = Best(ids[:wanted].astype(np.intp), -sq_distances[:wanted], 0.0, 0, certain)
    own = -(engine.pairs(query.ids) @ positive_shares(query)) if include_query else np.empty(0)
    ranking = rank_reached(engine, query, best, own, top, include_query)
    return with_round_trips(ranking, engine.round_trips - before)


def plain_scores(engine: Engine, query: Query, sq_distances: FloatArray) -> FloatArray:
    """Return minus the squared distances to the positive examples, pushed by the negative ones."""
    scores, shares = -sq_distances, _negative_shares(query)
    if shares.any():
        push = mean_sq_distances(engine, query, shares)
        scores[np.isfinite(push)] += push[np.isfinite(push)]  # removed points are at inf
    return scores


def _negative_shares(query: Query) -> FloatArray:
    """Return how much each negative example pushes away."""
    negative = np.maximum(-query.weights, 0.0)
    shares: FloatArray = negative / max(1, np.count_nonzero(negative))
    return shares
