"""Neighbour search for many points, with FAISS: fast, and its recall is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.spatial.distance import cdist

from rankfold.check import InputError, check_choice, check_count, check_flag, check_share
from rankfold.neighbors.indexes import DIFFERENCES, FEW_QUERIES, INDEXES, FlatIndex, Index, threads
from rankfold.neighbors.measure import (
    measure_all,
    measured_row,
    pair_sq_distances,
    positive_shares,
)
from rankfold.neighbors.vectors import SinglePrecision
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors, Query

FLAT_LIMIT = 10_000
"""Up to so many points, looking at all of them is quicker than building an index."""

RECALL_POINTS, RECALL_NEIGHBORS = 200, 50
"""Recall is measured over the lists of so many points, and of this length at least."""

LONGEST_SEARCH = 1024
"""Longer lists are rare, and every distance is measured for them."""

BLOCK_ROWS, BLOCK_WORK, BLOCK_BYTES = 2**13, 2**36, 2**24
"""Bounds of a block of queries: rows, products of numbers, and bytes of a temporary array."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The effort with which lists of up to ``width`` reach a measured recall."""

    width: int
    index: Index
    effort: int
    recall: float


class FaissEngine:
    """Search over many vectors, with an index that reaches a measured recall.

    The vectors are held once, in float32 (scaled to length one for ``cosine``). Candidates that
    FAISS finds are measured again by differences, so that distances and their order are
    those of `ExactEngine` on the same float32 vectors; what can be missed are neighbours.
    How many is measured: ``recall_`` is the share of true neighbours, ties counted
    as found, in the lists of a random sample of points. The index looks at more points until the
    asked recall is reached, and gives way to a search through all points where that is cheaper.

    Parameters
    ----------
    X : array, shape (n_points, n_features)
        Float32 in C order is not copied for ``euclidean``: do not change it.
    metric : {"euclidean", "cosine"}
    recall : float
        The recall to reach, above 0 and at most 1.
    index : {"auto", "flat", "ivf", "hnsw"}
        All points, an inverted file, or a graph. "auto" takes an inverted file for more than
        10,000 points. ``index_`` says what is in use.
    seed : int
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

    def __init__(
        self,
        X: FloatArray,
        metric: str = "euclidean",
        recall: float = 0.99,
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
        self._form, self._points = SinglePrecision.of(X, metric)
        self.n_points: int = self._points.shape[0]
        self.n_features: int = self._points.shape[1]
        if not self.n_points:
            raise InputError("X has no rows; give at least one point.")
        if index == "auto":
            index = "flat" if self.n_points <= FLAT_LIMIT else "ivf"
        with threads(self.n_threads):
            first: Index = INDEXES[index](self._points, self.seed)
        self._plans: list[Plan] = []
        self._reach_recall(first, min(RECALL_NEIGHBORS, self.n_points - 1))

    @property
    def index_(self) -> str:
        """The kind of index in use: "flat", "ivf" or "hnsw"."""
        return self._plans[0].index.kind

    @property
    def recall_(self) -> float:
        """The lowest recall that was measured, over all lengths of lists that were asked for."""
        return min(plan.recall for plan in self._plans)

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points of the database for vectors from anywhere."""
        return self._lists(self._form.apply(vectors, "vectors", self.n_features), k, None)

    def rows(self, ids: IntArray, k: int) -> Neighbors:
        """Find the ``k`` nearest neighbours of points of the database, themselves left out."""
        return self._lists(self._points, k, np.asarray(ids))

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out.

        The mean of the squared distances to several examples is the squared distance to their
        centre and a constant, so one search around the centre finds them.
        """
        vectors = self._form.apply(query.vectors, "vectors", self.n_features)
        examples = np.concatenate([self._points[query.ids], vectors])
        weights = positive_shares(query)
        center = (weights @ examples.astype(np.float64)).astype(np.float32)
        found = self._lists(center[None, :], k + len(query.ids) + 1, None)
        others = np.setdiff1d(found.indices[0], [*query.ids, NOBODY])
        sq_distances = weights @ cdist(examples, self._points[others], "sqeuclidean")
        measured = Neighbors(others[None, :], sq_distances[None, :].astype(np.float32))
        return Neighbors.merge([measured], k)

    def sq_distances(self, ids: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything: one row of squared distances per id, then one per vector."""
        vectors = self._form.apply(vectors, "vectors", self.n_features)
        for index in ids:
            yield measured_row(self._points, self._points[index], BLOCK_BYTES)
        for vector in vectors:
            yield measured_row(self._points, vector, BLOCK_BYTES)

    def pairs(self, ids: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the database to each other."""
        return pair_sq_distances(self._points[ids])

    def _lists(self, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        """Search in blocks of rows; with ``own``, for those rows of ``queries``."""
        plan = self._plan(k)
        chosen = np.arange(len(queries)) if own is None else own
        order = np.arange(len(chosen)) if own is None else plan.index.search_order(own)
        indices = np.empty((len(chosen), k), dtype=np.int32)
        sq_distances = np.empty((len(chosen), k), dtype=np.float32)
        step = BLOCK_WORK // (plan.index.scanned(plan.effort) * max(1, self.n_features))
        step = max(FEW_QUERIES, min(step, BLOCK_ROWS, BLOCK_BYTES // (4 * k)))
        for start in self._shown(range(0, len(chosen), step)):
            rows = order[start : start + step]
            block_own = None if own is None else own[rows]
            block = self._block(plan, queries[chosen[rows]], k, block_own)
            indices[rows], sq_distances[rows] = block.indices, block.sq_distances
        return Neighbors(indices, sq_distances)

    def _shown(self, starts: range) -> Iterable[int]:
        if not self.progress or len(starts) < 2:
            return starts
        return track(starts, "neighbours", console=Console(stderr=True), transient=True)

    def _block(self, plan: Plan, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        from rankfold.neighbors.refine import refine

        n_found = k + (own is not None) + plan.index.n_spare
        if 4 * n_found >= self.n_points or k > LONGEST_SEARCH:
            return self._measured(queries, k, own)
        with threads(1 if len(queries) < FEW_QUERIES else self.n_threads):
            candidates = plan.index.candidates(queries, n_found, plan.effort)
        lists, farthest = refine(self._points, queries, candidates, own, k)
        certain = plan.index.certain(queries, farthest, plan.effort)
        doubtful = np.isinf(farthest) | (lists.sq_distances[:, -1] >= certain)
        if doubtful.any():
            own_doubtful = None if own is None else own[doubtful]
            exact = self._measured(queries[doubtful], k, own_doubtful)
            lists.indices[doubtful] = exact.indices
            lists.sq_distances[doubtful] = exact.sq_distances
        return lists

    def _measured(self, queries: FloatArray, k: int, own: IntArray | None) -> Neighbors:
        """Measure every distance."""
        found = measure_all(self._points, queries, k, own, BLOCK_BYTES)
        return Neighbors(found.indices.astype(np.int32), found.sq_distances.astype(np.float32))

    def _plan(self, k: int) -> Plan:
        """Return how lists of this length reach the asked recall."""
        width = min(k, LONGEST_SEARCH, self.n_points - 1)
        for plan in self._plans:
            if width <= plan.width:
                return plan
        last = self._plans[-1]
        return self._reach_recall(last.index, min(max(width, 2 * last.width), self.n_points - 1))

    def _reach_recall(self, index: Index, width: int) -> Plan:
        """Make more efforts until lists of this length reach the asked recall."""
        rng = np.random.default_rng(self.seed)
        sample = rng.choice(self.n_points, min(RECALL_POINTS, self.n_points), replace=False)
        flat: Index = FlatIndex(self._points, self.seed)
        true = self._found(flat, DIFFERENCES, sample, width)
        attempts = [(kind, effort) for kind in (index, flat) for effort in kind.efforts]
        for kind, effort in attempts:  # the last one is how the truth was found
            found = self._found(kind, effort, sample, width)
            recall = float((found <= true[:, -1:]).mean()) if width else 1.0
            if recall >= self.recall:
                break
        self._plans.append(Plan(width, kind, effort, recall))
        return self._plans[-1]

    def _found(self, index: Index, effort: int, sample: IntArray, width: int) -> FloatArray:
        from rankfold.neighbors.refine import refine

        queries = self._points[sample]
        with threads(self.n_threads):
            candidates = index.candidates(queries, width + 1, effort)
        return refine(self._points, queries, candidates, sample, width)[0].sq_distances
