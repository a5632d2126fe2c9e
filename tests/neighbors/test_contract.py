"""What every engine must do, whatever is behind it."""

from functools import cache

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ran_cases import RAN

from rankfold import Distance, InputError, Query
from rankfold.check import check_query
from rankfold.neighbors import ENGINES, Engine, plain_sq_distances

METRICS = ("euclidean", "cosine")
SINGLE = {"rtol": 2e-6, "atol": 1e-9}

every_engine = pytest.mark.parametrize("name", ENGINES)
every_metric = pytest.mark.parametrize("metric", METRICS)


def points(n=60, n_features=5, seed=0):
    """Random points that float32 holds without rounding."""
    return np.random.default_rng(seed).normal(size=(n, n_features)).astype(np.float32)


@cache
def all_sq_distances(n, metric):
    return reference.sq_distances(points(n), metric)


def whole_numbers(n, values=3, seed=0):
    """Few different points, so that there are duplicates and many ties."""
    return np.random.default_rng(seed).integers(0, values, size=(n, 3)).astype(float)


def check_row(indices, sq_distances, d_row, allowed, k, **tolerance):
    order = reference.nearest(d_row, allowed)[:k]
    fill = k - len(order)
    assert indices.tolist() == order + [-1] * fill
    expected = [d_row[j] for j in order] + [np.inf] * fill
    np.testing.assert_allclose(sq_distances, expected, **tolerance)


def others(n, left_out):
    return [j for j in range(n) if j not in set(left_out)]


@every_engine
def test_engines_keep_the_contract(name):
    engine = ENGINES[name](points(), "cosine")
    assert isinstance(engine, Engine)
    assert (engine.n_points, engine.n_features, engine.metric) == (60, 5, "cosine")
    assert not isinstance(points(), Engine)


@every_engine
@every_metric
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(60, 7), (160, 9), (30, 29), (30, 45), (2, 1)])
def test_rows_equal_the_reference(name, metric, dtype, n, k):
    X = points(n)
    d = all_sq_distances(n, metric)
    found = ENGINES[name](X.astype(dtype), metric).rows(np.arange(n), k)
    for i in range(n):
        check_row(found.indices[i], found.sq_distances[i], d[i], others(n, [i]), k, **SINGLE)


@every_engine
@every_metric
@pytest.mark.parametrize(("n", "k"), [(40, 6), (140, 6), (5, 8)])
def test_search_equals_the_reference(name, metric, n, k):
    X = points(n + 10)
    d = all_sq_distances(n + 10, metric)[n:, :n]
    found = ENGINES[name](X[:n], metric).search(X[n:], k)
    for i in range(10):
        check_row(found.indices[i], found.sq_distances[i], d[i], range(n), k, **SINGLE)


@every_engine
@every_metric
@pytest.mark.parametrize(
    ("ids", "vectors", "weights"),
    [
        ([3], None, None),
        (None, [0], None),
        ([3, 17, 110], None, [1.0, 0.2, 0.5]),
        ([8, 9], [0, 1, 2], [1.0, 2.0, 3.0, 0.1, 0.7]),
    ],
)
@pytest.mark.parametrize("k", [5, 150])
def test_nearest_equals_the_reference(name, metric, ids, vectors, weights, k):
    n = 120
    X = points(n + 3)
    d = all_sq_distances(n + 3, metric)
    rows = [*(ids or []), *(n + j for j in vectors or [])]
    asked = Query(ids, None if vectors is None else X[n:][vectors], weights)
    query = check_query(asked, n, X.shape[1])
    engine = ENGINES[name](X[:n], metric)
    found = engine.nearest(query, k)
    assert found.indices.shape == (1, k)
    mean = np.average(d[rows][:, :n], axis=0, weights=query.weights)
    check_row(found.indices[0], found.sq_distances[0], mean, others(n, query.indices), k, **SINGLE)
    np.testing.assert_allclose(plain_sq_distances(engine, query), mean, **SINGLE)


@pytest.mark.parametrize("metric", ["precomputed", "precomputed_sq"])
def test_nearest_among_given_distances(metric):
    d = reference.sq_distances(points(50))
    given_distances = np.sqrt(d) if metric == "precomputed" else d
    query = check_query(Query([4, 7], given_distances[9], [1.0, 0.5, 0.25]), 50, 50)
    found = ENGINES["exact"](given_distances, metric).nearest(query, 6)
    mean = np.average(d[[4, 7, 9]], axis=0, weights=query.weights)
    check_row(found.indices[0], found.sq_distances[0], mean, others(50, [4, 7]), 6, rtol=1e-12)


@every_engine
@examples(30)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 130), k=st.integers(1, 8))
def test_ties_and_duplicates_go_by_index(name, seed, n, k):
    """Whole numbers have exact distances, so ties are ties whatever the route."""
    X = whole_numbers(n, seed=seed)
    d = reference.sq_distances(X)
    engine = ENGINES[name](X)
    rows, found = engine.rows(np.arange(n), k), engine.search(X, k)
    for i in range(0, n, max(1, n // 4)):
        check_row(rows.indices[i], rows.sq_distances[i], d[i], others(n, [i]), k, rtol=0)
        check_row(found.indices[i], found.sq_distances[i], d[i], range(n), k, rtol=0)
        nearest = engine.nearest(check_query(i, n, 3), k)
        check_row(nearest.indices[0], nearest.sq_distances[0], d[i], others(n, [i]), k, rtol=0)


@every_engine
@examples(20)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_the_points_does_not_matter(name, seed):
    X = points(250, seed=seed)
    order = np.random.default_rng(seed).permutation(250)
    plain = ENGINES[name](X).rows(np.arange(250), 8)
    moved = ENGINES[name](X[order]).rows(np.arange(250), 8)
    np.testing.assert_array_equal(order[moved.indices], plain.indices[order])


@every_engine
@every_metric
def test_one_point_has_nobody(name, metric):
    engine = ENGINES[name](np.ones((1, 2)), metric)
    assert engine.rows(np.array([0]), 2).indices.tolist() == [[-1, -1]]
    assert engine.nearest(check_query(0, 1, 2), 2).indices.tolist() == [[-1, -1]]
    assert engine.search(np.ones((1, 2)), 2).indices.tolist() == [[0, -1]]


@every_engine
def test_some_rows_in_any_order(name):
    engine = ENGINES[name](points(300))
    ids = np.array([250, 3, 3, 120])
    whole = engine.rows(np.arange(300), 5)
    np.testing.assert_array_equal(engine.rows(ids, 5).indices, whole.indices[ids])
    assert engine.rows(ids[:0], 5).indices.shape == (0, 5)
    assert engine.search(np.empty((0, 5)), 5).indices.shape == (0, 5)


@every_engine
def test_values_far_from_zero_keep_their_neighbours(name):
    X = np.random.default_rng(0).normal(size=(150, 5)) * 1e-3 + 1e6
    d = reference.sq_distances(X)
    found = ENGINES[name](X).rows(np.arange(150), 5)
    expected = [reference.nearest(d[i], others(150, [i]))[:5] for i in range(150)]
    assert (found.indices == expected).all()


@every_engine
@pytest.mark.parametrize(
    ("X", "metric", "message"),
    [
        (np.array([[1.0], [np.nan]]), "euclidean", "row 1 of X holds NaN or infinity"),
        (np.array([[1.0], [np.inf]]), "cosine", "row 1 of X holds NaN or infinity"),
        (np.array([[1.0], [0.0]]), "cosine", "row 1 of X is all zeros"),
        (np.array([1.0, 2.0]), "euclidean", "X has shape"),
        (np.eye(2), "l1", "metric is 'l1'"),
        (np.full((2, 2), 1e300), "euclidean", "scale the data"),
    ],
)
def test_points_that_cannot_be_used(name, X, metric, message):
    with pytest.raises(InputError, match=message):
        ENGINES[name](X, metric)


@every_engine
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros((1, 4)), "vectors has shape"),
        (np.zeros((1, 5)), "row 0 of vectors is all zeros"),
        (np.full((1, 5), np.nan), "row 0 of vectors holds NaN"),
    ],
)
def test_vectors_that_cannot_be_searched(name, vectors, message):
    engine = ENGINES[name](points(), "cosine")
    with pytest.raises(InputError, match=message):
        engine.search(vectors, 3)
    with pytest.raises(InputError, match=message):
        next(engine.sq_distances(np.empty(0, dtype=np.intp), vectors))


@every_engine
@pytest.mark.parametrize("ranker", [RAN, Distance])
def test_rankers_take_an_engine_for_the_points(name, ranker):
    X = points(120)
    by_engine = ranker().fit(ENGINES[name](X))
    by_array = ranker().fit(X)
    assert by_engine.n_features_in_ == 5
    for query in (7, Query(vectors=X[3] + 0.01)):
        (got,), (expected,) = by_engine.rank_many([query]), by_array.rank_many([query])
        np.testing.assert_allclose(
            got.scores[np.argsort(got.indices)],
            expected.scores[np.argsort(expected.indices)],
            rtol=1e-4,
        )


@every_engine
def test_the_metrics_must_agree(name):
    with pytest.raises(InputError, match="measures metric='cosine', but the ranker has"):
        RAN().fit(ENGINES[name](points(), "cosine"))
