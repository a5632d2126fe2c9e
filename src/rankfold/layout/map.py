"""A map of an index: places in the plane for points that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from rankfold.check import check_choice
from rankfold.errors import InputError
from rankfold.graph.adaptive import adaptive_weights, interpolating
from rankfold.layout.projection import (
    FEWEST,
    Located,
    Projection,
    check_installed,
    graph_places,
    is_installed,
)
from rankfold.neighbors import Change, DynamicEngine
from rankfold.neighbors.lists import GrowableArray
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors

N_NEAREST = 3
"""Neighbours between which a new point is put."""


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
    shares /= np.where(total > 0, total, 1.0)  # where everybody has left, the centre is the place
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
    old = Neighbors.merge(
        [Neighbors(np.where(known, lists.indices, NOBODY), lists.sq_distances)], width
    )
    alone = old.indices[:, 0] == NOBODY
    if alone.any() and engine.n_alive:
        found = engine.search(engine.new_vectors(change)[alone], width)
        old.indices[alone], old.sq_distances[alone] = found.indices, found.sq_distances
    return old


Layout = Literal["auto", "graph", "pca", "none"]
LAYOUTS: tuple[Layout, ...] = ("auto", "graph", "pca", "none")

AUTO_FEWEST, AUTO_MOST = 100, 200_000
"""From so many to so many points "auto" takes the graph: fewer need none, more take minutes."""

PLANE = 2
"""Up to so many features are places already."""


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
    layout : {"auto", "graph", "pca", "none"}
        "pca" looks along the directions in which the points spread most. "graph" lets neighbours
        in RAN's graph come to lie together, for which it takes umap-learn, and time. "auto" is
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
    return Map("graph", graph_places(engine, n_neighbors, straight.places, progress))


def kind_without_map(n_features: int) -> str:
    """Return how points are drawn where no map is kept."""
    return "plane" if n_features <= PLANE else "pca"


def projected(engine: Located) -> Map:
    """Give every point the place that follows from its vector; there may be removed points."""
    kind = kind_without_map(engine.n_features)
    projection = Projection.plane(engine) if kind == "plane" else Projection.pca(engine)
    return Map(kind, projection.of_all(engine), projection)


KINDS = ("graph", "pca", "plane")


class Map:
    """A place in the plane for every slot of an engine.

    A point keeps its place for as long as it stays. A new one is put where its vector lies if the
    map is a projection, else among its neighbours.

    Parameters
    ----------
    kind : {"graph", "pca", "plane"}
    places : array of float32, shape (n_points, 2)
    projection : Projection, optional
        That of "pca" and "plane".
    """

    def __init__(self, kind: str, places: FloatArray, projection: Projection | None = None) -> None:
        self.kind, self._places, self._projection = kind, GrowableArray(places), projection

    @property
    def places(self) -> FloatArray:
        """All places, those of removed points among them; later changes may show in it."""
        return self._places.rows

    def places_of_new(self, engine: DynamicEngine, change: Change) -> FloatArray:
        """Return places for the new points of a change that was not made yet."""
        if self._projection is not None:
            return self._projection.places(engine.new_vectors(change))
        return among_neighbors(self.places, engine, change)

    def append(self, places: FloatArray, n_points: int) -> None:
        """Add the places of so many new points."""
        _check_plane("places", places, n_points)
        self._places.append(places)

    def arrays(self, kept: IntArray) -> dict[str, Any]:
        """Return arrays of some slots alone, from which `restore` makes it again."""
        arrays = {"places": self.places[kept]}
        if self._projection is not None:
            arrays["places_origin"] = self._projection.origin
            arrays["places_axes"] = self._projection.axes
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
