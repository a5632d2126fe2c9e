"""Plain distance, and query expansion, which moves the query and ranks by distance again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Self, cast

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from rankfold.check import check_budget, check_count, check_positive
from rankfold.errors import InputError
from rankfold.neighbors import (
    GIVEN_METRICS,
    Engine,
    VectorEngine,
    choose_engine,
    live_points,
    mean_sq_distances,
    plain_sq_distances,
    positive_shares,
)
from rankfold.rankers.base import Ranker, Unseen
from rankfold.solvers import Budget, Wanted
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors, Query, Solution, Trace


class Distance(Ranker):
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
    budget : "auto", int or None
        By default, None, the distance of every point is measured, and the answer is proven. Else
        the best are looked for in the index of an engine that has one, such as `FaissEngine`, which
        can miss some; ``solution.certified`` says which was done. Where negative examples push
        away, every distance is measured.

    Examples
    --------
    >>> import numpy as np
    >>> Distance().fit(np.array([[0.0], [1.0], [5.0]])).rank(1).indices
    array([0, 2])
    """

    def __init__(self, metric: str = "euclidean", budget: Budget = None) -> None:
        self.metric = metric
        self.budget = budget

    def _fit(self) -> None:
        check_budget(self.budget)

    def with_budget(self, budget: Budget) -> Self:
        """Return this fitted ranker with another budget."""
        check_budget(budget)
        check_is_fitted(self)
        twin = copy(self)
        twin.budget = budget
        return twin

    def amounts(self, query: Query, point: int, tol: float) -> FloatArray:
        """Return what each example adds to the score."""
        rows = self.engine_.sq_distances(query.indices, query.vectors)
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
        for query, (top, _) in zip(queries, wanted, strict=True):
            few = 4 * top < engine.n_alive and query.weights.min() > 0
            if few and self.budget is not None and not engine.exact:
                found = engine.nearest(query, top)
                if NOBODY not in found.indices:
                    yield _nearest_alone(engine, query, found), None
                    continue
            scores = plain_scores(engine, query, plain_sq_distances(engine, query))
            points = np.arange(len(scores))
            yield Solution(points, scores, 0.0, solver="distance", n_touched=len(points)), None


def _nearest_alone(engine: Engine, query: Query, found: Neighbors) -> Solution:
    """Return the scores of points that a search has found, and of the query's own."""
    own = np.empty(0)
    if len(query.indices):
        own = -(positive_shares(query) @ engine.between(query, query.indices))
    return Solution(
        np.concatenate([found.indices[0], query.indices]),
        np.concatenate([-found.sq_distances[0].astype(np.float64), own]),
        0.0,
        solver="distance",
        stopped="budget",
        n_touched=found.indices.shape[1],
        complete=False,
    )


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


class QueryExpansion(Ranker):
    """Query expansion, and augmentation of the database by the same rule.

    The query becomes the mean of itself and of its nearest neighbours, each weighted by a power
    of its similarity,

        q' = (q + sum_j s_j^alpha x_j) / (1 + sum_j s_j^alpha),

    and points are ranked by plain distance to ``q'``: alpha query expansion (Radenović, Tolias
    and Chum, PAMI 2018). With alpha = 0 all count alike, which is average query expansion (Chum
    and others, ICCV 2007). With ``augment``, every point of the database is replaced by the mean
    with its own neighbours beforehand (Turcot and Lowe 2009; Arandjelović and Zisserman 2012).

    For ``cosine``, ``s_j`` is the cosine, or zero where it is negative. For ``euclidean`` it is
    ``1 - d_qj / m_q``, where ``m_q`` is the mean squared distance of the query to the points: the
    same on vectors of length one around zero, and independent of origin and unit elsewhere.

    Several examples are one query, their mean by weight. Negative examples are not expanded;
    they push away as for `Distance`.

    Parameters
    ----------
    n_neighbors : int
        Neighbours that a query is averaged with.
    alpha : float
        Power of the similarity, zero or more.
    augment : int
        Neighbours that every point of the database is averaged with; 0 leaves them as they are.
    metric : {"euclidean", "cosine"}
        How distances are measured, see `ExactEngine`. Distances alone have no mean.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.1], [3.8], [4.4], [4.9], [5.5]])
    >>> ranking = QueryExpansion(n_neighbors=2).fit(X).rank(2, top=3)  # 3 is nearer than 0
    >>> ranking.indices, ranking.scores.round(2)
    (array([1, 0, 3]), array([-0.74, -3.46, -3.76]))
    """

    needs_vectors = True

    def __init__(
        self,
        n_neighbors: int = 10,
        alpha: float = 3.0,
        augment: int = 0,
        *,
        metric: str = "euclidean",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.augment = augment
        self.metric = metric

    def _fit(self) -> None:
        check_count(self.n_neighbors, "n_neighbors")
        if self.alpha != 0:
            check_positive(self.alpha, "alpha")
        check_count(self.augment, "augment", least=0)
        if self.metric in GIVEN_METRICS or not hasattr(self.engine_, "vectors"):
            raise InputError(
                f"metric is {self.metric!r}, but query expansion averages vectors, which distances "
                "do not have; give vectors and metric='euclidean' or 'cosine', or use a method "
                "that needs distances only, such as KReciprocal.",
                "metric",
            )
        engine = self.engine_
        self._slots = live_points(engine)
        vectors = _vectors(engine, self._slots)
        self._measure(vectors)
        self._base = engine
        if self.augment:
            self._base = choose_engine(self._augmented(vectors), self.metric)
            self._measure(_vectors(self._base, np.arange(len(vectors))))
        else:
            self._slots = np.arange(engine.n_points)

    def amounts(self, query: Query, point: int, tol: float) -> FloatArray:
        """Return what each example adds to the score; those that are averaged share it."""
        place = int(np.searchsorted(self._slots, point))
        expanded = self._expanded(self._placed(query))
        rows = self._base.sq_distances(expanded.indices, expanded.vectors)
        distances = np.array([row[place] for row in rows])
        amounts = signed_shares(query)
        amounts[query.weights > 0] *= distances[expanded.weights > 0]
        amounts[query.weights < 0] *= distances[expanded.weights < 0]
        return amounts

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        for query in queries:
            expanded = self._expanded(self._placed(query))
            scores = plain_scores(self._base, expanded, plain_sq_distances(self._base, expanded))
            n_points = len(self._slots)
            yield Solution(self._slots, scores, 0.0, solver="distance", n_touched=n_points), None

    def _placed(self, query: Query) -> Query:
        """Return the query with places among the points that are searched."""
        return replace(query, indices=np.searchsorted(self._slots, query.indices))

    def _expanded(self, query: Query) -> Query:
        """Return a query of one vector, beside the negative examples."""
        shares, n_indices = positive_shares(query), len(query.indices)
        examples = np.concatenate([_vectors(self._base, query.indices), query.vectors])
        if self.metric == "cosine":
            examples = examples / np.linalg.norm(examples, axis=1, keepdims=True)
        found = self._base.nearest(query, self.n_neighbors)
        near = found.indices[0][found.indices[0] >= 0].astype(np.intp)
        whole = shares @ self._typical(examples)
        weights = self._similarity(found.sq_distances[0, : len(near)], whole)
        total = shares @ examples + weights @ _vectors(self._base, near)
        mean = total / (1 + weights.sum())
        negative = query.weights < 0
        return Query(
            query.indices[negative[:n_indices]],
            np.concatenate([mean[None, :], query.vectors[negative[n_indices:]]]),
            np.concatenate([query.weights[:n_indices][negative[:n_indices]], [1.0],
                            query.weights[n_indices:][negative[n_indices:]]]),
        )  # fmt: skip

    def _augmented(self, vectors: FloatArray) -> FloatArray:
        """Return the mean of every point and its neighbours."""
        found = self.engine_.rows(self._slots, self.augment)
        rows, columns = np.nonzero(found.indices >= 0)
        near = np.searchsorted(self._slots, found.indices[rows, columns])
        weights = self._similarity(found.sq_distances[rows, columns], self._typical(vectors)[rows])
        n_points = len(vectors)
        mean = sparse.csr_array((weights, (rows, near)), shape=(n_points, n_points))
        total = vectors + mean @ vectors
        augmented: FloatArray = total / (1 + mean.sum(axis=1))[:, None]
        return augmented

    def _measure(self, vectors: FloatArray) -> None:
        """Learn the centre of the points, and their mean squared distance to it."""
        wide = vectors.astype(np.float64)
        self._centre = wide.mean(axis=0)
        self._spread = float(((wide - self._centre) ** 2).sum(axis=1).mean())

    def _typical(self, vectors: FloatArray) -> FloatArray:
        """Return the squared distance at which nothing is left of similarity."""
        if self.metric == "cosine":
            return np.full(len(vectors), 2.0)
        away: FloatArray = ((vectors - self._centre) ** 2).sum(axis=1)
        return away + self._spread

    def _similarity(self, sq_distances: FloatArray, typical: FloatArray) -> FloatArray:
        relative = np.divide(
            sq_distances, typical, out=np.zeros(len(sq_distances)), where=typical > 0
        )
        similar = np.maximum(1 - relative, 0.0)
        weights: FloatArray = similar**self.alpha
        return weights


def _vectors(engine: Engine, places: IntArray) -> FloatArray:
    return cast(VectorEngine, engine).vectors(places)
