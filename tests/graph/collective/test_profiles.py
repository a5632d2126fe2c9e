"""Sparse profiles against dense ones: every row, and every lift, within its stated bound."""

import collective_reference
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankfold.graph import collective as module
from rankfold.graph.collective import SINGLE, lifts, profiles

graphs = examples(40)
smoothness = st.sampled_from([0.1, 1.0, 10.0, 300.0])
tolerance = st.sampled_from([0.3, 1e-2, 3e-4, 1e-6, 1e-10])


@st.composite
def random_graphs(draw):
    """Symmetric weights in several parts, with points that have no edge."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    n = sum(sizes) + draw(st.integers(0, 3))
    W = np.zeros((n, n))
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        part = slice(end - size, end)
        W[part, part] = rng.uniform(0, 1, (size, size)) * (rng.uniform(size=(size, size)) < 0.4)
    W = W + W.T
    np.fill_diagonal(W, 0.0)
    order = rng.permutation(n)
    return W[np.ix_(order, order)]


def solved(W, smoothness, tol, n_jobs=1):
    return profiles(sparse.csr_array(W), smoothness, tol, n_jobs)


def dense(found):
    n = len(found.indptr) - 1
    shape = (n, n)
    return sparse.csr_array((found.values, found.queries, found.indptr), shape=shape).toarray()


@graphs
@given(W=random_graphs(), smoothness=smoothness, tol=tolerance)
def test_every_row_is_within_its_bound(W, smoothness, tol):
    found = solved(W, smoothness, tol)
    gaps = dense(found) - collective_reference.profiles(W, smoothness)
    assert (np.linalg.norm(gaps, axis=1) <= found.bounds).all()


@graphs
@given(W=random_graphs(), smoothness=smoothness, tol=tolerance)
def test_bounds_shrink_in_proportion_to_the_residual(W, smoothness, tol):
    # No residual is above tol, no inverse of the diagonal above that of A, no row below length 1.
    most = 1 + 2 * smoothness * W.sum(axis=1).max()
    expected = 2 * tol * most * (np.sqrt(len(W)) + 1)
    assert (solved(W, smoothness, tol).bounds <= (1 + 1e-6) * expected + 8 * SINGLE).all()


@graphs
@given(W=random_graphs(), smoothness=smoothness, tol=tolerance)
def test_every_lift_is_within_its_bound(W, smoothness, tol):
    n = len(W)
    found = solved(W, smoothness, tol)
    everyone = np.tile(np.arange(n), (n, 1))
    exact = collective_reference.lifts(collective_reference.profiles(W, smoothness))
    together = found.bounds[:, None] + found.bounds
    bound = together * (2 * np.sqrt(exact) + together)
    assert (np.abs(lifts(found, everyone, 1) - exact) <= bound).all()


def test_a_point_without_edges_is_like_itself_alone():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = 1.0
    found = solved(W, 1.0, 1e-9)
    np.testing.assert_array_equal(dense(found)[2:], np.eye(4)[2:])
    lifted = lifts(found, np.array([[1], [0], [3], [2]]), 1).ravel()
    np.testing.assert_array_equal(lifted[2:], 2.0)  # nothing in common
    assert lifted[0] < 2.0


def test_nobody_is_infinitely_far():
    found = solved(np.array([[0.0, 1.0], [1.0, 0.0]]), 1.0, 1e-9)
    lifted = lifts(found, np.array([[1, -1], [-1, -1]]), 1)
    np.testing.assert_array_equal(np.isinf(lifted), [[False, True], [True, True]])


def test_profiles_are_sparse_where_queries_reach_little():
    ring = np.zeros((150, 150))
    here = np.arange(150)
    ring[here, here - 1] = ring[here - 1, here] = 0.5
    found = solved(ring, 1.0, 3e-4)
    assert np.diff(found.indptr).max() < 40
    gaps = dense(found) - collective_reference.profiles(ring, 1.0)
    assert (np.linalg.norm(gaps, axis=1) <= found.bounds).all()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_and_blocks_change_nothing(n_jobs, monkeypatch):
    rng = np.random.default_rng(0)
    W = rng.uniform(size=(90, 90)) * (rng.uniform(size=(90, 90)) < 0.05)
    alone = solved(W + W.T, 1.0, 1e-4)
    candidates = rng.integers(0, 90, (90, 7))
    expected = lifts(alone, candidates, 1)
    monkeypatch.setattr(module, "BLOCK_ROWS", 13)
    together = solved(W + W.T, 1.0, 1e-4, n_jobs)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(lifts(together, candidates, n_jobs), expected)


def test_progress_is_shown_on_stderr_alone(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    profiles(pair, 1.0, 1e-4, 1, "round 1 of 3")
    out, err = capfd.readouterr()
    assert not out
    assert "round 1 of 3" in err
