"""The contract of all rankers: fit, rank, rank_many, rank_all."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rankfold.check import check_choice, check_flag, check_list, check_query, check_top
from rankfold.neighbors import METRICS, ExactEngine
from rankfold.rankers.ordering import order_points
from rankfold.types import FloatArray, IntArray, Query, Ranking, Solution, Trace

BLOCK_BYTES = 2**24
"""Size of the scores that are held at once while many queries are answered."""


class Ranker(BaseEstimator, metaclass=ABCMeta):
    """Base of all rankers: checks the input and turns scores into rankings.

    A method says how it prepares itself (``_fit``) and how it scores queries (``_score``).
    """

    metric: str

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the shape of the data.

        Parameters
        ----------
        X : array, shape (n_points, n_features) or (n_points, n_points)
            Vectors, or distances between all points for a precomputed metric. Not copied
            where it can be helped: do not change it while the ranker is in use.
        y : ignored
            Present for scikit-learn.
        """
        check_choice(self.metric, "metric", METRICS)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        self.engine_ = ExactEngine(X, self.metric)
        self._fit()
        return self

    def rank(
        self,
        ids: Any = None,
        vectors: Any = None,
        weights: Any = None,
        *,
        top: int | None = None,
        include_query: bool = False,
    ) -> Ranking:
        """Rank the database for one query.

        Parameters
        ----------
        ids : int or sequence of int, optional
            Points of the database that serve as examples.
        vectors : array, shape (n_features,) or (n_vectors, n_features), optional
            Examples that are not in the database. With a precomputed metric, their distances
            to every point of the database, in the same form as the matrix that was fitted.
        weights : sequence of float, optional
            How much each example counts, ids first, then vectors.
        top : int, optional
            Length of the answer; everything by default.
        include_query : bool
            Whether the query's own points are part of the answer; they then come first.
        """
        query = Query(ids, vectors, weights)
        return self.rank_many([query], top=top, include_query=include_query)[0]

    def rank_many(
        self,
        queries: Iterable[Query | int],
        *,
        top: int | None = None,
        include_query: bool = False,
    ) -> list[Ranking]:
        """Rank the database for many queries; each is a row number or a Query."""
        return list(self._rankings(queries, top, include_query, traced=True))

    def rank_all(
        self, *, top: int | None = None, include_query: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """Rank the database for each of its points.

        Returns
        -------
        indices : array of int, shape (n_points, top)
        scores : array of float, shape (n_points, top)
            Row i answers the query i. Without the query itself there are at most
            ``n_points - 1`` answers.
        """
        check_is_fitted(self)
        n_points = self.engine_.n_points
        length = check_top(top, n_points)
        if not check_flag(include_query, "include_query"):
            length = min(length, n_points - 1)
        indices = np.empty((n_points, length), dtype=np.intp)
        scores = np.empty((n_points, length))
        rankings = self._rankings(range(n_points), top, include_query, traced=False)
        for row, ranking in enumerate(rankings):
            indices[row], scores[row] = ranking.ids, ranking.scores
        return indices, scores

    @abstractmethod
    def _fit(self) -> None:
        """Prepare for queries; ``engine_`` is there."""

    @abstractmethod
    def _score(
        self, queries: Sequence[Query], traced: bool
    ) -> Iterable[tuple[Solution, Trace | None]]:
        """Score every point of the database for each of the checked queries."""

    def _rankings(
        self, queries: Iterable[Query | int], top: int | None, include_query: bool, traced: bool
    ) -> Iterator[Ranking]:
        check_is_fitted(self)
        n_points, n_features = self.engine_.n_points, self.engine_.n_features
        length = check_top(top, n_points)
        check_flag(include_query, "include_query")
        checked = [check_query(query, n_points, n_features) for query in check_list(queries)]
        step = max(1, BLOCK_BYTES // (8 * n_points))
        for start in range(0, len(checked), step):
            block = checked[start : start + step]
            for query, (solution, trace) in zip(block, self._score(block, traced), strict=True):
                yield self._ranking(query, solution, trace, length, include_query)

    def _ranking(
        self,
        query: Query,
        solution: Solution,
        trace: Trace | None,
        top: int | None,
        include_query: bool,
    ) -> Ranking:
        length = check_top(top, self.engine_.n_points)
        ids = order_points(self.engine_, query, solution.scores, length, include_query)
        return Ranking(ids, replace(solution, scores=solution.scores[ids]), trace)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = str(self.metric).startswith("precomputed")
        return tags
