"""How FAISS finds candidates: by looking at all points, at near cells, or along a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from rankfold.types import FloatArray, IntArray

FEW_QUERIES = 16
"""So few queries are searched by one thread: waking the others costs more than it gains.
FAISS also measures so few by differences, not by matrix products."""

CELLS_PER_ROOT = 4
"""An inverted file has this many cells per square root of the number of points."""

TRAINING_POINTS, TRAINING_STEPS = 40, 6
"""Points per cell and steps of k-means: more takes longer and finds hardly better cells."""

MOST_CELLS, EVEN_FEATURES = 0.25, 16
"""The largest share of the cells to visit. With many features matrix products are so much faster
than differences that all points cost no more than a share ``EVEN_FEATURES / n_features``."""

LINKS = 16
"""Links per point of the graph."""


PRODUCTS, DIFFERENCES = 1, 2
EPS = float(np.finfo(np.float32).eps)


class Index(Protocol):
    """Finds candidates, with more or less effort; the engine measures them again."""

    kind: str
    n_spare: int
    efforts: tuple[int, ...]

    def scanned(self, effort: int) -> int:
        """Return with how many points a query is compared, about."""

    def candidates(self, queries: FloatArray, k: int, effort: int) -> IntArray:
        """Return the ``k`` points that seem nearest to each query, -1 where it ran out."""

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Return the distance below which rounding made no query miss a point.

        ``farthest`` holds the distance of each query's farthest candidate.
        """

    def search_order(self, ids: IntArray) -> IntArray:
        """Return places of ``ids`` in an order that keeps near points together."""


class FlatIndex:
    """Looks at every point, straight in the array of the engine, without a copy.

    It uses matrix products at first, and differences where products lose too many digits.
    """

    kind = "flat"
    n_spare = 16
    efforts: tuple[int, ...] = (PRODUCTS, DIFFERENCES)

    def __init__(self, points: FloatArray, _seed: int) -> None:
        self.points = points
        norms = np.einsum("ij,ij->i", points, points, dtype=np.float64)
        self._largest_norm = float(np.sqrt(norms.max()))

    def scanned(self, effort: int) -> int:
        """Return the number of all points."""
        return len(self.points)

    def candidates(self, queries: FloatArray, k: int, effort: int) -> IntArray:
        """Measure everything in FAISS."""
        import faiss

        step = FEW_QUERIES if effort == DIFFERENCES else max(1, len(queries))
        found = [
            faiss.knn(queries[start : start + step], self.points, k)[1]
            for start in range(0, len(queries), step)
        ]
        return np.concatenate(found) if found else np.empty((0, k), dtype=np.intp)

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


class InvertedIndex:
    """Cells around centres that k-means finds; only the cells nearest to a query are visited.

    Holds a copy of the points, sorted by cell: FAISS can only scan what lies side by side.
    """

    kind = "ivf"
    n_spare = 0

    def __init__(self, points: FloatArray, seed: int) -> None:
        import faiss

        n_points, n_features = points.shape
        self.n_cells: int = max(1, min(n_points, int(CELLS_PER_ROOT * np.sqrt(n_points))))
        self._index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_features), n_features, self.n_cells)
        self._index.cp.seed = seed + 1
        self._index.cp.niter = TRAINING_STEPS
        self._index.cp.min_points_per_centroid = 1
        self._index.cp.max_points_per_centroid = TRAINING_POINTS
        n_training = min(n_points, TRAINING_POINTS * self.n_cells)
        sample = np.random.default_rng(seed).choice(n_points, n_training, replace=False)
        self._index.train(points[np.sort(sample)])
        self._cells = np.concatenate(
            [
                self._index.quantizer.search(points[start : start + 2**16], 1)[1][:, 0]
                for start in range(0, n_points, 2**16)
            ],
            dtype=np.int32,
        )
        self._fill(points)
        share = min(MOST_CELLS, EVEN_FEATURES / max(1, n_features))
        self.efforts = _doubling(1, int(share * self.n_cells))

    def _fill(self, points: FloatArray) -> None:
        """Store each cell at once: lists that grow point by point take up to twice as much."""
        import faiss

        members = np.argsort(self._cells, kind="stable")
        ends = np.cumsum(np.bincount(self._cells, minlength=self.n_cells))
        for cell, ids in enumerate(np.split(members, ends[:-1])):
            codes = points[ids].view(np.uint8)
            self._index.invlists.add_entries(
                cell, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(codes)
            )
        self._index.ntotal = len(points)

    def scanned(self, effort: int) -> int:
        """Return the number of centres, and of points in the visited cells."""
        return self.n_cells + effort * len(self._cells) // self.n_cells

    def candidates(self, queries: FloatArray, k: int, effort: int) -> IntArray:
        """Search so many cells."""
        import faiss

        visited = faiss.SearchParametersIVF(nprobe=effort)
        found: IntArray = self._index.search(queries, k, params=visited)[1]
        return found

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Distances come from differences, so that rounding is none of its errors."""
        return np.full(len(queries), np.inf)

    def search_order(self, ids: IntArray) -> IntArray:
        """Return places by cell, so that cells stay in the processor's cache."""
        return np.argsort(self._cells[ids], kind="stable")


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

    def scanned(self, effort: int) -> int:
        """Return the number of points on the way and of those they are linked to."""
        return effort * LINKS

    def candidates(self, queries: FloatArray, k: int, effort: int) -> IntArray:
        """Walk along the links, with so many points in mind."""
        import faiss

        kept = faiss.SearchParametersHNSW(efSearch=effort)
        found: IntArray = self._index.search(queries, k, params=kept)[1]
        return found

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Distances come from differences, so that rounding is none of its errors."""
        return np.full(len(queries), np.inf)

    def search_order(self, ids: IntArray) -> IntArray:
        """Return the places as they are."""
        return np.arange(len(ids))


def _doubling(first: int, most: int) -> tuple[int, ...]:
    """Return first, twice as much, ... up to ``most``, but at least the first."""
    efforts = [first]
    while 2 * efforts[-1] <= most:
        efforts.append(2 * efforts[-1])
    return tuple(efforts)


INDEXES: dict[str, Callable[[FloatArray, int], Index]] = {
    "flat": FlatIndex,
    "ivf": InvertedIndex,
    "hnsw": GraphIndex,
}


@contextmanager
def threads(n_threads: int | None) -> Iterator[None]:
    """Let FAISS use so many threads for a while; None leaves it as it is."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
