"""Neighbour lists that somebody else has found, as an engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankfold.check import ZERO, InputError, check_choice, check_distances, check_vectors
from rankfold.neighbors.measure import (
    GIVEN_METRICS,
    nearest_columns,
    plain_sq_distances,
    without_unknown,
)
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors, Query


class GivenEngine:
    """The lists of a sparse graph of distances, of any length each; nothing is searched.

    Row i holds the distances of point i to its neighbours, as scikit-learn, pynndescent and
    scanpy make such graphs. An entry that is stored is a distance, also where it is zero: a
    duplicate. One that is not stored is unknown. Only row i speaks for point i, so that the
    graph need not be symmetric. The diagonal may be there or not; a point is never its own
    neighbour.

    What is not in a list is at distance inf. Vectors from anywhere are rows of such a graph.

    Parameters
    ----------
    graph : sparse array or matrix, shape (n_points, n_points)
    metric : {"precomputed", "precomputed_sq"}
        Whether its entries are squared or used as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> graph = kneighbors_graph(np.array([[0.0], [1.0], [3.0]]), 1, mode="distance")
    >>> GivenEngine(graph).rows(np.array([2]), 2)
    Neighbors(indices=array([[ 1, -1]]), sq_distances=array([[ 4., inf]]))
    """

    alive = None

    def __init__(self, graph: Any, metric: str = "precomputed") -> None:
        check_choice(metric, "metric", GIVEN_METRICS)
        graph = _checked_graph(graph, metric)
        self.metric = metric
        self.n_points: int = graph.shape[0]
        self.n_features: int = graph.shape[1]
        rows = np.repeat(np.arange(self.n_points), np.diff(graph.indptr))
        others = rows != graph.indices
        rows, columns = rows[others], graph.indices[others].astype(np.intp)
        sq_distances = self._squared(graph.data[others])
        order = np.lexsort((columns, sq_distances, rows))
        self._columns, self._sq_distances = columns[order], sq_distances[order]
        self.lengths: IntArray = np.bincount(rows, minlength=self.n_points)
        self._starts = np.cumsum(self.lengths) - self.lengths

    @property
    def n_alive(self) -> int:
        """The number of points; none are removed."""
        return self.n_points

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Return the ``k`` nearest of rows of distances to the database, inf where unknown."""
        return without_unknown(nearest_columns(self._check(vectors), k, None))

    def rows(self, ids: IntArray, k: int) -> Neighbors:
        """Return the ``k`` nearest neighbours of points, as far as their lists go."""
        counts = np.minimum(self.lengths[ids], k)
        indices = np.full((len(counts), k), NOBODY, dtype=np.intp)
        sq_distances = np.full((len(counts), k), np.inf)
        places, filled = runs(self._starts[ids], counts), np.arange(k) < counts[:, None]
        indices[filled], sq_distances[filled] = self._columns[places], self._sq_distances[places]
        return Neighbors(indices, sq_distances)

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out.

        Points that are not in the lists of all examples come last, at inf.
        """
        total = plain_sq_distances(self, query)
        others = np.setdiff1d(np.arange(self.n_points), query.ids)
        found = others[np.lexsort((others, total[others]))][:k]
        part = Neighbors(found[None, :], total[None, found])
        return Neighbors.merge([part], k)

    def sq_distances(self, ids: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Return one row of squared distances per id, then one per vector; inf where unknown."""
        rows = self._check(vectors)
        for index in ids:
            row = np.full(self.n_points, np.inf)
            start, length = self._starts[index], self.lengths[index]
            listed = slice(start, start + length)
            row[self._columns[listed]] = self._sq_distances[listed]
            row[index] = 0.0
            yield row
        yield from rows

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Return the squared distances of points to each example of a query; inf where unknown."""
        return np.stack([row[points] for row in self.sq_distances(query.ids, query.vectors)])

    def pairs(self, ids: IntArray) -> FloatArray:
        """Return the squared distances of a few points to each other; inf where unknown."""
        nothing = np.empty((0, self.n_points))
        return np.stack([row[ids] for row in self.sq_distances(ids, nothing)])

    def _check(self, vectors: Any) -> FloatArray:
        rows = check_vectors(vectors, self.n_features, partial=True)
        check_distances(
            np.where(np.isinf(rows), 0.0, rows), "vectors", self.metric == "precomputed"
        )
        return self._squared(rows)

    def _squared(self, distances: FloatArray) -> FloatArray:
        distances = np.maximum(distances.astype(np.float64), 0.0)
        return distances**2 if self.metric == "precomputed" else distances


def _checked_graph(graph: Any, metric: str) -> Any:
    """Return a graph as rows with every entry once."""
    if not hasattr(graph, "tocsr") or len(graph.shape) != 2 or graph.shape[0] != graph.shape[1]:
        shape = getattr(graph, "shape", None)
        raise InputError(
            f"the graph is a {type(graph).__name__} of shape {shape}, but must be a square sparse "
            "array of distances between all points, such as kneighbors_graph(X, 16, "
            "mode='distance') of scikit-learn makes."
        )
    graph = graph.tocsr(copy=True)
    graph.sum_duplicates()
    if graph.data.dtype.kind not in "iufb" or not np.isfinite(graph.data).all():
        raise InputError(
            f"the graph holds {graph.data.dtype} values of which some are no finite real numbers; "
            "leave out entries that are unknown."
        )
    check_distances(graph, "the graph", squared=metric == "precomputed")
    own = np.abs(graph.diagonal())
    if own.max(initial=0.0) > ZERO * float(graph.data.max(initial=0.0)):
        row = int(np.argmax(own))
        raise InputError(
            f"the graph says that point {row} is at distance {own[row]:.6g} from itself, but its "
            "diagonal must be zero or left out. Similarities must be turned into distances first."
        )
    return graph


def runs(starts: IntArray, counts: IntArray) -> IntArray:
    """Return whole numbers that count up from each start, so many each.

    Examples
    --------
    >>> runs(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    before = np.cumsum(counts) - counts
    places: IntArray = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return places
