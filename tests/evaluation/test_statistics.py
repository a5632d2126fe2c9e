import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from rankfold.evaluation.measures import (
    N_FLIPS,
    bootstrap_interval,
    randomization_test,
    share_worse,
)

UNIT = st.floats(0, 1, allow_subnormal=False)


@examples(25)
@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=UNIT))
def test_interval_holds_the_mean(values):
    low, high = bootstrap_interval(values)
    assert (low <= values.mean(axis=0)).all()
    assert (values.mean(axis=0) <= high).all()
    assert (values.min(axis=0) - 1e-12 <= low).all()
    assert (high <= values.max(axis=0) + 1e-12).all()


def test_interval_shrinks_with_the_root_of_the_number_of_queries():
    values = np.random.default_rng(0).random((6400, 1))
    widths = [np.ptp(bootstrap_interval(values[:n])) for n in (100, 400, 1600, 6400)]
    np.testing.assert_allclose(np.divide(widths[:-1], widths[1:]), 2, rtol=0.15)


def test_interval_agrees_with_theory_and_with_scipy():
    values = np.random.default_rng(1).beta(2, 1, size=400)
    low, high = bootstrap_interval(values[:, None])
    half = 1.96 * values.std() / 20
    assert low[0] == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert high[0] == pytest.approx(values.mean() + half, abs=0.1 * half)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", rng=0).confidence_interval
    assert (low[0], high[0]) == pytest.approx(tuple(theirs), abs=0.1 * half)


def test_interval_depends_on_the_seed_only():
    values = np.random.default_rng(2).random((50, 2))
    np.testing.assert_array_equal(bootstrap_interval(values, 3), bootstrap_interval(values, 3))
    assert (bootstrap_interval(values, 3)[0] != bootstrap_interval(values, 4)[0]).all()
    alone = bootstrap_interval(values[:, 1:], 3)
    np.testing.assert_array_equal(
        np.array(alone)[:, 0], np.array(bootstrap_interval(values, 3))[:, 1]
    )


def test_large_samples_are_drawn_in_blocks(monkeypatch):
    values = np.random.default_rng(2).random((50, 2))
    whole = bootstrap_interval(values), randomization_test(values - 0.45)
    monkeypatch.setattr("rankfold.evaluation.measures.BLOCK", 1000)
    np.testing.assert_array_equal(bootstrap_interval(values), whole[0])
    np.testing.assert_allclose(randomization_test(values - 0.45), whole[1], atol=0.02)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.2, 0.35])
def test_paired_test_agrees_with_all_sign_flips(shift):
    differences = np.random.default_rng(5).normal(shift, 0.4, size=12)
    exact = stats.permutation_test(
        (differences, np.zeros(12)), lambda a, b: np.mean(a - b), permutation_type="samples"
    ).pvalue
    p_value = randomization_test(differences[:, None])[0]
    assert p_value == pytest.approx(exact, abs=4 * np.sqrt(0.25 / N_FLIPS))


def test_paired_test_sanity():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200)
    differences = np.column_stack([np.zeros(200), noise - noise.mean(), noise + 1, -noise - 1])
    none, same, better, worse = randomization_test(differences)
    assert none == 1.0
    assert same == 1.0
    assert better == pytest.approx(worse, abs=1e-3) == 1 / (N_FLIPS + 1)
    assert randomization_test(np.full((1, 1), 0.3))[0] == 1.0


def test_paired_test_is_calibrated_without_a_difference():
    differences = np.random.default_rng(7).normal(size=(40, 400))
    p_values = randomization_test(differences)
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.05)


def test_rounding_is_no_harm():
    assert share_worse(np.array([0.1 + 0.2, 0.3]), np.array([0.3, 0.1 + 0.2])) == 0.0
    assert share_worse(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == 0.5
