import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankfold.graph import system_matrix
from rankfold.solvers import SOLVERS, ConjugateGradients
from rankfold.solvers.contract import certify


def random_system(seed, n, smoothness):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.3), 1)
    matrix = system_matrix(sparse.csr_array(weights + weights.T), smoothness)
    return matrix, rng.uniform(size=n)


systems = {
    "seed": st.integers(0, 10_000),
    "n": st.integers(1, 40),
    "smoothness": st.sampled_from([0.01, 1.0, 10.0, 1000.0]),
}


@pytest.mark.parametrize("name", SOLVERS)
@settings(deadline=None)
@given(**systems)
def test_true_error_is_within_the_bound(name, seed, n, smoothness):
    matrix, b = random_system(seed, n, smoothness)
    solver = SOLVERS[name]()
    solution = solver.solve(solver.prepare(matrix), b)
    exact = np.linalg.solve(matrix.toarray(), b)
    assert solution.converged
    assert np.abs(solution.scores - exact).max() <= solution.bound + 1e-14
    assert solution.bound < 1e-8


@settings(deadline=None)
@given(**systems, n_steps=st.integers(1, 4))
def test_bound_holds_when_stopped_early(seed, n, smoothness, n_steps):
    matrix, b = random_system(seed, n, smoothness)
    solver = ConjugateGradients(max_iter=n_steps)
    solution = solver.solve(solver.prepare(matrix), b)
    exact = np.linalg.solve(matrix.toarray(), b)
    assert np.abs(solution.scores - exact).max() <= solution.bound
    assert solution.n_iter <= n_steps
    assert solution.converged or solution.residual > solver.tol


@given(**systems, noise=st.floats(0, 10))
def test_bound_holds_for_any_guess(seed, n, smoothness, noise):
    matrix, b = random_system(seed, n, smoothness)
    exact = np.linalg.solve(matrix.toarray(), b)
    guess = exact + noise * np.random.default_rng(seed).normal(size=n)
    solution = certify(matrix, b, guess, 0, False)
    assert np.abs(guess - exact).max() <= solution.bound


@pytest.mark.parametrize("name", SOLVERS)
def test_many_right_hand_sides_equal_single_ones(name):
    matrix, _ = random_system(1, 30, 5.0)
    b = np.random.default_rng(2).uniform(size=(30, 4))
    solver = SOLVERS[name]()
    state = solver.prepare(matrix)
    together = solver.solve(state, b).scores
    for column in range(4):
        alone = solver.solve(state, b[:, column]).scores
        np.testing.assert_allclose(together[:, column], alone, atol=1e-11)


@pytest.mark.parametrize("name", SOLVERS)
def test_empty_system(name):
    solver = SOLVERS[name]()
    solution = solver.solve(solver.prepare(sparse.csr_array((0, 0))), np.empty(0))
    assert solution.scores.shape == (0,)
    assert solution.bound == 0.0


def test_a_good_start_saves_steps():
    matrix, b = random_system(3, 40, 10.0)
    solver = ConjugateGradients()
    state = solver.prepare(matrix)
    cold = solver.solve(state, b)
    warm = solver.solve(state, b, cold.scores)
    assert warm.n_iter < cold.n_iter
