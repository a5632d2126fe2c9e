"""A collection as rankers see it: its graph as far as it was fetched, and RAN over that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np
from scipy import sparse

from rankfold.databases.backend import Adjacency, Database, Key, StoredRow, key_order
from rankfold.errors import InputError
from rankfold.neighbors import positive_shares
from rankfold.neighbors.distances import sq_distances_between
from rankfold.neighbors.exact import as_held
from rankfold.neighbors.lists import moved_up
from rankfold.rankers import RAN, Distance
from rankfold.rankers import flow as flows
from rankfold.rankers.base import Unseen
from rankfold.rankers.distance import signed_shares
from rankfold.solvers import (
    DIRECT_LIMIT,
    Boundary,
    Effort,
    FetchedRows,
    GraphFacts,
    MissingRowsError,
    RegionSolver,
    Solvers,
    System,
    Wanted,
)
from rankfold.types import (
    NOBODY,
    BoolArray,
    FloatArray,
    IntArray,
    Neighbors,
    Query,
    Solution,
    Trace,
)

MOST_POINTS = 2**19
"""Points that are remembered before all are forgotten: some 100 megabytes."""

GROWTH, LEAST_FETCHED, MOST_FETCHED = 8, 64, 2_500
"""Rows that are fetched at once beside those that are needed, for each that is in use already;
how many at least, and how many at most."""

AROUND, FEW_USED = 3_000, 500
"""Rows of the nearest points, fetched where a query has used no more than these before a row is
missing: so it need not follow edges from ring to ring."""

MOST_AROUND = 3
"""Examples around which this is done."""

SCAN_ROWS = 5_000
"""Rows that are read at once where all of them are."""


class CollectionGraph:
    """What was read of one generation of a collection's graph; shared by all threads.

    Points are numbered as they are met. A point without a row is gone: it stays without edges.

    Parameters
    ----------
    database : Database
    manifest : dict
    """

    def __init__(self, database: Database, manifest: Mapping[str, Any]) -> None:
        self.database, self.manifest = database, manifest
        self.generation = manifest["generation"]
        self.n_neighbors, self.n_points = int(manifest["n_neighbors"]), int(manifest["points"])
        self.keys: list[Key] = []
        self.gone: set[int] = set()
        self.lists: dict[int, tuple[IntArray, FloatArray]] = {}
        facts = manifest["graph"]
        self.facts = GraphFacts(**{**facts, "median_degrees": tuple(facts["median_degrees"])})
        self.fetched = FetchedRows(self.facts)
        self._numbers: dict[Key, int] = {}
        self._lock = RLock()
        self._whole: sparse.csr_array | None = None
        self._has_all = False
        if self.n_points <= DIRECT_LIMIT:  # solved as a whole, and ordered as in memory
            self.fetch_all()

    @property
    def full(self) -> bool:
        """Whether so much is remembered that it should be forgotten before the next query."""
        return len(self.keys) > max(MOST_POINTS, 2 * self.n_points)

    def knows(self, keys: Sequence[Key]) -> bool:
        """Return whether all is remembered that a query by these points begins with."""
        numbers = self.numbers(keys).tolist()
        return not self.full and all(number in self.lists for number in numbers)

    def numbers(self, keys: Sequence[Key]) -> IntArray:
        """Return the number of each key."""
        known, names = self._numbers, self.keys
        with self._lock:
            for key in keys:
                if key not in known:
                    known[key] = len(names)
                    names.append(key)
            return np.array([known[key] for key in keys], dtype=np.int64)

    def keys_of(self, points: IntArray | list[int]) -> list[Key]:
        """Return the key of each number."""
        return [self.keys[point] for point in points]

    def take(self, asked: Sequence[Key], rows: Mapping[Key, StoredRow]) -> None:
        """Take up what is stored for points, their own lists among it."""
        self._add(asked, {key: Adjacency(row.neighbors, row.weights) for key, row in rows.items()})
        for key, row in rows.items():
            near = self.numbers(row.nearest), np.asarray(row.sq_distances, dtype=np.float32)
            self.lists[int(self.numbers([key])[0])] = near

    def fetch(self, points: IntArray) -> None:
        """Fetch the rows of some points that are not here."""
        points = np.unique(points[~self.fetched.has(points)])
        if len(points):
            asked = self.keys_of(points)
            self._add(asked, self.database.edges(asked))

    def fetch_all(self) -> None:
        """Fetch every row; where none was met before, points are numbered in the order of keys."""
        if self._has_all:
            return
        pages: Iterable[list[StoredRow]] = self.database.scan_rows(SCAN_ROWS)
        if not self.keys:
            pages = list(pages)
            self.numbers(sorted((row.key for rows in pages for row in rows), key=key_order))
        for rows in pages:
            edges = {row.key: Adjacency(row.neighbors, row.weights) for row in rows}
            self._add(list(edges), edges)
        left = np.arange(len(self.keys))
        left = left[~self.fetched.has(left)]
        self._add(self.keys_of(left), {})
        self._has_all = True

    def fetch_around(self, point: int) -> None:
        """Fetch the rows of the points nearest to one."""
        found = self.database.around(self.keys[point], AROUND)
        self._add(list(found), found)

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
        """Return W as a whole, for a small collection; read when it is first asked for."""
        with self._lock:
            if self._whole is None:
                self.fetch_all()
                rows, n = self.fetched.rows[: len(self.keys)], len(self.keys)
                lengths = rows[:, 1] - rows[:, 0]
                entries = np.concatenate([np.arange(*row) for row in rows] or [rows[:0, 0]])
                ends = np.concatenate([[0], np.cumsum(lengths)])
                parts = self.fetched.weights[entries], self.fetched.indices[entries], ends
                self._whole = sparse.csr_array(parts, shape=(n, n))
            return self._whole

    def _add(self, asked: Sequence[Key], edges: Mapping[Key, Adjacency]) -> None:
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
    """The region solver over a collection: where rows are missing they are fetched.

    It runs on the rows that are here. Where it needs one that is not, that and others which
    matter next are fetched, and it begins again. A run that misses nothing decides
    everything as it would over the whole graph in memory.

    Parameters
    ----------
    graph : CollectionGraph
    coupling : float
        beta: values obey ``x_i + beta sum_j w_ij (x_i - x_j) = 0`` off the query.
    """

    def __init__(self, graph: CollectionGraph, coupling: float) -> None:
        self.graph, self.coupling = graph, coupling

    def solve(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]
    ) -> Iterator[Solution]:
        """Solve for each boundary, as far as its effort says."""
        for boundary, effort in zip(boundaries, efforts, strict=True):
            yield self._solve(boundary, effort)

    def _solve(self, boundary: Boundary, effort: Effort) -> Solution:
        graph = self.graph
        graph.fetched.reserve(len(graph.keys))
        near = self._nearby(boundary)
        while True:
            try:
                solver = graph.fetched.solver(self.coupling)
                (solution,) = solver.solve([boundary], [effort])
            except MissingRowsError as missing:
                if missing.all_needed:  # the query reaches a good part of the graph
                    whole = RegionSolver(system_of(graph, self.coupling))
                    (solution,) = whole.solve([boundary], [effort])
                    return solution
                if missing.n_used <= FEW_USED and near:
                    graph.fetch_around(near.pop(0))
                else:
                    graph.grow(missing)
            else:
                return solution

    def _nearby(self, boundary: Boundary) -> list[int]:
        """Return points around which a query is solved, the heaviest examples first."""
        order = np.argsort(-boundary.values, kind="stable")
        held = [int(boundary.clamped[place]) for place in order if boundary.values[place] > 0]
        joined = boundary.pulled[np.argsort(-boundary.pull, kind="stable")]
        return [*held, *(int(point) for point in joined[:1])][:MOST_AROUND]


def system_of(graph: CollectionGraph, coupling: float) -> System:
    """Return the system of a whole collection, whose rows are all read."""
    couplings = graph.weights().copy()
    couplings.data *= coupling
    return System.coupled(couplings)


SCAN_POINTS = 5_000
"""Vectors that are read at once."""


class CollectionEngine:
    """The points of a collection, for one query; vectors that it reads are kept for it.

    Parameters
    ----------
    graph : CollectionGraph
    where : optional
        The database's own filter, which results have to pass.
    hidden : set of int
        Points that are known to be gone.
    """

    def __init__(
        self, graph: CollectionGraph, where: Any = None, hidden: Sequence[int] = ()
    ) -> None:
        self.graph, self.database = graph, graph.database
        self.where, self.hidden = where, frozenset(hidden)
        self.metric: str = self.database.metric
        self.n_features = self.database.n_features
        self.n_alive = graph.n_points
        self.alive: BoolArray | None = None
        self._vectors: dict[int, FloatArray] = {}

    @property
    def n_points(self) -> int:
        """The number of points that have been met."""
        return len(self.graph.keys)

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points that are part of the graph; others may have come since."""
        graph, more = self.graph, k
        while True:
            found = self.database.search(np.asarray(vectors, dtype=np.float32), more)
            numbers = graph.numbers([key for hits in found for key in hits.keys])
            if len(numbers) and not graph.fetched.has(numbers).any():
                graph.fetch_around(int(numbers[0]))
            graph.fetch(numbers)
            lists = _padded([(graph.numbers(keys), near) for keys, near in found], more)
            left = ~np.isin(lists.indices, [NOBODY, *graph.gone])
            if (left.sum(axis=1) >= k).all() or all(len(hits.keys) < more for hits in found):
                return moved_up(lists, left).head(k)
            more *= 2

    @property
    def exact(self) -> bool:
        """Whether the database's own search looks at every point."""
        return self.database.exact

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Return the stored lists of points, up to ``k``."""
        return _padded([self.graph.lists[int(point)] for point in indices], k)

    def shown(self, points: IntArray, own: IntArray) -> BoolArray:
        """Return which points may be results: those that pass the filter, and the query's own."""
        left: BoolArray = ~np.isin(points, list(self.hidden))
        if self.where is not None:
            left &= ~np.isin(points, own)
            keys = self.graph.keys_of(points[left])
            passed = self.database.matching(keys, self.where)
            left[left] = [key in passed for key in keys]
        return left | np.isin(points, own)

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out.

        Results have to pass the filter.

        The mean of the squared distances to several examples is the squared distance to their
        centre and a constant, so one search around the centre finds them.
        """
        shares = positive_shares(query)
        numbers = self.around(query, shares, k)
        sq_distances = shares @ self.between(query, numbers)
        order = np.lexsort((numbers, sq_distances))
        return _padded([(numbers[order], sq_distances[order])], k)

    def around(self, query: Query, shares: FloatArray, k: int) -> IntArray:
        """Find the ``k`` points with the least sum of squared distances, each by its share.

        Shares below zero push away, as long as all together are above it.
        """
        examples = np.concatenate(
            [self.vectors(query.indices), as_held(query.vectors, self.metric, "vectors")]
        )
        centre = (shares @ examples / shares.sum())[None, :].astype(np.float32)
        own = {*query.indices.tolist(), *self.hidden}
        (found,) = self.database.search(centre, k + len(own), self.where)
        numbers = self.graph.numbers(found.keys)
        return numbers[~np.isin(numbers, list(own))][:k]

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything, which reads all points."""
        examples = np.concatenate([self.vectors(indices), as_held(vectors, self.metric, "vectors")])
        numbers, measured = [], []
        for keys, page in self.database.scan(SCAN_POINTS):
            numbers.append(self.graph.numbers(keys))
            held = as_held(page.astype(np.float64), self.metric, "vectors")
            measured.append(sq_distances_between(examples, held, np.arange(len(held))))
        rows = np.full((len(examples), self.n_points), np.inf)
        for some, distances in zip(numbers, measured, strict=True):
            rows[:, some] = distances
        return iter(rows)

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Measure the squared distances of some points to each example of a checked query."""
        n_indices = len(query.indices)
        everybody = self.vectors(np.concatenate([query.indices, points]).astype(np.int64))
        unseen = as_held(query.vectors, self.metric, "vectors")
        examples = np.concatenate([everybody[:n_indices], unseen])
        return sq_distances_between(examples, everybody, np.arange(n_indices, len(everybody)))

    def pairs(self, indices: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the collection to each other."""
        vectors = self.vectors(indices)
        return sq_distances_between(vectors, vectors, np.arange(len(vectors)))

    def vectors(self, points: IntArray) -> FloatArray:
        """Return points in double precision, scaled to length one for cosine; nan if gone."""
        known, numbers = self._vectors, [int(point) for point in points]
        missing = [number for number in dict.fromkeys(numbers) if number not in known]
        if missing:
            nothing = np.full(self.n_features, np.inf)
            known |= dict.fromkeys(missing, nothing)
            keys, vectors = self.database.vectors([self.graph.keys[number] for number in missing])
            held = as_held(np.asarray(vectors, dtype=np.float64), self.metric, "vectors")
            known |= dict(zip(self.graph.numbers(keys).tolist(), held, strict=True))
        return np.array([known[number] for number in numbers]).reshape(-1, self.n_features)


def _padded(found: Sequence[tuple[IntArray, FloatArray]], k: int) -> Neighbors:
    """Return lists of points and squared distances, up to ``k`` of each."""
    indices = np.full((len(found), k), NOBODY, dtype=np.int64)
    sq_distances = np.full((len(found), k), np.inf, dtype=np.float32)
    for row, (points, near) in enumerate(found):
        indices[row, : len(points)], sq_distances[row, : len(near)] = points[:k], near[:k]
    return Neighbors(indices, sq_distances)


def _left(engine: CollectionEngine, query: Query, solution: Solution) -> Solution:
    """Return a solution without points that are no results."""
    left = engine.shown(solution.points, query.indices)
    return solution.take(left, complete=False, certified=False)


class CollectionDistance(Distance):
    """Plain distance over a collection: the database's own search."""

    engine_: CollectionEngine

    def _solve(
        self, queries: Sequence[Query], wanted: Sequence[Wanted], unseen: Unseen
    ) -> Iterator[tuple[Solution, Trace | None]]:
        engine = self.engine_
        for query, (top, _) in zip(queries, wanted, strict=True):
            shares = -signed_shares(query)
            found = engine.around(query, shares, top + 1)
            scores = -(shares @ engine.between(query, found))
            own = np.empty(0)
            if len(query.indices):
                own = -(shares @ engine.between(query, query.indices))
            certified = engine.database.exact and (
                len(found) <= top or top == 0 or np.partition(scores, -top)[-top] > scores.min()
            )
            yield (
                Solution(
                    np.concatenate([found, query.indices]),
                    np.concatenate([scores, own]),
                    0.0,
                    certified=bool(certified),
                    solver="distance",
                    n_touched=len(found),
                    complete=False,
                ),
                None,
            )


class CollectionRAN(RAN):
    """RAN over the stored graph of a collection, fitted to a `CollectionEngine`."""

    engine_: CollectionEngine

    def _fit(self) -> None:
        self._check_parameters()
        graph, self._list_unit = self.engine_.graph, 1.0
        self._smoothness, self._max_iter = float(self.smoothness), self.max_iter
        self.n_neighbors_ = self._n_asked = self._unit_neighbors = graph.n_neighbors
        self._list_width, self._lists, self._relative_degrees = graph.n_neighbors + 1, None, None
        self._check_offered()
        coupling = 2 * self._smoothness
        if graph.n_points <= DIRECT_LIMIT:
            system = system_of(graph, coupling)
            self._solvers = Solvers(system, self.solver, self.budget, self.tol, graph.n_points)
            return
        nothing = System.coupled(sparse.csr_array((0, 0)))
        self._solvers = Solvers(nothing, "region", self.budget, self.tol, graph.n_points)
        self._solvers.use(FetchingSolver(graph, coupling))

    def _check_offered(self) -> None:
        """Refuse what needs more than the rows that a query reaches."""
        k = self.engine_.graph.n_neighbors
        given = {"n_neighbors": self.n_neighbors, "adapt": self.adapt, "max_iter": self.max_iter}
        offered = {"n_neighbors": (k, "auto"), "adapt": ("query",), "max_iter": (1,)}
        for name, value in given.items():
            if value not in offered[name]:
                raise InputError(
                    f"{name} is {value!r}, but the graph beside this collection has "
                    f"{name}={offered[name][0]!r}; leave it out, attach the collection again with "
                    "other neighbours, or build an index in a folder, which can do all.",
                    name,
                )

    def _solve(
        self, queries: Sequence[Query], wanted: Sequence[Wanted], unseen: Unseen
    ) -> Iterator[tuple[Solution, Trace | None]]:
        """Score the region of each query; where not all may be results, leave the others out."""
        engine = self.engine_
        picky = engine.where is not None or bool(engine.hidden)
        if picky:
            wanted = [Wanted(one.top, self._most(one)) for one in wanted]
        for query, found in zip(queries, super()._solve(queries, wanted, unseen), strict=True):
            yield (_left(engine, query, found[0]), found[1]) if picky else found

    def _most(self, one: Wanted) -> int:
        """Return how many points are to be found where only some of them may be results."""
        budget = self._solvers.effort(one.top).budget
        return max(one.candidates, self.engine_.graph.n_points if budget is None else budget)

    def edges(self, point: int) -> flows.Edges:
        """Return the neighbours of a point in the graph."""
        return flows.Edges(*self.engine_.graph.row(point))

    def _degrees_of(self, points: IntArray) -> FloatArray:
        return self.engine_.graph.degrees(points)
