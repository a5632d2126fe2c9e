"""How good the methods of an index are: by a label of its points, or by judged questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankfold.check import about, check_vectors
from rankfold.errors import InputError
from rankfold.evaluation.tasks import (
    UNLABELLED,
    Metrics,
    Task,
    distinct_texts,
    judged_task,
    label_codes,
    labelled_task,
)
from rankfold.index.backend import FolderBackend
from rankfold.neighbors import VectorEngine, live_points
from rankfold.types import Dataset, IntArray


def by_label(
    backend: FolderBackend,
    engine: VectorEngine,
    label: str,
    metrics: Metrics,
    queries: Any,
    seed: int,
) -> Task:
    """Return the task of finding the points of an index that share a value of a column.

    Points where it is missing are neither queries nor relevant.

    Parameters
    ----------
    backend : FolderBackend
    engine : VectorEngine
        In the state that is read.
    label : str
        A column of the payload.
    metrics, queries, seed
        As for `evaluate`; queries are ids.
    """
    store = backend.store
    if label not in store.columns:
        known = ", ".join(map(repr, store.columns)) or "none"
        raise InputError(
            f"label is {label!r}, but the columns of the payload are {known}; name one of these.",
            "label",
        )
    slots = live_points(engine)
    labels: IntArray = np.full(engine.n_points, UNLABELLED, dtype=np.intp)
    labels[slots] = label_codes(store.payload_of(slots, [label])[label])
    if not (queries is None or np.ndim(queries) == 0):
        with about("queries"):
            queries = store.slots_of(list(queries))
    data = Dataset(_name(backend), np.empty((0, engine.n_features)), labels, engine.metric)
    task = labelled_task(data, metrics, queries, seed=seed, n_points=engine.n_alive)
    names = store.ids_of(np.array(task.queries, dtype=np.intp))
    return replace(task, X=None, names=tuple(names))


def by_judgements(
    backend: FolderBackend,
    engine: VectorEngine,
    vectors: Any,
    vector_ids: Sequence[Any] | None,
    qrels: Mapping[Any, Mapping[Any, int]],
    metrics: Metrics,
    queries: Any,
    seed: int,
) -> Task:
    """Return the task of finding the points of an index that were judged relevant to vectors.

    Parameters
    ----------
    backend : FolderBackend
    engine : VectorEngine
        In the state that is read.
    vectors : array, shape (n_queries, n_features)
    vector_ids : sequence or None
        What ``qrels`` calls them; row numbers by default.
    qrels, metrics, queries, seed
        As for a search collection.
    """
    with about("vectors"):
        asked = check_vectors(vectors, engine.n_features)
    names = range(len(asked)) if vector_ids is None else vector_ids
    if len(names) != len(asked):
        raise InputError(
            f"vector_ids are {len(names)}, but there are {len(asked)} vectors; give one each.",
            "vector_ids",
        )
    slots, name = live_points(engine), _name(backend)
    ids = distinct_texts(backend.store.ids_of(slots), f"ids of {name!r}")
    query_ids = distinct_texts(names, "vector_ids")
    return judged_task(
        name, None, engine.metric, ids, asked, query_ids, qrels, metrics, queries, seed, slots
    )


def _name(backend: FolderBackend) -> str:
    return Path(str(backend.info()["path"])).name
