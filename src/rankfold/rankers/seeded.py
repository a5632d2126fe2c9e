"""Rankers that spread a query over a graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy import sparse

from rankfold.check import check_graph
from rankfold.rankers.base import Ranker
from rankfold.rankers.flow import Edges, Entry, Flow, Scored, degree_or_one
from rankfold.rankers.graphs import GraphRecipe, make_graph
from rankfold.rankers.local_restart import LocalRestart
from rankfold.rankers.transition import degrees, inverse, scale_rows
from rankfold.types import FloatArray, IntArray, Query, Ranking, Solution, Trace, Weights


class GraphRanker(Ranker):
    """Base of the methods that run on any graph."""

    graph: str | GraphRecipe

    def _fit(self) -> None:
        self._check_parameters()
        self.graph_ = make_graph(self.graph)
        self.weights_ = self.graph_.build(self.engine_)
        check_graph(self.weights_, self.engine_.n_points)
        if sparse.issparse(self.weights_):
            self.weights_ = sparse.csr_array(self.weights_)
        self._prepare()

    def edges(self, point: int) -> Edges:
        """Return the neighbours of a point in the graph."""
        return Edges.of(self.weights_, point)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used."""

    @abstractmethod
    def _prepare(self) -> None:
        """Do what all queries share; ``weights_`` is there."""

    def _attached(self, queries: Sequence[Query]) -> list[Weights]:
        """Return each query's rows of weights, one row per unseen vector."""
        vectors = np.concatenate([query.vectors for query in queries])
        rows: Weights = sparse.csr_array((0, self.engine_.n_points))
        if len(vectors):
            rows = self.graph_.attach(self.engine_, vectors)
        ends = np.cumsum([len(query.vectors) for query in queries])
        return [
            rows[end - len(query.vectors) : end] for query, end in zip(queries, ends, strict=True)
        ]


class SeededRanker(GraphRanker):
    """Base of the methods whose scores are linear in the query's seeds.

    A point of the query seeds itself with its weight. An unseen vector is a source from which
    a walk can only leave: it seeds its neighbours with its weight, shared among them by
    its row of the graph. One matrix of seeds, a column per query, is spread at once.
    """

    _local: LocalRestart | None = None

    def flow(self, query: Query) -> Flow | None:
        """Return the walks on the graph, which only illustrate what a method does in general."""
        return Flow(self.edges, degree_or_one, self._entries(query), lean=1.0, exact=False)

    def _entries(self, query: Query, amount: float = 1.0) -> tuple[Entry, ...]:
        """Return where a query seeds the graph; so much flows out of an example of weight 1."""
        n_ids = len(query.ids)
        pairs = enumerate(zip(query.ids, query.weights[:n_ids], strict=True))
        own = [Entry(e, int(point), amount * float(weight)) for e, (point, weight) in pairs]
        (rows,) = self._attached([query])
        for vector, weight in enumerate(query.weights[n_ids:]):
            to, weights = Edges.of(rows, vector)
            parts = weights * inverse(weights.sum(keepdims=True))
            example, total = n_ids + vector, amount * float(weight)
            for point, edge, part in zip(to, weights, parts, strict=True):
                own.append(Entry(example, int(point), total, float(edge), float(part)))
        return tuple(own)

    def scored(self, query: Query) -> Scored:
        """Score the points that a query reaches, or all of them."""
        if self._local is None:
            return super().scored(query)
        (rows,) = self._attached([query])
        return self._local.scored(query, self._local_seeds(query, rows), self._local.tol)

    def _score_alone(self, query: Query, point: int, tol: float) -> float:
        if self._local is None:
            return super()._score_alone(query, point, tol)
        (rows,) = self._attached([query])
        tol = min(self._local.tol, tol / self._local.system.system.largest_scale)
        found = self._local.scored(query, self._local_seeds(query, rows), tol)
        return float(found.scores[found.points == point].sum())

    @abstractmethod
    def _spread(self, seeds: FloatArray) -> Iterable[Solution]:
        """Score all points for every column of seeds."""

    def _answers(
        self, queries: Sequence[Query], top: int, include_query: bool, traced: bool
    ) -> Iterator[Ranking]:
        if self._local is None or not self._answers_locally(top):
            yield from super()._answers(queries, top, include_query, traced)
            return
        seeds = [
            self._local_seeds(*pair) for pair in zip(queries, self._attached(queries), strict=True)
        ]
        yield from self._local.rank(queries, seeds, top, include_query)

    def _local_seeds(self, query: Query, rows: Weights) -> tuple[IntArray, FloatArray]:
        """Return the points at which a query stands, and how much of it."""
        own = query.weights[: len(query.ids)]
        if not len(query.vectors):
            return query.ids, own
        shares = scale_rows(rows, inverse(degrees(rows))).tocoo()
        unseen = query.weights[len(query.ids) :][shares.row] * shares.data
        return np.concatenate([query.ids, shares.col]), np.concatenate([own, unseen])

    def _score(
        self, queries: Sequence[Query], traced: bool
    ) -> Iterator[tuple[Solution, Trace | None]]:
        for solution in self._spread(self._seeds(queries)):
            yield solution, None

    def _seeds(self, queries: Sequence[Query]) -> FloatArray:
        seeds = np.zeros((self.engine_.n_points, len(queries)))
        for column, (query, rows) in enumerate(zip(queries, self._attached(queries), strict=True)):
            shares = scale_rows(rows, inverse(degrees(rows)))
            seeds[:, column] = shares.T @ query.weights[len(query.ids) :]
            seeds[query.ids, column] += query.weights[: len(query.ids)]
        return seeds
