"""An inverted file: cells around centres, of which a query visits the nearest."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankfold.neighbors.growing import Growing
from rankfold.neighbors.index import selected
from rankfold.types import BoolArray, FloatArray, IntArray

CELLS_PER_ROOT = 4
"""An inverted file has this many cells per square root of the number of points."""

TRAINING_POINTS, TRAINING_STEPS = 40, 6
"""Points per cell and steps of k-means: more takes longer and finds hardly better cells."""

MOST_CELLS, EVEN_FEATURES = 0.25, 16
"""The largest share of the cells to visit. With many features matrix products are so much faster
than differences that all points cost no more than a share ``EVEN_FEATURES / n_features``."""


class InvertedIndex:
    """Cells around centres that k-means finds; only the cells nearest to a query are visited.

    Holds a copy of the points, sorted by cell: FAISS can only scan what lies side by side.
    """

    kind = "ivf"
    n_spare = 0

    def __init__(self, points: FloatArray, seed: int) -> None:
        self._index = trained(points, seed)
        self.n_cells = int(self._index.nlist)
        self._fill(points, nearest_cells(self._index, points))

    @classmethod
    def restore(cls, points: FloatArray, centres: FloatArray, cells: IntArray) -> InvertedIndex:
        """Fill an index again; ``cells`` says which of the ``centres`` is nearest to each point.

        FAISS reads no bytes that somebody may have written: in its own form these can name other
        files, which it would open and write to.
        """
        import faiss

        n_cells, n_features = centres.shape
        quantizer = faiss.IndexFlatL2(n_features)
        quantizer.add(np.ascontiguousarray(centres))
        fresh = cls.over(_empty(quantizer, n_features, n_cells), np.asarray(cells)[:0])
        fresh._fill(points, np.asarray(cells))
        return fresh

    @classmethod
    def over(cls, index: Any, cells: IntArray) -> InvertedIndex:
        """Take an index of FAISS that is filled already, such as one that it maps from a file."""
        self = cls.__new__(cls)
        self._index, self._members = index, Growing(cells)
        self.n_cells = int(index.nlist)
        return self

    def of_some(self, points: FloatArray, chosen: IntArray) -> InvertedIndex:
        """Return an index of some points only, with the same cells."""
        import faiss

        quantizer = faiss.clone_index(self._index.quantizer)
        fresh = InvertedIndex.over(
            _empty(quantizer, points.shape[1], self.n_cells), self._cells[:0]
        )
        fresh._fill(points[chosen], self._cells[chosen])
        return fresh

    @property
    def efforts(self) -> tuple[int, ...]:
        """Numbers of cells to visit."""
        share = min(MOST_CELLS, EVEN_FEATURES / max(1, self._index.d))
        return _doubling(1, int(share * self.n_cells))

    @property
    def _cells(self) -> IntArray:
        return self._members.rows

    def _fill(self, points: FloatArray, cells: IntArray) -> None:
        """Store each cell at once: lists that grow point by point take up to twice as much."""
        import faiss

        self._members = Growing(cells)
        members = np.argsort(cells, kind="stable")
        ends = np.cumsum(np.bincount(cells, minlength=self.n_cells))
        for cell, ids in enumerate(np.split(members, ends[:-1])):
            codes = points[ids].view(np.uint8)
            self._index.invlists.add_entries(
                cell, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(codes)
            )
        self._index.ntotal = len(points)

    def scanned(self, effort: int) -> int:
        """Return the number of centres, and of points in the visited cells."""
        return self.n_cells + effort * len(self._cells) // self.n_cells

    def candidates(
        self, queries: FloatArray, k: int, effort: int, alive: BoolArray | None = None
    ) -> IntArray:
        """Search so many cells."""
        import faiss

        visited = faiss.SearchParametersIVF(nprobe=effort, **selected(alive))
        found: IntArray = self._index.search(queries, k, params=visited)[1]
        return found

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Distances come from differences, so that rounding is none of its errors."""
        return np.full(len(queries), np.inf)

    def search_order(self, ids: IntArray) -> IntArray:
        """Return places by cell, so that cells stay in the processor's cache."""
        return np.argsort(self._cells[ids], kind="stable")

    def add(self, points: FloatArray, n_added: int) -> None:
        """Put each point into the cell of its nearest centre."""
        added = points[len(points) - n_added :]
        self._members.append(nearest_cells(self._index, added))
        self._index.add(added)

    def state(self) -> dict[str, Any]:
        """Return the arrays that make this index of its points, without another search."""
        centres = self._index.quantizer.reconstruct_n(0, self.n_cells)
        return {"centres": centres, "cells": self._cells.copy()}


def _empty(quantizer: Any, n_features: int, n_cells: int) -> Any:
    """Return an index of FAISS without points, whose cells are known."""
    import faiss

    index = faiss.IndexIVFFlat(quantizer, n_features, n_cells)
    index.is_trained = True
    return index


def trained(points: FloatArray, seed: int) -> Any:
    """Return an empty index of FAISS, its cells found in a sample of the points.

    Only the sample is read, so that the points may lie in a file that is larger than memory.
    """
    import faiss

    n_points, n_features = points.shape
    n_cells = max(1, min(n_points, int(CELLS_PER_ROOT * np.sqrt(n_points))))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_features), n_features, n_cells)
    index.cp.seed = seed + 1
    index.cp.niter = TRAINING_STEPS
    index.cp.min_points_per_centroid = 1
    index.cp.max_points_per_centroid = TRAINING_POINTS
    n_training = min(n_points, TRAINING_POINTS * n_cells)
    sample = np.random.default_rng(seed).choice(n_points, n_training, replace=False)
    index.train(points[np.sort(sample)])
    return index


def nearest_cells(index: Any, points: FloatArray) -> IntArray:
    """Return the cell of every point: that with the nearest centre."""
    starts = range(0, len(points), 2**16)
    parts = [index.quantizer.search(points[i : i + 2**16], 1)[1][:, 0] for i in starts]
    return np.concatenate(parts, dtype=np.int32)


def _doubling(first: int, most: int) -> tuple[int, ...]:
    """Return first, twice as much, ... up to ``most``, but at least the first."""
    efforts = [first]
    while 2 * efforts[-1] <= most:
        efforts.append(2 * efforts[-1])
    return tuple(efforts)
