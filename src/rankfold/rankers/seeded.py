"""Rankers that spread a query over a graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from rankfold.check import check_graph
from rankfold.graph import GraphRecipe, make_graph
from rankfold.rankers.base import Ranker
from rankfold.rankers.flow import Edges, Entry, Flow, degree_or_one
from rankfold.rankers.ordering import FUSION_NEIGHBORS
from rankfold.rankers.transition import degrees, inverse, scale_rows
from rankfold.types import FloatArray, IntArray, Query, Weights


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
        sums, most = degrees(self.weights_), max(1, self.engine_.n_alive - 2)
        self._relative_degrees = sums / (sums[sums > 0].mean() if (sums > 0).any() else 1.0)
        n_neighbors = getattr(self.graph_, "n_neighbors_", None) or FUSION_NEIGHBORS
        self._unit_neighbors = min(int(n_neighbors), most)
        self._list_width = self._unit_neighbors + 1
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
    its row of the graph.
    """

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

    def _seeds(self, queries: Sequence[Query]) -> list[tuple[IntArray, FloatArray]]:
        """Return the points that each query seeds, each once, and how much of it they get."""
        return [_seeded(*pair) for pair in zip(queries, self._attached(queries), strict=True)]


def _seeded(query: Query, rows: Weights) -> tuple[IntArray, FloatArray]:
    own = query.weights[: len(query.ids)]
    if not len(query.vectors):
        return query.ids, own
    shares = sparse.csr_array(scale_rows(rows, inverse(degrees(rows)))).tocoo()
    unseen = query.weights[len(query.ids) :][shares.row] * shares.data
    # A point may be seeded by several vectors.
    points, places = np.unique(np.concatenate([query.ids, shares.col]), return_inverse=True)
    amounts = np.concatenate([own, unseen]).astype(np.float64)
    seeds: FloatArray = np.bincount(places, amounts, minlength=len(points)).astype(np.float64)
    return points, seeds
