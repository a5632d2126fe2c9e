"""How FAISS finds candidates: in all points, in the nearest cells, or along a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from rankfold.errors import InputError
from rankfold.neighbors.lists import GrowableArray
from rankfold.neighbors.projected import Shortcut
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray

Shown = Callable[[range, str], Iterable[int]]
"""Yields steps of a work and shows how far it has come, by the name of the work."""

FEW_QUERIES = 16
"""So few queries are searched by one thread: waking the others costs more than it gains.
FAISS also measures so few by differences, not by matrix products."""

CELLS_PER_ROOT = 4
"""An inverted file has this many cells per square root of the number of points."""

TRAINING_POINTS, TRAINING_STEPS = 40, 6
"""Points per cell and steps of k-means: more takes longer and finds hardly better cells."""

MOST_CELLS = 0.25
"""The largest share of the cells to visit."""

LINKS = 16
"""Links per point of the graph."""

PRODUCTS, DIFFERENCES = 1, 2

EPS = float(np.finfo(np.float32).eps)


def unseen(steps: range, label: str) -> Iterable[int]:
    """Show nothing."""
    return steps


class CandidateIndex(Protocol):
    """Finds candidates, with more or less effort; the engine measures them again."""

    kind: str
    n_spare: int

    @property
    def efforts(self) -> tuple[int, ...]:
        """What it can do, from the least to the most."""

    def scanned(self, effort: int) -> int:
        """Return with how many points a query is compared, about."""

    def candidates(
        self, queries: FloatArray, k: int, effort: int, alive: BoolArray | None = None
    ) -> IntArray:
        """Return the ``k`` points that seem nearest to each query, -1 where it ran out.

        Only those that are ``alive``, where some are not.
        """

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Return the distance below which rounding made no query miss a point.

        ``farthest`` holds the distance of each query's farthest candidate.
        """

    def search_order(self, indices: IntArray) -> IntArray:
        """Return places of ``indices`` in an order that keeps near points together."""

    def add(self, points: FloatArray, n_added: int) -> None:
        """Take in the last so many of all points."""


def selected(alive: BoolArray | None) -> dict[str, Any]:
    """Return the parameter that makes FAISS pass over points."""
    if alive is None:
        return {}
    import faiss

    return {"sel": faiss.IDSelectorBitmap(np.packbits(alive, bitorder="little"))}


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


class InvertedIndex:
    """Cells around centres that k-means finds; only the cells nearest to a query are visited.

    Holds a copy of the points, sorted by cell: FAISS can only scan what lies side by side.
    """

    kind = "ivf"
    n_spare = 0

    def __init__(self, points: FloatArray, seed: int, shown: Shown = unseen) -> None:
        self._index = trained(points, seed, shown)
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
        self._index, self._members = index, GrowableArray(cells)
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
        return _doubling(1, int(MOST_CELLS * self.n_cells))

    @property
    def _cells(self) -> IntArray:
        return self._members.rows

    def _fill(self, points: FloatArray, cells: IntArray) -> None:
        """Store each cell at once: lists that grow point by point take up to twice as much."""
        import faiss

        self._members = GrowableArray(cells)
        members = np.argsort(cells, kind="stable")
        ends = np.cumsum(np.bincount(cells, minlength=self.n_cells))
        for cell, indices in enumerate(np.split(members, ends[:-1])):
            codes = points[indices].view(np.uint8)
            self._index.invlists.add_entries(
                cell, len(indices), faiss.swig_ptr(indices), faiss.swig_ptr(codes)
            )
        self._index.ntotal = len(points)

    def scanned(self, effort: int) -> int:
        """Return the number of points in the visited cells."""
        return effort * len(self._cells) // self.n_cells

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

    def search_order(self, indices: IntArray) -> IntArray:
        """Return places by cell, so that cells stay in the processor's cache."""
        return np.argsort(self._cells[indices], kind="stable")

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


def trained(points: FloatArray, seed: int, shown: Shown = unseen) -> Any:
    """Return an empty index of FAISS, its cells found in a sample of the points.

    Only the sample is read, so that the points may lie in a file that is larger than memory.
    """
    import faiss

    n_points, n_features = points.shape
    n_cells = max(1, min(n_points, int(CELLS_PER_ROOT * np.sqrt(n_points))))
    n_training = min(n_points, TRAINING_POINTS * n_cells)
    sample = np.random.default_rng(seed).choice(n_points, n_training, replace=False)
    training, quantizer = points[np.sort(sample)], faiss.IndexFlatL2(n_features)
    means = faiss.Clustering(n_features, n_cells)
    means.seed, means.niter = seed + 1, 1
    means.min_points_per_centroid, means.max_points_per_centroid = 1, TRAINING_POINTS
    for _ in shown(range(TRAINING_STEPS), "cells"):  # each goes on from the centres of the last
        means.train(training, quantizer)
    return _empty(quantizer, n_features, n_cells)


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


class FlatIndex:
    """Looks at every point, straight in the array of the engine, without a copy.

    It uses matrix products at first, and differences where products lose too many digits. A few
    queries with many features take a shortcut to the same points.
    """

    kind = "flat"
    n_spare = 16
    efforts: tuple[int, ...] = (PRODUCTS, DIFFERENCES)

    def __init__(self, points: FloatArray, seed: int, _shown: Shown = unseen) -> None:
        self.points, self.shortcut = points, Shortcut(seed)
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
            waiting = self.shortcut.answer(self.points, queries, alive, found)
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

    def search_order(self, indices: IntArray) -> IntArray:
        """Return the places as they are."""
        return np.arange(len(indices))

    def add(self, points: FloatArray, n_added: int) -> None:
        """Look at the new array from now on."""
        self.points = points
        self.shortcut.add(points, n_added)
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

    def __init__(self, points: FloatArray, _seed: int, shown: Shown = unseen) -> None:
        import faiss

        self._index = faiss.IndexHNSWFlat(points.shape[1], LINKS)
        for start in shown(range(0, len(points), 2**12), "links"):
            self._index.add(points[start : start + 2**12])

    @classmethod
    def restore(
        cls, points: FloatArray, levels: IntArray, links: IntArray, entry: IntArray
    ) -> GraphIndex:
        """Link points again as they were; see `state`, and `check_links`."""
        import faiss

        index = faiss.IndexHNSWFlat(points.shape[1], LINKS)
        hnsw, n_points = index.hnsw, len(points)
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

    def search_order(self, indices: IntArray) -> IntArray:
        """Return the places as they are."""
        return np.arange(len(indices))

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


def check_links(levels: IntArray, links: IntArray, entry: IntArray) -> None:
    """Require links to points that are there, and as high as the link: FAISS does not look."""
    import faiss

    index = faiss.IndexHNSWFlat(1, LINKS)
    ends = faiss.vector_to_array(index.hnsw.cum_nneighbor_per_level)
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


INDEXES: dict[str, Callable[[FloatArray, int, Shown], CandidateIndex]] = {
    "flat": FlatIndex,
    "ivf": InvertedIndex,
    "hnsw": GraphIndex,
}


def stored(kind: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return what `restored` needs of stored arrays, links checked."""
    if kind == "hnsw":
        check_links(arrays["levels"], arrays["links"], arrays["entry"])
    needed = {"flat": (), "ivf": ("centres", "cells"), "hnsw": ("levels", "links", "entry")}[kind]
    if "faiss" in arrays:
        needed = ("faiss", "cells")
    return {name: arrays[name] for name in ("points", *needed)}


def restored(kind: str, arrays: dict[str, Any]) -> CandidateIndex:
    """Return an index that was stored; see the ``state`` of each.

    ``faiss`` may be an inverted file of FAISS that is open, such as one that it maps from a file;
    it is then taken as it is.
    """
    if kind == "flat":
        return FlatIndex(arrays["points"], 0)
    if kind == "hnsw":
        return GraphIndex.restore(**arrays)
    if "faiss" in arrays:
        return InvertedIndex.over(arrays["faiss"], arrays["cells"])
    return InvertedIndex.restore(**arrays)
