"""An index of shards that are larger than memory, built by the workers of a Dask cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir
from typing import Any, BinaryIO, Literal

import numpy as np

from rankfold.check import check_choice, check_count, check_share
from rankfold.cluster.client import TaskRunner, working
from rankfold.cluster.shards import INDEX, Scratch, batches, find_shards, hold_all, scratch_folder
from rankfold.errors import InputError
from rankfold.files import replacing
from rankfold.graph.adaptive import choose_from_sample, stored_width
from rankfold.index.build import mapped, plain_graph
from rankfold.neighbors import DynamicEngine, FaissEngine
from rankfold.neighbors.dynamic import KINDS, HeldPoints, engine_settings, stored_length
from rankfold.neighbors.exact import EXACT_LIMIT
from rankfold.neighbors.faiss_indexes import InvertedIndex, nearest_cells, threads, trained
from rankfold.neighbors.points import ExactPoints, FaissPoints
from rankfold.storage import Store
from rankfold.storage.columns import Column
from rankfold.types import DEFAULT_RECALL, FloatArray, IntArray, Neighbors

TRAINED = "trained.faiss"
PART_NUMBERS = 2**25
"""A worker fills the cells with the points of about so many numbers at a time."""

GROUP_NUMBERS = 2**26
"""Cells are joined some at a time, whose points have about so many numbers."""

NO_LISTS = 32
"""Bytes in which FAISS writes lists that are empty, at the end of an index."""

BLOCK_ROWS, FEWEST_ROWS, BLOCKS_PER_THREAD = 2**15, 2**8, 8
"""Points of a block: enough to pay for opening the index, few enough to keep all workers busy."""

RANGE_LINKS = 2**22
"""Links that a worker sorts at a time, about."""

LOWER = 2**32 - 1
Block = tuple[int, int]

LISTS = (
    "list_indices",
    "list_sq_distances",
    "list_counts",
    "reverse_starts",
    "reverse_sources",
)


def fill(folder: str, number: int, start: int, stop: int) -> None:
    """Sort some points by cell, and write them and their slots; a task."""
    import faiss

    scratch = Scratch(folder)
    points = scratch.load("points")[start:stop]
    with threads(1):
        index = faiss.read_index(str(scratch.folder / TRAINED))
        cells = nearest_cells(index, np.ascontiguousarray(points))
    order = np.argsort(cells, kind="stable")
    scratch.save(f"cells-{number}", cells)
    scratch.save(f"codes-{number}", points[order])
    scratch.save(f"slots-{number}", order + start)
    scratch.save(f"counts-{number}", np.bincount(cells, minlength=index.nlist))


def build_cells(work: TaskRunner, scratch: Scratch, seed: int = 0) -> InvertedIndex:
    """Find cells in a sample, let workers fill them, and join what they filled."""
    import faiss

    points = scratch.load("points")
    index = trained(points, seed)
    with replacing(scratch.folder / TRAINED) as partial:
        faiss.write_index(index, str(partial))
    n_points, n_features = points.shape
    step = max(1, min(PART_NUMBERS // n_features, -(-n_points // work.n_threads)))
    starts = range(0, n_points, step)
    arguments = [
        (str(scratch.folder), i, start, min(start + step, n_points))
        for i, start in enumerate(starts)
    ]
    work.run("cells", fill, arguments)
    _join_lists(scratch, index, len(starts), n_points)
    scratch.join("cells", [f"cells-{i}" for i in range(len(starts))])
    return InvertedIndex.over(scratch.mapped_index(), scratch.load("cells"))


def _join_lists(scratch: Scratch, index: Any, n_parts: int, n_points: int) -> None:
    """Write the index as FAISS does, but with lists that are never all in memory.

    FAISS writes lists one after the other: the vectors of a list, then their numbers.
    """
    counts = np.stack([np.array(scratch.load(f"counts-{i}")) for i in range(n_parts)])
    sizes = counts.sum(axis=0)
    scratch.save("cell_sizes", sizes)
    with replacing(scratch.folder / INDEX) as partial, partial.open("wb") as file:
        file.write(_head(index, n_points))
        _write_sizes(file, sizes, index.code_size)
        before = (np.cumsum(sizes) - sizes) * index.d // GROUP_NUMBERS
        bounds = np.searchsorted(before, [*np.unique(before), np.inf])
        for first, last in pairwise(bounds.tolist()):
            for cell in _joined(scratch, counts, first, last):
                file.writelines(cell)
    for part in range(n_parts):
        for name in ("codes", "slots", "counts"):
            scratch.delete(f"{name}-{part}")


def _joined(scratch: Scratch, counts: IntArray, first: int, last: int) -> Iterator[list[bytes]]:
    """Yield vectors and numbers of each cell of a range, those of all parts behind each other."""
    starts = np.cumsum(counts, axis=1) - counts
    cells = [np.repeat(np.arange(first, last), own[first:last]) for own in counts]
    order = np.argsort(np.concatenate(cells), kind="stable")
    arrays = []
    for name in ("codes", "slots"):
        blocks = []
        for part, own in enumerate(cells):
            start = starts[part, first]
            # A copy: a part of a mapped file would keep it open, and there may be thousands.
            blocks.append(np.array(scratch.load(f"{name}-{part}")[start : start + len(own)]))
        arrays.append(np.concatenate(blocks)[order])
    ends = np.cumsum(counts[:, first:last].sum(axis=0))
    for start, end in pairwise([0, *ends.tolist()]):
        yield [array[start:end].tobytes() for array in arrays]


def _head(index: Any, n_points: int) -> bytes:
    """Return all that FAISS writes before the lists."""
    import faiss

    index.ntotal = n_points
    written: bytes = faiss.serialize_index(index).tobytes()
    if written[-NO_LISTS:][:4] != b"ilar":
        raise InputError(
            f"FAISS {faiss.__version__} writes its lists in a form that is not known here; install "
            "another version of faiss-cpu."
        )
    return written[:-NO_LISTS]


def _write_sizes(file: BinaryIO, sizes: Any, code_size: int) -> None:
    n_lists = np.uint64(len(sizes)).tobytes()
    file.write(b"ilar" + n_lists + np.uint64(code_size).tobytes())
    file.write(b"full" + n_lists + sizes.astype("<u8").tobytes())


def arrays_of(scratch: Scratch, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of an engine's points, all of them in files."""
    points = scratch.load("points")
    arrays: dict[str, Any] = {"points": points, "alive": np.ones(len(points), dtype=bool)}
    if settings.get("index") == "ivf":
        arrays |= {"faiss": scratch.mapped_index(), "cells": scratch.load("cells")}
    return arrays


@lru_cache(maxsize=1)
def opened(folder: str, settings: str) -> HeldPoints:
    """Return the points of an engine, opened once by each worker."""
    known = json.loads(settings)
    points = KINDS[known["engine"]].restore(arrays_of(Scratch(folder), known), known)
    if isinstance(points, FaissPoints):
        points.n_threads = 1  # Dask counts on it
    return points


def forget() -> None:
    """Close what was opened, so that files which are deleted are gone."""
    opened.cache_clear()


def find_lists(folder: str, settings: str, width: int, number: int, block: Block) -> None:
    """Find the lists of some points, and write them, and sorted who lists whom; a task."""
    scratch, points = Scratch(folder), opened(folder, settings)
    slots = _members(scratch, json.loads(settings), block)
    found = points.rows(slots, width)
    place, column = np.nonzero(found.indices >= 0)
    links = _links(found.indices[place, column], slots[place])
    scratch.save(f"rows-{number}", slots)
    scratch.save(f"indices-{number}", found.indices.astype(np.int32, copy=False))
    scratch.save(f"sq_distances-{number}", found.sq_distances)
    scratch.save(f"links-{number}", np.sort(links))


def find_sources(folder: str, number: int, n_blocks: int, first: int, last: int) -> None:
    """Find who lists each point of a range, in ascending order; a task."""
    scratch = Scratch(folder)
    bounds, parts = _links(np.array([first, last]), np.zeros(2, dtype=np.int64)), []
    for block in range(n_blocks):
        known = scratch.load(f"links-{block}")
        start, end = np.searchsorted(known, bounds)
        parts.append(np.array(known[start:end]))  # a part of a mapped file would keep it open
    links = np.sort(np.concatenate(parts))
    scratch.save(f"reverse_sources-{number}", (links & LOWER).astype(np.int32))
    counts = np.bincount((links >> 32) - first, minlength=last - first)
    scratch.save(f"reverse_counts-{number}", counts)


def build_lists(work: TaskRunner, scratch: Scratch, settings: dict[str, Any], width: int) -> None:
    """Let workers find all lists; join them into the arrays of `StoredLists`."""
    folder, text = str(scratch.folder), json.dumps(settings)
    blocks = _blocks(scratch, settings, work.n_threads)
    arguments = [(folder, text, width, i, block) for i, block in enumerate(blocks)]
    work.run("neighbours", find_lists, arguments)
    n_points = len(scratch.load("points"))
    dtype = scratch.load("sq_distances-0").dtype
    indices = scratch.create("list_indices", (n_points, width), np.int32)
    sq_distances = scratch.create("list_sq_distances", (n_points, width), dtype)
    counts = scratch.create("list_counts", (n_points,), np.int32)
    for number in work.shown("joining", len(blocks), range(len(blocks))):
        slots, found = scratch.load(f"rows-{number}"), scratch.load(f"indices-{number}")
        indices[slots] = found
        sq_distances[slots] = scratch.load(f"sq_distances-{number}")
        counts[slots] = np.count_nonzero(found >= 0, axis=1)
        for name in ("rows", "indices", "sq_distances"):
            scratch.delete(f"{name}-{number}")
    _build_reverse(work, scratch, len(blocks), width)


def _build_reverse(work: TaskRunner, scratch: Scratch, n_blocks: int, width: int) -> None:
    n_points = len(scratch.load("points"))
    step = max(1, min(RANGE_LINKS // width, -(-n_points // work.n_threads)))
    starts = range(0, n_points, step)
    arguments = [
        (str(scratch.folder), i, n_blocks, start, min(start + step, n_points))
        for i, start in enumerate(starts)
    ]
    work.run("reverse lists", find_sources, arguments)
    scratch.join("reverse_sources", [f"reverse_sources-{i}" for i in range(len(starts))])
    ends, total = scratch.create("reverse_starts", (n_points + 1,), np.int64), 0
    ends[0] = 0
    for number, start in enumerate(starts):
        counts = scratch.load(f"reverse_counts-{number}")
        ends[start + 1 : start + 1 + len(counts)] = total + np.cumsum(counts)
        total += int(counts.sum())
    for block in range(n_blocks):
        scratch.delete(f"links-{block}")


def _links(targets: IntArray, sources: IntArray) -> IntArray:
    """Return each target and source as one number, so that sorting is by target first."""
    return (targets.astype(np.int64) << 32) | sources


def _members(scratch: Scratch, settings: dict[str, Any], block: Block) -> IntArray:
    """Return the points of a block: those of some cells, or some in their order."""
    if settings.get("index") != "ivf":
        return np.arange(*block)
    cells = scratch.load("cells")
    return np.flatnonzero((cells >= block[0]) & (cells < block[1]))


def _blocks(scratch: Scratch, settings: dict[str, Any], n_threads: int) -> list[Block]:
    """Cut all points into blocks; whole cells, whose points look at the same other cells."""
    n_points = len(scratch.load("points"))
    even = n_points // (BLOCKS_PER_THREAD * n_threads)
    rows = max(FEWEST_ROWS, min(BLOCK_ROWS, even))
    if settings.get("index") != "ivf":
        return [(start, min(start + rows, n_points)) for start in range(0, n_points, rows)]
    ends = np.cumsum(scratch.load("cell_sizes"))
    cuts = np.searchsorted(ends, np.arange(rows, n_points, rows)) + 1
    bounds = np.unique([0, *cuts, len(ends)]).tolist()
    return list(pairwise(bounds))


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
    recall: float = DEFAULT_RECALL,
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
        arrays, drawn = _arrays(work, folder, listed, layout, chosen)
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


def find_neighbors(
    vectors: FloatArray,
    *,
    scheduler: Any = None,
    n_workers: int | None = None,
    metric: Literal["euclidean", "cosine"] = "euclidean",
    n_neighbors: int | Literal["auto"] = "auto",
    recall: float = DEFAULT_RECALL,
    scratch: str | Path | None = None,
    progress: bool = False,
) -> tuple[Neighbors, int]:
    """Find the neighbours of all points, as those of `build_index`.

    Parameters
    ----------
    vectors : array, shape (n_points, n_features)
        In single precision, maybe mapped from a file.
    scheduler, n_workers, metric, n_neighbors, recall, progress
        As for `build_index`.
    scratch : str or Path, optional
        A folder that the caller and all workers share, with room for the vectors four times;
        that of temporary files by default.

    Returns
    -------
    lists : Neighbors
        Of k + 1 neighbours, nearest first.
    n_neighbors : int
        k, as it was chosen.
    """
    few = len(vectors) <= EXACT_LIMIT
    with (
        scratch_folder(Path(scratch or gettempdir())) as folder,
        working(scheduler, n_workers, forget, progress) as work,
    ):
        folder.save("given", vectors)
        hold_all(work, folder, find_shards(folder.folder / "given.npy"), metric, few)
        folder.delete("given")
        points = _searched(work, folder, metric, recall, few)
        chosen = choose_from_sample(points, n_neighbors)
        _listed(work, folder, points, chosen, recall)
        names = ("list_indices", "list_sq_distances")
        parts = [np.array(folder.load(name)[:, : chosen + 1]) for name in names]
        return Neighbors(*parts), chosen


def _searched(
    work: TaskRunner, scratch: Scratch, metric: str, recall: float, exact: bool
) -> HeldPoints:
    """Return the points with all that searches need, none of it in memory."""
    points = scratch.load("points")
    if exact:
        return ExactPoints(points, np.ones(len(points), dtype=bool), metric)
    index = build_cells(work, scratch)
    with work.showing("recall"):
        return FaissPoints.of(FaissEngine.over(points, metric, recall, index))


def _listed(
    work: TaskRunner, scratch: Scratch, points: HeldPoints, n_neighbors: int, recall: float
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
    work: TaskRunner, scratch: Scratch, settings: dict[str, Any], layout: Any, n_neighbors: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of an index, most of them in files, and the settings of its map."""
    arrays = arrays_of(scratch, settings) | {name: scratch.load(name) for name in LISTS}
    engine = DynamicEngine.restore(arrays, settings)
    places, drawn = mapped(engine, layout, n_neighbors, progress=False)
    with work.showing("graph"):
        graph = plain_graph(arrays, n_neighbors, scratch.empty)
    return {**arrays, **places, **graph}, drawn


def _described(
    points: HeldPoints, n_neighbors: int, columns: tuple[Column, ...], layout: str | None
) -> Built:
    recall = points.recall_ if isinstance(points, FaissPoints) else 1.0
    kinds = {column.name: column.kind for column in columns}
    n_points, n_features = points.points.shape
    return Built(n_points, n_features, points.metric, n_neighbors, recall, kinds, layout)
