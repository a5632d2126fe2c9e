"""An index whose lists a database searches, so that the vectors need not fit in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankfold.check import InputError, check_count
from rankfold.databases.contract import Database
from rankfold.databases.engine import held
from rankfold.databases.loading import Described, load_searching, search_for
from rankfold.graph.adaptive import stored_width
from rankfold.inputs import Points
from rankfold.layout import Layout, kind_without_map
from rankfold.layout.projection import Projection
from rankfold.neighbors.living import stored_length
from rankfold.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class GivenVectors:
    """Vectors as a table will store them, read from where they lie when they are asked for."""

    X: FloatArray
    metric: str
    alive: None = None

    @property
    def n_points(self) -> int:
        """The number of vectors."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Their length."""
        return int(self.X.shape[1])

    def vectors(self, rows: IntArray | slice) -> FloatArray:
        """Return some of them."""
        shape = {"metric": self.metric, "n_features": self.n_features}
        return held(self.X[rows], shape, "X")


def fill_table(
    database: Database,
    name: str,
    points: Points,
    metric: str,
    n_neighbors: int | Literal["auto"],
    recall: float,
    layout: Layout,
    source: dict[str, Any],
    progress: bool,
    *,
    search: str,
    replace: bool,
) -> None:
    """Write points into a table, and let the database search their lists."""
    if n_neighbors == "auto":
        raise InputError(
            "n_neighbors is 'auto', which looks at lists before there are any; with "
            "lists='database' give a number, such as 20, or 5 for clean manifolds.",
            "n_neighbors",
        )
    if layout == "graph":
        raise InputError(
            "layout is 'graph', which needs all lists at once; with lists='database' give 'pca' "
            "or 'none'.",
            "layout",
        )
    given = GivenVectors(points.vectors, metric)
    projection = None if layout == "none" else _projection(given)
    width = stored_width(check_count(n_neighbors, "n_neighbors"), np.iinfo(np.int32).max)
    chosen = search_for(len(points), search)
    settings = {
        "metric": metric,
        "n_features": given.n_features,
        "n_neighbors": n_neighbors,
        "width": width,
        "stored_width": stored_length(width),
        "precision": "double" if chosen == "exact" else "single",
        "recall": recall,
        "numbered": points.ids is None,
        "layout": None if projection is None else kind_without_map(given.n_features),
        "projection": None if projection is None else projection.settings(),
        "source": source,
        "search": chosen,
    }
    ids = range(len(points)) if points.ids is None else points.ids
    places = None if projection is None else projection.of_all(given)
    described = Described.of(ids, points.payload, places)
    load_searching(
        database, name, given.vectors, settings, described, replace=replace, progress=progress
    )


def _projection(given: GivenVectors) -> Projection:
    plane = kind_without_map(given.n_features) == "plane"
    return Projection.plane(given) if plane else Projection.pca(given)
