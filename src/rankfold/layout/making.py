"""A map of all points, of the kind that was asked for."""

from __future__ import annotations

from typing import Literal

from rankfold.check import check_choice
from rankfold.layout.graph import FEWEST, check_installed, graph_places, is_installed
from rankfold.layout.map import Map
from rankfold.layout.projection import Located, Projection
from rankfold.neighbors import LivingEngine

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
    engine: LivingEngine, layout: Layout, n_neighbors: int, progress: bool = False
) -> Map | None:
    """Give every point a place in the plane.

    The longer side of all places spans -1 to 1. The same points give the same places.

    Parameters
    ----------
    engine : LivingEngine
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
    >>> made = lay_out(LivingEngine.build(X, "euclidean", width=12), "pca", 5)
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
