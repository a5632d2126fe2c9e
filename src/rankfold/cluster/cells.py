"""One inverted file from many workers: all share its cells, each fills those of its points.

Since the shards have the same cells, their lists are put behind each other cell by cell, and a
search through the result finds what searches through each of them would find together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from rankfold.check import InputError
from rankfold.cluster.running import Work
from rankfold.cluster.scratch import INDEX, Scratch
from rankfold.files import replacing
from rankfold.neighbors.index import threads
from rankfold.neighbors.inverted import InvertedIndex, nearest_cells, trained
from rankfold.types import IntArray

TRAINED = "trained.faiss"
PART_NUMBERS = 2**25
"""A worker fills the cells with the points of about so many numbers at a time."""

GROUP_NUMBERS = 2**26
"""Cells are joined some at a time, whose points have about so many numbers."""

NO_LISTS = 32
"""Bytes in which FAISS writes lists that are empty, at the end of an index."""


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


def build_cells(work: Work, scratch: Scratch, seed: int = 0) -> InvertedIndex:
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
