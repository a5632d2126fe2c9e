import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rankfold import ExactEngine, InputError
from rankfold.neighbors import METRICS


def points(n=60, n_features=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_features))


def as_given(X, metric):
    """The same points as the engine takes them under this metric."""
    d = reference.sq_distances(X)
    return {"precomputed": np.sqrt(d), "precomputed_sq": d}.get(metric, X)


def expected_lists(d, k):
    order = [
        reference.nearest(d[i], [j for j in range(len(d)) if j != i])[:k] for i in range(len(d))
    ]
    return np.array(order), np.take_along_axis(d, np.array(order), 1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [60, 300])
def test_equals_the_reference(metric, n):
    X = as_given(points(n), metric)
    indices, d = expected_lists(reference.sq_distances(X, metric), 7)
    found = ExactEngine(X, metric).rows(np.arange(n), 7)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.sq_distances, d, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("metric", METRICS)
def test_blocks_do_not_change_the_answer(metric):
    X = as_given(points(300), metric)
    whole = ExactEngine(X, metric).rows(np.arange(300), 9)
    blocked = ExactEngine(X, metric, block_bytes=2**13).rows(np.arange(300), 9)
    np.testing.assert_array_equal(whole.indices, blocked.indices)
    np.testing.assert_allclose(whole.sq_distances, blocked.sq_distances, rtol=1e-14)


@examples(100)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 200),
    k=st.integers(1, 12),
    values=st.integers(1, 4),
    offset=st.sampled_from([0.0, 1e7]),
)
def test_ties_and_duplicates_go_by_index(seed, n, k, values, offset):
    """Whole numbers have exact distances, so ties are ties whatever the route."""
    X = np.random.default_rng(seed).integers(0, values + 1, size=(n, 3)) + offset
    found = ExactEngine(X).rows(np.arange(n), k)
    d = reference.sq_distances(X)
    for i in range(0, n, max(1, n // 5)):
        order = reference.nearest(d[i], [j for j in range(n) if j != i])[:k]
        fill = k - len(order)
        assert found.indices[i].tolist() == order + [-1] * fill
        assert found.sq_distances[i].tolist() == [d[i, j] for j in order] + [np.inf] * fill


def test_many_duplicates_leave_the_point_itself_out():
    X = np.zeros((500, 4))
    found = ExactEngine(X).rows(np.array([0, 250, 499]), 3)
    assert found.indices.tolist() == [[1, 2, 3], [0, 1, 2], [0, 1, 2]]
    assert (found.sq_distances == 0).all()


def test_values_far_from_zero_stay_exact():
    """The product formula loses all digits here; the certificate must notice."""
    X = points(400) * 1e-3 + 1e6
    found = ExactEngine(X).rows(np.arange(400), 5)
    indices, d = expected_lists(reference.sq_distances(X), 5)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.sq_distances, d, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_number_types(dtype):
    X = np.random.default_rng(0).integers(0, 200, size=(150, 6)).astype(dtype)
    as_float = X if dtype == np.float32 else X.astype(np.float64)
    found = ExactEngine(as_float).rows(np.arange(150), 5)
    indices, d = expected_lists(reference.sq_distances(X), 5)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.sq_distances, d)


def test_search_from_outside_keeps_all_points():
    X = points(50)
    found = ExactEngine(X).search(X[[7]], 1)
    assert found.indices.tolist() == [[7]]
    assert found.sq_distances.tolist() == [[0.0]]


@pytest.mark.parametrize("metric", METRICS)
def test_one_point_has_nobody(metric):
    X = np.zeros((1, 1)) if metric.startswith("precomputed") else np.ones((1, 1))
    assert ExactEngine(X, metric).rows(np.array([0]), 2).indices.tolist() == [[-1, -1]]


def test_no_queries_give_empty_lists():
    engine = ExactEngine(points(10))
    assert engine.search(np.empty((0, 5)), 3).indices.shape == (0, 3)


def test_cosine_does_not_see_length():
    X = points(80)
    lengths = np.random.default_rng(1).uniform(0.1, 10, size=(80, 1))
    ids = np.arange(80)
    plain = ExactEngine(X, "cosine").rows(ids, 5)
    scaled = ExactEngine(X * lengths, "cosine").rows(ids, 5)
    np.testing.assert_array_equal(plain.indices, scaled.indices)


def test_rounding_below_zero_counts_as_zero():
    d = np.array([[-1e-17, -1e-17, 1.0], [-1e-17, 0.0, 1.0], [1.0, 1.0, 0.0]])
    found = ExactEngine(d, "precomputed_sq").rows(np.arange(3), 2)
    assert found.sq_distances.min() == 0.0


def test_negative_distances_are_refused():
    with pytest.raises(InputError, match="negative distance -1 at row 0, column 1"):
        ExactEngine(np.array([[0.0, -1.0], [-1.0, 0.0]]), "precomputed")
