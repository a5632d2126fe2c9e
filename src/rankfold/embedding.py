"""Shape as a vector: RAN's kernel in a few hundred numbers, which any vector database searches."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from rankfold.check import (
    check_choice,
    check_count,
    check_flag,
    check_positive,
    check_share,
    warn_caller,
)
from rankfold.errors import InputError
from rankfold.files import replacing
from rankfold.graph.adaptive import ClosedForm
from rankfold.graph.symmetric import MOST_FILTERS, SpectrumSolver
from rankfold.inputs.points import reading
from rankfold.neighbors import GIVEN_METRICS, choose_engine, live_points
from rankfold.rankers.base import Ranker
from rankfold.rankers.ordering import Fusion, FusionLike, Neighborhood, blended, capped
from rankfold.rankers.ran import RAN
from rankfold.types import NOBODY, FloatArray, IntArray, Query

LEAST = 1e-12
"""What products of zero or less count as, where they are multiplied."""

FORMAT = 1
"""Of saved embeddings; another is not read."""


class ShapeEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Vectors whose dot products are RAN's scores by shape: a spectral embedding of its kernel.

    By shape, query q gives point i the score ``G_iq / G_qq`` with the Green's kernel of the graph,

        G = (I + 2 lambda L)^-1 = sum_m u_m u_m' / (1 + 2 lambda mu_m),    L u_m = mu_m u_m,

    where L is the Laplacian of RAN's graph. So the vectors

        phi_i = (u_mi / sqrt(1 + 2 lambda mu_m))_m

    have ``phi_i . phi_q = G_iq``. The terms with the smallest ``mu_m`` are the largest, and the
    first few hundred of them are kept. Search for the largest dot products. What is cut off is
    missed most by points of few links, whose vectors become short: dividing every vector by a
    power of its length makes up for some of that.

    An unseen vector is joined to its neighbours, as RAN joins it, with weights ``s_j / 2``. With
    the k neighbours K, and ``c = (diag(lambda s)^-1 + G_KK)^-1 1``, its vector is

        phi = sum_j c_j phi_j / (1 + sum_j c_j),

    so that it has the products that a new point of the graph would have; with all components
    they are exact.

    Parameters
    ----------
    n_components : int
        Length of the vectors, at most; there are no more than points.
    smoothness : float
        How far scores carry along the graph, lambda; as for `RAN`.
    n_neighbors : int or "auto"
        Neighbours in the graph, as for `RAN`.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        As for `RAN`.
    adapt : {"query", "collective"}
        "collective" learns the graph first, as for `RAN`.
    normalization : float
        Vectors are divided by this power of their length. 0 leaves the kernel as it is; 1 makes
        all of length one, for databases that know cosine alone: the first results are better
        then, and the whole list is worse.
    tol : float
        The eigenvectors are good enough when one more iteration adds no more than this share to
        the sum of ``1 / (1 + 2 lambda mu_m)``, which can only grow.
    dtype : {"float32", "float64"}
        Of the vectors, and of the work on more than 2,000 points.
    random_state : int
        Seed of the first vectors; the same seed gives the same embedding.
    n_jobs : int, optional
        Threads; as many as there are cores by default.
    progress : bool
        Whether to show a bar on stderr.

    Attributes
    ----------
    eigenvalues_ : array, shape (n_components_,)
        ``mu_m``, ascending.
    n_components_ : int
        Length of the vectors.
    n_pieces_ : int
        Connected parts of the graph. Points of different parts have the product zero, as far as
        there are as many numbers as parts.
    n_neighbors_ : int
        Neighbours in the graph.
    degrees_ : array, shape (n_points,)
        Sums of the weights of each point's edges, of which the mean is about one; `fuse` takes
        those of candidates.
    ranker_ : RAN
        Ranks by the same graph, and holds the points.

    Examples
    --------
    >>> from rankfold import datasets
    >>> moons = datasets.load("moons")
    >>> embedding = ShapeEmbedding(n_components=16, n_neighbors=10)
    >>> vectors = embedding.fit_transform(moons.X)
    >>> vectors.shape, vectors.dtype
    ((400, 16), dtype('float32'))
    >>> best = (vectors @ vectors[0]).argsort()[::-1][:100]
    >>> (moons.labels[best] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        n_components: int = 256,
        smoothness: float = 30.0,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        metric: str = "euclidean",
        adapt: Literal["query", "collective"] = "query",
        normalization: float = 0.25,
        tol: float = 1e-3,
        dtype: Literal["float32", "float64"] = "float32",
        random_state: int = 0,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.smoothness = smoothness
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.adapt = adapt
        self.normalization = normalization
        self.tol = tol
        self.dtype = dtype
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the vectors of points.

        Parameters
        ----------
        X : array, shape (n_points, n_features), sparse array or Engine
            What `RAN` takes.
        y : ignored
        """
        self._check_parameters()
        if not hasattr(type(X), "nearest"):  # an engine has checked what it holds
            X = self._checked(X, reset=True)
        # Only its graph is used here; queries that come later are solved as they always are.
        ranker = RAN(
            self.n_neighbors,
            self.smoothness,
            metric=self.metric,
            adapt=self.adapt,
            fusion="none",
            solver="cg",
        ).fit(X)
        self.ranker_, self.n_neighbors_ = ranker, ranker.n_neighbors_
        self._engine = ranker.engine_
        self.n_features_in_ = ranker.engine_.n_features
        form = ClosedForm.of(ranker.neighbors_, self.n_neighbors_, ranker.engine_.n_alive)
        self._embed(form.symmetric())
        self._n_features_out = self.n_components_
        return self

    def fit_transform(self, X: Any, y: Any = None, **ignored: Any) -> FloatArray:
        """Find the vectors of points, and return them.

        Parameters
        ----------
        X : array, shape (n_points, n_features), sparse array or Engine
        y : ignored

        Returns
        -------
        vectors : array, shape (n_points, n_components_)
            Zero for points without neighbours, and for those that an engine has removed.
        """
        return self.fit(X, y).vectors()

    def transform(self, X: Any) -> FloatArray:
        """Find the vectors of unseen points, from those of their neighbours.

        A row that equals a fitted point has the vector of that point.

        Parameters
        ----------
        X : array, shape (n_rows, n_features)

        Returns
        -------
        vectors : array, shape (n_rows, n_components_)
        """
        check_is_fitted(self)
        rows = self._checked(X, reset=False)
        near = self._engine.search(rows, self.n_neighbors_ + 1)
        form = ClosedForm.of(near, self.n_neighbors_)
        shape = np.zeros((len(rows), self.n_components_), dtype=self._kernel.dtype)
        for row, (points, weights) in enumerate(zip(form.indices, form.weights, strict=True)):
            if near.indices[row, 0] != NOBODY and near.sq_distances[row, 0] == 0:
                shape[row] = self._kernel[near.indices[row, 0]]
                continue
            used = (points != NOBODY) & (weights > 0)
            shape[row] = self._joined(points[used], weights[used])
        return self._normalized(shape)

    def vectors(self) -> FloatArray:
        """Return the vectors of the fitted points."""
        check_is_fitted(self)
        return self._normalized(self._kernel.copy())

    def save(self, path: str | Path) -> None:
        """Write it to a file of NumPy, ``.npz``, for `load` in another process.

        The points are part of it, as `transform` looks for neighbours among them; no pickle is.
        """
        check_is_fitted(self)
        file = _saved_at(path)
        if self.metric in GIVEN_METRICS:
            raise InputError(
                f"metric is {self.metric!r}, but only an embedding of vectors can be saved: new "
                "points of a given graph have no neighbours that could be searched for."
            )
        live = live_points(self._engine)
        points: Any = self._engine
        described = {
            "format": FORMAT,
            "parameters": self.get_params(),
            "n_neighbors": int(self.n_neighbors_),
            "n_pieces": int(self.n_pieces_),
        }
        arrays = {
            "points": points.points[live],
            "kernel": self._kernel[live],
            "degrees": self.degrees_[live],
            "eigenvalues": self.eigenvalues_,
        }
        with replacing(file) as partial, partial.open("wb") as stream:
            np.savez(stream, described=np.array(json.dumps(described)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote: it has `transform` and `vectors`, but no ``ranker_``."""
        file = _saved_at(path)
        with file.open("rb") as stream, reading(file, "an embedding of ShapeEmbedding.save"):
            with np.load(stream, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            described = json.loads(str(arrays["described"]))
            if described["format"] != FORMAT:
                raise InputError(
                    f"{str(file)!r} has format {described['format']!r:.20}, but this version reads "
                    f"{FORMAT}; fit the embedding again."
                )
            try:
                loaded = cls(**described["parameters"])
                loaded._restore(arrays, described)
            except InputError as error:
                raise ValueError(str(error)) from None
        return loaded

    def _restore(self, arrays: dict[str, Any], described: dict[str, Any]) -> None:
        """Take up what a file holds, which anybody may have written."""
        self._check_parameters()
        check_choice(self.metric, "metric", ("euclidean", "cosine"))
        check_positive(self.smoothness, "smoothness")
        points, self._kernel = arrays["points"], arrays["kernel"]
        self.degrees_, self.eigenvalues_ = arrays["degrees"], arrays["eigenvalues"]
        n_points, n_components = self._kernel.shape
        for name, dtype, shape in (
            ("points", points.dtype, (n_points, points.shape[-1])),
            ("kernel", np.dtype(self.dtype), (n_points, n_components)),
            ("degrees", np.dtype(np.float64), (n_points,)),
            ("eigenvalues", np.dtype(np.float64), (n_components,)),
        ):
            array = arrays[name]
            if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
                raise InputError(f"{name} is not finite numbers")
            if (array.dtype, array.shape) != (dtype, shape):
                raise InputError(f"{name} holds {array.dtype} values of shape {array.shape}")
        self.n_neighbors_ = check_count(described["n_neighbors"], "n_neighbors")
        self.n_pieces_ = check_count(described["n_pieces"], "n_pieces")
        self.n_features_in_ = int(points.shape[1])
        self.n_components_ = int(n_components)
        self._n_features_out = self.n_components_
        self._engine = choose_engine(points, self.metric)

    def _check_parameters(self) -> None:
        check_count(self.n_components, "n_components")
        check_positive(self.tol, "tol")
        check_choice(self.dtype, "dtype", ("float32", "float64"))
        check_count(self.random_state, "random_state", least=0)
        check_flag(self.progress, "progress")
        if self.n_jobs is not None:
            check_count(self.n_jobs, "n_jobs")
        check_share(self.normalization, "normalization", zero=True, one=True)

    def _checked(self, X: Any, reset: bool) -> Any:
        form = "csr" if self.metric in GIVEN_METRICS else False
        kinds = [np.float64, np.float32]
        return validate_data(self, X, dtype=kinds, accept_sparse=form, reset=reset)

    def _embed(self, weights: sparse.csr_array) -> None:
        """Find the vectors, for the points that have neighbours."""
        degrees = np.asarray(weights.sum(axis=1), dtype=np.float64).ravel()
        joined = np.flatnonzero(degrees > 0)
        live = live_points(self.ranker_.engine_)
        self.degrees_ = degrees
        part = weights if len(joined) == len(degrees) else weights[joined][:, joined].tocsr()
        self.n_pieces_ = len(live) - len(joined)
        self.n_components_ = min(self.n_components, len(live))
        self._kernel = np.zeros((len(degrees), self.n_components_), dtype=self.dtype)
        self.eigenvalues_ = np.zeros(self.n_components_)
        if not len(joined):
            return
        n_joined, pieces = connected_components(part, directed=False)
        self.n_pieces_ += n_joined
        wanted = min(self.n_components_, len(joined))
        if n_joined >= wanted:
            values: FloatArray = np.zeros(wanted)
            vectors = self._one_each(pieces, n_joined, wanted)
        else:
            solver = SpectrumSolver(
                part, self.smoothness, self.tol, self.dtype, self.random_state,
                self.n_jobs or os.cpu_count() or 1, self.progress,
            )  # fmt: skip
            values, vectors, converged = solver.find(wanted)
            if not converged:
                warn_caller(
                    f"the eigenvectors have not settled to tol={self.tol} after {MOST_FILTERS} "
                    "iterations; raise tol, or give fewer n_components.",
                    ConvergenceWarning,
                )
        self.eigenvalues_[:wanted] = values
        roots = np.sqrt(1 + 2 * self.smoothness * values)
        self._kernel[joined, :wanted] = vectors / roots

    def _one_each(self, pieces: IntArray, n_pieces: int, wanted: int) -> FloatArray:
        """Return a direction for every piece, where there are more pieces than directions."""
        sizes = np.bincount(pieces)
        directions = np.eye(n_pieces, wanted)
        if n_pieces > wanted:
            warn_caller(
                f"the graph falls into {n_pieces:,} pieces, but n_components={wanted:,} tells no "
                "more than so many apart: each has a direction at random, and points within a "
                "piece are all alike; give more n_components or more n_neighbors.",
            )
            random = np.random.default_rng(self.random_state).normal(size=(n_pieces, wanted))
            directions = random / np.linalg.norm(random, axis=1, keepdims=True)
        found: FloatArray = (directions / np.sqrt(sizes)[:, None])[pieces]
        return found

    def _joined(self, points: IntArray, weights: FloatArray) -> FloatArray:
        """Return the vector of a point that is joined to others by ``s_j / 2``."""
        known = self._kernel[points].astype(np.float64)
        pull = self.smoothness * weights.astype(np.float64)
        system = known @ known.T
        system[np.diag_indices_from(system)] += 1 / pull
        shares = np.linalg.solve(system, np.ones(len(points)))
        vector: FloatArray = shares @ known / (1 + shares.sum())
        return vector

    def _normalized(self, vectors: FloatArray) -> FloatArray:
        """Divide vectors by a power of their length, in place."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1.0) ** self.normalization
        return vectors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = str(self.metric) in GIVEN_METRICS
        tags.input_tags.pairwise = tags.input_tags.sparse = given
        tags.transformer_tags.preserves_dtype = []
        return tags


def _saved_at(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix != ".npz":
        raise InputError(f"path is {str(file)!r}, but must end in .npz.", "path")
    return file


def fuse(
    similarities: Any,
    sq_distances: Any,
    *,
    n_neighbors: int = 10,
    degrees: Any = None,
    fusion: FusionLike = "auto",
) -> FloatArray:
    """Score the candidates of a search by shape, fused with plain distance as `RAN` does it.

    A search in shape vectors finds what belongs together; among its first few hundred results
    this keeps near points ahead. One search is enough: the plain vectors of candidates come
    with it.

    Parameters
    ----------
    similarities : array, shape (n_candidates,)
        Dot products of shape vectors, in any unit; those below zero count as nearly zero.
    sq_distances : array, shape (n_candidates,)
        Squared plain distances to the query: ``2 - 2 cos`` for cosine. A query that is itself in
        the database is no candidate: leave it out.
    n_neighbors : int
        ``n_neighbors_`` of the embedding; there must be more candidates than that, and better
        500 or five times as many as results.
    degrees : array, shape (n_candidates,), optional
        ``degrees_`` of the candidates, which tell hubs; 1 by default.
    fusion : float, "auto", "reciprocal_rank" or "none"
        As for `RAN`.

    Returns
    -------
    scores : array, shape (n_candidates,)
        The larger, the better.

    Examples
    --------
    >>> fuse([0.9, 0.8, 0.7], [3.0, 1.0, 2.0], n_neighbors=1).argsort()[::-1]
    array([1, 0, 2])
    """
    shape = np.maximum(np.asarray(similarities, dtype=np.float64), LEAST)
    distances = np.asarray(sq_distances, dtype=np.float64)
    if shape.ndim != 1 or shape.shape != distances.shape:
        raise InputError(
            f"similarities have the shape {shape.shape} and sq_distances {distances.shape}, but "
            "both must hold one number for each candidate."
        )
    check_count(n_neighbors, "n_neighbors")
    chosen = Fusion.of(fusion)
    if chosen.kind == "none" or not len(shape):
        return shape
    indices = np.arange(len(shape))
    if chosen.kind == "reciprocal_rank":
        from rankfold.rankers.ordering import reciprocal_ranks

        order = np.lexsort((indices, -shape))
        scores = np.empty(len(shape))
        scores[order] = reciprocal_ranks(order, distances[order])
        return scores
    known = np.ones(len(shape)) if degrees is None else np.asarray(degrees, dtype=np.float64)
    nearest = np.lexsort((indices, distances))[: n_neighbors + 1]
    nobody = Query(indices=np.empty(0, dtype=np.intp), weights=np.ones(1))
    hood = Neighborhood.of(nobody, nearest, distances[nearest], known.take)
    u = hood.units(distances)
    counted = capped(shape, u, hood.most_shape(nobody, indices, shape))
    return blended(counted, u, chosen.mixture(hood.hubness))


def agreement(
    ranker: Ranker, vectors: Any, *, top: int = 100, n_queries: int = 200, seed: int = 0
) -> float:
    """Return the share of a ranker's best points that a search in vectors finds, by dot product.

    It falls as points come and go and vectors are not made again: measure it after fitting and
    again later, with the ranker of what is there by then. Where it has fallen by much, embed again.

    Parameters
    ----------
    ranker : Ranker
        Fitted; RAN with ``fusion="none"``, as a rule.
    vectors : array, shape (n_points, n_components)
        One for every point of the ranker, in the same order.
    top : int
        How many of the best.
    n_queries : int
        Points that are asked, drawn at random.
    seed : int

    Examples
    --------
    >>> from rankfold import datasets
    >>> embedding = ShapeEmbedding(n_components=64).fit(datasets.load("digits").X)
    >>> 0.5 < agreement(embedding.ranker_, embedding.vectors(), top=20) <= 1
    True
    """
    check_is_fitted(ranker)
    engine = ranker.engine_
    known = np.asarray(vectors)
    if known.ndim != 2 or len(known) != engine.n_points:
        raise InputError(
            f"vectors have the shape {known.shape}, but the ranker holds {engine.n_points} points; "
            "give one vector for each, in the same order.",
            "vectors",
        )
    live = live_points(engine)
    length = min(check_count(top, "top"), len(live) - 1)
    rng = np.random.default_rng(check_count(seed, "seed", least=0))
    queries = np.sort(rng.permutation(live)[: check_count(n_queries, "n_queries")])
    best = ranker.rank_many(queries.tolist(), top=length)
    shares = []
    for query, ranking in zip(queries.tolist(), best, strict=True):
        products = known @ known[query]
        products[query] = -np.inf
        if engine.alive is not None:
            products[~engine.alive] = -np.inf
        found = np.argpartition(-products, length - 1)[:length]
        shares.append(len(np.intersect1d(found, ranking.indices)) / length)
    return float(np.mean(shares))
