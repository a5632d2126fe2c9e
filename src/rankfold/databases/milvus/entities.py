"""Points and rows as entities of Milvus, and the collections that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.databases.contract import NewPoints
from rankfold.databases.milvus.client import Client, Entity
from rankfold.databases.milvus.heads import FLAT, State
from rankfold.databases.milvus.packing import LONGEST, pack_record, pack_row
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column

HNSW = {"index_type": "HNSW", "params": {"M": 16, "efConstruction": 200}}
CELL = [("cell", "INT64", 0), ("born", "INT64", 0), ("gone", "BOOL", 0)]
ROWS = [
    *CELL,
    ("reach", "DOUBLE", 0),
    ("lists", "VARCHAR", LONGEST),
    ("sources", "VARCHAR", LONGEST),
]
RECORDS = [*CELL, ("hash", "INT64", 0), ("record", "VARCHAR", LONGEST)]
VECTORS = [("slot", "INT64", 0), ("born", "INT64", 0), ("died", "INT64", 0)]
SPARE = ("spare", "FLOAT_VECTOR", 2)
"""Milvus wants a vector in every collection."""

NOWHERE = [0.0, 0.0]

FARTHEST = 1e300
"""How far a list reaches that is not full; Milvus stores no infinity."""


def create_collections(client: Client, state: State, settings: dict[str, Any]) -> None:
    """Make the collections of an index."""
    index = HNSW if settings["search"] == "hnsw" else FLAT
    vector = ("vector", "FLOAT_VECTOR", settings["n_features"])
    client.create(state.collection("rows"), [*ROWS, SPARE], FLAT)
    client.create(state.collection("records"), [*RECORDS, ("place", "FLOAT_VECTOR", 2)], FLAT)
    client.create(state.collection("vectors"), [*VECTORS, vector], index)


def row_entities(rows: Rows, width: int, left_out: Sequence[int] = ()) -> Iterator[Entity]:
    """Turn rows with lists of a width into entities."""
    if rows.lists.width != width:
        raise InputError(f"lists have width {rows.lists.width}, but must have width {width}.")
    skipped = set(left_out)
    for place, slot in enumerate(rows.slots.tolist()):
        if slot not in skipped:
            sources = rows.sources[rows.starts[place] : rows.starts[place + 1]]
            lists = rows.lists
            texts = pack_row(slot, lists.indices[place], lists.sq_distances[place], sources)
            reach = min(float(lists.sq_distances[place, -1]), FARTHEST)
            yield {"slot": slot, "reach": reach, **texts, "spare": NOWHERE}


def record_entities(points: NewPoints, columns: Sequence[Column]) -> Iterator[Entity]:
    """Turn ids, payload and places into entities."""
    values = [points.payload[column.name] for column in columns]
    places = points.places
    if places is None:
        places = np.zeros((len(points.slots), 2), dtype=np.float32)
    for slot, point, place, *own in zip(
        points.slots.tolist(), points.ids, places.astype(np.float32), *values, strict=True
    ):
        yield {"slot": slot, **pack_record(point, own), "place": place}


def gone_rows(slots: Iterable[int]) -> Iterator[Entity]:
    """Return entities that say that there is no row any more."""
    for slot in slots:
        texts = {"lists": "", "sources": ""}
        yield {"slot": slot, "gone": True, "reach": 0.0, **texts, "spare": NOWHERE}


def gone_records(cells: Iterable[Entity]) -> Iterator[Entity]:
    """Return entities that say that there is no record any more."""
    for cell in cells:
        kept = {field: cell[field] for field in ("slot", "hash", "record", "place")}
        yield {**kept, "gone": True}


def check_vectors(points: NewPoints, settings: dict[str, Any]) -> None:
    """Require vectors of the right length."""
    n_features = settings["n_features"]
    if points.vectors.shape != (len(points.slots), n_features):
        raise InputError(
            f"vectors have shape {points.vectors.shape}, but must have shape "
            f"({len(points.slots)}, {n_features}), like those that are there."
        )
