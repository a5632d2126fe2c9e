"""The joint objective of one graph for all queries, and which steps never increase it."""

import collective_reference
import numpy as np
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ran_cases import sheet

few = examples(25)
ROUNDING = 1e-10

cases = given(
    seed=st.integers(0, 10_000),
    n=st.integers(5, 16),
    k=st.integers(1, 3),
    smoothness=st.sampled_from([0.1, 1.0, 30.0]),
    weight=st.sampled_from([0.01, 1.0, 10.0]),
)


def joint(seed, n, k, smoothness, weight):
    return collective_reference.Joint(reference.sq_distances(sheet(n, seed)), k, smoothness, weight)


def random_graph(rng, n):
    """Rows in the simplex, some entries zero, nobody their own neighbour."""
    S = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    np.fill_diagonal(S, 0.0)
    S[np.arange(n), np.arange(n) - 1] += 1e-3
    return S / S.sum(axis=1, keepdims=True)


def random_scores(rng, n):
    F = rng.uniform(size=(n, n))
    np.fill_diagonal(F, 1.0)
    return F


def never_rises(values):
    return (np.diff(values) <= ROUNDING * np.abs(values[:-1])).all()


@few
@cases
def test_half_steps_never_increase_it(seed, n, k, smoothness, weight):
    method = joint(seed, n, k, smoothness, weight)
    S = method.first
    F = method.f_step(S)
    values = [method.value(S, F)]
    for _ in range(4):
        S = method.s_step(F)
        values.append(method.value(S, F))
        F = method.f_step(S)
        values.append(method.value(S, F))
    assert never_rises(values)


@few
@cases
def test_damped_half_steps_never_increase_it(seed, n, k, smoothness, weight):
    """For fixed F it is convex in S, so any part of the way to the best S will do."""
    method = joint(seed, n, k, smoothness, weight)
    S = method.first
    F = method.f_step(S)
    values = [method.value(S, F)]
    for share in np.random.default_rng(seed).uniform(size=4):
        S = (1 - share) * S + share * method.s_step(F)
        values.append(method.value(S, F))
        F = method.f_step(S)
        values.append(method.value(S, F))
    assert never_rises(values)


@few
@cases
def test_each_half_step_is_the_best_there_is(seed, n, k, smoothness, weight):
    method, rng = joint(seed, n, k, smoothness, weight), np.random.default_rng(seed)
    S, F = random_graph(rng, n), random_scores(rng, n)
    best_S, best_F = method.s_step(F), method.f_step(S)
    np.testing.assert_allclose(best_S.sum(axis=1), 1.0)
    least_S, least_F = method.value(best_S, F), method.value(S, best_F)
    for _ in range(5):
        share = rng.uniform(0, 1)
        other_S = (1 - share) * best_S + share * random_graph(rng, n)
        other_F = (1 - share) * best_F + share * random_scores(rng, n)
        assert never_rises([method.value(other_S, F), least_S])
        assert never_rises([method.value(S, other_F), least_F])


@few
@cases
def test_the_part_of_the_queries_is_linear_in_the_graph(seed, n, k, smoothness, weight):
    """It is ``lambda sum_ij s_ij ||F_i - F_j||^2`` and what S has no part in."""
    method, rng = joint(seed, n, k, smoothness, weight), np.random.default_rng(seed)
    S, F = random_graph(rng, n), random_scores(rng, n)
    rest = (F**2).sum() - n
    expected = smoothness * (S * collective_reference.lifts(F)).sum() + rest
    np.testing.assert_allclose(method.queries(S, F), expected, rtol=1e-9)


@few
@cases
def test_at_the_best_scores_it_is_concave_in_the_graph(seed, n, k, smoothness, weight):
    """Least values of linear functions: an S-step minimises a function that lies above."""
    method, rng = joint(seed, n, k, smoothness, weight), np.random.default_rng(seed)
    one, other = random_graph(rng, n), random_graph(rng, n)

    def least(S):
        return method.queries(S, method.f_step(S))

    inverse = np.linalg.inv(np.eye(n) + 2 * smoothness * reference.laplacian(one))
    np.testing.assert_allclose(least(one), np.sum(1 / np.diag(inverse) - 1), rtol=1e-8)
    share = rng.uniform()
    between = least((1 - share) * one + share * other)
    ends = (1 - share) * least(one) + share * least(other)
    assert never_rises([between, ends])
    above = method.queries(other, method.f_step(one))
    assert never_rises([above, least(other)])


def alternated(method, n_rounds):
    """A graph and its scores after some rounds of exact half-steps."""
    S = method.first
    F = method.f_step(S)
    for _ in range(n_rounds):
        S = method.s_step(F)
        F = method.f_step(S)
    return S, F


def test_it_falls_where_there_is_something_to_learn():
    method = joint(0, 16, 3, 1.0, 10.0)
    before, after = (method.value(*alternated(method, n)) for n in (0, 4))
    assert after < before


def test_the_closed_form_can_raise_it():
    """It chooses the gamma_i again, which the objective holds fixed."""
    method = joint(0, 16, 3, 1.0, 10.0)
    S, F = alternated(method, 1)
    lifted = method.d + method.weight * method.smoothness * collective_reference.lifts(F)
    closed = np.array([reference.closed_form(lifted[i], method.others[i], 3)[0] for i in range(16)])
    assert method.value(closed, F) > 1.1 * method.value(S, F)


def test_profiles_of_length_one_can_raise_it():
    """Scaled rows are no longer the scores that the objective speaks of."""
    method = joint(2, 16, 3, 30.0, 10.0)
    S, F = alternated(method, 2)
    scaled = F / np.linalg.norm(F, axis=1, keepdims=True)
    assert method.value(method.s_step(scaled), F) > 1.001 * method.value(S, F)
