"""From vectors to what an index keeps."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Literal

import numpy as np

from rankfold.check import InputError, check_choice, check_matrix, check_share
from rankfold.graph.adaptive import choose_from_sample, stored_width
from rankfold.inputs import Points, as_columns
from rankfold.layout import Layout, check_layout, lay_out
from rankfold.neighbors import LivingEngine, choose_engine
from rankfold.storage.columns import checked_payload
from rankfold.storage.ids import distinct_ids
from rankfold.types import FloatArray


def checked_input(
    X: Any, ids: Any, payload: Any, metric: str, recall: float, layout: str
) -> Points:
    """Check everything before any work is done with it."""
    check_choice(metric, "metric", ("euclidean", "cosine"))
    check_share(recall, "recall", one=True)
    vectors = check_matrix(X, "X")
    check_layout(layout, vectors.shape[1])
    if not len(vectors):
        raise InputError("X has no rows; give at least one point.")
    names = None if ids is None else distinct_ids(ids)
    if names is not None:
        check_as_many(vectors, names)
    columns = as_columns(payload, len(vectors))
    checked_payload(columns, len(vectors))
    return Points(vectors, names, columns)


def check_as_many(vectors: FloatArray, ids: Sized) -> None:
    """Require an id for every vector."""
    if len(vectors) != len(ids):
        raise InputError(f"there are {len(vectors)} vectors and {len(ids)} ids; give as many.")


def built(
    points: Points,
    metric: str,
    n_neighbors: int | Literal["auto"],
    recall: float,
    layout: Layout,
    progress: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Search the lists of all points and draw their map; return arrays and settings."""
    engine = choose_engine(points.vectors, metric, recall, progress)
    chosen = choose_from_sample(engine, n_neighbors)
    width = stored_width(chosen, np.iinfo(np.int32).max)
    living = LivingEngine.build(
        points.vectors, metric, width, recall=recall, progress=progress, engine=engine
    )
    arrays, settings = living.state()
    places, drawn = mapped(living, layout, chosen, progress)
    everything = {
        "engine": settings,
        "n_neighbors": chosen,
        "numbered": points.ids is None,
        **drawn,
    }
    return {**arrays, **places}, everything


def mapped(
    engine: LivingEngine, layout: Layout, n_neighbors: int, progress: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a map of points of which none was removed; return its arrays and settings."""
    drawn = lay_out(engine, layout, n_neighbors, progress)
    if drawn is None:
        return {}, {"layout": None}
    return drawn.arrays(np.arange(engine.n_points)), {"layout": drawn.kind}
