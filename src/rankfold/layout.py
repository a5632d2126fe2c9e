"""A map of an index: positions in the plane, from vectors or from the graph of its points."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse

from rankfold.check import check_choice
from rankfold.errors import InputError, MissingExtraError
from rankfold.graph.adaptive import adaptive_weights, interpolating
from rankfold.graph.symmetric import link
from rankfold.neighbors import Change, DynamicEngine, merge_lists
from rankfold.neighbors.lists import GrowableArray
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors

SAMPLE_POINTS, SAMPLE_NUMBERS = 10_000, 2**24
"""The axes are those of a sample of so many points, and of so many numbers in all of them."""

BLOCK_NUMBERS = 2**22

SMALLEST_EXTENT = 1e-100
"""Points that differ less than this are all in one place; dividing by it never overflows."""

FARTHEST = 1e6
"""No place is further out, so that all of them are finite in single precision."""

FEWEST = 4
"""Points that it takes to have a graph worth drawing."""

JITTER = 1e-3
"""Points that start from one place never separate, and a side of no length cannot be scaled."""

N_NEAREST = 3
"""Neighbours between which a new point is put."""

Layout = Literal["auto", "graph", "shape", "pca", "none"]

LAYOUTS: tuple[Layout, ...] = ("auto", "graph", "shape", "pca", "none")

AUTO_FEWEST, AUTO_MOST = 100, 200_000
"""From so many to so many points "auto" takes the graph: fewer need none, more take minutes."""

PLANE = 2
"""Up to so many features are places already."""

SHAPE_NUMBERS = 32
"""Length of the shape vectors of which a map shows two directions."""

KINDS = ("graph", "shape", "pca", "plane")


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


def shape_places(engine: DynamicEngine, n_neighbors: int, progress: bool) -> FloatArray:
    """Look along the two directions in which shape vectors spread most.

    What the graph connects lies together; it takes no other package.

    Parameters
    ----------
    engine : DynamicEngine
        Without removed points, and with at least `FEWEST`.
    n_neighbors : int
    progress : bool
        Whether to show a bar on stderr.
    """
    from rankfold.embedding import ShapeEmbedding  # loaded when it is used

    k, metric = min(n_neighbors, engine.n_points - 2), engine.metric
    embedding = ShapeEmbedding(SHAPE_NUMBERS, n_neighbors=k, metric=metric, progress=progress)
    vectors = embedding.fit_transform(engine).astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    return framed(centred @ _directions(centred))


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


def among_neighbors(places: FloatArray, engine: DynamicEngine, change: Change) -> FloatArray:
    """Return the weighted mean place of the nearest old points of each new one.

    The weights are those with which RAN links an unseen vector, so that a copy of a point lies
    upon it.

    Parameters
    ----------
    places : array, shape (n_points, 2)
        Of all slots before the change.
    engine : DynamicEngine
        In the state before the change.
    change : Change
    """
    if not engine.n_points:
        return np.zeros((len(change.added), 2), dtype=np.float32)
    return between(_nearest_old(engine, change), lambda slots: places[slots])


def between(lists: Neighbors, places_of: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Return the weighted mean place of the first points of every list.

    Parameters
    ----------
    lists : Neighbors
        The nearest old points of each new one, one more than get any weight at least.
    places_of : callable
        Returns the places of some slots.
    """
    weights, _, reach = adaptive_weights(lists.sq_distances, N_NEAREST)
    nearest = lists.head(N_NEAREST)
    relative = nearest.sq_distances / np.where(reach > 0, reach, 1.0)[:, None]
    shares = interpolating(weights, relative)
    total = shares.sum(axis=1)[:, None]
    shares /= np.where(total > 0, total, 1.0)  # where all have left, the centre is the place
    slots, back = np.unique(nearest.indices, return_inverse=True)
    known = np.zeros((len(slots), 2))
    known[slots != NOBODY] = places_of(slots[slots != NOBODY])
    places = known[back.reshape(nearest.indices.shape)]
    means: FloatArray = np.einsum("ij,ijk->ik", shares, places)
    return means.astype(np.float32)


def _nearest_old(engine: DynamicEngine, change: Change) -> Neighbors:
    """Return the nearest old points of each new one, one more than get any weight.

    Lists of points that came together may hold nobody else; those are searched.
    """
    width = N_NEAREST + 1
    new = change.rows >= engine.n_points
    lists = change.lists.take(np.flatnonzero(new))
    known = lists.indices < engine.n_points
    old = merge_lists(
        [Neighbors(np.where(known, lists.indices, NOBODY), lists.sq_distances)], width
    )
    alone = old.indices[:, 0] == NOBODY
    if alone.any() and engine.n_alive:
        found = engine.search(engine.new_vectors(change)[alone], width)
        old.indices[alone], old.sq_distances[alone] = found.indices, found.sq_distances
    return old


def check_layout(layout: str, n_features: int) -> None:
    """Require a known layout, and the package that it needs."""
    check_choice(layout, "layout", LAYOUTS)
    if layout == "graph" and n_features > PLANE:
        check_installed()


def lay_out(
    engine: DynamicEngine, layout: Layout, n_neighbors: int, progress: bool = False
) -> Map | None:
    """Give every point a place in the plane.

    The longer side of all places spans -1 to 1. The same points give the same places.

    Parameters
    ----------
    engine : DynamicEngine
        Without removed points.
    layout : {"auto", "graph", "shape", "pca", "none"}
        "pca" looks along the directions in which the points spread most, "shape" along those in
        which their shape vectors do (`ShapeEmbedding`). "graph" lets neighbours in RAN's graph
        come to lie together, for which it takes umap-learn, and time. "auto" is
        "graph" for 100 to 200,000 points where umap-learn is installed, else "pca". Points of one
        or two features lie where they lie, whichever it is. For "none" there is no map.
    n_neighbors : int
        Neighbours in the graph.
    progress : bool
        Whether to show a bar on stderr.

    Examples
    --------
    >>> from rankfold import datasets
    >>> X = datasets.load("digits").X[:200]
    >>> made = lay_out(DynamicEngine.build(X, "euclidean", width=12), "pca", 5)
    >>> made.kind, made.places.shape, float(abs(made.places).max())
    ('pca', (200, 2), 1.0)
    """
    check_layout(layout, engine.n_features)
    if layout == "none":
        return None
    if layout == "auto":
        few_enough = AUTO_FEWEST <= engine.n_points <= AUTO_MOST
        layout = "graph" if few_enough and is_installed() else "pca"
    straight = projected(engine)
    if layout == "pca" or straight.kind == "plane" or engine.n_points < FEWEST:
        return straight
    if layout == "shape":
        return Map("shape", shape_places(engine, n_neighbors, progress))
    return Map("graph", graph_places(engine, n_neighbors, straight.places, progress))


def kind_without_map(n_features: int) -> str:
    """Return how points are drawn where no map is kept."""
    return "plane" if n_features <= PLANE else "pca"


def projected(engine: Located) -> Map:
    """Give every point the place that follows from its vector; there may be removed points."""
    kind = kind_without_map(engine.n_features)
    projection = Projection.plane(engine) if kind == "plane" else Projection.pca(engine)
    return Map(kind, projection.of_all(engine), projection)


class Map:
    """A place in the plane for every slot of an engine.

    A point keeps its place for as long as it stays. A new one is put where its vector lies if the
    map is a projection, else among its neighbours.

    Parameters
    ----------
    kind : {"graph", "shape", "pca", "plane"}
    places : array of float32, shape (n_points, 2)
    projection : Projection, optional
        That of "pca" and "plane".
    """

    def __init__(self, kind: str, places: FloatArray, projection: Projection | None = None) -> None:
        self.kind, self._places, self.projection = kind, GrowableArray(places), projection

    @property
    def places(self) -> FloatArray:
        """All places, those of removed points among them; later changes may show in it."""
        return self._places.rows

    def places_of_new(self, engine: DynamicEngine, change: Change) -> FloatArray:
        """Return places for the new points of a change that was not made yet."""
        if self.projection is not None:
            return self.projection.places(engine.new_vectors(change))
        return among_neighbors(self.places, engine, change)

    def append(self, places: FloatArray, n_points: int) -> None:
        """Add the places of so many new points."""
        _check_plane("places", places, n_points)
        self._places.append(places)

    def arrays(self, kept: IntArray) -> dict[str, Any]:
        """Return arrays of some slots alone, from which `restore` makes it again."""
        arrays = {"places": self.places[kept]}
        if self.projection is not None:
            arrays["places_origin"] = self.projection.origin
            arrays["places_axes"] = self.projection.axes
        return arrays

    @classmethod
    def restore(cls, arrays: dict[str, Any], kind: str | None) -> Map | None:
        """Make it from its arrays, which are checked; None where there is no map."""
        if kind is None:
            return None
        check_choice(kind, "layout", KINDS)
        points, places = arrays["points"], arrays["places"]
        _check_plane("places", places, len(points))
        if "places_axes" not in arrays:
            return cls(kind, places)
        origin, axes = arrays["places_origin"], arrays["places_axes"]
        _check_plane("places_axes", axes, points.shape[1])
        if origin.shape != points.shape[1:] or not np.isfinite(origin).all():
            raise InputError("array 'places_origin' is no point")
        return cls(kind, places, Projection(origin, axes))


def _check_plane(name: str, array: FloatArray, length: int) -> None:
    if (
        array.dtype not in (np.float32, np.float64)
        or array.shape != (length, 2)
        or not np.isfinite(array).all()
    ):
        raise InputError(f"array {name!r} does not hold {length} pairs of finite numbers")
