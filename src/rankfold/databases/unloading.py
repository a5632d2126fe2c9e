"""From a table to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankfold.databases.contract import Session
from rankfold.layout.projection import Projection
from rankfold.neighbors import FaissEngine, LivingEngine
from rankfold.neighbors.choice import EXACT_LIMIT
from rankfold.neighbors.exact_points import ExactPoints
from rankfold.neighbors.stored import StoredLists
from rankfold.types import NOBODY, FloatArray, Neighbors

State = tuple[dict[str, Any], dict[str, Any], list[Any], dict[str, list[Any]]]

BLOCK_ROWS = 2**14


def unloaded(session: Session) -> State:
    """Read everything: arrays, settings, ids and payload, as `Store.create` takes them.

    The points get the slots 0, 1, 2, ... in their order; their lists stay as they are.
    """
    slots, settings = session.slots(), session.head.settings
    vectors = _vectors(session, len(slots))
    arrays, of_engine = _living(vectors, _lists(session), settings).state()
    if settings["layout"] is not None:
        arrays["places"] = session.places(slots)
    if settings["projection"] is not None:
        projection = Projection.of(settings["projection"])
        arrays["places_origin"], arrays["places_axes"] = projection.origin, projection.axes
    kept = {name: settings[name] for name in ("n_neighbors", "numbered", "layout", "source")}
    ids, payload = session.points(slots, session.head.columns)
    return arrays, {**kept, "engine": of_engine}, ids, payload


def _living(vectors: FloatArray, lists: Neighbors, settings: dict[str, Any]) -> LivingEngine:
    metric, width, recall = settings["metric"], settings["width"], settings["recall"]
    if len(vectors) > EXACT_LIMIT:
        return LivingEngine.of_lists(FaissEngine(vectors, metric, recall), lists, width, recall)
    points = ExactPoints(vectors, np.ones(len(vectors), dtype=bool), metric)
    return LivingEngine(points, StoredLists(lists), width, recall)


def _vectors(session: Session, n_points: int) -> FloatArray:
    vectors = np.empty((n_points, session.head.settings["n_features"]), dtype=np.float32)
    end = 0
    for _, block in session.scan():
        vectors[end : end + len(block)] = block
        end += len(block)
    return vectors


def _lists(session: Session) -> Neighbors:
    """Return the lists of all points, in which places stand for slots."""
    slots, settings = session.slots(), session.head.settings
    shape = (len(slots), settings["stored_width"])
    lists = Neighbors(np.empty(shape, np.int32), np.empty(shape, settings["precision"]))
    for start in range(0, len(slots), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        rows = session.rows(slots[block]).lists
        places = np.searchsorted(slots, rows.indices)
        lists.indices[block] = np.where(rows.indices == NOBODY, NOBODY, places)
        lists.sq_distances[block] = rows.sq_distances
    return lists
