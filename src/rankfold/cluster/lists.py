"""The lists of all points, found by workers, and who lists whom."""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from rankfold.cluster.running import Work
from rankfold.cluster.scratch import Scratch
from rankfold.neighbors.faiss_points import FaissPoints
from rankfold.neighbors.living import KINDS
from rankfold.neighbors.planning import Points
from rankfold.types import IntArray

BLOCK_ROWS, FEWEST_ROWS, BLOCKS_PER_THREAD = 2**15, 2**8, 8
"""Points of a block: enough to pay for opening the index, few enough to keep all workers busy."""

RANGE_LINKS = 2**22
"""Links that a worker sorts at a time, about."""

LOWER = 2**32 - 1
Block = tuple[int, int]


def arrays_of(scratch: Scratch, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of an engine's points, all of them in files."""
    points = scratch.load("points")
    arrays: dict[str, Any] = {"points": points, "alive": np.ones(len(points), dtype=bool)}
    if settings.get("index") == "ivf":
        arrays |= {"faiss": scratch.mapped_index(), "cells": scratch.load("cells")}
    return arrays


@lru_cache(maxsize=1)
def opened(folder: str, settings: str) -> Points:
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


def build_lists(work: Work, scratch: Scratch, settings: dict[str, Any], width: int) -> None:
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


def _build_reverse(work: Work, scratch: Scratch, n_blocks: int, width: int) -> None:
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
