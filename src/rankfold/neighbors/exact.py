"""Exact nearest-neighbour search in blocks: the oracle for every other engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import spatial

from rankfold.check import (
    check_choice,
    check_diagonal,
    check_directions,
    check_distances,
    check_matrix,
    check_norms,
)
from rankfold.errors import InputError
from rankfold.neighbors.distances import (
    GIVEN_METRICS,
    measure_all,
    measured_candidates,
    measured_row,
    merge_lists,
    nearest_columns,
    plain_sq_distances,
    row_blocks,
    stack_lists,
    without_unknown,
)
from rankfold.neighbors.faiss_engine import FaissEngine
from rankfold.types import DEFAULT_RECALL, FloatArray, IntArray, Neighbors, Query

METRICS = ("euclidean", "cosine", "precomputed", "precomputed_sq")
"""How distances are measured; the last two say that they are given, plain or squared."""

SPARE_CANDIDATES = 16
"""Candidates taken beyond the asked ones, so that rounding rarely matters at the edge."""

EXACT_LIMIT = 20_000
"""Up to so many points the exact engine is quick enough."""

DIMENSION_NEIGHBORS = 20
"""Length of the lists over which the intrinsic dimension is measured."""

DIFFUSE_DIMENSION = 10.0
"""Above this intrinsic dimension data counts as diffuse rather than as a clean manifold."""

CLEAN_NEIGHBORS, DIFFUSE_NEIGHBORS = 10, 20


def as_held(vectors: FloatArray, metric: str, name: str) -> FloatArray:
    """Return checked vectors as the engine holds them: of length one for ``cosine``."""
    if metric == "cosine":
        wide = check_directions(vectors, name)
        vectors = wide / np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    check_norms(vectors, name)
    return np.ascontiguousarray(vectors)


class ExactEngine:
    """Brute-force search over vectors or over a given distance matrix.

    The squared distance of two vectors is the sum of squared differences for
    ``euclidean`` and the same after scaling to length one, ``2 - 2 cos``, for ``cosine``.
    The entries of a ``precomputed`` matrix are distances and are squared; those of a
    ``precomputed_sq`` matrix are used as they are.

    Memory stays below a few times ``block_bytes`` beside the points themselves.

    Parameters
    ----------
    X : array, shape (n_points, n_features) or (n_points, n_points)
        Vectors, or distances for a precomputed metric.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        What a squared distance is, see above.
    block_bytes : int
        Size of the largest temporary array.

    Examples
    --------
    >>> import numpy as np
    >>> engine = ExactEngine(np.array([[0.0], [1.0], [3.0]]))
    >>> engine.search(np.array([[0.9]]), 2).indices
    array([[1, 0]])
    """

    alive = tie_order = None

    def __init__(self, X: FloatArray, metric: str = "euclidean", block_bytes: int = 2**26) -> None:
        check_choice(metric, "metric", METRICS)
        X = check_matrix(X, "X")
        self.metric = metric
        self.block_bytes = block_bytes
        self.n_points: int = X.shape[0]
        self.n_alive: int = X.shape[0]  # none are removed
        self.n_features: int = X.shape[1]
        self._precomputed = metric in GIVEN_METRICS
        if self._precomputed:
            if self.n_points != self.n_features:
                raise InputError(
                    f"X has shape {X.shape}, but metric={metric!r} needs a square matrix of "
                    "distances between all points; for vectors use metric='euclidean'."
                )
            check_distances(X, "X", squared=metric == "precomputed")
            check_diagonal(X, "X")
            self.points = X
        else:
            check_norms(X, "X")
            self.points = as_held(X, metric, "X") if metric == "cosine" else np.ascontiguousarray(X)
            norms = np.einsum("ij,ij->i", self.points, self.points, dtype=np.float64)
            self._largest_norm = float(np.sqrt(norms.max()))

    exact = True

    @cached_property
    def _finder(self) -> Any:
        """Return what compares blocks of vectors; it takes long to import, so only for a search."""
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors(algorithm="brute", metric="sqeuclidean").fit(self.points)

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points of the database for vectors from anywhere.

        Parameters
        ----------
        vectors : array, shape (n_vectors, n_features)
            Vectors, or rows of distances to the database for a precomputed metric.
        k : int
            Length of the lists; filled up with -1 and inf beyond the database.
        """
        return self.find(self._check(vectors), k)

    def find(self, held: FloatArray, k: int) -> Neighbors:
        """Search like `search` for vectors in the form in which the points are held."""
        return self._search(held, k, None)

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Find the ``k`` nearest neighbours of points of the database, themselves left out."""
        return self._search(self.points, k, indices)

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out."""
        total = plain_sq_distances(self, query)
        total[query.indices] = np.inf
        return without_unknown(nearest_columns(total[None, :], k, None))

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything: one row of squared distances per point, then one per vector."""
        vectors = self._check(vectors)
        for index in indices:
            yield self.measured(self.points[index])
        for vector in vectors:
            yield self.measured(vector)

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Measure the squared distances of some points to each example of a checked query."""
        vectors = self._check(query.vectors) if len(query.vectors) else query.vectors
        if self._precomputed:
            rows = np.concatenate([self.points[np.ix_(query.indices, points)], vectors[:, points]])
            return self._squared(rows)
        examples = np.concatenate([self.points[query.indices], vectors])
        between: FloatArray = spatial.distance.cdist(examples, self.points[points], "sqeuclidean")
        return between

    def pairs(self, indices: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the database to each other."""
        if self._precomputed:
            return self._squared(self.points[np.ix_(indices, indices)])
        between: FloatArray = spatial.distance.cdist(
            self.points[indices], self.points[indices], "sqeuclidean"
        )
        return between

    def vectors(self, indices: IntArray) -> FloatArray:
        """Return points as they were given; scaled to length one for cosine."""
        return self.points[indices]

    def _check(self, vectors: FloatArray) -> FloatArray:
        vectors = check_matrix(vectors, "vectors", self.n_features)
        if not self._precomputed:
            return as_held(vectors, self.metric, "vectors")
        check_distances(vectors, "vectors", squared=self.metric == "precomputed")
        return vectors

    def measured(self, query: FloatArray) -> FloatArray:
        """Return the squared distance of every point to a vector in the form of the points."""
        if self._precomputed:
            return self._squared(query)
        return measured_row(self.points, query, self.block_bytes)

    def _squared(self, distances: FloatArray) -> FloatArray:
        distances = np.maximum(distances.astype(np.float64), 0.0)
        return distances**2 if self.metric == "precomputed" else distances

    def _search(self, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        """Search in blocks of rows; with ``own``, for those rows of ``queries``."""
        found = min(self.n_points, k + 1 + SPARE_CANDIDATES)
        search_block: Callable[[FloatArray, int, IntArray | None], Neighbors]
        if self._precomputed:
            search_block, row_size = self._search_distances, self.n_points
        elif 4 * found >= self.n_points:
            search_block, row_size = self._search_all, self.n_features
        else:
            search_block, row_size = self._search_vectors, found * self.n_features
        chosen = np.arange(len(queries)) if own is None else own
        blocks = []
        for rows in row_blocks(len(chosen), row_size, self.block_bytes):
            block_own = None if own is None else own[rows]
            blocks.append(search_block(queries[chosen[rows]], k, block_own))
        return stack_lists(blocks, k)

    def _search_distances(self, rows: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        return nearest_columns(self._squared(rows), k, own)

    def _search_all(self, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        return measure_all(self.points, queries, k, own, self.block_bytes)

    def _search_vectors(self, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        """Find candidates by matrix products, measure them exactly, certify the edge.

        ``|x|^2 + |q|^2 - 2 x.q`` is off by rounding, so every point that was not taken is
        known to be further than the last candidate only up to that error. Rows where this
        leaves a doubt (many duplicates, values far from zero) are measured in full.
        """
        rough, indices = self._finder.kneighbors(queries, k + 1 + SPARE_CANDIDATES)
        indices = indices.astype(np.intp)
        sq_distances = measured_candidates(self.points, queries, indices)
        lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        eps = np.finfo(np.float64).eps
        rounding = 4 * (self.n_features + 8) * eps * (lengths + self._largest_norm) ** 2
        merged = merge_lists([Neighbors(indices, sq_distances)], k, own)
        doubtful = merged.sq_distances[:, -1] >= rough[:, -1] - rounding
        if doubtful.any():
            own_doubtful = None if own is None else own[doubtful]
            exact = self._search_all(queries[doubtful], k, own_doubtful)
            merged.indices[doubtful] = exact.indices
            merged.sq_distances[doubtful] = exact.sq_distances
        return merged


def choose_engine(
    X: FloatArray, metric: str, recall: float = DEFAULT_RECALL, progress: bool = False
) -> ExactEngine | FaissEngine:
    """Return the exact engine for distances and for few points, else the one with FAISS."""
    if metric in GIVEN_METRICS or len(X) <= EXACT_LIMIT:
        return ExactEngine(X, metric)
    return FaissEngine(X, metric, recall, progress=progress)


def intrinsic_dimension(neighbors: Neighbors) -> float:
    """Return the median local intrinsic dimension, by maximum likelihood.

    For a point with distances ``T_1 <= ... <= T_m`` to its neighbours the estimate of
    Levina and Bickel (2004) is ``(m - 1) / sum_j log(T_m / T_j)``. Neighbours at distance
    zero say nothing and are left out; nan when no point has two others at different
    distances.

    Parameters
    ----------
    neighbors : Neighbors
        Lists of at least 20, if there are so many points; no more are read.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.neighbors import ExactEngine
    >>> line = np.random.default_rng(0).uniform(size=(500, 1)) @ np.ones((1, 8))
    >>> lists = ExactEngine(line).rows(np.arange(500), 20)
    >>> 0.8 < intrinsic_dimension(lists) < 1.2
    True
    """
    sq_distances = neighbors.head(DIMENSION_NEIGHBORS).sq_distances
    usable = np.isfinite(sq_distances) & (sq_distances > 0)
    logs = np.log(np.where(usable, sq_distances, 1.0)) / 2
    farthest = np.where(usable, logs, -np.inf).max(axis=1, initial=-np.inf, keepdims=True)
    sums = np.where(usable, farthest - logs, 0.0).sum(axis=1)
    defined = sums > 0
    if not defined.any():
        return float("nan")
    return float(np.median((usable.sum(axis=1)[defined] - 1) / sums[defined]))


def choose_n_neighbors(neighbors: Neighbors) -> int:
    """Choose k from the intrinsic dimension: 10 on clean manifolds, 20 in diffuse data.

    Parameters
    ----------
    neighbors : Neighbors
        As for `intrinsic_dimension`; data are diffuse where it is above 10.
    """
    diffuse = intrinsic_dimension(neighbors) > DIFFUSE_DIMENSION
    return DIFFUSE_NEIGHBORS if diffuse else CLEAN_NEIGHBORS
