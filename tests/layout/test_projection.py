"""Places that follow from the vectors: the plane, and principal components."""

import numpy as np
import pytest

from rankfold import datasets, layout
from rankfold.layout import lay_out
from rankfold.neighbors import DynamicEngine

DIGITS = datasets.load("digits").X
RNG = np.random.default_rng(0)


def engine(X, metric="euclidean"):
    return DynamicEngine.build(np.asarray(X, dtype=float), metric, width=4)


def places(X, layout="pca", metric="euclidean"):
    return lay_out(engine(X, metric), layout, 5).places


def test_pca_is_that_of_the_whole_spectrum():
    found = places(DIGITS)
    centred = DIGITS - DIGITS.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    exact = centred @ directions[:2].T
    for axis in range(2):
        assert abs(np.corrcoef(found[:, axis], exact[:, axis])[0, 1]) > 1 - 1e-6
    assert np.ptp(found[:, 0]) / np.ptp(found[:, 1]) == pytest.approx(
        np.ptp(exact[:, 0]) / np.ptp(exact[:, 1]), rel=1e-3
    )


def test_the_same_points_give_the_same_places():
    np.testing.assert_array_equal(places(DIGITS), places(DIGITS))


def test_order_and_units_do_not_matter():
    order, found = RNG.permutation(len(DIGITS)), places(DIGITS)
    np.testing.assert_allclose(places(DIGITS[order]), found[order], atol=1e-4)
    np.testing.assert_allclose(places(1e3 * DIGITS + 5), found, atol=1e-4)


def test_axes_of_a_sample_hold_nearly_all_the_spread_there_is(monkeypatch):
    # The axes themselves may turn in their plane, since the two first spreads are much alike.
    monkeypatch.setattr(layout, "SAMPLE_POINTS", 600)
    made = lay_out(engine(DIGITS), "pca", 5)
    axes = made.projection.axes
    axes = axes / np.linalg.norm(axes, axis=0)
    spread = np.linalg.eigvalsh(np.cov(DIGITS.T))
    assert np.var(DIGITS @ axes, axis=0, ddof=1).sum() > 0.98 * spread[-2:].sum()
    assert np.abs(made.places).max() == 1


def test_blocks_do_not_show(monkeypatch):
    whole = places(DIGITS)
    monkeypatch.setattr(layout, "BLOCK_NUMBERS", 1000)
    np.testing.assert_allclose(places(DIGITS), whole, atol=1e-6)


def test_two_features_are_the_map():
    moons = datasets.load("moons").X
    made = lay_out(engine(moons), "graph", 5)
    assert made.kind == "plane"
    half = np.ptp(moons, axis=0).max() / 2
    middle = (moons.max(axis=0) + moons.min(axis=0)) / 2
    np.testing.assert_allclose(made.places, (moons - middle) / half, atol=1e-6)


def test_one_feature_is_a_line():
    made = lay_out(engine([[3.0], [5.0], [4.0]]), "auto", 5)
    assert made.kind == "plane"
    np.testing.assert_array_equal(made.places, [[-1, 0], [1, 0], [0, 0]])


def test_directions_are_projected_at_length_one():
    X = RNG.normal(size=(50, 4))
    lengths = RNG.uniform(1, 9, (50, 1))
    np.testing.assert_allclose(
        places(X * lengths, metric="cosine"), places(X, metric="cosine"), atol=1e-5
    )


@pytest.mark.one_in(7)
@pytest.mark.parametrize("scale", [1e-140, 1e-9, 1.0, 1e9, 1e140])
@pytest.mark.parametrize("n_features", [1, 2, 3, 6])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("kind", ["alike", "copies", "line", "any"])
def test_any_points_have_finite_places_within_the_frame(n, n_features, kind, scale):
    X = np.random.default_rng(n).normal(size=(n, n_features))
    if kind == "alike":
        X = np.ones((n, n_features))
    elif kind == "copies":
        X = X[np.arange(n) // 2]
    elif kind == "line":
        X = np.outer(np.arange(n), np.ones(n_features))
    found = places(X * scale)
    assert found.shape == (n, 2)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1 + 1e-6
    spread = len(np.unique(X, axis=0)) > 1 and scale > layout.SMALLEST_EXTENT
    assert np.ptp(found, axis=0).max() == pytest.approx(2 if spread else 0, abs=1e-5)


def test_no_new_point_is_too_far_for_a_place():
    held = engine(np.ones((3, 4)))
    made = lay_out(held, "pca", 5)
    change = held.plan((), np.array([[1e150, -1e150, 3.0, 0.0], [1, 1, 1, 1]]))
    found = made.places_of_new(held, change)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[1], made.places[0])
