"""Rows that are known only near a query: what borders on them is bounded, and fetched if needed."""

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankfold.solvers import (
    Boundary,
    Effort,
    FetchingSolver,
    Part,
    RegionSolver,
    System,
)


def random_weights(seed, n, density):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return weights + weights.T


def part_of(weights, known):
    """Return the rows of known points and what borders on them."""
    known = np.asarray(known, dtype=np.int64)
    others = np.setdiff1d(np.arange(len(weights)), known)
    border = others[weights[np.ix_(others, known)].any(axis=1)]
    points = np.concatenate([known, border])
    rows = weights[np.ix_(points, points)]
    rows[len(known) :, len(known) :] = 0.0  # an edge between two others is not known
    return Part(points, len(known), sparse.csr_array(rows))


def matrix_of(couplings, margin):
    return np.diag(margin + couplings.sum(axis=1)) - couplings


def exact(couplings, margin, boundary):
    return reference.held(matrix_of(couplings, margin), *boundary[:4], *boundary[5:7])


def all_scores(solution, n):
    scores = np.zeros(n)
    scores[solution.points] = solution.scores
    return scores


def best_of(scores, boundary, top):
    """Return the points with the best scores outside of the query."""
    candidates = np.setdiff1d(np.arange(len(scores)), boundary.left_out)
    return candidates[np.lexsort([candidates, -scores[candidates]])][:top]


class DenseRows:
    """Rows of a dense matrix that are fetched, and counted."""

    def __init__(self, weights):
        self.weights, self.known, self.n_fetches = weights, [], 0
        self.n_alive = len(weights)

    def begin(self):
        self.known, self.n_fetches = [], 0
        return self

    def fetch(self, points):
        assert len(set(points)) == len(points)
        assert not set(points) & set(self.known)
        self.known += list(points)
        self.n_fetches += 1
        return part_of(self.weights, self.known)


def query(rng, n, n_clamped, n_pulled, lowest):
    """Return some points that are held, and an unseen vector among its neighbours."""
    clamped = rng.choice(n, n_clamped, replace=False)
    values = rng.uniform(lowest, 1, n_clamped)
    pulled = rng.choice(n, n_pulled, replace=False)
    pull = rng.uniform(0, 3, n_pulled)
    own = rng.uniform(lowest, 1)
    return Boundary(pulled, pull * own, clamped, values, clamped, pulled, pull, 1.0, lowest)


@st.composite
def partial_problems(draw):
    """Return a whole system, a query, and points whose rows are known, those of the query first."""
    seed, n = draw(st.integers(0, 10_000)), draw(st.integers(2, 40))
    rng = np.random.default_rng(seed)
    couplings = draw(st.sampled_from([0.02, 2.0, 200.0])) * random_weights(seed, n, 0.15)
    margin, scale = np.ones(n), np.ones(n)
    if draw(st.booleans()):
        margin, scale = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n)
    n_clamped, n_pulled = draw(st.sampled_from([(1, 0), (2, 0), (0, 2), (1, 2)]))
    boundary = query(rng, n, n_clamped, n_pulled, draw(st.sampled_from([-1.0, 0.0])))
    boundary = boundary._replace(size=max(1.0, 1 / margin.min()))
    first = np.union1d(boundary.clamped, boundary.pulled)
    more = rng.permutation(np.setdiff1d(np.arange(n), first))
    known = np.concatenate([first, more[: draw(st.integers(0, n))]])
    return couplings, margin, scale, boundary, known


def solve_part(problem, **rule):
    """Return the solver of a part, the query in its numbers, and the part."""
    couplings, margin, scale, boundary, known = problem
    part = part_of(couplings, known)
    # The sum of a row that is not known goes unused: margins are those of the whole graph.
    system = System(part.weights, margin[part.points], scale[part.points])
    solver = RegionSolver(system, n_rows=part.n_rows, **rule)
    number = np.empty(len(margin), dtype=np.int64)
    number[part.points] = np.arange(len(part.points))
    local = boundary._replace(
        points=number[boundary.points],
        clamped=number[boundary.clamped],
        left_out=number[boundary.left_out],
        pulled=number[boundary.pulled],
    )
    return solver, local, part


def check_part(problem, effort, **rule):
    couplings, margin, scale, boundary, _ = problem
    n, true = len(margin), scale * exact(couplings, margin, boundary)
    solver, local, part = solve_part(problem, **rule)
    # Points far from all that is known count for the bound as well.
    largest = scale.max() / solver.arrays.largest_scale
    reached, lacking = solver.reach(local, effort._replace(top=None))
    x = all_scores(reached, len(part.points)) / solver.arrays.scale
    scores = np.zeros(n)
    scores[part.points] = all_scores(reached, len(part.points))
    assert np.abs(scores - true).max() <= reached.bound * largest + 1e-13
    assert not scores[part.points[part.n_rows :]].any()
    assert not reached.certified
    assert reached.stopped in ("tolerance", "budget")
    if reached.stopped == "tolerance":
        assert reached.bound <= 2 * effort.tol
    elif effort.budget is None:
        assert part.n_rows < len(part.points)
        tol = effort.tol / solver.arrays.largest_scale
        assert np.abs(lacking / margin[part.points[part.n_rows :]]).max() > tol
        expected = part.weights[part.n_rows :].toarray() @ x
        np.testing.assert_allclose(lacking, expected, atol=1e-9)
    (solution,) = solver.solve([local], [effort])
    errors = np.abs(solution.scores - true[part.points[solution.points]])
    assert errors.max(initial=0.0) <= solution.bound + 1e-13
    assert solution.certified == (solution.stopped == "proven")
    if solution.certified:
        members = part.points[solution.points[: effort.top]]
        others = np.setdiff1d(np.arange(n), [*members, *boundary.left_out])
        assert true[members].min() > true[others].max(initial=-np.inf)


@settings(deadline=None, max_examples=150)
@given(
    partial_problems(),
    st.sampled_from([1e-1, 1e-3, 1e-6]),
    st.integers(1, 5),
    st.sampled_from([None, 1, 3, 10]),
)
def test_the_bound_holds_beyond_the_rows_that_are_known(problem, tol, top, budget):
    check_part(problem, Effort(tol, top, budget))


@pytest.mark.parametrize("patience", [0.0, 0.001])
@pytest.mark.parametrize("whole_share", [0.0, np.inf])
def test_gradients_come_to_an_end_where_rows_are_missing(patience, whole_share):
    for seed in range(10):
        couplings = 20 * random_weights(seed, 30, 0.2)
        boundary = Boundary(clamped=np.array([0]), values=np.ones(1), left_out=np.array([0]))
        problem = couplings, np.ones(30), np.ones(30), boundary, np.arange(10)
        check_part(problem, Effort(1e-6, 3), patience=patience, whole_share=whole_share)


def test_much_work_comes_to_an_end_where_rows_are_missing():
    """So much is pushed that gradients take over, on more than the share for the whole graph."""
    couplings = 20 * random_weights(0, 56, 0.3)
    boundary = Boundary(clamped=np.array([0]), values=np.ones(1), left_out=np.array([0]))
    problem = couplings, np.ones(56), np.ones(56), boundary, np.arange(50)
    check_part(problem, Effort(1e-7, 3))


@st.composite
def distant_problems(draw):
    seed, n = draw(st.integers(0, 10_000)), draw(st.integers(2, 60))
    rng = np.random.default_rng(seed)
    weights = random_weights(seed, n, draw(st.sampled_from([0.03, 0.1, 0.3])))
    n_clamped, n_pulled = draw(st.sampled_from([(1, 0), (2, 0), (0, 2), (1, 2)]))
    n_pulled = min(n_pulled, n)
    boundary = query(rng, n, n_clamped, n_pulled, draw(st.sampled_from([-1.0, 0.0])))
    return weights, draw(st.sampled_from([0.02, 2.0, 20.0])), boundary


@settings(deadline=None, max_examples=100)
@given(distant_problems(), st.sampled_from([1e-2, 1e-4, 1e-7]))
def test_rows_are_fetched_until_every_score_is_within_the_tolerance(problem, tol):
    weights, coupling, boundary = problem
    source = DenseRows(weights)
    (solution,) = FetchingSolver(source, coupling).solve([boundary], [Effort(tol)])
    true = exact(coupling * weights, np.ones(len(weights)), boundary)
    error = np.abs(all_scores(solution, len(weights)) - true).max()
    assert error <= solution.bound + 1e-13
    assert solution.stopped == "tolerance"
    assert solution.bound <= 2 * tol
    assert len(source.known) <= len(weights)


@settings(deadline=None, max_examples=150)
@given(
    distant_problems(),
    st.sampled_from([1e-2, 1e-7]),
    st.integers(1, 60),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_no_more_rows_are_fetched_than_the_budget_allows(problem, tol, budget, top):
    weights, coupling, boundary = problem
    n, source = len(weights), DenseRows(weights)
    (solution,) = FetchingSolver(source, coupling).solve([boundary], [Effort(tol, top, budget)])
    true = exact(coupling * weights, np.ones(n), boundary)
    scores = all_scores(solution, n)
    n_first = len(np.union1d(boundary.clamped, boundary.pulled))
    errors = np.abs(solution.scores - true[solution.points])
    assert errors.max(initial=0.0) <= solution.bound + 1e-13
    assert not solution.complete or np.abs(scores - true).max() <= solution.bound + 1e-13
    assert len(source.known) <= max(budget, n_first)
    assert np.isin(np.flatnonzero(scores), source.known).all()
    assert solution.stopped in ("proven", "tolerance", "budget")
    assert solution.certified == (solution.stopped == "proven")
    if solution.stopped == "budget":
        assert len(source.known) >= min(budget, n)
    elif solution.stopped == "tolerance":
        assert solution.bound <= 2 * tol
    else:
        members = np.setdiff1d(solution.points, boundary.left_out)
        others = np.setdiff1d(np.arange(n), [*members, *boundary.left_out])
        assert len(members) == top
        assert true[members].min() > true[others].max(initial=-np.inf)


def test_far_rows_are_not_fetched_and_few_exchanges_are_needed():
    n = 400
    weights = np.diag(np.ones(n - 1), 1)
    source = DenseRows(weights + weights.T)
    boundary = Boundary(clamped=np.array([200]), values=np.ones(1), left_out=np.array([200]))
    (solution,) = FetchingSolver(source, 1.0).solve([boundary], [Effort(1e-4)])
    assert solution.stopped == "tolerance"
    assert len(source.known) < 40
    assert source.n_fetches <= len(source.known)
    (unlimited,) = FetchingSolver(source, 1.0).solve([boundary], [Effort(1e-4, None, n)])
    np.testing.assert_array_equal(unlimited.points, solution.points)
    np.testing.assert_array_equal(unlimited.scores, solution.scores)


def test_several_distant_queries_are_answered_one_by_one():
    weights = random_weights(0, 30, 0.2)
    solver = FetchingSolver(DenseRows(weights), 2.0)
    boundaries = [query(np.random.default_rng(i), 30, 1, i % 3, 0.0) for i in range(4)]
    efforts = [Effort(1e-6, 3), Effort(1e-6), Effort(1e-3), Effort(1e-6, 3, 5)]
    together = list(solver.solve(boundaries, efforts))
    for boundary, effort, solution in zip(boundaries, efforts, together, strict=True):
        (alone,) = solver.solve([boundary], [effort])
        np.testing.assert_array_equal(solution.points, alone.points)
        np.testing.assert_array_equal(solution.scores, alone.scores)
        assert solution.stopped == alone.stopped
