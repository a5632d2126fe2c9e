"""How FAISS finds candidates: by looking at all points, at near cells, or along a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.neighbors.index import FEW_QUERIES, Index, selected
from rankfold.neighbors.inverted import InvertedIndex
from rankfold.neighbors.projected import Shortcut
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray

LINKS = 16
"""Links per point of the graph."""


PRODUCTS, DIFFERENCES = 1, 2
EPS = float(np.finfo(np.float32).eps)


class FlatIndex:
    """Looks at every point, straight in the array of the engine, without a copy.

    It uses matrix products at first, and differences where products lose too many digits. A few
    queries with many features take a shortcut to the same points.
    """

    kind = "flat"
    n_spare = 16
    efforts: tuple[int, ...] = (PRODUCTS, DIFFERENCES)

    def __init__(self, points: FloatArray, seed: int) -> None:
        self.points, self._shortcut = points, Shortcut(seed)
        self._largest_norm = _largest_norm(points)

    def scanned(self, effort: int) -> int:
        """Return the number of all points."""
        return len(self.points)

    def candidates(
        self, queries: FloatArray, k: int, effort: int, alive: BoolArray | None = None
    ) -> IntArray:
        """Measure everything in FAISS, where there is no shortcut.

        FAISS cannot pass over points here, so that more are taken, until enough are alive.
        """
        found = np.full((len(queries), k), NOBODY, dtype=np.int64)
        waiting, wanted, n_points = np.arange(len(queries)), k, len(self.points)
        if len(queries) < FEW_QUERIES:
            waiting = self._shortcut.answer(self.points, queries, alive, found)
        enough = k if alive is None else min(k, int(np.count_nonzero(alive)))
        while len(waiting):
            rows = self._nearest(queries[waiting], wanted, effort)
            found[waiting] = rows if alive is None else _only_live(rows, k, alive)
            if alive is None or wanted >= n_points:
                break
            waiting = waiting[found[waiting, enough - 1] == NOBODY] if enough else waiting[:0]
            wanted = min(2 * wanted, n_points)
        return found

    def _nearest(self, queries: FloatArray, k: int, effort: int) -> IntArray:
        import faiss

        step = FEW_QUERIES if effort == DIFFERENCES else max(1, len(queries))
        found = [
            faiss.knn(queries[start : start + step], self.points, k)[1]
            for start in range(0, len(queries), step)
        ]
        return np.concatenate(found)

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Subtract what single precision may be off by; errors of many terms partly cancel."""
        sizes = farthest
        if effort == PRODUCTS:
            lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
            sizes = (lengths + self._largest_norm) ** 2
        sure: FloatArray = farthest - 8 * np.sqrt(queries.shape[1]) * EPS * sizes
        return sure

    def search_order(self, ids: IntArray) -> IntArray:
        """Return the places as they are."""
        return np.arange(len(ids))

    def add(self, points: FloatArray, n_added: int) -> None:
        """Look at the new array from now on."""
        self.points = points
        self._shortcut.add(points, n_added)
        added = points[len(points) - n_added :]
        self._largest_norm = max(self._largest_norm, _largest_norm(added))


class GraphIndex:
    """A navigable small-world graph (HNSW): quick for single queries, slow to build.

    Holds a copy of the points and the links. FAISS draws its levels from a seed of its own,
    and threads link points in no fixed order.
    """

    kind = "hnsw"
    n_spare = 0
    efforts: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)

    def __init__(self, points: FloatArray, _seed: int) -> None:
        import faiss

        self._index = faiss.IndexHNSWFlat(points.shape[1], LINKS)
        for start in range(0, len(points), 2**12):
            self._index.add(points[start : start + 2**12])

    @classmethod
    def restore(
        cls, points: FloatArray, levels: IntArray, links: IntArray, entry: IntArray
    ) -> GraphIndex:
        """Link points again as they were; see `state`.

        FAISS follows links without looking, so that each is checked here.
        """
        import faiss

        index = faiss.IndexHNSWFlat(points.shape[1], LINKS)
        hnsw, n_points = index.hnsw, len(points)
        _check_links(levels, links, entry, faiss.vector_to_array(hnsw.cum_nneighbor_per_level))
        index.storage.add(np.ascontiguousarray(points))
        counts = faiss.vector_to_array(hnsw.cum_nneighbor_per_level)[levels]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
        for vector, values in (
            (hnsw.levels, levels.astype(np.int32)),
            (hnsw.offsets, offsets),
            (hnsw.neighbors, links.astype(np.int32)),
        ):
            faiss.copy_array_to_vector(values, vector)
        if n_points:
            hnsw.entry_point, hnsw.max_level = int(entry[0]), int(levels.max()) - 1
        index.ntotal = n_points
        self = cls.__new__(cls)
        self._index = index
        return self

    def scanned(self, effort: int) -> int:
        """Return the number of points on the way and of those they are linked to."""
        return effort * LINKS

    def candidates(
        self, queries: FloatArray, k: int, effort: int, alive: BoolArray | None = None
    ) -> IntArray:
        """Walk along the links, with so many points in mind."""
        import faiss

        kept = faiss.SearchParametersHNSW(efSearch=effort, **selected(alive))
        found: IntArray = self._index.search(queries, k, params=kept)[1]
        return found

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Distances come from differences, so that rounding is none of its errors."""
        return np.full(len(queries), np.inf)

    def search_order(self, ids: IntArray) -> IntArray:
        """Return the places as they are."""
        return np.arange(len(ids))

    def add(self, points: FloatArray, n_added: int) -> None:
        """Link new points."""
        self._index.add(points[len(points) - n_added :])

    def state(self) -> dict[str, Any]:
        """Return the arrays that make this index of its points.

        ``levels`` has the number of levels of each point, ``links`` the points that it is linked
        to, level by level, and ``entry`` the point where searches begin.
        """
        import faiss

        hnsw = self._index.hnsw
        return {
            "levels": faiss.vector_to_array(hnsw.levels),
            "links": faiss.vector_to_array(hnsw.neighbors),
            "entry": np.array([hnsw.entry_point], dtype=np.int32),
        }


def _largest_norm(points: FloatArray) -> float:
    norms = np.einsum("ij,ij->i", points, points, dtype=np.float64)
    return float(np.sqrt(norms.max(initial=0.0)))


def _check_links(levels: IntArray, links: IntArray, entry: IntArray, ends: IntArray) -> None:
    """Require links to points that are there, and as high as the link.

    ``ends`` has the number of links below each level.
    """
    n_points = len(levels)
    wrong = InputError("the links of the points lead elsewhere")
    if n_points and not (levels.min() >= 1 and levels.max() < len(ends)):
        raise wrong
    counts = ends[levels]
    if len(links) != counts.sum() or (n_points and not 0 <= entry[0] < n_points):
        raise wrong
    if not n_points:
        return
    if links.min() < NOBODY or links.max() >= n_points or levels[entry[0]] != levels.max():
        raise wrong
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    heights = np.searchsorted(ends, np.arange(len(links)) - starts, side="right") - 1
    if (levels[links] <= heights)[links != NOBODY].any():
        raise wrong


def _only_live(candidates: IntArray, k: int, alive: BoolArray) -> IntArray:
    """Return the first ``k`` candidates of every row that are alive, -1 where there are fewer."""
    kept = (candidates >= 0) & alive[candidates]
    order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
    found = np.take_along_axis(np.where(kept, candidates, NOBODY), order, 1)
    return np.pad(found, ((0, 0), (0, k - found.shape[1])), constant_values=NOBODY)


INDEXES: dict[str, Callable[[FloatArray, int], Index]] = {
    "flat": FlatIndex,
    "ivf": InvertedIndex,
    "hnsw": GraphIndex,
}
