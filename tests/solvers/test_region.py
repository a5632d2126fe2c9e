"""The region solver: every bound holds, certificates are true, and only what is near is touched."""

import pickle

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from interpreted import certificate, gradients, levels, push
from scipy import sparse
from scipy.sparse.linalg import spsolve

from rankfold.errors import InputError
from rankfold.parallel import Stop, StoppedError
from rankfold.solvers import Boundary, Effort, RegionSolver, System
from rankfold.solvers import gradients as compiled_gradients
from rankfold.solvers import levels as compiled_levels
from rankfold.solvers.arrays import (
    NEEDS_GRADIENTS,
    NOT_BEGUN,
    PAUSED,
    Batch,
    Found,
    Memory,
    term_weights,
)

EPS = np.finfo(float).eps
PATIENCE = st.sampled_from([0.0, 0.5, 1.2, np.inf])
PAUSES = st.sampled_from([1.0, 100.0, 1e8])
WHOLE_SHARES = st.sampled_from([0.0, 0.25, 0.8, np.inf])
BUDGET = [(2**62, 2**62)]
NUMBERS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.5000001, 2.0, 7.0, 1e9]), min_size=1)
RHOS = [0.01, 0.3, 0.65, 0.85, 0.95, 0.999]


def random_graph(seed, n, density=0.25):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return sparse.csr_array(weights + weights.T)


def line(n):
    return sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()


def pinned(point, value=1.0):
    return Boundary(clamped=np.array([point]), values=np.array([value]), left_out=np.array([point]))


def given_at(point, rhs=1.0):
    return Boundary(np.array([point]), np.array([rhs]))


def stored(solver):
    """Return the couplings densely, as they are stored."""
    arrays, n_points = solver.arrays, len(solver.arrays.inverse)
    ends = np.concatenate([[0], arrays.rows[1::2]])
    couplings = (arrays.weights, arrays.indices, ends)
    return sparse.csr_array(couplings, shape=(n_points, n_points)).toarray().astype(float)


def matrix_of(solver):
    """Return A densely, for the weights as they are stored."""
    couplings = stored(solver)
    return np.diag(solver.arrays.margin + couplings.sum(axis=1)) - couplings


def in_margins(solver, boundary):
    """Return A and b with rows divided by their margins, as residuals are measured."""
    margin, b = solver.arrays.margin, np.zeros(len(solver.arrays.inverse))
    np.add.at(b, boundary.points, boundary.rhs)
    return matrix_of(solver) / margin[:, None], b / margin


def exact(solver, boundary):
    return reference.held(matrix_of(solver), *boundary[:4], *boundary[5:7])


def exact_scores(solver, boundary):
    return solver.arrays.scale * exact(solver, boundary)


def all_scores(solution, n):
    scores = np.zeros(n)
    scores[solution.points] = solution.scores
    return scores


def best(solver, boundary, top, tol=1e-6, budget=None):
    (solution,) = solver.solve([boundary], [Effort(tol, top, budget)])
    return solution


def slack(solver, boundary):
    """Return what the dense solution itself may be off by."""
    return 1e-13 * solver.arrays.largest_scale * boundary.size


def without_scale(solver):
    ones = np.ones(len(solver.arrays.inverse))
    solver.arrays = Memory(solver.arrays.given._replace(scale=ones, largest_scale=1.0))
    return solver


def set_up(solver, boundary):
    """Return a workspace with a query in it, and the number of touched points."""
    work = solver._workspaces.take()
    return work, push.begin(solver.arrays, work, query_of(boundary))


def query_of(boundary):
    return push.query_of(Batch.of([boundary], [1], [(1, 1)]), 0)


def push_below(solver, work, n, level, relaxation=1.0):
    """Push sweep by sweep until no residual is above the level; return points and steps."""
    steps = 0
    while n_queued := push.gather(solver.arrays, work, n, level)[0]:
        n, _, _ = push.push(solver.arrays, work, n, n_queued, relaxation)
        steps += n_queued
    return n, steps


def check_certified(solution, true, boundary, top):
    """The points in front are the best, if that is said to be proven."""
    if solution.certified:
        members = solution.points[:top]
        others = np.setdiff1d(np.arange(len(true)), [*members, *boundary.left_out])
        others = np.setdiff1d(others, boundary.clamped)
        assert len(np.unique(members)) == top
        assert not np.isin(members, [*boundary.left_out, *boundary.clamped]).any()
        assert true[members].min() > true[others].max(initial=-np.inf)
        assert np.all(np.diff(solution.scores[:top]) <= 0)


@st.composite
def systems(draw, loops=True):
    seed, n = draw(st.integers(0, 10_000)), draw(st.integers(3, 40))
    rng, weights = np.random.default_rng(seed), random_graph(seed, n)
    if loops and draw(st.booleans()):
        weights = weights + sparse.diags_array(rng.uniform(size=n)).tocsr()
    if draw(st.booleans()):
        weights = weights.astype(np.float32)
    beta = draw(st.sampled_from([0.02, 0.9, 2.0, 20.0, 200.0]))
    kind = draw(st.sampled_from(["ran", "pagerank", "manifold", "any"]))
    if kind == "ran":
        return System.ran(weights, beta / 2), rng
    if kind in ("pagerank", "manifold"):
        return System.walk(weights, beta / (1 + beta), 1.0 if kind == "pagerank" else 0.5), rng
    return System(beta * weights, rng.uniform(0.1, 2, n), rng.uniform(0.5, 2, n)), rng


@st.composite
def problems(draw, loops=True):
    system, rng = draw(systems(loops))
    solver = RegionSolver(system, patience=draw(PATIENCE), whole_share=draw(WHOLE_SHARES))
    solver.rule = solver.rule._replace(pause=draw(PAUSES))
    n, lowest = system.n_points, draw(st.sampled_from([-1.0, 0.0]))
    points = rng.choice(n, draw(st.integers(1, 3)))
    rhs = rng.uniform(lowest or 0.1, 1, len(points)) * system.margin[points]
    clamped = rng.choice(n, draw(st.integers(0, 2)), replace=False)
    values = rng.uniform(lowest, 1, len(clamped))
    pulled = rng.choice(n, draw(st.integers(0, 3)))
    pull = rng.uniform(0, 3, len(pulled)) * system.margin[pulled]
    b = np.zeros(n)
    np.add.at(b, points, rhs)
    size = max(np.abs(b / system.margin).max(), np.abs(values).max(initial=0.0))
    return solver, Boundary(
        points, rhs, clamped, values, clamped, pulled, pull, size, size * lowest
    )


@examples(200)
@given(problems(), st.integers(1, 10), st.sampled_from([1e-2, 1e-4, 1e-7]))
def test_every_score_is_within_the_bound_and_the_certificate_is_true(problem, top, tol):
    solver, boundary = problem
    n, tol = len(solver.arrays.inverse), tol * solver.arrays.largest_scale
    true, rounding = exact_scores(solver, boundary), slack(solver, boundary)
    reached = solver.reach(boundary, Effort(tol))
    errors = np.abs(all_scores(reached, n) - true)
    assert errors.max() <= reached.bound + rounding
    assert reached.bound <= 1.2 * tol
    assert reached.stopped == "tolerance"
    solution = best(solver, boundary, top, tol)
    errors = np.abs(solution.scores - true[solution.points])
    assert errors.max(initial=0.0) <= solution.bound + rounding
    check_certified(solution, true, boundary, top)
    assert solution.stopped == ("proven" if solution.certified else "tolerance")
    assert solution.certified or solution.bound <= 1.2 * tol


@examples(200)
@given(problems(), st.integers(1, 10), st.sampled_from([1e-1, 1e-3, 1e-7]), st.data())
def test_with_any_budget_every_point_is_within_the_bound(problem, top, tol, data):
    solver, boundary = problem
    n = len(solver.arrays.inverse)
    budget = data.draw(st.integers(1, n), label="budget")
    tol *= solver.arrays.largest_scale
    true, rounding = exact_scores(solver, boundary), slack(solver, boundary)
    reached = solver.reach(boundary, Effort(tol, None, budget))
    scores = all_scores(reached, n)
    assert np.abs(scores - true).max() <= reached.bound + rounding
    scored = np.setdiff1d(np.flatnonzero(scores), boundary.clamped)
    assert len(scored) <= budget
    assert reached.stopped in ("tolerance", "budget")
    assert not reached.certified
    solution = best(solver, boundary, top, tol, budget)
    errors = np.abs(solution.scores - true[solution.points])
    assert errors.max(initial=0.0) <= solution.bound + rounding
    scored = np.setdiff1d(solution.points[solution.scores != 0], boundary.clamped)
    assert solution.stopped != "budget" or len(scored) <= budget
    assert solution.stopped in ("proven", "tolerance", "budget")
    assert solution.certified == (solution.stopped == "proven")
    check_certified(solution, true, boundary, top)
    for one in (reached, solution):
        assert one.stopped != "tolerance" or one.bound <= 1.2 * tol


@examples(200)
@given(problems(), st.integers(1, 10), st.data())
def test_a_reserve_is_the_most_that_is_solved_for_and_bounds_still_hold(problem, top, data):
    solver, boundary = problem
    n = len(solver.arrays.inverse)
    budget, reserve = (data.draw(st.integers(1, n), label=name) for name in ("budget", "reserve"))
    true, rounding = exact_scores(solver, boundary), slack(solver, boundary)
    effort = Effort(1e-7 * solver.arrays.largest_scale, top, budget, reserve)
    (solution,) = solver.solve([boundary], [effort])
    errors = np.abs(solution.scores - true[solution.points])
    assert errors.max(initial=0.0) <= solution.bound + rounding
    check_certified(solution, true, boundary, top)
    scored = np.setdiff1d(solution.points[solution.scores != 0], boundary.clamped)
    assert solution.stopped != "budget" or len(scored) <= budget + reserve


def test_a_region_grows_on_only_where_the_end_of_the_top_is_in_doubt():
    """All points of a ring around a middle are alike, so that any of them may be the last."""
    ring = sparse.diags_array([np.ones(399), np.ones(399)], offsets=[-1, 1]).tolil()
    ring[0, 399] = ring[399, 0] = 1.0
    spokes = np.full((400, 1), 0.01) + 1e-6 * np.arange(400)[:, None]
    weights = sparse.block_array([[ring, spokes], [spokes.T, None]]).tocsr()
    doubtful, clear = (RegionSolver(System.ran(graph, 1.0)) for graph in (weights, line(401)))
    for solver, point, grows in ((doubtful, 400, True), (clear, 200, False)):
        short, longer = (
            next(iter(solver.solve([pinned(point)], [Effort(1e-9, 5, 20, reserve)])))
            for reserve in (0, 100)
        )
        assert (longer.n_iter > short.n_iter) == grows
        assert longer.bound <= short.bound


@examples(60)
@given(problems(), st.integers(1, 10), st.data())
def test_kernels_stay_inside_of_their_arrays(problem, top, data):
    """NumPy checks every index where Python runs them."""
    solver, boundary = problem
    n = len(solver.arrays.inverse)
    budget = data.draw(st.none() | st.integers(1, n), label="budget")
    effort = Effort(1e-7 * solver.arrays.largest_scale, top, budget, reserve=n // 4)
    true, rounding = exact_scores(solver, boundary), slack(solver, boundary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_levels, "answer", levels.answer)
        patch.setattr(compiled_gradients, "polish", gradients.polish)
        patch.setattr(compiled_gradients, "solve_whole", gradients.solve_whole)
        (solution,) = solver.solve([boundary], [effort])
    errors = np.abs(solution.scores - true[solution.points])
    assert errors.max(initial=0.0) <= solution.bound + rounding
    check_certified(solution, true, boundary, top)


@pytest.mark.parametrize("seed", [16, 28, 31])
def test_a_region_that_grows_on_copies_its_rows_anew(seed):
    """The rows of a region that was solved lie where others had been copied before."""
    n, share, points, rng = 17, 1 - 1e-6, np.arange(3), np.random.default_rng(seed)
    weights = np.triu(rng.random((n, n)) < 0.3, 1) * 10 ** rng.uniform(-4, 0, (n, n))
    system = System.walk(sparse.csr_array(weights + weights.T), share, 1.0)
    solver, rhs = RegionSolver(system, patience=0.0), np.full(3, 1 - share)
    size = float((rhs / system.margin[points]).max())
    solver.rule = solver.rule._replace(pause=1e4)
    query = Boundary(points, rhs, left_out=points, size=size)
    (solution,) = solver.solve([query], [Effort(1e-11, 6, 12, reserve=4)])
    assert solution.bound <= size


def test_gradients_end_where_what_is_left_is_too_small_for_its_square():
    weights = sparse.csr_array(([1.0, 1.0], ([2, 4], [4, 2])), shape=(7, 7))
    system = System.walk(weights, 0.6502638933403001, 1.0)
    solver = RegionSolver(system, patience=0.0, whole_share=0.38)
    points, rhs = np.array([5, 2]), np.array([0.25926897040981056, 0.25939360476907397])
    boundary = Boundary(points, rhs, left_out=points, size=0.7416838005275476)
    (solution,) = solver.solve([boundary], [Effort(1e-12, top=5)])
    scores = np.zeros(7)
    scores[solution.points] = solution.scores
    assert np.abs(scores - exact(solver, boundary)).max() <= solution.bound


@pytest.mark.parametrize("top", [3, None])
@pytest.mark.parametrize("whole_share", [0.0, np.inf])
def test_a_query_is_stopped_inside_of_compiled_code(top, whole_share):
    system = System.ran(random_graph(4, 40), 25.0)
    solver, stop = RegionSolver(system, patience=0.0, whole_share=whole_share), Stop()
    query, effort = pinned(0), Effort(1e-12, top)
    (before,) = solver.solve([query], [effort])
    stop.set()
    work, batch = solver._workspaces.take(), Batch.of([query], [3], BUDGET)
    work.replace("stop", stop.flag)
    progress, found = NOT_BEGUN, Found.empty(1, 3, 1)
    for _ in range(3):
        settings = progress, 1e-12, solver.rule
        _, progress = compiled_levels.answer(
            solver.arrays, work, batch, found, 0, *settings, keeps=False
        )
        assert progress.state == PAUSED
    progress = progress._replace(state=NEEDS_GRADIENTS, whole=whole_share == 0.0)
    given = solver.arrays, work, batch, 0, progress, 1e-12
    whole = compiled_gradients.solve_whole
    progress = whole(*given, 1e9) if progress.whole else compiled_gradients.polish(*given)
    assert progress.state == PAUSED
    assert progress.n_steps == 0
    with stop.stoppable(), pytest.raises(StoppedError):
        list(solver.solve([query], [effort]))
    (after,) = solver.solve([query], [effort])
    np.testing.assert_array_equal(after.scores, before.scores)


def test_a_value_that_is_known_to_be_too_high_does_not_come_first():
    triangle = sparse.csr_array([[0, 0.088, 0.077], [0.088, 0, 0.194], [0.077, 0.194, 0]])
    solution = best(RegionSolver(System.coupled(triangle)), pinned(0), 1, 1e-7)
    assert solution.certified
    assert solution.points.tolist() == [1, 0]


@examples(50)
@given(problems(), st.sampled_from([1e-2, 1e-7]), st.integers(0, 5))
def test_a_budget_for_all_points_is_no_limit(problem, tol, more):
    solver, boundary = problem
    budget = len(solver.arrays.inverse) + more
    for top in (None, 1, 5):
        unlimited, limited = (best(solver, boundary, top, tol, some) for some in (None, budget))
        np.testing.assert_array_equal(limited.points, unlimited.points)
        np.testing.assert_array_equal(limited.scores, unlimited.scores)
        assert limited.bound == unlimited.bound
        assert limited.stopped == unlimited.stopped


def test_a_larger_budget_brings_scores_closer():
    solver, boundary = RegionSolver(System.ran(line(1_000), 50.0)), pinned(500)
    true = exact(solver, boundary)
    errors, bounds = [], []
    for budget in (10, 30, 90, 270):
        solution = solver.reach(boundary, Effort(1e-9, None, budget))
        errors.append(np.abs(all_scores(solution, 1_000) - true).max())
        bounds.append(solution.bound)
        assert solution.stopped == "budget"
        assert np.count_nonzero(solution.scores) <= budget + 1
    assert errors == sorted(errors, reverse=True)
    assert bounds == sorted(bounds, reverse=True)


@examples(60)
@given(problems(loops=False), st.sampled_from([1.0, 1.4]), st.sampled_from([0.3, 1e-2]))
def test_push_is_what_the_reference_does(problem, relaxation, level):
    solver, boundary = problem
    points = np.unique(boundary.points)
    boundary = Boundary(points, boundary.rhs[: len(points)])
    work, n = set_up(solver, boundary)
    n, steps = push_below(solver, work, n, level, relaxation)
    A, b = in_margins(solver, boundary)
    residual = work.residual / solver.arrays.margin
    terms = np.abs(A) @ np.abs(work.value) + np.abs(b)  # whose sums a residual is
    rounding = 4 * EPS * max(np.diag(A).max(), terms.max())
    np.testing.assert_allclose(residual, b - A @ work.value, atol=(1 + steps) * rounding)
    n_queued, above, below, beyond = push.gather(solver.arrays, work, n, level)
    assert n_queued == beyond == 0
    assert max(above, below) == np.abs(residual).max() <= level
    x, r, by_reference = reference.push(A, b, boundary.points, level, relaxation)
    assert steps == by_reference
    np.testing.assert_allclose(work.value, x, atol=1e-12)
    np.testing.assert_allclose(residual, r, atol=1e-12)


@examples(60)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 5.0, 50.0]))
def test_gradients_are_those_of_the_reference(seed, beta):
    rng = np.random.default_rng(seed)
    weights, margin = random_graph(seed, 12, 0.6) + line(12), rng.uniform(0.1, 2, 12)
    solver = RegionSolver(System(beta * weights, margin, np.ones(12)))
    b = margin * rng.uniform(size=12)
    work, n = set_up(solver, Boundary(np.arange(12), b))
    n_touched = gradients.copy_rows(solver.arrays, work, n, 0)
    square = gradients.set_out(solver.arrays, work, n, n_touched)
    rows = work.ends, 1, work.columns, work.weights
    n_steps, _ = gradients.advance(*rows, solver.arrays, work, n, square, 0.05)
    gradients.settle(work, n)
    A = matrix_of(solver)
    np.testing.assert_allclose(A, A.T, atol=1e-12)
    by_reference = reference.conjugate_gradients(A, b, np.zeros(12), n_steps)
    np.testing.assert_allclose(work.value, by_reference, atol=1e-9)
    residual = b - A @ work.value
    np.testing.assert_allclose(work.residual, residual, atol=1e-9)
    assert np.abs(residual / margin).max() <= 0.05 + 1e-9


@examples(60)
@given(problems(), st.sampled_from([0.3, 1e-2]))
def test_residuals_are_measured_afresh(problem, level):
    solver, boundary = problem
    work, n = set_up(solver, boundary)
    n, steps = push_below(solver, work, n, level, 1.4)
    pushed = work.residual.copy()
    push.measure(solver.arrays, work, n, query_of(boundary))
    free = np.setdiff1d(np.arange(len(pushed)), boundary.clamped)
    x = work.value.copy()
    x[boundary.clamped] = boundary.values
    b, pull = np.zeros(len(x)), np.zeros(len(x))
    np.add.at(b, boundary.points, boundary.rhs)
    np.add.at(pull, boundary.pulled, boundary.pull)
    residual = b - matrix_of(solver) @ x - pull * x
    rounding = 4 * EPS * (1 / solver.arrays.inverse + pull).max() * boundary.size * (steps + 50)
    np.testing.assert_allclose(work.residual[free], residual[free], atol=rounding)
    np.testing.assert_allclose(pushed[free], residual[free], atol=rounding)


@examples(100)
@given(problems(loops=False), st.integers(1, 5), st.sampled_from([0.3, 1e-1, 1e-3, 1e-6]))
def test_certificate_is_that_of_the_reference(problem, top, level):
    solver, boundary = problem
    solver, boundary = without_scale(solver), Boundary(boundary.points, boundary.rhs)
    work, n = set_up(solver, boundary)
    n, _ = push_below(solver, work, n, level)
    last, found = certificate.best_values(solver.arrays, work, top, 0.0)
    if found <= top:
        return
    cut, gap = certificate.cut_behind(solver.arrays, work, top, last, level)
    if gap == 0.0:
        return
    A, b = in_margins(solver, boundary)
    by_reference = reference.cut_behind(A, b, work.value, top, level)
    np.testing.assert_allclose((cut, gap), by_reference, rtol=0, atol=1e-12)
    above, below = certificate.bounds(solver.arrays, work, n, 0.0)
    certain = certificate.is_certain(solver.arrays, work, top, cut, above, below, 0.0)
    by_reference = reference.certain_top(A, b, work.value, top, cut)
    assert (certain and cut > above) == by_reference
    judged, certain, _ = certificate.judge(solver.arrays, work, top, 0.0, above, below, 0.0)
    assert not certain or reference.certain_top(A, b, work.value, top, judged)


@examples(60)
@given(problems(loops=False), st.sampled_from([0.3, 1e-1, 1e-3]))
def test_known_errors_are_steps_of_jacobi(problem, level):
    solver, boundary = problem
    work, n = set_up(solver, Boundary(boundary.points, boundary.rhs))
    push_below(solver, work, n, level)
    A = matrix_of(solver)
    for steps, error in ((2, certificate.error_twice), (3, certificate.error_thrice)):
        found = np.array([error(solver.arrays, work, np.int32(i)) for i in range(len(A))])
        known, share = reference.known_errors(A, work.residual, steps)
        np.testing.assert_allclose(found[:, 0], known, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[:, 1], share, rtol=0, atol=1e-12)


@examples(60)
@given(problems(), st.sampled_from([0.3, 1e-1, 1e-3]))
def test_true_errors_lie_in_what_is_known_of_them(problem, level):
    solver, boundary = problem
    work, n = set_up(solver, boundary)
    n, _ = push_below(solver, work, n, level)
    above, below = certificate.bounds(solver.arrays, work, n, 0.0)
    errors = exact(solver, boundary) - work.value
    for point in np.setdiff1d(np.arange(len(errors)), boundary.clamped):
        for error in (certificate.error_twice, certificate.error_thrice):
            known, share = error(solver.arrays, work, np.int32(point))
            assert 0 <= share < 1
            assert errors[point] <= known + share * above + 1e-12
            assert errors[point] >= known - share * below - 1e-12


def test_long_rows_are_not_read_on_the_way_and_bounds_still_hold():
    n = 3 * certificate.LONG_ROW
    star = sparse.lil_array((n, n))
    star[0, 1:] = star[1:, 0] = np.linspace(0.5, 1.5, n - 1)
    solver = RegionSolver(System.ran(star.tocsr() + line(n), 0.25))
    work, reached = set_up(solver, given_at(5))
    reached, _ = push_below(solver, work, reached, 1e-3)
    above, below = certificate.bounds(solver.arrays, work, reached, 0.0)
    true = exact(solver, given_at(5)) - work.value
    for point in (1, 5, 100):
        known, share = certificate.error_thrice(solver.arrays, work, np.int32(point))
        deep = reference.known_errors(matrix_of(solver), work.residual, 3)
        assert share > deep[1][point]
        assert known - share * below <= true[point] <= known + share * above


@examples(50)
@given(problems(loops=False), st.sampled_from([0.1, 1e-2, 1e-3]))
def test_guesses_at_the_end_of_the_top_follow_chebyshev(problem, tol):
    solver, boundary = problem
    solver = without_scale(solver)
    work, n = set_up(solver, Boundary(boundary.points, boundary.rhs))
    n, _ = push_below(solver, work, n, tol)
    above, below = certificate.bounds(solver.arrays, work, n, 0.0)
    progress = NOT_BEGUN._replace(above=above, below=below)
    A, terms = matrix_of(solver), solver.rule.terms
    known = [reference.known_errors(A, work.residual, steps) for steps in (1, 2, 3)]
    (once, _), (twice, _), (thrice, share) = known
    error = terms[0] * once + terms[1] * (twice - once) + terms[2] * (thrice - twice)
    low, high, bound = thrice - share * below, thrice + share * above, max(above, below)
    error = np.clip(error, np.maximum(low, high - bound), np.minimum(high, low + bound))
    found = [
        levels.better_guess(solver.arrays, work, np.int32(i), progress, terms)
        for i in range(len(A))
    ]
    np.testing.assert_allclose(found, work.value + error, rtol=0, atol=1e-12)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_guesses_keep_to_the_bound_where_degrees_are_uneven(side):
    """A tree whose second ring gets more from outside, with residuals of both signs."""
    edges, rings, n = [], [[0]], 1
    for children, weight in ((40, 0.45), (40, 0.45), (1, 2.4), (8, 2.0)):
        ring = list(range(n, n + children * len(rings[-1])))
        edges += [(rings[-1][i // children], new, weight) for i, new in enumerate(ring)]
        rings, n = [*rings, ring], n + len(ring)
    i, j, weights = (np.array(column) for column in zip(*edges, strict=True))
    tree = sparse.coo_array((weights, (i, j)), shape=(n, n)).tocsr()
    system = System.ran(tree + tree.T, 0.5)
    solver = RegionSolver(system)
    work = solver._workspaces.take()
    work.residual[:] = -side
    work.residual[: rings[3][0]] = side
    error = spsolve(system.matrix.tocsc(), work.residual)[0]
    progress, terms = NOT_BEGUN._replace(above=1.0, below=1.0), term_weights(0.95)
    guess = levels.better_guess(solver.arrays, work, np.int32(0), progress, terms)
    assert abs(guess - error) <= 1.0


def test_many_ties_inside_the_top_are_proven():
    n_leaves = 2 * certificate.MOST_DOUBTFUL
    n = n_leaves + 3
    star = sparse.lil_array((n, n))
    star[0, 1 : n_leaves + 1] = 1.0
    star[n_leaves, n_leaves + 1] = star[n_leaves + 1, n_leaves + 2] = 1e-3
    solver = RegionSolver(System.ran((star + star.T).tocsr(), 0.5))
    solution = best(solver, pinned(0), n_leaves)
    assert solution.certified
    assert set(solution.points[:n_leaves]) == set(range(1, n_leaves + 1))


def test_a_workspace_is_left_clean():
    solver = RegionSolver(System.ran(random_graph(0, 30), 1.0))
    boundary = Boundary(
        np.array([3]),
        np.array([1.0]),
        clamped=np.array([5]),
        values=np.array([0.5]),
        left_out=np.array([5, 6]),
    )
    pulling = boundary._replace(pulled=np.array([4, 4]), pull=np.array([1.0, 2.0]))
    first = solver.reach(boundary, Effort(1e-6))
    pulled = solver.reach(pulling, Effort(1e-6))
    certain = best(solver, boundary, 3)
    within = best(solver, boundary, 3, tol=0.5)
    stopped = best(solver, pulling, 3, budget=2)
    again = solver.reach(boundary, Effort(1e-6))
    assert certain.certified
    assert not within.certified
    assert stopped.stopped == "budget"
    np.testing.assert_array_equal(first.scores, again.scores)
    assert not np.array_equal(first.scores, pulled.scores)
    assert len(solver._workspaces._idle) == 1
    work = solver._workspaces._idle[0]
    assert not work.residual.any()
    assert not work.value.any()
    assert not work.marks.any()
    assert work.n_valued[0] == work.n_likely[0] == 0
    np.testing.assert_array_equal(work.inverse, solver.arrays.inverse)


@pytest.mark.parametrize("patience", [0.0, 1.2, np.inf])
@pytest.mark.parametrize("beta", [1.0, 100.0])
def test_touched_points_do_not_grow_with_the_database(patience, beta):
    touched = []
    for n in (2_000, 20_000):
        solver = RegionSolver(System.ran(line(n), beta / 2), patience=patience)
        solution = solver.reach(pinned(n // 2), Effort(1e-6))
        assert len(solution.points) == solution.n_touched
        touched.append(solution.n_touched)
    assert touched[0] == touched[1] < 1_000


def test_ties_end_at_the_tolerance():
    solver = RegionSolver(System.ran(line(5), 0.5))
    assert best(solver, pinned(2), 2).certified  # both neighbours
    solution = best(solver, pinned(2), 1)  # one of two alike
    assert not solution.certified
    assert solution.stopped == "tolerance"


@pytest.mark.parametrize("budget", [None, 4])
def test_a_batch_answers_like_its_queries(budget):
    solver = RegionSolver(System.ran(random_graph(3, 40), 1.0))
    boundaries = [
        pinned(1),
        Boundary(np.array([4, 5]), np.array([1.0, 0.5]), left_out=np.array([4, 5])),
        Boundary(np.array([7]), np.ones(1), pulled=np.array([7]), pull=np.ones(1)),
        Boundary(np.array([8, 9]), np.array([1.0, -0.5]), left_out=np.array([8, 9]), lowest=-1.0),
    ]
    efforts = [Effort(1e-6, top, budget, reserve=5) for top in (6, 3, 1, 30)]
    together = list(solver.solve(boundaries, efforts))
    assert len(together) == len(boundaries)
    for boundary, effort, solution in zip(boundaries, efforts, together, strict=True):
        (alone,) = solver.solve([boundary], [effort])
        np.testing.assert_array_equal(solution.points, alone.points)
        np.testing.assert_array_equal(solution.scores, alone.scores)
        assert solution.bound == alone.bound
        assert solution.stopped == alone.stopped
        assert np.isin(boundary.left_out, solution.points).all()


def test_single_precision_is_solved_as_it_is_stored():
    weights = random_graph(1, 40).astype(np.float32)
    solver = RegionSolver(System.ran(weights, 1.0))
    assert solver.arrays.weights.dtype == np.float32
    solution = solver.reach(given_at(0), Effort(1e-10))
    error = np.abs(all_scores(solution, 40) - exact(solver, given_at(0))).max()
    assert error <= solution.bound <= 1.2e-10


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_walks_are_solved_for_the_weights_as_they_are_given(power):
    weights = random_graph(1, 40).astype(np.float32)
    alpha, W = 0.85, weights.toarray().astype(float)
    method = reference.pagerank if power == 1.0 else reference.manifold
    true = method(W, [], [0], [1.0], alpha)
    boundary = given_at(0, (1 - alpha) * W[0].sum() ** (1 - power))
    solution = RegionSolver(System.walk(weights, alpha, power)).reach(boundary, Effort(1e-10))
    error = np.abs(all_scores(solution, 40) - true).max()
    assert error <= solution.bound <= 1.2e-10


@pytest.mark.parametrize("beta", [60.0, 1e5, 1e7])
def test_rows_sum_to_their_margins_as_they_are_stored(beta):
    rng = np.random.default_rng(0)
    dense_weights = np.zeros((200, 200))
    dense_weights[:3] = rng.uniform(size=(3, 200))
    dense_weights[:3, :3] = 0.0
    hubs = sparse.csr_array((dense_weights + dense_weights.T).astype(np.float32))
    solver = RegionSolver(System.ran(hubs, beta / 2))
    couplings = stored(solver)
    sums = 1 / solver.arrays.inverse - couplings.sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-15 * 200 * beta)
    solution = best(solver, given_at(7), 5)
    true = exact(solver, given_at(7))
    error = np.abs(solution.scores - true[solution.points]).max()
    assert error <= solution.bound + 1e-12


def test_rows_that_do_not_dominate_are_refused():
    with pytest.raises(InputError, match="every one must be positive"):
        System(line(3), np.array([1.0, 0.0, 1.0]), np.ones(3))


def test_dense_weights_are_refused():
    with pytest.raises(InputError, match="use solver='auto'"):
        RegionSolver(System.ran(line(3).toarray(), 1.0))


def test_a_batch_comes_back_to_be_stopped_between_queries(monkeypatch):
    solver = RegionSolver(System.ran(random_graph(4, 40), 25.0), patience=np.inf)
    boundaries, efforts = [given_at(i) for i in range(5)], [Effort(1e-6, 4)] * 5
    calls, answer = [], compiled_levels.answer

    def counted(arrays, work, batch, found, first, *others):
        # A little work at a time, as if there were much of it.
        calls.append(first)
        return answer(arrays, work, batch._replace(n_queries=first + 1), found, first, *others)

    whole = list(solver.solve(boundaries, efforts))
    monkeypatch.setattr(compiled_levels, "answer", counted)
    parts = list(solver.solve(boundaries, efforts))
    assert calls == [0, 1, 2, 3, 4]
    for part, one in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(part.points, one.points)


def test_a_long_query_comes_back_to_be_stopped_and_goes_on(monkeypatch):
    solver = RegionSolver(System.ran(random_graph(4, 40), 25.0), patience=np.inf)
    whole, calls, answer = best(solver, given_at(0), 4), [], compiled_levels.answer

    def counted(*given):
        calls.append(given[5].n_steps)
        return answer(*given)

    monkeypatch.setattr(compiled_levels, "answer", counted)
    solver.rule = solver.rule._replace(pause=1.0)
    part = best(solver, given_at(0), 4)
    assert len(calls) > 2
    assert calls == sorted(calls)
    np.testing.assert_array_equal(part.points, whole.points)


@pytest.mark.parametrize("top", [None, 4])
def test_after_ctrl_c_the_next_query_is_answered_as_ever(monkeypatch, top):
    solver = RegionSolver(System.ran(random_graph(4, 40), 25.0))
    before = best(solver, given_at(0), top)
    solver.rule = solver.rule._replace(pause=1.0)
    answer, calls = compiled_levels.answer, []

    def interrupted(*given):
        calls.append(top)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return answer(*given)

    with monkeypatch.context() as patch:
        patch.setattr(compiled_levels, "answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            best(solver, given_at(1), top)
    solver.rule = solver.rule._replace(pause=1e8)
    after = best(solver, given_at(0), top)
    np.testing.assert_array_equal(after.points, before.points)
    np.testing.assert_array_equal(after.scores, before.scores)


def test_a_copy_by_pickle_answers_alike():
    solver = RegionSolver(System.ran(random_graph(2, 20), 0.5))
    before = solver.reach(given_at(0), Effort(1e-6))
    copy = pickle.loads(pickle.dumps(solver))  # noqa: S301
    after = copy.reach(given_at(0), Effort(1e-6))
    np.testing.assert_array_equal(after.scores, before.scores)


@examples(100)
@given(NUMBERS, st.data())
def test_the_largest_are_in_front_and_the_last_of_them_is_the_smallest(numbers, data):
    k = data.draw(st.integers(1, len(numbers)))
    values = np.array([*numbers, np.inf])  # what is beyond is left alone
    certificate.put_largest_first(values, len(numbers), k)
    descending = np.sort(numbers)[::-1]
    np.testing.assert_array_equal(np.sort(values[:k])[::-1], descending[:k])
    np.testing.assert_array_equal(np.sort(values[:-1])[::-1], descending)
    assert values[k - 1] == descending[k - 1]
    assert values[-1] == np.inf


@examples(100)
@given(NUMBERS, st.integers(0, 1000))
def test_points_are_sorted_by_score_and_then_by_index(numbers, seed):
    scores = np.array(numbers)
    points = np.random.default_rng(seed).permutation(len(numbers)).astype(np.int32)
    order = np.lexsort([points, -scores])
    expected = points[order], scores[order]
    certificate.sort_by_score(points, scores, len(numbers))
    np.testing.assert_array_equal(points, expected[0])
    np.testing.assert_array_equal(scores, expected[1])


def missed(rho, z):
    """Return ``1 - (1 - z) p(z)``: what weighted terms miss of an error."""
    p = term_weights(rho)
    return 1 - (1 - z) * (p[0] + p[1] * z + p[2] * z**2)


@pytest.mark.parametrize("rho", RHOS)
def test_what_weighted_terms_miss_is_small_and_even_on_the_interval(rho):
    low = -max(rho / 2, 2 * rho - 1)
    inside = missed(rho, np.linspace(low, rho, 10_001))
    largest = np.abs(inside).max()
    # Chebyshev's polynomials reach their largest value, with either sign, four times.
    signs = np.sign(inside[np.abs(inside) > largest * (1 - 1e-4)])
    assert np.count_nonzero(np.diff(signs)) == 3
    np.testing.assert_allclose([missed(rho, low), missed(rho, rho)], [-largest, largest])
    terms_alone = rho**3
    assert largest < terms_alone


@pytest.mark.parametrize("rho", RHOS)
def test_weighted_terms_make_no_error_larger(rho):
    everywhere = missed(rho, np.linspace(-rho, 1, 10_001))
    assert np.abs(everywhere).max() <= 1 + 1e-12


def test_without_edges_terms_have_no_weight_of_their_own():
    assert term_weights(0.0) == (1.0, 1.0, 1.0)
