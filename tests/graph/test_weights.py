import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from rankfold.graph.adaptive import (
    adaptive_weights,
    affinity_matrix,
    projected_weights,
    symmetrize,
)
from rankfold.solvers import System

sorted_rows = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=st.floats(0, 100)
).map(lambda rows: np.sort(rows, axis=1))


@given(rows=sorted_rows, k=st.integers(1, 10))
def test_closed_form_equals_the_reference(rows, k):
    weights, gamma, end = adaptive_weights(rows, k)
    for i, row in enumerate(rows):
        s, expected_gamma, expected_end = reference.closed_form(row, range(len(row)), k)
        np.testing.assert_allclose(weights[i, : len(row)], s[:k], atol=1e-12)
        assert gamma[i] == pytest.approx(expected_gamma, abs=1e-9)
        assert end[i] == expected_end


@given(rows=sorted_rows, k=st.integers(1, 10))
def test_closed_form_lies_on_the_simplex(rows, k):
    weights = adaptive_weights(rows, k)[0]
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)


@given(rows=sorted_rows, gamma=st.floats(1e-2, 100))
def test_projection_equals_the_reference(rows, gamma):
    weights, threshold = projected_weights(rows, gamma)
    for i, row in enumerate(rows):
        expected = reference.simplex_projection(row, range(len(row)), gamma)
        np.testing.assert_allclose(weights[i], expected, atol=1e-9)
        assert (row[weights[i] > 0] < threshold[i]).all()


@given(rows=sorted_rows, gamma=st.sampled_from([0.0, 1e-300, 1e-20, 1e-9, 1.0, 1e9]))
def test_projection_lies_on_the_simplex(rows, gamma):
    weights, _ = projected_weights(rows, gamma)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)


@given(rows=sorted_rows, k=st.integers(1, 8))
def test_projection_with_its_own_gamma_is_the_closed_form(rows, k):
    weights, gamma, _ = adaptive_weights(rows, k)
    for i in range(len(rows)):
        if k < rows.shape[1] and gamma[i] > 1e-3:
            projected, _ = projected_weights(rows[i : i + 1], gamma[i])
            np.testing.assert_allclose(projected[0, :k], weights[i], atol=1e-9)
            np.testing.assert_allclose(projected[0, k:], 0, atol=1e-9)


def test_equal_distances_share_the_weight_evenly():
    weights, gamma, _ = adaptive_weights(np.full((1, 6), 3.0), 4)
    assert weights.tolist() == [[0.25] * 4]
    assert gamma.tolist() == [0.0]


def test_lists_that_ended_get_no_weight():
    row = np.array([[1.0, 2.0, np.inf, np.inf], [1.0, np.inf, np.inf, np.inf], [np.inf] * 4])
    assert adaptive_weights(row, 3)[0].tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    weights, _ = projected_weights(row, 10.0)
    assert weights[1].tolist() == [1, 0, 0, 0]
    assert weights[2].tolist() == [0, 0, 0, 0]
    assert weights[0, :2].sum() == pytest.approx(1)


def test_projection_without_gamma_goes_to_the_nearest():
    assert projected_weights(np.array([[1.0, 1.0, 2.0]]), 0.0)[0].tolist() == [[0.5, 0.5, 0]]


def test_the_system_equals_the_reference():
    rng = np.random.default_rng(0)
    d = reference.sq_distances(rng.normal(size=(12, 3)))
    order = np.array(
        [reference.nearest(d[i], [j for j in range(12) if j != i])[:4] for i in range(12)]
    )
    weights = adaptive_weights(np.take_along_axis(d, order, 1), 3)[0]
    affinity = affinity_matrix(order[:, :3], weights, 12)
    S = np.array(
        [reference.closed_form(d[i], [j for j in range(12) if j != i], 3)[0] for i in range(12)]
    )
    np.testing.assert_allclose(affinity.toarray(), S, atol=1e-12)
    matrix = System.ran(symmetrize(affinity), 3.0).matrix.toarray()
    np.testing.assert_allclose(matrix, 6 * reference.laplacian(S) + np.eye(12), atol=1e-12)


def test_points_outside_the_database_join_the_graph():
    affinity = sparse.csr_array(np.array([[0, 1.0], [1.0, 0], [0.5, 0.5]]))
    expected = np.array([[0, 1, 0.25], [1, 0, 0.25], [0.25, 0.25, 0]])
    np.testing.assert_array_equal(symmetrize(affinity).toarray(), expected)
