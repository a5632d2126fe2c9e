"""A graph that lies elsewhere: rows that were fetched, systems over them, and their solver."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock, RLock
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from rankfold.solvers.arrays import Arrays, Floats, Memory, Rule
from rankfold.solvers.region import MissingRowsError, RegionSolver, Workspaces
from rankfold.solvers.system import Boundary, Effort, System, row_sums, sampled
from rankfold.types import BoolArray, FloatArray, IntArray, Solution

FIRST_CAPACITY = 2**10
"""Points and edges that there is room for at first; it doubles."""

MOST_SYSTEMS = 4
"""Smoothnesses for which systems are kept."""

LEAST_DEGREE = 0.5
"""Rows of S sum to one, so that no degree of ``W = (S + S') / 2`` is smaller."""

GROWTH, LEAST_FETCHED, MOST_FETCHED = 8, 64, 2_500
"""Rows that are fetched at once beside those that are needed, for each that is in use already;
how many at least, and how many at most."""

AROUND, FEW_USED, MOST_AROUND = 3_000, 500, 3
"""Rows of the nearest points, fetched where a query has used no more than these before a row is
missing, so that it need not follow edges from ring to ring; and around how many examples."""


class GraphFacts(NamedTuple):
    """What the rules of the region solver need to know of a whole graph.

    Parameters
    ----------
    n_points, n_edges : int
        Entries of W, each edge twice.
    longest_row : int
    largest_degree : float
    median_degrees : (float, float)
        Of the sorted degrees, the two in the middle; the same one twice for an odd number. They
        are those of the sample by which `RegionSolver` judges a graph in memory.
    """

    n_points: int
    n_edges: int
    longest_row: int
    largest_degree: float
    median_degrees: tuple[float, float]

    @classmethod
    def of(cls, lengths: IntArray, degrees: FloatArray) -> GraphFacts:
        """Return the facts of a graph, from the length and the sum of every row."""
        n, some = len(degrees), sampled(degrees)
        ordered, last = np.sort(some) if n else np.zeros(1), max(0, len(some) - 1)
        middle = float(ordered[last // 2]), float(ordered[(last + 1) // 2])
        longest, largest = int(lengths.max(initial=0)), float(degrees.max(initial=0.0))
        return cls(n, int(lengths.sum()), longest, largest, middle)


class FetchedRows:
    """Rows of W that were fetched, of points that are numbered as they are met.

    Rows are only ever added, so that threads may solve while others add. Systems follow: each has
    the rows that were here when it was asked for.

    Parameters
    ----------
    facts : GraphFacts

    Examples
    --------
    >>> import numpy as np
    >>> rows = FetchedRows(GraphFacts.of(np.array([1, 2, 1]), np.array([0.5, 1.0, 0.5])))
    >>> rows.add(np.array([1]), np.array([0, 2]), np.array([0, 2]), np.array([0.5, 0.5]))
    >>> rows.has(np.array([0, 1])).tolist()
    [False, True]
    """

    def __init__(self, facts: GraphFacts) -> None:
        self.facts = facts
        self.n_points = self.n_rows = self.n_entries = 0
        self.rows = np.zeros((FIRST_CAPACITY, 2), dtype=np.int64)
        self.here = np.zeros(FIRST_CAPACITY, dtype=bool)
        self.order = np.empty(FIRST_CAPACITY, dtype=np.int32)
        self.indices = np.empty(FIRST_CAPACITY, dtype=np.int32)
        self.weights = np.empty(FIRST_CAPACITY, dtype=np.float32)
        self._systems: OrderedDict[float, _FetchedSystem] = OrderedDict()
        self._lock = Lock()

    def has(self, points: IntArray) -> BoolArray:
        """Return which of some points have their row here."""
        inside = points < len(self.here)
        found: BoolArray = inside & self.here[np.where(inside, points, 0)]
        return found

    def reserve(self, n_points: int) -> None:
        """Make room for points, which have no row yet."""
        with self._lock:
            self._reserve(n_points)

    def _reserve(self, n_points: int) -> None:
        self.n_points = max(self.n_points, n_points)
        self.rows = _grown(self.rows, self.n_points)
        self.here, self.order = (_grown(a, self.n_points) for a in (self.here, self.order))

    def add(
        self, points: IntArray, starts: IntArray, indices: IntArray, weights: FloatArray
    ) -> None:
        """Add rows: entries of point i go from ``starts[i]`` to ``starts[i + 1]``."""
        with self._lock:
            most = int(max(points.max(initial=-1), indices.max(initial=-1))) + 1
            self._reserve(most)
            first, end = self.n_entries, self.n_entries + len(indices)
            self.indices, self.weights = (_grown(a, end) for a in (self.indices, self.weights))
            self.indices[first:end], self.weights[first:end] = indices, weights
            self.rows[points, 0], self.rows[points, 1] = first + starts[:-1], first + starts[1:]
            self.order[self.n_rows : self.n_rows + len(points)] = points
            self.here[points] = True
            self.n_rows, self.n_entries = self.n_rows + len(points), end

    def row(self, point: int) -> tuple[IntArray, FloatArray]:
        """Return the neighbours of a point whose row is here, and the weights of the edges."""
        first, end = self.rows[point]
        return self.indices[first:end], self.weights[first:end].astype(np.float64)

    def degrees(self, points: IntArray) -> FloatArray:
        """Return the degrees of points whose rows are here."""
        return np.array([self.row(int(point))[1].sum() for point in points])

    def without(self, gone: IntArray) -> FetchedRows:
        """Return the same rows without some points, and the edges to them."""
        left = FetchedRows(self.facts)
        points = self.order[: self.n_rows]
        points = points[~np.isin(points, gone)]
        entries = [np.arange(*self.rows[point]) for point in points]
        entries = [some[~np.isin(self.indices[some], gone)] for some in entries]
        starts = np.cumsum([0, *map(len, entries)])
        chosen = np.concatenate([*entries, np.empty(0, dtype=np.int64)]).astype(np.int64)
        left.n_points = self.n_points
        left.add(points, starts, self.indices[chosen], self.weights[chosen])
        nothing = np.zeros(len(gone) + 1, dtype=np.int64)
        left.add(gone, nothing, self.indices[:0], self.weights[:0])
        return left

    def solver(self, coupling: float) -> RegionSolver:
        """Return a solver of ``x_i + coupling sum_j w_ij (x_i - x_j) = 0`` over what is here."""
        with self._lock:
            if coupling not in self._systems:
                self._systems[coupling] = _FetchedSystem(self, coupling)
                if len(self._systems) > MOST_SYSTEMS:
                    self._systems.popitem(last=False)
            self._systems.move_to_end(coupling)
            return self._systems[coupling].solver(self)


class _FetchedSystem:
    """A system over fetched rows, which follows them."""

    def __init__(self, fetched: FetchedRows, coupling: float) -> None:
        self._coupling, facts = coupling, fetched.facts
        middle = [1.0 / (1.0 + coupling * degree) for degree in facts.median_degrees]
        self._share = float(np.mean(middle))
        self._rule = Rule.of(self._share)
        self._weights = np.empty(0, dtype=np.float32)
        self.inverse: Floats = np.empty(0)
        self._n_rows = self._n_entries = 0
        self.idle: list[Memory] = []

    def solver(self, fetched: FetchedRows) -> RegionSolver:
        self._follow(fetched)
        facts, n = fetched.facts, fetched.n_points
        ones = np.ones(len(self.inverse))
        arrays = Arrays.of(
            fetched.rows[:n],
            fetched.indices,
            self._weights,
            ones[:n],
            ones[:n],
            self.inverse,
            fetched.n_rows,
            facts.n_points,
            1.0,
            1.0 + self._coupling * facts.largest_degree,
            facts.longest_row,
            facts.n_edges / max(1, facts.n_points),
            True,
            1.0 / (1.0 + self._coupling * LEAST_DEGREE),
            self._share,
        )
        workspaces = _Workspaces(self, arrays, fetched)
        return RegionSolver.over(arrays, self._rule, workspaces)

    def _follow(self, fetched: FetchedRows) -> None:
        """Take up the rows that have come since."""
        if len(self.inverse) != len(fetched.here):  # all workspaces are too small now
            self.inverse = _enlarged(self.inverse, len(fetched.here))
            self.idle = []
        if len(self._weights) != len(fetched.weights):
            self._weights = _enlarged(self._weights, len(fetched.weights))
            self.idle = []
        entries = slice(self._n_entries, fetched.n_entries)
        if entries.start < entries.stop:
            self._weights[entries] = fetched.weights[entries] * np.float64(self._coupling)
        points = fetched.order[self._n_rows : fetched.n_rows]
        if len(points):
            rows = fetched.rows[points]
            ends = np.append(rows[:, 0], rows[-1, 1])  # rows that came together lie together
            self.inverse[points] = 1.0 / (1.0 + row_sums(ends, self._weights))
        self._n_rows, self._n_entries = fetched.n_rows, fetched.n_entries


class _Workspaces(Workspaces):
    """Workspaces whose inverse of the diagonal follows the rows that have come."""

    def __init__(self, system: _FetchedSystem, arrays: Arrays, fetched: FetchedRows) -> None:
        super().__init__(arrays)
        self._idle = system.idle
        self._order, self._n_rows = fetched.order, fetched.n_rows

    def take(self) -> Memory:
        """Return a clean `Workspace`."""
        work = super().take()
        new = self._order[work.n_rows[0] : self._n_rows]
        work.inverse[new] = self._arrays.inverse[new]
        work.n_rows[0] = max(work.n_rows[0], self._n_rows)
        return work


def _grown(array: Any, length: int) -> Any:
    """Return an array with room for so many; the same one where there is room."""
    return array if length <= len(array) else _enlarged(array, max(length, 2 * len(array)))


def _enlarged(array: Any, length: int) -> Any:
    larger = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


class Adjacency(NamedTuple):
    """Points beside a point, by key, and weights of the edges to them or squared distances."""

    neighbors: Sequence[Any]
    weights: FloatArray


def key_order(key: Any) -> tuple[bool, Any]:
    """Return what keys are sorted by: numbers first, then texts."""
    return isinstance(key, str), key


class RowSource(Protocol):
    """Where rows of a graph come from; points have keys of any kind."""

    def edges(self, keys: Sequence[Any]) -> Mapping[Any, Adjacency]:
        """Return the rows of some points, as far as they are there."""

    def around(self, key: Any, n: int) -> Mapping[Any, Adjacency]:
        """Return rows of about the ``n`` points nearest to a point."""

    def all_edges(self) -> Iterable[Mapping[Any, Adjacency]]:
        """Yield all rows, some at a time."""


class FetchedGraph:
    """What was fetched of a graph, by the keys of its points; shared by all threads.

    Points are numbered as they are met. A point without a row is gone: it stays without edges.

    Parameters
    ----------
    source : RowSource
    facts : GraphFacts
    """

    def __init__(self, source: RowSource, facts: GraphFacts) -> None:
        self.source, self.fetched = source, FetchedRows(facts)
        self.keys: list[Any] = []
        self.gone: set[int] = set()
        self._numbers: dict[Any, int] = {}
        self._lock = RLock()
        self._whole: sparse.csr_array | None = None

    def numbers(self, keys: Sequence[Any]) -> IntArray:
        """Return the number of each key."""
        known, names = self._numbers, self.keys
        with self._lock:
            for key in keys:
                if key not in known:
                    known[key] = len(names)
                    names.append(key)
            return np.array([known[key] for key in keys], dtype=np.int64)

    def keys_of(self, points: IntArray | list[int]) -> list[Any]:
        """Return the key of each number."""
        return [self.keys[point] for point in points]

    def fetch(self, points: IntArray) -> None:
        """Fetch the rows of some points that are not here."""
        points = np.unique(points[~self.fetched.has(points)])
        if len(points):
            asked = self.keys_of(points)
            self.add(asked, self.source.edges(asked))

    def fetch_around(self, point: int) -> None:
        """Fetch the rows of the points nearest to one."""
        found = self.source.around(self.keys[point], AROUND)
        self.add(list(found), found)

    def grow(self, missing: MissingRowsError) -> None:
        """Fetch rows that a query needs, and those that it will need soon."""
        room = min(max(GROWTH * missing.n_used, LEAST_FETCHED), MOST_FETCHED)
        soon = missing.next_ones[~np.isin(missing.next_ones, missing.needed)]
        self.fetch(np.concatenate([missing.needed, soon[: max(0, room - len(missing.needed))]]))

    def row(self, point: int) -> tuple[IntArray, FloatArray]:
        """Return the neighbours of a point, and the weights of the edges to them."""
        self.fetch(np.array([point]))
        return self.fetched.row(point)

    def degrees(self, points: IntArray) -> FloatArray:
        """Return the degrees of points; rows of S sum to one, and so the mean degree is one."""
        self.fetch(points)
        return self.fetched.degrees(points)

    def weights(self) -> sparse.csr_array:
        """Return W as a whole; read when it is first asked for.

        Where no point was met before, they are numbered in the order of keys.
        """
        with self._lock:
            if self._whole is None:
                pages = self.source.all_edges()
                if not self.keys:
                    pages = list(pages)
                    self.numbers(sorted((key for page in pages for key in page), key=key_order))
                for page in pages:
                    self.add(list(page), page)
                left = np.arange(n := len(self.keys))
                self.add(self.keys_of(left[~self.fetched.has(left)]), {})
                rows = self.fetched.rows[:n]
                ends = np.concatenate([[0], np.cumsum(rows[:, 1] - rows[:, 0])])
                entries = np.concatenate([np.arange(*row) for row in rows] or [rows[:0, 0]])
                parts = self.fetched.weights[entries], self.fetched.indices[entries], ends
                self._whole = sparse.csr_array(parts, shape=(n, n))
            return self._whole

    def system(self, coupling: float) -> System:
        """Return the system of the whole graph, whose rows are all read."""
        couplings = self.weights().copy()
        couplings.data *= coupling
        return System.coupled(couplings)

    def add(self, asked: Sequence[Any], edges: Mapping[Any, Adjacency]) -> None:
        """Take up the rows of points; those that have none are gone."""
        with self._lock:
            points = self.numbers(asked)
            there = np.array([key in edges for key in asked], dtype=bool)
            new = there & ~self.fetched.has(points)
            found = [edges[key] for key, is_new in zip(asked, new, strict=True) if is_new]
            lengths = [len(one.neighbors) for one in found]
            indices = self.numbers([key for one in found for key in one.neighbors])
            weights = np.concatenate([*(one.weights for one in found), np.empty(0)])
            left = ~np.isin(indices, list(self.gone))
            starts = np.concatenate([[0], np.cumsum(left)])[np.cumsum([0, *lengths])]
            self.fetched.reserve(len(self.keys))
            self.fetched.add(points[new], starts, indices[left], weights[left].astype(np.float32))
            lost = [int(point) for point in points[~there] if int(point) not in self.gone]
            if lost:
                self.gone.update(lost)
                self.fetched = self.fetched.without(np.array(lost))


class FetchingSolver:
    """The region solver over a graph that lies elsewhere: where rows are missing they are fetched.

    It runs on the rows that are here. Where it needs one that is not, that and others which
    matter next are fetched, and it begins again. A run that misses nothing decides
    everything as it would over the whole graph in memory.

    Parameters
    ----------
    graph : FetchedGraph
    coupling : float
        beta: values obey ``x_i + beta sum_j w_ij (x_i - x_j) = 0`` off the query.
    """

    def __init__(self, graph: FetchedGraph, coupling: float) -> None:
        self.graph, self.coupling = graph, coupling

    def solve(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]
    ) -> Iterator[Solution]:
        """Solve for each boundary, as far as its effort says."""
        for boundary, effort in zip(boundaries, efforts, strict=True):
            yield self._solve(boundary, effort)

    def _solve(self, boundary: Boundary, effort: Effort) -> Solution:
        graph, near = self.graph, _nearby(boundary)
        graph.fetched.reserve(len(graph.keys))
        while True:
            try:
                solver = graph.fetched.solver(self.coupling)
                (solution,) = solver.solve([boundary], [effort])
                return solution
            except MissingRowsError as missing:
                if missing.all_needed:  # the query reaches a good part of the graph
                    whole = RegionSolver(graph.system(self.coupling))
                    (solution,) = whole.solve([boundary], [effort])
                    return solution
                if missing.n_used <= FEW_USED and near:
                    graph.fetch_around(near.pop(0))
                else:
                    graph.grow(missing)


def _nearby(boundary: Boundary) -> list[int]:
    """Return points around which a query is solved, the heaviest examples first."""
    order = np.argsort(-boundary.values, kind="stable")
    held = [int(boundary.clamped[place]) for place in order if boundary.values[place] > 0]
    joined = boundary.pulled[np.argsort(-boundary.pull, kind="stable")]
    return [*held, *(int(point) for point in joined[:1])][:MOST_AROUND]
