"""All solvers: what they say of their error is true, whatever the system and the query."""

import os
import pickle
import subprocess
import sys
from threading import enumerate as enumerate_threads

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankfold.check import check_budget
from rankfold.errors import InputError
from rankfold.solvers import (
    DIRECT_LIMIT,
    LEAST_BUDGET,
    SOLVERS,
    Boundary,
    DirectSolver,
    Effort,
    GradientSolver,
    Solvers,
    System,
    Wanted,
)
from rankfold.solvers.direct import _factorised
from rankfold.solvers.system import error_bound, solution_of

KINDS = {
    "ran": lambda weights, share: System.ran(weights, share / (1 - share)),
    "pagerank": lambda weights, share: System.walk(weights, share, 1.0),
    "manifold": lambda weights, share: System.walk(weights, share, 0.5),
}
DENSE = ["direct", "cg"]
SHARES = st.sampled_from([0.01, 0.5, 0.9, 0.999])
EFFORT = Effort(1e-9)


def random_weights(seed, n, density=0.3):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return weights + weights.T


def random_boundary(system, rng, n_clamped=1, n_given=2, n_pulled=2, lowest=0.0):
    n = system.n_points
    points, pulled = rng.choice(n, n_given), rng.choice(n, n_pulled)
    clamped = rng.choice(n, min(n, n_clamped), replace=False)
    rhs = rng.uniform(lowest, 1, n_given) * system.margin[points]
    values = rng.uniform(lowest, 1, len(clamped))
    pull = rng.uniform(0, 3, n_pulled) * system.margin[pulled]
    size = max(1.0, n_given)
    return Boundary(points, rhs, clamped, values, clamped, pulled, pull, size, size * lowest)


@st.composite
def problems(draw, kinds=tuple(KINDS)):
    seed, n = draw(st.integers(0, 10_000)), draw(st.integers(1, 40))
    weights = sparse.csr_array(random_weights(seed, n))
    if draw(st.booleans()):
        weights = weights.astype(np.float32)
    system = KINDS[draw(st.sampled_from(kinds))](weights, draw(SHARES))
    counts = (draw(st.integers(0, most)) for most in (2, 2, 3))
    lowest = draw(st.sampled_from([-1.0, 0.0]))
    return system, random_boundary(system, np.random.default_rng(seed), *counts, lowest)


def dense(system):
    """Return A for the couplings as they are stored, in double precision."""
    couplings = system.couplings
    couplings = couplings.toarray() if sparse.issparse(couplings) else couplings
    couplings = couplings.astype(np.float64)
    return np.diag(system.margin + couplings.sum(axis=1)) - couplings


def exact(system, boundary):
    return system.scale * reference.held(dense(system), *boundary[:4], *boundary[5:7])


def all_scores(solution, n):
    scores = np.zeros(n)
    scores[solution.points] = solution.scores
    return scores


def solve(solver, boundary, effort=EFFORT):
    (solution,) = solver.solve([boundary], [effort])
    return solution


def largest_error(solution, system, boundary):
    return np.abs(all_scores(solution, system.n_points) - exact(system, boundary)).max(initial=0.0)


@pytest.mark.parametrize("name", SOLVERS)
@examples(100)
@given(problem=problems())
def test_the_true_error_is_within_the_bound(name, problem):
    system, boundary = problem
    solution = solve(SOLVERS[name](system), boundary)
    assert solution.converged
    assert solution.solver == name
    assert solution.stopped == ("tolerance" if name == "region" else "exact")
    assert largest_error(solution, system, boundary) <= solution.bound + 1e-13
    assert solution.bound < 1e-7
    held = all_scores(solution, system.n_points)[boundary.clamped]
    np.testing.assert_array_equal(held, system.scale[boundary.clamped] * boundary.values)
    assert boundary.lowest < 0 or np.all(solution.scores >= 0)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("alpha", [0.1, 0.85])
def test_walks_are_what_their_equations_say(name, alpha):
    weights = random_weights(0, 20, 0.15)
    weights[3] = weights[:, 3] = 0.0  # nobody's neighbour
    y = reference.seed_vector([], 20, [2, 3, 4], [1.0, 0.5, -0.5])
    for power, method in ((1.0, reference.pagerank), (0.5, reference.manifold)):
        system = System.walk(sparse.csr_array(weights), alpha, power)
        degrees = np.where(weights.sum(axis=1) > 0, weights.sum(axis=1), 1.0)
        points = np.flatnonzero(y)
        rhs = (1 - alpha) * (degrees ** (1 - power) * y)[points]
        size = float(np.abs(rhs / system.margin[points]).max())
        boundary = Boundary(points, rhs, left_out=points, size=size, lowest=-size)
        solution = solve(SOLVERS[name](system), boundary)
        true = method(weights, [], [2, 3, 4], [1.0, 0.5, -0.5], alpha)
        assert np.abs(all_scores(solution, 20) - true).max() <= solution.bound + 1e-13


@pytest.mark.parametrize("name", SOLVERS)
def test_ran_is_what_its_equation_says(name):
    weights = random_weights(1, 20)
    boundary = Boundary(clamped=np.array([4, 7]), values=np.array([1.0, -0.5]), lowest=-0.5)
    solution = solve(SOLVERS[name](System.ran(sparse.csr_array(weights), 3.0)), boundary)
    true = reference.f_step(weights, 3.0, [4, 7], np.array([1.0, -0.5]))
    assert np.abs(all_scores(solution, 20) - true).max() <= solution.bound + 1e-13


@pytest.mark.parametrize("smoothness", [1.0, 1e3, 1e5])
def test_the_diagonal_is_the_sum_of_single_precision_weights_in_double(smoothness):
    weights = sparse.csr_array(random_weights(0, 30, 1.0)).astype(np.float32)
    system = System.ran(weights, smoothness)
    assert system.couplings.dtype == np.float32
    np.testing.assert_allclose(system.diagonal, np.diag(dense(system)), rtol=1e-14)
    np.testing.assert_allclose(system.matrix.toarray(), dense(system), rtol=1e-14)


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("kind", KINDS)
def test_dense_weights_are_solved_as_sparse_ones_are(name, kind):
    weights = random_weights(2, 30, 1.0)
    full, thin = (KINDS[kind](some, 0.9) for some in (weights, sparse.csr_array(weights)))
    for seed in range(5):
        boundary = random_boundary(full, np.random.default_rng(seed), lowest=-1.0)
        of_full, of_thin = solve(SOLVERS[name](full), boundary), solve(DirectSolver(thin), boundary)
        assert largest_error(of_full, full, boundary) <= of_full.bound + 1e-13
        assert of_full.bound < 1e-8
        apart = np.abs(of_full.scores - of_thin.scores).max()
        assert apart <= of_full.bound + of_thin.bound


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_solved_as_its_queries_are(name, kind):
    system = KINDS[kind](sparse.csr_array(random_weights(1, 30)), 0.9)
    rng = np.random.default_rng(2)
    counts = [(1, 0, 0), (0, 2, 0), (2, 1, 3), (0, 1, 2), (0, 0, 0)]
    boundaries = [random_boundary(system, rng, *some) for some in counts]
    solver = SOLVERS[name](system)
    together = list(solver.solve(boundaries, [EFFORT] * len(boundaries)))
    assert len(together) == len(boundaries)
    for boundary, solution in zip(boundaries, together, strict=True):
        alone = all_scores(solve(solver, boundary), 30)
        np.testing.assert_allclose(all_scores(solution, 30), alone, atol=1e-11)
        assert largest_error(solution, system, boundary) <= solution.bound + 1e-13


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_without_points_has_no_scores(name, kind):
    solution = solve(SOLVERS[name](KINDS[kind](sparse.csr_array((0, 0)), 0.5)), Boundary())
    assert solution.scores.shape == solution.points.shape == (0,)
    assert solution.bound < 1e-12


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_points_without_neighbours_have_only_what_they_are_given(name, kind):
    weights = np.zeros((6, 6))
    weights[0, 1] = weights[1, 0] = 1.0
    system = KINDS[kind](sparse.csr_array(weights), 0.5)
    boundary = Boundary(np.array([4, 4]), np.array([0.25, 0.5]), np.array([3]), np.array([0.5]))
    boundary = boundary._replace(left_out=boundary.clamped)
    scores = all_scores(solve(SOLVERS[name](system), boundary), 6)
    np.testing.assert_allclose(scores, [0, 0, 0, 0.5, 0.75, 0], atol=1e-9)
    edgeless = KINDS[kind](sparse.csr_array((6, 6)), 0.5)
    scores = all_scores(solve(SOLVERS[name](edgeless), boundary), 6)
    np.testing.assert_allclose(scores, [0, 0, 0, 0.5, 0.75, 0], atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_query_that_says_nothing_has_no_scores(name):
    system = System.ran(sparse.csr_array(random_weights(0, 10)), 1.0)
    solution = solve(SOLVERS[name](system), Boundary())
    assert not solution.scores.any()
    assert largest_error(solution, system, Boundary()) == 0.0


@pytest.mark.parametrize("name", SOLVERS)
def test_all_points_may_be_held(name):
    system = System.ran(sparse.csr_array(random_weights(0, 10)), 1.0)
    values = np.linspace(-1, 1, 10)
    boundary = Boundary(clamped=np.arange(10), values=values, left_out=np.arange(10))
    np.testing.assert_array_equal(all_scores(solve(SOLVERS[name](system), boundary), 10), values)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_copy_by_pickle_answers_alike(name):
    system = System.ran(sparse.csr_array(random_weights(0, 20)), 1.0)
    boundary = random_boundary(system, np.random.default_rng(0))
    solver = SOLVERS[name](system)
    before = solve(solver, boundary)
    after = solve(pickle.loads(pickle.dumps(solver)), boundary)  # noqa: S301
    np.testing.assert_array_equal(after.scores, before.scores)


@examples(100)
@given(problems(), st.integers(1, 4))
def test_gradients_that_are_stopped_early_say_so_and_keep_to_their_bound(problem, max_iter):
    system, boundary = problem
    solution = solve(GradientSolver(system, max_iter=max_iter), boundary)
    assert largest_error(solution, system, boundary) <= solution.bound + 1e-13
    assert solution.n_iter <= max_iter
    assert solution.stopped == ("exact" if solution.converged else "max_iter")


def test_gradients_that_need_more_steps_have_not_converged():
    system = System.ran(sparse.csr_array(random_weights(3, 40)), 100.0)
    boundary = Boundary(clamped=np.array([0]), values=np.ones(1))
    solution = solve(GradientSolver(system, max_iter=2), boundary)
    assert not solution.converged
    assert solution.stopped == "max_iter"
    assert solution.n_iter == 2
    assert solution.bound > 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_start_saves_steps(kind):
    system = KINDS[kind](sparse.csr_array(random_weights(3, 40)), 0.95)
    boundary, solver = random_boundary(system, np.random.default_rng(0)), GradientSolver(system)
    cold = solve(solver, boundary)
    (warm,) = solver.solve([boundary], [EFFORT], start=cold.scores / system.scale)
    assert warm.n_iter < cold.n_iter
    assert largest_error(warm, system, boundary) <= warm.bound + 1e-13


@examples(100)
@given(problems(), st.sampled_from([0.0, 1e-9, 1e-3, 10.0]))
def test_the_bound_holds_for_any_guess(problem, noise):
    system, boundary = problem
    boundary = boundary._replace(size=100.0)
    rng = np.random.default_rng(0)
    guess = exact(system, boundary) / system.scale + noise * rng.normal(size=system.n_points)
    solution = solution_of(system, system.matrix, boundary, guess)
    assert largest_error(solution, system, boundary) <= solution.bound + 1e-13


@examples(100)
@given(problems())
def test_all_three_norms_of_a_residual_bound_the_error(problem):
    system, _ = problem
    A = dense(system)
    residual = np.random.default_rng(0).normal(size=system.n_points)
    error = np.abs(system.scale * np.linalg.solve(A, residual)).max()
    bound = error_bound(np.abs(residual), system.margin, system.scale)
    assert error <= bound * (1 + 1e-9)


def test_queries_are_factorised_for_in_blocks_of_any_size():
    system = System.ran(sparse.csr_array(random_weights(4, 30)), 2.0)
    rng = np.random.default_rng(0)
    boundaries = [random_boundary(system, rng, i % 3, i % 2, i % 4) for i in range(9)]
    solver, narrow = DirectSolver(system), DirectSolver(system)
    narrow.most_columns = 7
    efforts = [EFFORT] * 9
    pairs = zip(solver.solve(boundaries, efforts), narrow.solve(boundaries, efforts), strict=True)
    for wide, thin in pairs:
        np.testing.assert_allclose(thin.scores, wide.scores, atol=1e-12)


def test_a_query_that_touches_many_points_is_left_to_gradients():
    system = System.ran(sparse.csr_array(random_weights(4, 400, 0.02)), 2.0)
    rng, solver = np.random.default_rng(0), DirectSolver(system)
    solver.most_columns = 100
    few, many = (random_boundary(system, rng, 1, 1, n_pulled) for n_pulled in (1, 300))
    solutions = list(solver.solve([few, many, few], [EFFORT] * 3))
    assert [solution.solver for solution in solutions] == ["direct", "cg", "direct"]
    for boundary, solution in zip([few, many, few], solutions, strict=True):
        assert largest_error(solution, system, boundary) <= solution.bound + 1e-13


def chosen(n_alive, top, couplings=None, solver="auto"):
    couplings = sparse.csr_array((3, 3)) if couplings is None else couplings
    return Solvers(System.coupled(couplings), solver, "auto", 1e-6, n_alive).name(top)


def test_the_solver_is_chosen_by_the_size_of_the_graph_and_of_the_answer():
    assert chosen(DIRECT_LIMIT, 10) == "direct"
    assert chosen(DIRECT_LIMIT, DIRECT_LIMIT) == "direct"
    assert chosen(DIRECT_LIMIT + 1, 10) == "region"
    assert chosen(8_000, 2_000) == "region"
    assert chosen(8_000, 2_001) == "cg"  # more than a quarter
    assert chosen(None, 1) == "direct"  # three points


def test_graphs_where_all_pairs_have_a_weight_are_solved_as_a_whole():
    assert chosen(DIRECT_LIMIT, 10, np.zeros((3, 3))) == "direct"
    assert chosen(DIRECT_LIMIT + 1, 10, np.zeros((3, 3))) == "cg"


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_that_is_asked_for_is_used(name):
    assert chosen(10, 10, solver=name) == chosen(10**6, 10**6, solver=name) == name
    system = System.ran(sparse.csr_array(random_weights(0, 10)), 1.0)
    boundary = random_boundary(system, np.random.default_rng(0))
    solvers = Solvers(system, name, "auto", 1e-9)
    (solution,) = solvers.solve([boundary], [Wanted(3, 3)])
    assert solution.solver == solvers.reach(boundary).solver == name
    assert solvers.solver(name) is solvers.solver(name)
    for one in (solution, solvers.reach(boundary)):
        assert np.abs(one.scores - exact(system, boundary)[one.points]).max() <= one.bound + 1e-13


def test_another_solver_can_answer_everything():
    system = System.ran(sparse.csr_array(random_weights(0, 10)), 1.0)
    solvers = Solvers(system, "auto", None, 1e-6)
    solvers.use(GradientSolver(system))
    (solution,) = solvers.solve([random_boundary(system, np.random.default_rng(0))], [Wanted(3, 3)])
    assert solution.solver == "cg"


def effort(budget, top, n_alive=10**6, tol=1e-6):
    system = System.coupled(sparse.csr_array((3, 3)))
    return Solvers(system, "auto", budget, tol, n_alive).effort(top)


def test_a_budget_of_auto_grows_with_the_answer():
    assert effort("auto", 1) == Effort(1e-6, 1, LEAST_BUDGET, 2 * LEAST_BUDGET)
    assert effort("auto", 50).budget == LEAST_BUDGET
    assert effort("auto", 51).budget == 1_020
    assert effort(7, 1_000, tol=1e-3) == Effort(1e-3, 1_000, 7)
    assert effort(None, 5) == Effort(1e-6, 5, None)


def test_a_budget_for_all_points_is_none():
    assert effort("auto", 10, n_alive=LEAST_BUDGET + 1).budget == LEAST_BUDGET
    assert effort("auto", 10, n_alive=LEAST_BUDGET).budget is None
    assert effort(50, 10, n_alive=50).budget is None
    assert effort(49, 10, n_alive=50).budget == 49


@pytest.mark.parametrize("budget", ["auto", None, 1, 10**9, np.int64(3)])
def test_a_budget_is_a_count_or_auto_or_none(budget):
    check_budget(budget)


@pytest.mark.parametrize("budget", ["all", "", 0, -1, 2.5, True, np.inf, [3]])
def test_other_budgets_are_refused(budget):
    with pytest.raises(InputError, match="budget is"):
        check_budget(budget)


def holders():
    """Return the threads that hold factors."""
    return {thread for thread in enumerate_threads() if thread.name == "rankfold-factors"}


FREED = """
import ctypes, threading
from pathlib import Path
from threading import Thread
import numpy as np
from scipy import sparse
from rankfold.solvers import Boundary, DirectSolver, Effort, System

def resident_mb():
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024

links = sparse.random_array((1500, 1500), density=0.006, rng=np.random.default_rng(0))
system = System.ran(sparse.csr_array(links + links.T), 3.0)
boundary, made, sizes = Boundary(clamped=np.array([0]), values=np.ones(1)), [], []

def make():
    made.append(DirectSolver(system))
    list(made[-1].solve([boundary], [Effort(1e-6)]))

for _ in range(10):
    thread = Thread(target=make)
    thread.start()
    thread.join()
    size = made.pop()._factors.nbytes / 2**20  # dropped here, not where it was made
    for other in threading.enumerate():
        if other is not threading.main_thread():
            other.join(30)
            assert not other.is_alive()
    sizes.append(resident_mb())
print(sizes[-1] - sizes[1], size)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_factors_are_freed_whichever_thread_drops_them():
    """In a process of its own, with one heap: what others have freed does not blur it."""
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    script = [sys.executable, "-c", FREED]
    told = subprocess.run(script, capture_output=True, text=True, check=True, env=environment)
    growth, size = map(float, told.stdout.split())
    assert size > 5
    assert growth < 2 * size  # eight more were made


def test_factors_that_cannot_be_made_say_why():
    others = holders()
    with pytest.raises(RuntimeError, match="singular"):
        _factorised(sparse.csr_array((3, 3)), np.ones(3))
    for holder in holders() - others:
        holder.join(30)
        assert not holder.is_alive()


@pytest.mark.parametrize("last", ["", "del solver"])
def test_a_process_that_holds_factors_or_has_just_freed_them_ends_in_order(last):
    script = f"""
import numpy as np
from scipy import sparse
from rankfold.solvers import DirectSolver, System
solver = DirectSolver(System.ran(sparse.csr_array(np.ones((9, 9))), 1.0))
print("done")
{last}
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
