"""Nearest-neighbour search by FAISS: fast, and its recall is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy import spatial

from rankfold.check import check_choice, check_count, check_flag, check_share, warn_caller
from rankfold.errors import InputError
from rankfold.neighbors.distances import (
    SinglePrecision,
    measure_all,
    merge_lists,
    positive_shares,
    sq_distances_between,
)
from rankfold.neighbors.faiss_indexes import (
    DIFFERENCES,
    FEW_QUERIES,
    INDEXES,
    PRODUCTS,
    CandidateIndex,
    FlatIndex,
    restored,
    threads,
)
from rankfold.neighbors.lists import GrowableArray
from rankfold.types import DEFAULT_RECALL, NOBODY, BoolArray, FloatArray, IntArray, Neighbors, Query

RECALL_POINTS, RECALL_NEIGHBORS = 200, 50
"""Recall is measured over the lists of so many points, and of this length at least."""

MOST_ADDED, LEAST_LEFT = 1.25, 0.8
"""Recall is measured again once there are so many times the points, or fewer are left."""

MOST_SCANNED = 4_000
"""A graph (HNSW) is quicker than an inverted file that compares each query with more points."""

MOST_PAIRS = 2**43
"""All pairs of points are compared, where nothing else reaches the recall, up to this many products
of numbers: some minutes."""

FLAT_LIMIT = 10_000
"""Up to so many points, looking at all of them is quicker than building an index."""

LONGEST_SEARCH = 1024
"""Longer lists are rare, and every distance is measured for them."""

BLOCK_ROWS, BLOCK_WORK, BLOCK_BYTES = 2**13, 2**36, 2**24
"""Bounds of a block of queries: rows, products of numbers, and bytes of a temporary array."""


@dataclass(frozen=True)
class Plan:
    """The index and the effort with which lists of up to ``width`` reach a measured recall.

    ``n_points`` and ``n_alive`` are how many points there were when it was measured.
    """

    width: int
    kind: str
    effort: int
    recall: float
    n_points: int
    n_alive: int

    def holds(self, n_points: int, n_alive: int) -> bool:
        """Say whether the points are still about those for which it was measured."""
        return n_points <= MOST_ADDED * self.n_points and n_alive >= LEAST_LEFT * self.n_alive


class RecallSample:
    """Points whose true neighbours are known, by which the recall of lists is measured.

    Parameters
    ----------
    points : array of float32
    alive : array of bool or None
        Which of them are left, where some are not.
    width : int
        Length of the lists.
    seed : int
        By which the points are drawn.
    n_threads : int or None
    """

    def __init__(
        self,
        points: FloatArray,
        alive: BoolArray | None,
        width: int,
        seed: int,
        n_threads: int | None,
    ) -> None:
        self._points, self._alive, self._width, self._n_threads = points, alive, width, n_threads
        live = np.arange(len(points)) if alive is None else np.flatnonzero(alive)
        rng = np.random.default_rng(seed)
        self._n_alive = len(live)
        self._sample = live[rng.choice(len(live), min(RECALL_POINTS, len(live)), replace=False)]
        self._flat = FlatIndex(points, seed)
        self._true = self._found(self._flat, DIFFERENCES)

    def plan(self, index: CandidateIndex, recall: float, most_scanned: float = np.inf) -> Plan:
        """Return the least effort that reaches a recall, or else the largest one.

        Efforts that compare a query with more points than ``most_scanned`` are left out.
        """
        known = self._width > 0 and len(self._sample) > 0
        efforts = [one for one in index.efforts if index.scanned(one) <= most_scanned]
        for effort in efforts or index.efforts[:1]:
            found = self._found(index, effort) if known else self._true
            share = float((found <= self._true[:, -1:]).mean()) if known else 1.0
            if share >= recall:
                break
        counts = len(self._points), self._n_alive
        return Plan(self._width, index.kind, effort, share, *counts)

    def seconds_of_all_pairs(self) -> float:
        """Estimate how long it takes to compare all pairs of points."""
        started = monotonic()
        self._found(self._flat, PRODUCTS)
        return (monotonic() - started) * self._n_alive / max(1, len(self._sample))

    def _found(self, index: CandidateIndex, effort: int) -> FloatArray:
        from rankfold.neighbors.kernels import refine

        points, sample = self._points, self._sample
        with threads(self._n_threads):
            candidates = index.candidates(points[sample], self._width + 1, effort, self._alive)
        return refine(points, points[sample], candidates, sample, self._width)[0].sq_distances


class FaissEngine:
    """Search over many vectors, with an index that reaches a measured recall.

    The vectors are held once, in float32 (scaled to length one for ``cosine``). Candidates that
    FAISS finds are measured again by differences, so that distances and their order are
    those of `ExactEngine` on the same float32 vectors; what can be missed are neighbours.
    How many is measured: ``recall_`` is the share of true neighbours, ties counted
    as found, in the lists of a random sample of points. The index looks at more points until the
    asked recall is reached. Where it cannot reach it, all pairs of points are compared, if that
    takes no more than some minutes; else a warning says which recall was reached.

    Parameters
    ----------
    X : array, shape (n_points, n_features)
        Float32 in C order is not copied for ``euclidean``: do not change it.
    metric : {"euclidean", "cosine"}
        As for `ExactEngine`.
    recall : float
        The recall to reach, above 0 and at most 1, which compares all pairs of points.
    index : {"auto", "flat", "ivf", "hnsw"}
        All points, an inverted file, or a graph. "auto" tries an inverted file for more than
        10,000 points, and then a graph where that file would have to compare each query with too
        many of them, as it does in many dimensions. ``index_`` says what is in use. Threads build
        a graph in no fixed order, so that its lists are the same every time with one thread only.
    seed : int
        Of the samples by which an index is trained and its recall measured.
    progress : bool
        Whether `rows` shows a bar on stderr.
    n_threads : int, optional
        Threads that FAISS may use; as many as it likes by default.

    Examples
    --------
    >>> import numpy as np
    >>> engine = FaissEngine(np.array([[0.0], [1.0], [3.0]]))
    >>> engine.search(np.array([[0.9]]), 2).indices
    array([[1, 0]], dtype=int32)
    """

    tie_order = None

    _stored_index: dict[str, Any] | None = None
    """Arrays of an index that is not made yet."""

    def __init__(
        self,
        X: FloatArray,
        metric: str = "euclidean",
        recall: float = DEFAULT_RECALL,
        index: Literal["auto", "flat", "ivf", "hnsw"] = "auto",
        seed: int = 0,
        progress: bool = False,
        n_threads: int | None = None,
    ) -> None:
        check_choice(metric, "metric", ("euclidean", "cosine"))
        check_choice(index, "index", ("auto", *INDEXES))
        self.metric = metric
        self.recall = check_share(recall, "recall", one=True)
        self.seed = check_count(seed, "seed", least=0)
        self.progress = check_flag(progress, "progress")
        self.n_threads = None if n_threads is None else check_count(n_threads, "n_threads")
        self._form, points = SinglePrecision.of(X, metric)
        self._held = GrowableArray(points)
        self._alive: GrowableArray | None = None
        self.n_alive: int = len(points)
        self.n_features: int = points.shape[1]
        if not self.n_points:
            raise InputError("X has no rows; give at least one point.")
        kinds: tuple[str, ...] = (index,)
        if index == "auto":
            few = self.n_points <= FLAT_LIMIT or self.recall == 1
            kinds = ("flat",) if few else ("ivf", "hnsw")
        self._take(kinds, {})

    @classmethod
    def over(
        cls, points: FloatArray, metric: str, recall: float, index: CandidateIndex
    ) -> FaissEngine:
        """Search points in float32, of length one for ``cosine``, with an index of them.

        Both may lie in files: neither is copied.
        """
        self = cls.__new__(cls)
        self.metric, self.recall, self.seed = metric, recall, 0
        self.progress, self.n_threads = False, None
        self._form = SinglePrecision(metric == "cosine", None)
        self._held, self._alive, self.n_alive = GrowableArray(points), None, len(points)
        self.n_features = points.shape[1]
        self._take((index.kind,), {index.kind: index})
        return self

    @property
    def _indexes(self) -> dict[str, CandidateIndex]:
        """The indexes by kind; one that was stored is made when it is first searched."""
        stored = self._stored_index
        if stored is not None:
            with threads(self.n_threads):
                index = restored(self._kind, stored)
                n_added = self.n_points - len(stored["points"])
                if n_added:
                    index.add(self._points, n_added)
            self._indexes = {index.kind: index}
        return self._made

    @_indexes.setter
    def _indexes(self, indexes: dict[str, CandidateIndex]) -> None:
        self._made, self._stored_index = indexes, None

    def _index(self, kind: str) -> CandidateIndex:
        """Return the index of a plan."""
        if kind == "flat" and kind not in self._indexes:
            self._indexes[kind] = FlatIndex(self._points, self.seed)
        return self._indexes[kind]

    def _take(self, kinds: tuple[str, ...], indexes: dict[str, CandidateIndex]) -> None:
        """Take the first kind of index that reaches the recall; some may be there already."""
        self._indexes = indexes
        self._plans = [self._reach_recall(kinds, min(RECALL_NEIGHBORS, self.n_points - 1))]
        self._kind = self._plans[0].kind
        self._indexes = {self._kind: self._indexes[self._kind]}  # others did not pay

    def prepare(self, k: int) -> None:
        """Measure now how lists of this length reach the asked recall, not when they are found."""
        self._plan(k)

    @property
    def n_points(self) -> int:
        """The number of points, removed ones among them."""
        return len(self._held.rows)

    @property
    def alive(self) -> BoolArray | None:
        """Which points are left, where some may have been removed."""
        return None if self._alive is None else self._alive.rows

    @property
    def _points(self) -> FloatArray:
        return self._held.rows

    @property
    def _mask(self) -> BoolArray | None:
        """Which points are left, where some are not."""
        return None if self.n_alive == self.n_points else self.alive

    @property
    def index_(self) -> str:
        """The kind of index in use: "flat", "ivf" or "hnsw"."""
        return self._plans[0].kind

    @property
    def recall_(self) -> float:
        """The lowest recall that was measured, over all lengths of lists that were asked for."""
        return min(plan.recall for plan in self._plans)

    @property
    def exact(self) -> bool:
        """Whether a search looks at every point."""
        return self._plans[0].kind == "flat"

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points of the database for vectors from anywhere."""
        return self.find(self.held(vectors), k)

    def held(self, vectors: FloatArray) -> FloatArray:
        """Check vectors and bring them into the form in which the points are held."""
        return self._form.apply(vectors, "vectors", self.n_features)

    def find(self, held: FloatArray, k: int) -> Neighbors:
        """Search like `search` for vectors in the form in which the points are held."""
        return self._lists(held, k, None)

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Find the ``k`` nearest neighbours of points of the database, themselves left out."""
        found = self._lists(self._points, k, np.asarray(indices))
        if self._mask is not None:
            gone = ~self._mask[indices]
            found.indices[gone], found.sq_distances[gone] = NOBODY, np.inf
        return found

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out.

        The mean of the squared distances to several examples is the squared distance to their
        centre and a constant, so one search around the centre finds them.
        """
        vectors = self.held(query.vectors)
        examples = np.concatenate([self._points[query.indices], vectors])
        weights = positive_shares(query)
        center = (weights @ examples.astype(np.float64)).astype(np.float32)
        found = self._lists(center[None, :], k + len(query.indices) + 1, None)
        others = np.setdiff1d(found.indices[0], [*query.indices, NOBODY])
        sq_distances = weights @ spatial.distance.cdist(
            examples, self._points[others], "sqeuclidean"
        )
        measured = Neighbors(others[None, :], sq_distances[None, :].astype(np.float32))
        return merge_lists([measured], k)

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything: one row of squared distances per point, then one per vector."""
        vectors = self.held(vectors)
        for index in indices:
            left = self._mask is None or self._mask[index]
            yield self._row(self._points[index]) if left else np.full(self.n_points, np.inf)
        for vector in vectors:
            yield self._row(vector)

    def _row(self, query: FloatArray) -> FloatArray:
        from rankfold.neighbors.kernels import sq_distances_to

        row = sq_distances_to(self._points, query)
        return row if self._mask is None else np.where(self._mask, row, np.inf)

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Measure the squared distances of some points to each example of a checked query."""
        examples = np.concatenate([self._points[query.indices], self.held(query.vectors)])
        return sq_distances_between(examples, self._points, points)

    def pairs(self, indices: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the database to each other."""
        return sq_distances_between(self._points[indices], self._points, indices)

    def vectors(self, indices: IntArray) -> FloatArray:
        """Return points as they were given; scaled to length one for cosine."""
        held, origin = self._points[indices], self._form.origin
        return held if origin is None else held + origin

    def _lists(self, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        """Search in blocks of rows; with ``own``, for those rows of ``queries``."""
        plan = self._plan(k)
        index = self._index(plan.kind)
        chosen = np.arange(len(queries)) if own is None else own
        order = np.arange(len(chosen)) if own is None else index.search_order(own)
        indices = np.empty((len(chosen), k), dtype=np.int32)
        sq_distances = np.empty((len(chosen), k), dtype=np.float32)
        step = BLOCK_WORK // (index.scanned(plan.effort) * max(1, self.n_features))
        step = max(FEW_QUERIES, min(step, BLOCK_ROWS, BLOCK_BYTES // (4 * k)))
        for start in self._shown(range(0, len(chosen), step), "neighbours"):
            rows = order[start : start + step]
            block_own = None if own is None else own[rows]
            block = self._block(plan, queries[chosen[rows]], k, block_own)
            indices[rows], sq_distances[rows] = block.indices, block.sq_distances
        return Neighbors(indices, sq_distances)

    def _shown(self, steps: range, label: str) -> Iterable[int]:
        if not self.progress or len(steps) < 2:
            return steps
        return track(steps, label, console=Console(stderr=True), transient=True)

    def _block(self, plan: Plan, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        from rankfold.neighbors.kernels import refine

        index = self._index(plan.kind)
        n_found = k + (own is not None) + index.n_spare
        if 4 * n_found >= self.n_alive or k > LONGEST_SEARCH:
            return self._measured(queries, k, own)
        with threads(1 if len(queries) < FEW_QUERIES else self.n_threads):
            candidates = index.candidates(queries, n_found, plan.effort, self._mask)
        lists, farthest = refine(self._points, queries, candidates, own, k)
        certain = index.certain(queries, farthest, plan.effort)
        doubtful = np.isinf(farthest) | (lists.sq_distances[:, -1] >= certain)
        if doubtful.any():
            own_doubtful = None if own is None else own[doubtful]
            exact = self._measured(queries[doubtful], k, own_doubtful)
            lists.indices[doubtful] = exact.indices
            lists.sq_distances[doubtful] = exact.sq_distances
        return lists

    def _measured(self, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        """Measure every distance."""
        found = measure_all(self._points, queries, k, own, BLOCK_BYTES, self._mask)
        return Neighbors(found.indices.astype(np.int32), found.sq_distances.astype(np.float32))

    def _plan(self, k: int) -> Plan:
        """Return how lists of this length reach the asked recall.

        Threads that ask for a new length at once each measure it, and any of their plans will do.
        """
        most, n_alive = self.n_points - 1, self.n_alive
        width = min(k, LONGEST_SEARCH, most)
        for place, plan in enumerate(self._plans):
            if width <= plan.width:
                if not plan.holds(self.n_points, n_alive):
                    self._plans[place] = self._reach_recall((self._kind,), plan.width)
                return self._plans[place]
        wider = min(max(width, 2 * self._plans[-1].width), most)
        self._plans.append(self._reach_recall((self._kind,), wider))
        return self._plans[-1]

    def _reach_recall(self, kinds: tuple[str, ...], width: int) -> Plan:
        """Return the plan of the first kind of index that reaches the recall, or of the last."""
        sample = RecallSample(self._points, self._mask, width, self.seed, self.n_threads)
        for kind in kinds:
            if kind not in self._indexes:
                self._indexes.clear()  # before another one takes as much memory
                with threads(self.n_threads):
                    self._indexes[kind] = INDEXES[kind](self._points, self.seed, self._shown)
            most = np.inf if kind == kinds[-1] else MOST_SCANNED
            plan = sample.plan(self._indexes[kind], self.recall, most)
            if plan.recall >= self.recall:
                return plan
        if self.recall == 1 or self.n_alive**2 * self.n_features <= MOST_PAIRS:
            return sample.plan(self._index("flat"), self.recall)
        warn_caller(
            f"lists of {self.n_points:,} points have a recall of {plan.recall:.3f}, not of "
            f"{self.recall:g}. Comparing all pairs of points would take about "
            f"{_duration(sample.seconds_of_all_pairs())}; give recall=1 for it."
        )
        return plan


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"
