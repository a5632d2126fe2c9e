"""Every point of a data set as a query: precision at the number of relevant points."""

import numpy as np

from rankfold import ExactEngine, metrics
from rankfold.solvers import System

NOTHING = 1e-12
"""Scores below this, relative to the query's, are taken for zero: rounding would order them."""


def solved(weights, smoothness):
    """Return ``(I + 2 lambda L)^-1``; row q holds the scores of query q, but for a factor."""
    return np.linalg.inv(System.ran(weights.astype(np.float64), smoothness).matrix.toarray())


class Judge:
    """The labels and distances of a data set, by which all its points are judged as queries.

    An array of all pairs is made, so the set must be small. Points that the graph does not lead
    to follow in the order of plain distance, as they do in the library.
    """

    def __init__(self, dataset):
        self.name, self.labels = dataset.name, dataset.labels
        self.n_points = len(dataset.labels)
        self.engine = ExactEngine(dataset.X, dataset.metric)
        self.distances = self.engine.pairs(np.arange(self.n_points))
        self.sizes = np.bincount(self.labels)[self.labels] - 1
        self.plain = self._precisions(self.distances)

    def precisions(self, weights, smoothness):
        """Return the precision of every query on a graph."""
        return self.of_scores(solved(weights, smoothness))

    def of_scores(self, scores):
        """Return the precision of every query whose scores a row holds; rows are changed."""
        far = self.distances.max() or 1.0
        for query, row in enumerate(scores):
            reached = row > NOTHING * row[query]
            row[:] = np.where(reached, -row / row[query], self.distances[query] / far)
        return self._precisions(scores)

    def harm(self, precisions):
        """Return the share of queries that are worse than under plain distance, in per cent."""
        return float(100 * (precisions < self.plain).mean())

    def _precisions(self, costs):
        found = []
        for query in np.flatnonzero(self.sizes):
            size = self.sizes[query]
            order = np.argsort(costs[query], kind="stable")[: size + 1]
            best = order[order != query][:size]
            found.append((self.labels[best] == self.labels[query]).mean())
        return np.array(found)


def percent(precisions):
    return float(100 * precisions.mean())


def of_library(ranker, dataset, queries):
    """Return the precision of some queries, as the library answers them."""
    sizes = np.bincount(dataset.labels)[dataset.labels] - 1
    rankings = ranker.rank_many(queries.tolist(), top=int(sizes.max()))
    return np.array([
        metrics.precision(dataset.labels[ranking.indices] == dataset.labels[query], sizes[query])
        for query, ranking in zip(queries, rankings, strict=True) if sizes[query]
    ])  # fmt: skip
