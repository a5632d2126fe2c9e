"""An index of shards that are larger than memory, built by the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankfold.check import check_choice, check_count, check_share
from rankfold.cluster.cells import build_cells
from rankfold.cluster.holding import batches, hold_all
from rankfold.cluster.lists import arrays_of, build_lists, forget
from rankfold.cluster.running import Work, working
from rankfold.cluster.scratch import Scratch, scratch_folder
from rankfold.cluster.shards import find_shards
from rankfold.graph.adaptive import choose_from_sample, stored_width
from rankfold.index.building import mapped
from rankfold.neighbors import FaissEngine, LivingEngine
from rankfold.neighbors.choice import EXACT_LIMIT
from rankfold.neighbors.exact_points import ExactPoints
from rankfold.neighbors.faiss_points import FaissPoints
from rankfold.neighbors.inverted import InvertedIndex
from rankfold.neighbors.living import engine_settings, stored_length
from rankfold.neighbors.planning import Points
from rankfold.storage import Store
from rankfold.storage.columns import Column

LISTS = (
    "list_indices",
    "list_sq_distances",
    "list_counts",
    "reverse_starts",
    "reverse_sources",
)


@dataclass(frozen=True)
class Built:
    """What was built.

    Parameters
    ----------
    points, features : int
        How many there are, and the length of a vector.
    metric : str
    n_neighbors : int
        Neighbours in the graph of every method.
    recall : float
        The share of true neighbours in the lists, measured on a sample of points.
    columns : dict of str to str
        The kind of each column of payload.
    layout : str or None
        The map.
    """

    points: int
    features: int
    metric: str
    n_neighbors: int
    recall: float
    columns: dict[str, str]
    layout: str | None


def build_index(
    shards: Any,
    path: str | Path,
    *,
    scheduler: Any = None,
    n_workers: int | None = None,
    metric: Literal["euclidean", "cosine"] = "euclidean",
    n_neighbors: int | Literal["auto"] = "auto",
    recall: float = 0.99,
    layout: Literal["pca", "none"] = "pca",
    id_column: str | None = None,
    vector_columns: list[str] | None = None,
    payload_columns: list[str] | None = None,
    replace: bool = False,
    source: dict[str, Any] | None = None,
    scratch: str | Path | None = None,
    progress: bool = False,
) -> Built:
    """Build an index that `Index.open` opens like any other; it is that of `Index.build`.

    The vectors, in single precision, are never all in memory, neither here nor in a worker: they
    and the lists lie in files of a folder that all workers see. A worker that is lost in the
    middle is replaced by others, which do its tasks again.

    Parameters
    ----------
    shards : str, path or list of them
        .npy files, Parquet files (with ids and payload), Zarr arrays, folders of such files, or
        patterns such as ``parts/*.npy``. The workers see them under the same names.
    path : str or Path
        The folder to make.
    scheduler : str or Client, optional
        The address of a Dask scheduler, or a client. Without, processes on this machine.
    n_workers : int, optional
        How many processes, without a scheduler; as many as there are cores by default.
    metric, n_neighbors, recall, replace, source
        As for `Index.build`.
    layout : {"pca", "none"}
        The map; `Index.lay_out` can draw another later.
    id_column, vector_columns, payload_columns : optional
        Columns of Parquet files, as for `rankfold.inputs.read_points`.
    scratch : str or Path, optional
        A folder that the caller and all workers share, with room for the vectors three times;
        that of ``path`` by default.
    progress : bool
        Whether to show bars on stderr.
    """
    check_choice(metric, "metric", ("euclidean", "cosine"))
    check_choice(layout, "layout", ("pca", "none"))
    check_share(recall, "recall", one=True)
    if n_neighbors != "auto":
        check_count(n_neighbors, "n_neighbors")
    found = find_shards(shards, id_column, vector_columns, payload_columns)
    Store.check_place(path, replace=replace)
    if scratch is None:
        scratch = Path(path).absolute().parent
    few = sum(map(len, found)) <= EXACT_LIMIT
    with (
        scratch_folder(Path(scratch)) as folder,
        working(scheduler, n_workers, forget, progress) as work,
    ):
        columns = hold_all(work, folder, found, metric, few)
        points = _searched(work, folder, metric, recall, few)
        chosen = choose_from_sample(points, n_neighbors)
        listed = _listed(work, folder, points, chosen, recall)
        arrays, drawn = _arrays(folder, listed, layout, chosen)
        settings = {
            "engine": listed,
            "n_neighbors": chosen,
            "numbered": found[0].id is None,
            **drawn,
            "source": source or {},
        }
        with work.showing("writing"):
            if "faiss" in arrays:  # it is open; an index keeps the points of its cells only once
                arrays |= InvertedIndex.over(arrays.pop("faiss"), arrays["cells"]).state()
            some = batches(found, columns)
            Store.create_in_batches(path, arrays, settings, columns, some, replace=replace)
    return _described(points, chosen, columns, settings["layout"])


def _searched(work: Work, scratch: Scratch, metric: str, recall: float, exact: bool) -> Points:
    """Return the points with all that searches need, none of it in memory."""
    points = scratch.load("points")
    if exact:
        return ExactPoints(points, np.ones(len(points), dtype=bool), metric)
    index = build_cells(work, scratch)
    with work.showing("recall"):
        return FaissPoints.of(FaissEngine.over(points, metric, recall, index))


def _listed(
    work: Work, scratch: Scratch, points: Points, n_neighbors: int, recall: float
) -> dict[str, Any]:
    """Find the lists of all points; return the settings of their engine."""
    width = stored_width(n_neighbors, np.iinfo(np.int32).max)
    if isinstance(points, FaissPoints):
        with work.showing("recall"):
            points.prepare(stored_length(width))
    settings = engine_settings(points, width, recall)
    build_lists(work, scratch, settings, stored_length(width))
    return settings


def _arrays(
    scratch: Scratch, settings: dict[str, Any], layout: Any, n_neighbors: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of an index, most of them in files, and the settings of its map."""
    arrays = arrays_of(scratch, settings) | {name: scratch.load(name) for name in LISTS}
    engine = LivingEngine.restore(arrays, settings)
    places, drawn = mapped(engine, layout, n_neighbors, progress=False)
    return {**arrays, **places}, drawn


def _described(
    points: Points, n_neighbors: int, columns: tuple[Column, ...], layout: str | None
) -> Built:
    recall = points.recall_ if isinstance(points, FaissPoints) else 1.0
    kinds = {column.name: column.kind for column in columns}
    n_points, n_features = points.points.shape
    return Built(n_points, n_features, points.metric, n_neighbors, recall, kinds, layout)
