import numpy as np
import pytest
import reference

from rankfold.neighbors import ExactEngine, choose_n_neighbors, intrinsic_dimension


def lists(X, width=20):
    return ExactEngine(X).rows(np.arange(len(X)), min(width, len(X) - 1))


@pytest.mark.parametrize("n", [5, 15, 120])
def test_equals_the_reference(n):
    X = np.random.default_rng(n).normal(size=(n, 4))
    expected = reference.intrinsic_dimension(reference.sq_distances(X))
    assert intrinsic_dimension(lists(X)) == pytest.approx(expected, rel=1e-12)


def test_duplicates_say_nothing():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:15] = X[0]
    expected = reference.intrinsic_dimension(reference.sq_distances(X))
    assert intrinsic_dimension(lists(X)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_finds_the_dimension_of_a_sheet_in_many_features(dimension):
    rng = np.random.default_rng(0)
    sheet = rng.uniform(size=(3000, dimension)) @ rng.normal(size=(dimension, 50))
    assert intrinsic_dimension(lists(sheet)) == pytest.approx(dimension, rel=0.15)


def test_few_neighbors_on_manifolds_and_many_in_diffuse_data():
    rng = np.random.default_rng(0)
    sheet = rng.uniform(size=(500, 2)) @ rng.normal(size=(2, 60))
    assert choose_n_neighbors(lists(sheet)) == 10
    assert choose_n_neighbors(lists(rng.normal(size=(500, 60)))) == 20


@pytest.mark.parametrize("X", [np.zeros((30, 2)), np.arange(2.0)[:, None]])
def test_undefined_where_all_distances_are_alike(X):
    assert np.isnan(intrinsic_dimension(lists(X)))
    assert choose_n_neighbors(lists(X)) == 10
