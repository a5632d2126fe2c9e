"""Positions of points in the plane, from their vectors (principal components) or from the graph."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse

from rankfold.errors import MissingExtraError
from rankfold.graph.adaptive import adaptive_weights
from rankfold.graph.symmetric import link
from rankfold.neighbors import DynamicEngine
from rankfold.types import BoolArray, FloatArray, IntArray

SAMPLE_POINTS, SAMPLE_NUMBERS = 10_000, 2**24
"""The axes are those of a sample of so many points, and of so many numbers in all of them."""

BLOCK_NUMBERS = 2**22

SMALLEST_EXTENT = 1e-100
"""Points that differ less than this are all in one place; dividing by it never overflows."""

FARTHEST = 1e6
"""No place is further out, so that all of them are finite in single precision."""


class Located(Protocol):
    """Holds vectors, some of which may have been removed: an engine, for example."""

    @property
    def n_points(self) -> int:
        """The number of vectors, removed ones among them."""

    @property
    def n_features(self) -> int:
        """Their length."""

    @property
    def alive(self) -> BoolArray | None:
        """Which are left; None where all are."""

    def vectors(self, slots: IntArray) -> FloatArray:
        """Return some of them."""


class Projection(NamedTuple):
    """Where a vector lies, seen from an origin along two axes.

    Parameters
    ----------
    origin : array, shape (n_features,)
    axes : array, shape (n_features, 2)

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.neighbors import DynamicEngine
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 2.0]])
    >>> projection = Projection.plane(DynamicEngine.build(X, "euclidean", width=1))
    >>> projection.places(X)
    array([[-1. , -0.5],
           [ 1. , -0.5],
           [ 1. ,  0.5]], dtype=float32)
    """

    origin: FloatArray
    axes: FloatArray

    @classmethod
    def plane(cls, engine: Located) -> Self:
        """Let points of two features lie where they lie; one feature is the first axis."""
        return cls(np.zeros(engine.n_features), np.eye(engine.n_features, 2))._fitted(engine)

    @classmethod
    def pca(cls, engine: Located) -> Self:
        """Look along the two directions in which a sample of the points spreads most."""
        sample = engine.vectors(_sampled(engine)).astype(np.float64)
        origin = sample.mean(axis=0) if len(sample) else np.zeros(engine.n_features)
        return cls(origin, _directions(sample - origin))._fitted(engine)

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Self:
        """Make it from its settings."""
        return cls(np.array(settings["origin"]), np.array(settings["axes"]))

    def settings(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"origin": self.origin.tolist(), "axes": self.axes.tolist()}

    def places(self, vectors: FloatArray) -> FloatArray:
        """Return the places of vectors."""
        seen = (vectors.astype(np.float64) - self.origin) @ self.axes
        return np.clip(seen, -FARTHEST, FARTHEST).astype(np.float32)

    def of_all(self, engine: Located) -> FloatArray:
        """Return a place for every slot of an engine; zero where the point was removed."""
        places = np.zeros((engine.n_points, 2), dtype=np.float32)
        for rows in _blocks(_live(engine), engine.n_features):
            places[rows] = self.places(engine.vectors(rows))
        return places

    def _fitted(self, engine: Located) -> Self:
        """Move and scale it so that the longer side of all places spans -1 to 1."""
        live = _live(engine)
        if not len(live):
            return self
        low, high = np.full(2, np.inf), np.full(2, -np.inf)
        for rows in _blocks(live, engine.n_features):
            seen = (engine.vectors(rows).astype(np.float64) - self.origin) @ self.axes
            low, high = np.minimum(low, seen.min(axis=0)), np.maximum(high, seen.max(axis=0))
        centre, half = (low + high) / 2, float((high - low).max()) / 2
        scale = half if half > SMALLEST_EXTENT else 1.0
        return type(self)(self.origin + self.axes @ centre, self.axes / scale)


def framed(places: FloatArray) -> FloatArray:
    """Move and scale places so that their longer side spans -1 to 1; the shape stays.

    Examples
    --------
    >>> import numpy as np
    >>> framed(np.array([[0, 0], [8, 2]]))
    array([[-1.  , -0.25],
           [ 1.  ,  0.25]], dtype=float32)
    """
    wide = places.astype(np.float64)
    low, high = wide.min(axis=0), wide.max(axis=0)
    half = float((high - low).max()) / 2
    moved: FloatArray = (wide - (low + high) / 2) / (half or 1.0)
    return moved.astype(np.float32)


def _directions(centred: FloatArray) -> FloatArray:
    """Return the two principal directions as columns, the largest entry of each positive."""
    from sklearn.utils.extmath import randomized_svd

    # Overflow and underflow of squares are out of the question at this scale.
    largest = np.abs(centred).max(initial=0.0)
    scaled = centred / largest if largest > SMALLEST_EXTENT else np.zeros_like(centred)
    if len(scaled) < 2:  # there are two directions, even where nothing spreads
        scaled = np.pad(scaled, ((0, 2 - len(scaled)), (0, 0)))
    _, _, found = randomized_svd(scaled, 2, n_iter=7, random_state=0)
    leading = np.take_along_axis(found, np.abs(found).argmax(axis=1)[:, None], axis=1)
    axes: FloatArray = (found * np.where(leading < 0, -1.0, 1.0)).T
    return np.ascontiguousarray(axes)


def _live(engine: Located) -> IntArray:
    return np.arange(engine.n_points) if engine.alive is None else np.flatnonzero(engine.alive)


def _sampled(engine: Located) -> IntArray:
    live = _live(engine)
    most = max(2, min(SAMPLE_POINTS, SAMPLE_NUMBERS // engine.n_features))
    if len(live) <= most:
        return live
    return np.sort(np.random.default_rng(0).choice(live, most, replace=False))


def _blocks(rows: IntArray, n_features: int) -> list[IntArray]:
    step = max(1, BLOCK_NUMBERS // max(1, n_features))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


FEWEST = 4
"""Points that it takes to have a graph worth drawing."""

JITTER = 1e-3
"""Points that start from one place would never part, and a side of no length cannot be scaled."""


def is_installed() -> bool:
    """Tell whether umap-learn is there, without loading it: that takes seconds."""
    return find_spec("umap") is not None


def check_installed() -> None:
    """Require umap-learn."""
    if not is_installed():
        raise MissingExtraError("umap-learn", "map")


def graph_places(
    engine: DynamicEngine, n_neighbors: int, start: FloatArray, progress: bool
) -> FloatArray:
    """Let the points of RAN's graph pull their neighbours near, and push others away.

    This is UMAP's descent on the adaptive weights of RAN. It runs in one thread, since several
    would end elsewhere each time.

    Parameters
    ----------
    engine : DynamicEngine
        Without removed points, and with at least `FEWEST`.
    n_neighbors : int
    start : array, shape (n_points, 2)
        Places to begin from.
    progress : bool
        Whether to show a bar on stderr.
    """
    umap = _loaded()
    random = np.random.RandomState(0)
    bar = {"disable": not progress, "file": sys.stderr, "desc": "map", "leave": False}
    a, b = umap.find_ab_params(1.0, 0.1)
    places, _ = umap.simplicial_set_embedding(
        data=None,
        graph=_scaled_graph(engine, n_neighbors),
        n_components=2,
        initial_alpha=1.0,
        a=a,
        b=b,
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=None,
        init=start + random.normal(scale=JITTER, size=start.shape).astype(np.float32),
        random_state=random,
        metric="euclidean",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
        parallel=False,
        verbose=False,  # it would print
        tqdm_kwds=bar,
    )
    return framed(places)


def _scaled_graph(engine: DynamicEngine, n_neighbors: int) -> sparse.coo_array:
    """Return RAN's graph; its largest weight is one."""
    k = min(n_neighbors, engine.n_points - 2)
    lists = engine.rows(np.arange(engine.n_points), k + 1)
    weights, _, _ = adaptive_weights(lists.sq_distances, k)
    graph = link(lists.indices[:, :k], weights).tocoo()
    graph.data /= graph.data.max()
    return graph


def _loaded() -> Any:
    check_installed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what else it could use if that were installed
        from umap import umap_
    return umap_
