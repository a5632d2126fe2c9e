"""What may tell a good graph from a bad one without labels."""

import numpy as np
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

from kit.all_queries import solved
from rankfold.graph.adaptive import adaptive_weights

LISTED = 20
"""Length of the lists whose stability is looked at."""


def ranks(scores):
    """Return the place of every point in the answer to every query; the query is at 0."""
    own = np.arange(len(scores))
    scores = scores.copy()
    scores[own, own] = np.inf
    places = np.empty(scores.shape, dtype=np.int32)
    np.put_along_axis(places, np.argsort(-scores, axis=1, kind="stable"), own[None, :], axis=1)
    return places


def reciprocity(places):
    """Return the largest share of pairs in each other's best m that chance does not explain.

    The share is that of pairs (i, j), j among the best m of i, where i is among those of j; chance
    gives ``m / (n - 1)``. The maximum is over m.
    """
    n_points = len(places)
    later = np.maximum(places, places.T)[np.triu_indices(n_points, 1)]
    mutual = 2 * np.cumsum(np.bincount(later, minlength=n_points))[1:]
    lengths = np.arange(1, n_points)
    return float((mutual / (n_points * lengths) - lengths / (n_points - 1)).max())


def stability(answers):
    """Return the overlap of the best points of two answers to the same queries.

    Each answer is a set of points, and the places of `ranks` among them.
    """
    (first, left), (second, right) = answers
    common, at_left, at_right = np.intersect1d(first, second, return_indices=True)
    best = []
    for places, rows in ((left, at_left), (right, at_right)):
        among = places[np.ix_(rows, rows)]
        best.append(np.argsort(among, axis=1, kind="stable")[:, 1 : LISTED + 1])
    shared = [len(np.intersect1d(a, b)) for a, b in zip(*best, strict=True)]
    return float(np.mean(shared) / min(LISTED, len(common) - 1))


def hubness(graph):
    """Return the skewness of the number of edges of a point."""
    return float(stats.skew(np.diff(graph.indptr)))


def components(graph):
    """Return the number of parts that no edge joins."""
    return int(connected_components(graph, directed=False)[0])


def objective(affinity, candidates, unit, n_neighbors, weight, smoothness):
    """Return the joint objective of S at the best F, per point.

    The cost of a query at its best scores is ``1 / G_qq - 1``, see docs/collective.md; every
    gamma is that of the plain graph.
    """
    n_points = affinity.shape[0]
    distances = (candidates.sq_distances / unit).astype(np.float64)
    _, gammas, _ = adaptive_weights(distances, n_neighbors)
    shape = candidates.indices.shape
    rows = np.repeat(np.arange(n_points), shape[1])
    measured = sparse.csr_array((distances.ravel(), (rows, candidates.indices.ravel())))
    near = affinity.multiply(measured).sum() + gammas @ affinity.multiply(affinity).sum(axis=1)
    queries = 1 / np.diag(solved((affinity + affinity.T) / 2, smoothness)) - 1
    return float((near + weight * queries.sum()) / n_points)
