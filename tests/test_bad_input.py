"""Wrong input is answered with what was given and what is expected."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from rankfold import RAN, InputError, Query, datasets, metrics
from rankfold.neighbors import ExactEngine

X = np.random.default_rng(0).normal(size=(30, 4))
D = np.abs(X[:, :1] - X[:, 0])

FIT = {
    "nan": (RAN(), np.where(X > 2, np.nan, X), "of X holds NaN or infinity (in column"),
    "infinity": (RAN(), np.where(X > 2, np.inf, X), "of X holds NaN or infinity (in column"),
    "one row flat": (RAN(), X[0], "Expected 2D array, got 1D array"),
    "three axes": (RAN(), X[None], "Found array with dim 3"),
    "no points": (RAN(), X[:0], "0 sample(s)"),
    "no features": (RAN(), X[:, :0], "0 feature(s)"),
    "words": (RAN(), np.full((3, 2), "word"), "could not convert string to float"),
    "complex": (RAN(), X.astype(complex), "Complex data not supported"),
    "sparse": (RAN(), sparse.csr_array(X), "X is sparse"),
    "overflow": (RAN(), X * 1e200, "too large for squared distances"),
    "k zero": (RAN(0), X, "n_neighbors is 0, but must be a whole number of at least 1"),
    "k fraction": (RAN(2.5), X, "n_neighbors is 2.5"),
    "k bool": (RAN(True), X, "n_neighbors is True"),
    "k word": (RAN("many"), X, "n_neighbors is 'many'"),
    "smoothness zero": (RAN(5, 0), X, "smoothness is 0, but must be a finite number above zero"),
    "smoothness nan": (RAN(5, float("nan")), X, "smoothness is nan"),
    "smoothness huge": (
        RAN(5, 1e308),
        X,
        "smoothness is 1e+308, but must be a finite number above zero, at most 1e+09",
    ),
    "k array": (RAN(np.array([1, 2])), X, "n_neighbors is array([1, 2])"),
    "metric array": (RAN(metric=np.array(["a", "b"])), X, "metric is array("),
    "smoothness word": (RAN(5, "high"), X, "smoothness is 'high'"),
    "metric": (RAN(metric="manhattan"), X, "metric is 'manhattan', but must be one of"),
    "gamma": (RAN(gamma="mean"), X, "gamma is 'mean', but must be one of 'own', 'shared'"),
    "candidates": (RAN(candidates="near"), X, "candidates is 'near'"),
    "scale": (RAN(scale="auto"), X, "scale is 'auto', but must be one of 'natural', None"),
    "max_iter": (RAN(max_iter=0), X, "max_iter is 0"),
    "tol": (RAN(tol=-1.0), X, "tol is -1.0"),
    "guard": (RAN(guard="yes"), X, "guard is 'yes', but must be True or False"),
    "solver": (RAN(solver="lu"), X, "solver is 'lu', but must be one of 'auto', 'direct', 'cg'"),
    "not square": (RAN(metric="precomputed"), X, "needs a square matrix"),
    "negative": (RAN(metric="precomputed"), D - 1, "negative distance -1"),
    "similarities": (RAN(metric="precomputed"), np.exp(-D), "point 0 is at distance 1 from itself"),
    "unsquarable": (RAN(metric="precomputed"), D * 1e300, "too large to be squared"),
    "cosine of zero": (RAN(metric="cosine"), np.vstack([X, np.zeros(4)]), "row 30 of X is all"),
}

ASK = {
    "nothing": ({}, "the query is empty"),
    "empty ids": ({"indices": []}, "the query is empty"),
    "id beyond": ({"indices": 30}, "indices holds 30, but the database has rows 0 to 29"),
    "id negative": ({"indices": [3, -1]}, "indices holds -1"),
    "id twice": ({"indices": [3, 3]}, "indices holds 3 more than once"),
    "id fraction": ({"indices": 1.5}, "indices is 1.5, but must be a row number"),
    "id word": ({"indices": "cat"}, "indices is 'cat'"),
    "id bool": ({"indices": True}, "indices is True"),
    "id nested": ({"indices": [[1, 2]]}, "flat list"),
    "vector short": ({"vectors": [1.0, 2.0]}, "vectors has shape (1, 2), but must have shape (4,)"),
    "vector deep": ({"vectors": np.zeros((1, 1, 4))}, "vectors has shape (1, 1, 4)"),
    "vector nan": ({"vectors": [0, 0, 0, np.nan]}, "row 0 of vectors holds NaN or infinity"),
    "vector word": ({"vectors": ["1", "2", "3", "4"]}, "vectors holds <U1 values"),
    "vector complex": ({"vectors": X[0] * 1j}, "vectors holds complex128 values"),
    "vector sparse": ({"vectors": sparse.csr_array(X[:1])}, "must be a dense array"),
    "vector ragged": ({"vectors": [[1.0], [1.0, 2.0]]}, "rows of equal length"),
    "weights few": ({"indices": [1, 2], "weights": [1]}, "the query has 2 examples"),
    "weights vanish": ({"indices": [1, 2], "weights": [1e-300, 1e300]}, "the smallest vanishes"),
    "weights zero": (
        {"indices": 1, "weights": [0]},
        "weights is [0], but at least one must be above",
    ),
    "weights below": ({"indices": [1, 2], "weights": [-1, 0]}, "Give an example of what is"),
    "weights overflow": ({"indices": [1, 2], "weights": [-1e300, 1e-300]}, "the smallest vanishes"),
    "weights vanish below": ({"indices": [1, 2], "weights": [-1e-300, 1e300]}, "smallest vanishes"),
    "weights nan": ({"indices": 1, "weights": [np.nan]}, "every weight must be finite"),
    "weights word": ({"indices": 1, "weights": ["much"]}, "must be a list of numbers"),
    "top zero": ({"indices": 1, "top": 0}, "top is 0, but must be a whole number of at least 1"),
    "top fraction": ({"indices": 1, "top": 2.5}, "top is 2.5"),
    "include_query": ({"indices": 1, "include_query": "no"}, "include_query is 'no'"),
}


@pytest.mark.parametrize(("ranker", "data", "message"), FIT.values(), ids=FIT)
def test_fit(ranker, data, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        ranker.fit(data)


@pytest.mark.parametrize(("query", "message"), ASK.values(), ids=ASK)
def test_rank(query, message):
    ranker = RAN().fit(X)
    with pytest.raises(InputError, match=re.escape(message)):
        ranker.rank(**query)


def test_not_fitted():
    for ask in (lambda: RAN().rank(0), lambda: RAN().search(), lambda: RAN().rank_many([0])):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize("query", ["cat", 1.5, None, [1, 2], True])
def test_rank_many_takes_row_numbers_and_queries(query):
    with pytest.raises(InputError, match=r"must be a row number or a rankfold\.Query"):
        RAN().fit(X).rank_many([0, query])


def test_unseen_zero_vector_under_cosine():
    with pytest.raises(InputError, match="row 0 of vectors is all zeros"):
        RAN(metric="cosine").fit(X).rank(vectors=np.zeros(4))


def test_unseen_negative_distances():
    with pytest.raises(InputError, match="vectors holds the negative distance"):
        RAN(metric="precomputed").fit(D).rank(vectors=D[0] - 1)


def test_a_refused_query_spoils_nothing():
    ranker = RAN().fit(X)
    before = ranker.rank(0).indices
    with pytest.raises(InputError):
        ranker.rank_many([Query(indices=1), Query(indices=99)])
    np.testing.assert_array_equal(ranker.rank(0).indices, before)


@pytest.mark.parametrize("queries", [Query(indices=1), 5])
def test_rank_many_takes_a_list(queries):
    with pytest.raises(InputError, match="for a single query use rank"):
        RAN().fit(X).rank_many(queries)


@pytest.mark.parametrize(
    ("data", "metric", "message"),
    [
        (X, "l1", "metric is 'l1'"),
        (X[0], "euclidean", "X has shape (4,)"),
        (np.where(X > 2, np.nan, X), "euclidean", "holds NaN or infinity"),
        (np.where(D > 2, np.nan, D), "precomputed", "holds NaN or infinity"),
        (np.full((3, 2), "word"), "euclidean", "X holds <U4 values"),
    ],
)
def test_engine(data, metric, message):
    with pytest.raises(InputError, match=re.escape(message)):
        ExactEngine(data, metric)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_engine_search(metric):
    engine = ExactEngine(X if metric == "euclidean" else D, metric)
    for query, message in (
        (np.zeros((1, 33)), "vectors has shape (1, 33)"),
        (np.zeros(engine.n_features), "vectors has shape"),
        (np.full((1, engine.n_features), np.nan), "row 0 of vectors holds NaN"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            engine.search(query, 3)


def test_unknown_dataset():
    with pytest.raises(InputError, match="name is 'cats', but must be one of 'moons'"):
        datasets.load("cats")


def test_missing_data_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"yale_diff.mat is not in .*RANKFOLD_DATA"):
        datasets.load("yale", tmp_path)


def test_metrics():
    with pytest.raises(InputError, match="cutoff is 0"):
        metrics.precision([True], 0)
    with pytest.raises(InputError, match="n_relevant is 0"):
        metrics.recall([True], 1, 0)
