"""Data, queries and the dense reference of RAN, for the tests of every way to solve it."""

import warnings
from functools import partial

import numpy as np
import reference
from sklearn.exceptions import ConvergenceWarning

import rankfold
from rankfold import Query
from rankfold.check import check_query

RAN = partial(rankfold.RAN, fusion="none")
"""RAN as in the paper: its scores are those of shape alone."""

READINGS = [("own", "all"), ("shared", "all"), ("shared", "local"), ("own", "local")]


def sheet(n=60, seed=0):
    """A curved sheet with noise: some structure, no ties."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 3, n)
    X = np.column_stack([np.cos(2 * t), np.sin(2 * t), rng.uniform(0, 2, n)])
    return X + rng.normal(0, 0.1, X.shape)


def rank_quietly(ranker, query, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.rank_many([query], **options)[0]


def by_reference(X, query, ranker, n_alternations):
    """Scores of the database after every alternation, and the objective's course."""
    n = len(X)
    query = check_query(query, n, X.shape[1])
    everything = np.vstack([X, query.vectors])
    method = reference.RAN(
        reference.sq_distances(everything, ranker.metric),
        n,
        ranker.n_neighbors_,
        ranker.smoothness,
        ranker.gamma,
        ranker.candidates,
        natural=ranker.scale == "natural",
    )
    points = [*query.indices, *range(n, len(everything))]
    scores, values = method.run(points, query.weights, n_alternations)
    return [f[:n] for f in scores], values


QUERIES = {
    "point": Query(indices=7),
    "points": Query(indices=[7, 30], weights=[1.0, 0.4]),
    "unseen": Query(vectors=[0.3, 0.9, 1.1]),
    "mixed": Query(indices=[3], vectors=[[0.3, 0.9, 1.1], [-0.5, 0.2, 0.1]], weights=[1, 2, 0.5]),
    "copy": Query(vectors=sheet()[11]),
    "negative": Query(indices=[7, 3, 10], weights=[1.0, -0.5, 0.0]),
    "negative unseen": Query(
        indices=[3, 8], vectors=[[0.3, 0.9, 1.1], [-0.5, 0.2, 0.1]], weights=[2.0, -0.3, 1.0, -3.0]
    ),
}
