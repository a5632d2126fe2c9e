"""Points are ruled out by a projection, and what is found are the nearest of all of them."""

import math
from contextlib import contextmanager
from itertools import permutations, product

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rankfold import ExactEngine, FaissEngine
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors import DynamicEngine, projected
from rankfold.neighbors.kernels import rough_sq_distances_to
from rankfold.neighbors.projected import LeadingDirections

FEATURES = 40
ANYTHING = {"LEAST_FEATURES": 0, "LEAST_SIZE": 0, "PATIENCE": 0, "N_AXES": 6}


@contextmanager
def changed(**constants):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(projected, name, value)
        yield


def whole_numbers(rng, n):
    """Few different points: duplicates and many ties."""
    return rng.integers(0, 2, (n, 4))[:, rng.integers(0, 4, FEATURES)]


def curved(rng, n):
    return sheets(n, n_sheets=2, ambient=FEATURES, seed=int(rng.integers(1000))).X


def diffuse(rng, n):
    return rng.normal(size=(n, FEATURES))


def with_outliers(rng, n):
    X = curved(rng, n)
    X[rng.integers(n, size=3)] *= 1e6
    return X


def far_from_zero(rng, n):
    return curved(rng, n) + 3000


def tiny(rng, n):
    return 1e-15 * diffuse(rng, n)


def all_the_same(rng, n):
    return np.tile(diffuse(rng, 1), (n, 1))


SETS = (whole_numbers, curved, diffuse, with_outliers, far_from_zero, tiny, all_the_same)


def nearest(X, query, k, alive):
    """Return the nearest by every distance, ties by index."""
    sq_distances = ((X.astype(np.float64) - query.astype(np.float64)) ** 2).sum(axis=1)
    return np.argsort(np.where(alive, sq_distances, np.inf), kind="stable")[:k]


def sq_distances(X, query, ids):
    return ((X[ids].astype(np.float64) - query.astype(np.float64)) ** 2).sum(axis=1)


def shortcut_of(engine):
    return engine._indexes["flat"].shortcut


def projection_of(engine):
    return shortcut_of(engine).projection


@examples(150)
@given(
    seed=st.integers(0, 10_000),
    make=st.sampled_from(SETS),
    k=st.integers(1, 20),
    n_axes=st.integers(1, 12),
    share_removed=st.sampled_from([0.0, 0.2, 0.7]),
    known=st.booleans(),
)
def test_the_nearest_are_those_of_measuring_everything(seed, make, k, n_axes, share_removed, known):
    rng = np.random.default_rng(seed)
    X = make(rng, 240).astype(np.float32)
    alive = rng.random(len(X)) >= share_removed
    first, second = X[rng.integers(len(X), size=2)]
    query = first if known else (first + second) / 2
    with changed(N_AXES=n_axes, MOST_LEFT=1):
        projection = LeadingDirections(X[:200], seed)
        projection.add(X[200:])
        found = projection.nearest(X, query, k, None if alive.all() else alive)
    assert found.dtype == np.int32
    expected = nearest(X, query, k, alive)
    if make in (whole_numbers, all_the_same):
        np.testing.assert_array_equal(found, expected)
    else:  # sums in another order can swap what is equally near but for the last digit
        assert len(set(found.tolist())) == k
        assert alive[found].all()
        measured, true = (sq_distances(X, query, ids) for ids in (found, expected))
        np.testing.assert_allclose(measured, true, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 7, 30])
def test_rounding_loses_no_tie(k):
    """All points are as far from the query, in the projection, too, but for rounding."""
    signs = np.array(list(product([-1, 1], repeat=4)))
    places = np.array(list(permutations([1, 2, 3, 4])))
    around = (signs[:, None, :] * places).reshape(-1, 4)
    X = np.repeat(around, FEATURES // 4, axis=1).astype(np.float32)
    query = np.zeros(FEATURES, dtype=np.float32)
    with changed(N_AXES=8, MOST_LEFT=1):
        found = LeadingDirections(X, 0).nearest(X, query, k, None)
    np.testing.assert_array_equal(found, np.arange(k))


@pytest.mark.parametrize("make", SETS)
def test_no_distance_is_longer_in_the_projection(make):
    X = make(np.random.default_rng(0), 300).astype(np.float32)
    with changed(N_AXES=8):
        projection = LeadingDirections(X, 0)
        for query in X[:20]:
            (near,) = projection.projected(query[None, :])
            rough = rough_sq_distances_to(projection.coordinates, near)
            true = np.sqrt(sq_distances(X, query, np.arange(len(X))))
            assert (np.sqrt(rough) <= true + projection.error(query, true) + 1e-19).all()


def test_too_few_that_are_left_are_not_found_here():
    X = diffuse(np.random.default_rng(0), 300).astype(np.float32)
    alive = np.arange(300) < 15
    with changed(MOST_LEFT=1):
        assert LeadingDirections(X, 0).nearest(X, X[0], 10, alive) is None


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("make", [whole_numbers, curved, with_outliers, far_from_zero])
def test_an_engine_answers_few_queries_as_it_does_many(metric, make):
    X = make(np.random.default_rng(1), 3000).astype(np.float32) + 1
    vectors = (X[:40] + X[40:80]) / 2
    with changed(**ANYTHING):
        engine = FaissEngine(X, metric, index="flat")
        many = engine.search(vectors, 10)
        assert projection_of(engine) is None
        for row, vector in enumerate(vectors):
            found = engine.search(vector[None, :], 10)
            np.testing.assert_array_equal(found.indices[0], many.indices[row])
            np.testing.assert_array_equal(found.sq_distances[0], many.sq_distances[row])


def test_it_is_used_and_follows_points_that_come_and_go():
    rng = np.random.default_rng(0)
    X = curved(rng, 2000).astype(np.float32)
    with changed(**ANYTHING):
        engine = DynamicEngine.build(X, "euclidean", 5, engine=FaissEngine(X, index="flat"))
        engine.search(X[:1], 5)
        projection = projection_of(engine._points)
        assert projection is not None
        for _ in range(5):
            gone = rng.choice(np.flatnonzero(engine.alive), 60, replace=False)
            engine.remove(gone)
            new = curved(rng, 60).astype(np.float32)
            engine.add(new)
            X = np.concatenate([X, new])
            assert len(projection.coordinates) == engine.n_points == len(X)
            for query in (X[gone[:8]] + X[-8:]) / 2:
                expected = nearest(X, query, 5, engine.alive)
                found = engine.search(query[None, :], 5).indices[0]
                np.testing.assert_array_equal(found, expected)
        assert projection_of(engine._points) is projection
        again = DynamicEngine.restore(*engine.state())
        assert projection_of(again._points) is None
        np.testing.assert_array_equal(again.search(query[None, :], 5).indices[0], expected)


def test_it_is_given_up_where_it_rules_out_too_little():
    X = diffuse(np.random.default_rng(0), 2000).astype(np.float32)
    with changed(**ANYTHING):
        engine = FaissEngine(X, index="flat")
        found = engine.search(X[:1] + 0.01, 10)
        assert projection_of(engine) is None
        assert shortcut_of(engine).patience == math.inf
    expected = ExactEngine(X).search(X[:1] + np.float32(0.01), 10)
    np.testing.assert_array_equal(found.indices, expected.indices)


def test_it_is_made_when_as_many_queries_have_come():
    X = curved(np.random.default_rng(0), 2000).astype(np.float32)
    with changed(**{**ANYTHING, "PATIENCE": 3}):
        engine = FaissEngine(X, index="flat")
        made = [
            engine.search(X[:1], 5) is not None and projection_of(engine) is not None
            for _ in range(5)
        ]
    assert made == [False, False, False, True, True]


@pytest.mark.parametrize("constant", ["LEAST_FEATURES", "LEAST_SIZE"])
def test_little_is_looked_at_as_a_whole(constant):
    X = curved(np.random.default_rng(0), 2000).astype(np.float32)
    with changed(**{**ANYTHING, constant: X.size + 1}):
        engine = FaissEngine(X, index="flat")
        engine.search(X[:5], 5)
        assert projection_of(engine) is None
