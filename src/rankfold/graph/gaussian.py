"""Gaussian kernels, between all points or between near ones, and graphs by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from rankfold.check import check_flag, check_neighbors, check_positive
from rankfold.errors import InputError
from rankfold.graph.adaptive import (
    SMALLEST,
    AdaptiveGraph,
    affinity_matrix,
    candidate_lists,
    interpolating,
)
from rankfold.neighbors import Engine
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors, Weights

DENSE_LIMIT = 20_000
"""Most points for which a weight between every pair is kept (3.2 GB)."""

SCALE_NEIGHBOR = 7
"""Its distance is the local scale of a point, after Zelnik-Manor and Perona (2004)."""


def gaussian_weights(relative_sq_distances: FloatArray) -> FloatArray:
    """Return ``w = exp(-x)`` for squared distances x in units of the bandwidth.

    Weights too small to be divided by are zero, so that every degree is either zero or has an
    inverse.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_weights(np.array([0.0, 2.0, 800.0, np.inf])).round(3)
    array([1.   , 0.135, 0.   , 0.   ])
    """
    weights = np.exp(-relative_sq_distances)
    return np.where(weights < SMALLEST, 0.0, weights)


class GaussianGraph(BaseEstimator):
    """A Gaussian kernel, between all points or between near ones.

    With a bandwidth sigma the weights are ``w_ij = exp(-d_ij / (2 sigma^2))``, where ``d`` is
    the squared distance. Any factor c in ``exp(-c d_ij)`` is reached by
    ``sigma = 1 / sqrt(2 c)``: the kernel ``exp(-2 s^2 d_ij)`` of Donoser and Bischof's code
    has ``sigma = 1 / (2 s)``. Self-tuning weights are ``w_ij = exp(-d_ij / (sigma_i sigma_j))``
    with the distance to the 7th neighbour as ``sigma_i`` (Zelnik-Manor and Perona, 2004), or
    to the nearest point that is not a duplicate where the 7th is one.

    Parameters
    ----------
    bandwidth : float or "self-tuning"
        In the unit of the data. Only self-tuning weights are the same in every unit.
    n_neighbors : int, "auto" or None
        Keep the weight of two points where at least one is among the k nearest of the other.
        "auto" chooses k as for RAN. None keeps all pairs, for at most 20,000 points.
    self_affinity : bool
        Whether a point has the weight ``w_ii = 1`` to itself. It holds a walk back.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold import ExactEngine
    >>> engine = ExactEngine(np.array([[0.0], [1.0], [3.0]]))
    >>> GaussianGraph(bandwidth=1.0, n_neighbors=None).build(engine).round(3)
    array([[0.   , 0.607, 0.011],
           [0.607, 0.   , 0.135],
           [0.011, 0.135, 0.   ]])
    """

    def __init__(
        self,
        bandwidth: float | Literal["self-tuning"] = "self-tuning",
        n_neighbors: int | Literal["auto"] | None = "auto",
        self_affinity: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.self_affinity = self_affinity

    def build(self, engine: Engine) -> Weights:
        """Return the symmetric weights of the points of the database."""
        if self.bandwidth != "self-tuning":
            check_positive(self.bandwidth, "bandwidth")
        check_flag(self.self_affinity, "self_affinity")
        indices, nothing = np.arange(engine.n_points), np.empty((0, engine.n_features))
        if self.n_neighbors is None:
            _check_dense(engine.n_points)
            lists = engine.rows(indices, SCALE_NEIGHBOR)
        else:
            check_neighbors(self.n_neighbors)
            lists, self.n_neighbors_ = candidate_lists(engine, self.n_neighbors, 1)
        self.scales_ = self._scales(engine, lists, indices, nothing)
        # The same in both directions, unless given distances are not.
        if self.n_neighbors is None:
            dense = self._dense(engine, indices, nothing, self.scales_, gaussian_weights)
            np.maximum(dense, dense.T, out=dense)
            np.fill_diagonal(dense, float(self.self_affinity))
            return dense
        weights = self._sparse(engine, lists, self.scales_, gaussian_weights)
        if self.self_affinity:
            weights = weights + sparse.eye_array(engine.n_points, format="csr")
        return weights.maximum(weights.T).tocsr()

    def attach(self, engine: Engine, vectors: FloatArray) -> Weights:
        """Return ``exp(-x) / x`` with ``x = d_ij / (sigma_i sigma_j)``."""
        indices = np.empty(0, dtype=np.intp)
        width = SCALE_NEIGHBOR if self.n_neighbors is None else self.n_neighbors_
        lists = engine.search(vectors, max(SCALE_NEIGHBOR, width))
        scales = self._scales(engine, lists, indices, vectors)

        def weigh(relative: FloatArray) -> FloatArray:
            return interpolating(gaussian_weights(relative), relative)

        if self.n_neighbors is None:
            return self._dense(engine, indices, vectors, scales, weigh)
        return self._sparse(engine, lists, scales, weigh)

    def _dense(
        self,
        engine: Engine,
        indices: IntArray,
        vectors: FloatArray,
        scales: FloatArray,
        weigh: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        weights = np.empty((len(scales), engine.n_points))
        for i, row in enumerate(engine.sq_distances(indices, vectors)):
            weights[i] = weigh(_relative(row, scales[i], self.scales_))
        return weights

    def _sparse(
        self,
        engine: Engine,
        lists: Neighbors,
        scales: FloatArray,
        weigh: Callable[[FloatArray], FloatArray],
    ) -> sparse.csr_array:
        nearest = lists.head(self.n_neighbors_)
        others = np.where(nearest.indices == NOBODY, 1.0, self.scales_[nearest.indices])
        weights = weigh(_relative(nearest.sq_distances, scales[:, None], others))
        return affinity_matrix(nearest.indices, weights, engine.n_points)

    def _scales(
        self, engine: Engine, lists: Neighbors, indices: IntArray, vectors: FloatArray
    ) -> FloatArray:
        """Return ``sigma_i`` of points or of vectors, so that ``x = d_ij / (sigma_i sigma_j)``."""
        if self.bandwidth != "self-tuning":
            return np.full(len(lists.indices), np.sqrt(2.0) * self.bandwidth)
        nearest = lists.head(SCALE_NEIGHBOR).sq_distances
        scales = np.sqrt(np.where(np.isfinite(nearest), nearest, 0.0).max(axis=1, initial=0.0))
        alone = ~np.isfinite(nearest).any(axis=1)
        scales[alone] = 1.0
        for i in np.flatnonzero(scales == 0):
            chosen = (indices[i : i + 1], vectors[i : i + 1])
            (row,) = engine.sq_distances(*chosen)
            scales[i] = np.sqrt(row[row > 0].min(initial=np.inf))
        return np.where(np.isfinite(scales), scales, 1.0)


def _check_dense(n_points: int) -> None:
    if n_points > DENSE_LIMIT:
        raise InputError(
            f"the data has {n_points} points, but n_neighbors=None keeps a weight for every "
            f"pair and is meant for at most {DENSE_LIMIT}; give n_neighbors, for example 20."
        )


def _relative(sq_distances: FloatArray, scales: FloatArray, others: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        # The product first: it is the same in both directions to the last digit.
        products = np.maximum(scales * others, np.finfo(np.float64).tiny)
        relative: FloatArray = sq_distances / products
    return relative


class GraphRecipe(Protocol):
    """Says which points are joined, and how strongly."""

    def build(self, engine: Engine) -> Weights:
        """Return the symmetric weights W of the points of the database."""

    def attach(self, engine: Engine, vectors: FloatArray) -> Weights:
        """Return weights of unseen vectors to the points, one row for each.

        They are those of a row of its own in W, divided by the relative squared distance, so
        that a copy of a point stands for that point.
        """


GRAPHS: dict[str, type[AdaptiveGraph] | type[GaussianGraph]] = {
    "adaptive": AdaptiveGraph,
    "gaussian": GaussianGraph,
}
"""Graphs by the names that ``graph=`` takes."""


def make_graph(graph: object) -> GraphRecipe:
    """Return a fresh graph for a name of GRAPHS or an instance, which stays as it is."""
    if isinstance(graph, str) and graph in GRAPHS:
        return GRAPHS[graph]()
    if isinstance(graph, type) or not (hasattr(graph, "build") and hasattr(graph, "attach")):
        choices = ", ".join(repr(name) for name in GRAPHS)
        raise InputError(
            f"graph is {graph!r}, but must be one of {choices}, or a graph such as "
            "GaussianGraph(n_neighbors=10)."
        )
    fresh: GraphRecipe = clone(graph, safe=False)
    return fresh
