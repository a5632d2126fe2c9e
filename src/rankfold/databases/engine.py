"""A collection as rankers see it: its graph as far as it was fetched, and RAN over that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rankfold.databases.backend import Database, Key, StoredRow
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
    FetchedGraph,
    FetchingSolver,
    GraphFacts,
    Solvers,
    System,
    Wanted,
    key_order,
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

MOST_POINTS, MOST_NUMBERS = 2**19, 2**23
"""Points that are remembered before all are forgotten, some 100 megabytes, and numbers of the
vectors of some of them, 64 megabytes."""


class CollectionGraph(FetchedGraph):
    """What was read of one generation of a collection's graph; shared by all threads.

    Beside rows, it remembers stored lists, and vectors of results.

    Parameters
    ----------
    database : Database
    manifest : dict
    """

    def __init__(self, database: Database, manifest: Mapping[str, Any]) -> None:
        facts = manifest["graph"]
        middle = {"median_degrees": tuple(facts["median_degrees"])}
        super().__init__(database, GraphFacts(**{**facts, **middle}))
        self.database, self.generation = database, manifest["generation"]
        self.n_neighbors, self.n_points = int(manifest["n_neighbors"]), int(manifest["points"])
        self.lists: dict[int, tuple[IntArray, FloatArray]] = {}
        self._vectors: dict[int, FloatArray] = {}
        if self.n_points <= DIRECT_LIMIT:  # solved as a whole, and ordered as in memory
            self.weights()

    @property
    def full(self) -> bool:
        """Whether so much is remembered that it should be forgotten before the next query."""
        return len(self.keys) > max(MOST_POINTS, 2 * self.n_points)

    def knows(self, keys: Sequence[Key]) -> bool:
        """Return whether all is remembered that a query by these points begins with."""
        return not self.full and all(one in self.lists for one in self.numbers(keys).tolist())

    def take(self, asked: Sequence[Key], rows: Mapping[Key, StoredRow]) -> None:
        """Take up what is stored for points, their own lists among it."""
        self.add(asked, {key: row.edges for key, row in rows.items()})
        for key, row in rows.items():
            near = self.numbers(row.nearest.neighbors), row.nearest.weights
            self.lists[int(self.numbers([key])[0])] = near

    def vectors(self, points: IntArray) -> FloatArray:
        """Return points in double precision, scaled to length one for cosine; inf if gone."""
        database, known, numbers = self.database, self._vectors, points.tolist()
        if len(known) * database.n_features > MOST_NUMBERS:
            known = self._vectors = {}
        missing = [number for number in dict.fromkeys(numbers) if number not in known]
        if missing:
            keys, vectors = database.vectors(self.keys_of(missing))
            held = as_held(np.asarray(vectors, dtype=np.float64), database.metric, "vectors")
            known.update(zip(self.numbers(keys).tolist(), held, strict=True))
        nothing = np.full(database.n_features, np.inf)
        found = [known.get(number, nothing) for number in numbers]
        return np.array(found).reshape(-1, database.n_features)


class CollectionEngine:
    """The points of a collection, for one query.

    Parameters
    ----------
    graph : CollectionGraph
    where : optional
        The database's own filter, which results have to pass.
    hidden : list of int
        Points that are known to be gone.
    """

    alive: BoolArray | None = None

    def __init__(
        self, graph: CollectionGraph, where: Any = None, hidden: Sequence[int] = ()
    ) -> None:
        self.graph, self.database, self.vectors = graph, graph.database, graph.vectors
        self.where, self.hidden = where, list(hidden)
        self.metric: str = self.database.metric
        self.n_features, self.exact = self.database.n_features, self.database.exact
        self.n_alive = graph.n_points
        self.is_filtered = where is not None or bool(self.hidden)

    @property
    def n_points(self) -> int:
        """The number of points that have been met."""
        return len(self.graph.keys)

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points that are part of the graph; others may have come since."""
        graph, more = self.graph, k
        while True:
            found = self.database.search(np.asarray(vectors, dtype=np.float32), more)
            numbers = graph.numbers([key for near in found for key in near.neighbors])
            if len(numbers) and not graph.fetched.has(numbers).any():
                graph.fetch_around(int(numbers[0]))
            graph.fetch(numbers)
            lists = _padded([(graph.numbers(keys), near) for keys, near in found], more)
            left = ~np.isin(lists.indices, [NOBODY, *graph.gone])
            if (left.sum(axis=1) >= k).all() or all(len(near.neighbors) < more for near in found):
                return moved_up(lists, left).head(k)
            more *= 2

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Return the stored lists of points, up to ``k``; those that are not here are fetched."""
        known, points = self.graph.lists, indices.tolist()
        missing = [point for point in dict.fromkeys(points) if point not in known]
        if missing:
            keys = self.graph.keys_of(missing)
            self.graph.take(keys, self.database.rows(keys))
        nothing = np.empty(0, dtype=np.intp), np.empty(0)  # of a point that is gone
        return _padded([known.get(point, nothing) for point in points], k)

    def shown(self, points: IntArray, own: IntArray) -> BoolArray:
        """Return which points may be results: those that pass the filter, and the query's own."""
        left: BoolArray = ~np.isin(points, self.hidden)
        if self.where is not None:
            left &= ~np.isin(points, own)
            keys = self.graph.keys_of(points[left])
            passed = self.database.matching(keys, self.where)
            left[left] = [key in passed for key in keys]
        return left | np.isin(points, own)

    def nearest(self, query: Query, k: int, filtered: bool = True) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, but its own, among all or some."""
        shares = positive_shares(query)
        numbers = self.around(query, shares, k, self.where if filtered else None)
        sq_distances = shares @ self.between(query, numbers)
        order = np.lexsort((self.tie_order(numbers), sq_distances))
        return _padded([(numbers[order], sq_distances[order])], k)

    def around(self, query: Query, shares: FloatArray, k: int, where: Any) -> IntArray:
        """Find the ``k`` points with the least sum of squared distances, each by its share.

        It is the squared distance to the centre of the examples and a constant, so one search is
        enough. Shares below zero push away, as long as all together are above it.
        """
        centre = (shares @ self._examples(query) / shares.sum())[None, :].astype(np.float32)
        own = [*query.indices.tolist(), *self.hidden]
        (found,) = self.database.search(centre, k + len(own), where)
        numbers = self.graph.numbers(found.neighbors)
        return numbers[~np.isin(numbers, own)][:k]

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything, which reads all points."""
        examples = self._examples(Query(indices, vectors))
        parts: list[tuple[IntArray, FloatArray]] = []
        for keys, page in self.database.pages():
            held = as_held(page.astype(np.float64), self.metric, "vectors")
            every = np.arange(len(held))
            parts.append((self.graph.numbers(keys), sq_distances_between(examples, held, every)))
        rows = np.full((len(examples), self.n_points), np.inf)
        for some, distances in parts:
            rows[:, some] = distances
        return iter(rows)

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Measure the squared distances of some points to each example of a checked query."""
        self.vectors(np.concatenate([query.indices, points]))  # in one exchange
        held = self.vectors(points)
        return sq_distances_between(self._examples(query), held, np.arange(len(held)))

    def tie_order(self, points: IntArray) -> IntArray:
        """Return the places of points in the order of keys, as those of rows in memory."""
        keys = self.graph.keys_of(points)
        order = sorted(range(len(keys)), key=lambda at: key_order(keys[at]))
        return np.argsort(order)

    def pairs(self, indices: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the collection to each other."""
        vectors = self.vectors(indices)
        return sq_distances_between(vectors, vectors, np.arange(len(vectors)))

    def _examples(self, query: Query) -> FloatArray:
        unseen = as_held(query.vectors, self.metric, "vectors")
        return np.concatenate([self.vectors(query.indices), unseen])


def _padded(found: Sequence[tuple[IntArray, FloatArray]], k: int) -> Neighbors:
    """Return lists of points and squared distances, up to ``k`` of each."""
    indices = np.full((len(found), k), NOBODY, dtype=np.int64)
    sq_distances = np.full((len(found), k), np.inf, dtype=np.float32)
    for row, (points, near) in enumerate(found):
        indices[row, : len(points)], sq_distances[row, : len(near)] = points[:k], near[:k]
    return Neighbors(indices, sq_distances)


class CollectionDistance(Distance):
    """Plain distance over a collection: the database's own search."""

    engine_: CollectionEngine

    def _solve(
        self, queries: Sequence[Query], wanted: Sequence[Wanted], unseen: Unseen
    ) -> Iterator[tuple[Solution, Trace | None]]:
        engine = self.engine_
        for query, (top, _) in zip(queries, wanted, strict=True):
            shares = -signed_shares(query)
            found = engine.around(query, shares, top + 1, engine.where)
            points = np.concatenate([found, query.indices])
            scores = -(shares @ engine.between(query, points))
            best = np.sort(scores[: len(found)])[::-1]
            certified = engine.exact and (len(found) <= top or top == 0 or best[top - 1] > best[-1])
            how: Any = {"certified": bool(certified), "complete": False, "n_touched": len(found)}
            yield Solution(points, scores, 0.0, solver="distance", **how), None


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
        coupling, n, small = 2 * self._smoothness, graph.n_points, graph.n_points <= DIRECT_LIMIT
        system = graph.system(coupling) if small else System.coupled(sparse.csr_array((0, 0)))
        self._solvers = Solvers(system, self.solver, self.budget, self.tol, n)
        if not small:
            self._solvers.use(FetchingSolver(graph, coupling))

    def _check_offered(self) -> None:
        """Refuse what needs more than the rows that a query reaches."""
        k = self.engine_.graph.n_neighbors
        offered = {"n_neighbors": (k, "auto"), "adapt": ("query",), "max_iter": (1,)}
        for name, values in offered.items():
            if getattr(self, name) not in values:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}, but the graph beside this collection has "
                    f"{name}={values[0]!r}; leave it out, attach the collection again with "
                    "other neighbours, or build an index in a folder, which can do all.",
                    name,
                )

    def _solve(
        self, queries: Sequence[Query], wanted: Sequence[Wanted], unseen: Unseen
    ) -> Iterator[tuple[Solution, Trace | None]]:
        """Score the region of each query; all of it where only some points may be results."""
        if self.engine_.is_filtered:
            wanted = [Wanted(one.top, self._most(one)) for one in wanted]
        yield from super()._solve(queries, wanted, unseen)

    def _allowed(self, query: Query, solution: Solution) -> Solution:
        if not self.engine_.is_filtered:
            return solution
        points, own = solution.points, np.isin(solution.points, query.indices)
        order = np.lexsort((self.engine_.tie_order(points), -solution.scores, own))
        left = order[self.engine_.shown(points[order], query.indices)]
        return solution.take(left, complete=False, certified=False)

    def _near(self, query: Query, unseen: Neighbors | None) -> tuple[IntArray, FloatArray]:
        """Return the points near a checked query, among all points."""
        if np.count_nonzero(query.weights > 0) == 1:
            return super()._near(query, unseen)
        near = self.engine_.nearest(query, self._unit_neighbors + 1, filtered=False)
        return near.indices[0], near.sq_distances[0]

    def _most(self, one: Wanted) -> int:
        """Return how many points are to be found where only some of them may be results."""
        budget = self._solvers.effort(one.top).budget
        return max(one.candidates, self.engine_.graph.n_points if budget is None else budget)

    def edges(self, point: int) -> flows.Edges:
        """Return the neighbours of a point in the graph."""
        return flows.Edges(*self.engine_.graph.row(point))

    def _degrees_of(self, points: IntArray) -> FloatArray:
        return self.engine_.graph.degrees(points)
