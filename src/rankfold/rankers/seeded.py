"""Rankers that spread a query over a graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy import sparse

from rankfold.check import check_graph
from rankfold.rankers.base import Ranker
from rankfold.rankers.graphs import GraphRecipe, make_graph
from rankfold.rankers.transition import degrees, inverse, scale_rows
from rankfold.types import FloatArray, Query, Solution, Trace, Weights


class GraphRanker(Ranker):
    """Base of the methods that run on any graph."""

    graph: str | GraphRecipe

    def _fit(self) -> None:
        self._check_parameters()
        self.graph_ = make_graph(self.graph)
        self.weights_ = self.graph_.build(self.engine_)
        check_graph(self.weights_, self.engine_.n_points)
        self._prepare()

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

    @abstractmethod
    def _spread(self, seeds: FloatArray) -> Iterable[Solution]:
        """Score all points for every column of seeds."""

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
