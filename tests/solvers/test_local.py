"""Local solves: every bound holds, the certificate is true, and only what is near is touched."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import spsolve

from rankfold.check import InputError
from rankfold.solvers import LocalSystem, Start, answers, certificate, errors, gradients, push
from rankfold.solvers.arrays import NOT_BEGUN
from rankfold.solvers.chebyshev import term_weights

PATIENCE = st.sampled_from([0.0, 0.5, 1.0, np.inf])
PAUSES = st.sampled_from([1.0, 100.0, 1e8])
WHOLE_SHARES = st.sampled_from([0.0, 0.25, 0.8, np.inf])


def random_graph(seed, n, density=0.25):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return sparse.csr_array(weights + weights.T)


def line(n):
    return sparse.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()


def dense(system):
    """Return the matrix whose rows are divided by their margins."""
    arrays = system.system
    shape = (system.n_points, system.n_points)
    spread = sparse.csr_array((arrays.spread, arrays.indices, arrays.indptr), shape=shape)
    return np.diag(1 / system.inverse) - spread.toarray().T


def exact(system, start):
    """Solve densely, with clamped rows eliminated and the query's edges on the diagonal."""
    A, b = dense(system), np.zeros(system.n_points)
    np.add.at(b, start.points, start.given)
    b -= A[:, start.clamped] @ start.seeds
    np.add.at(A, (start.pulled, start.pulled), start.pull)
    free = np.setdiff1d(np.arange(system.n_points), start.clamped)
    values = np.zeros(system.n_points)
    values[free] = np.linalg.solve(A[np.ix_(free, free)], b[free])
    return values


def push_below(system, work, n, level, relaxation=1.0):
    """Push sweep by sweep until no residual is above the level; return points and steps."""
    steps = 0
    while n_queued := push.gather(work, n, level)[0]:
        n, _, _ = push.push(system.system, work, n, n_queued, relaxation)
        steps += n_queued
    return n, steps


@st.composite
def problems(draw):
    seed, n = draw(st.integers(0, 10_000)), draw(st.integers(3, 40))
    rng = np.random.default_rng(seed)
    weights = random_graph(seed, n)
    scale = rng.uniform(0.5, 2, n) if draw(st.booleans()) else np.ones(n)
    margin = rng.uniform(0.1, 2, n) if draw(st.booleans()) else np.ones(n)
    beta = draw(st.sampled_from([0.02, 0.9, 2.0, 20.0, 200.0]))
    if draw(st.booleans()):
        weights = weights.astype(np.float32)
    system = LocalSystem(weights, beta, margin, scale, draw(PATIENCE), draw(WHOLE_SHARES))
    system.rule = system.rule._replace(pause=draw(PAUSES))
    lowest = draw(st.sampled_from([-1.0, 0.0]))
    points = rng.choice(n, rng.integers(1, 3), replace=False)
    clamped = rng.choice(n, draw(st.integers(0, 2)), replace=False)
    pulled = rng.choice(n, draw(st.integers(0, 3)))
    given_values = rng.uniform(lowest or 0.1, 1, len(points))
    start = Start(
        points,
        given_values,
        size=2.0,
        clamped=clamped,
        seeds=rng.uniform(lowest, 1, len(clamped)),
        left_out=clamped,
        pulled=pulled,
        pull=rng.uniform(0, 3, len(pulled)),
    )
    return system, start


@settings(deadline=None, max_examples=300)
@given(problems(), st.integers(1, 10), st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_every_value_is_within_the_bound_and_the_certificate_is_true(problem, top, tol):
    system, start = problem
    reached = system.solve(start, tol)
    values = np.zeros(system.n_points)
    values[reached.points] = reached.values
    true = exact(system, start)
    free = np.setdiff1d(np.arange(system.n_points), start.clamped)
    assert np.all(true[free] <= values[free] + reached.above + 1e-14)
    assert np.all(true[free] >= values[free] - reached.below - 1e-14)
    assert max(reached.above, reached.below) <= 1.2 * tol
    found = system.best([start], [top], tol)
    count, bound = found.counts[0, 0], found.bounds[0].max()
    points, scores = found.points[0, :count], found.scores[0, :count]
    true_scores = system.system.scale * true
    errors = np.abs(scores - true_scores[points]) / system.system.scale[points]
    assert errors.max(initial=0.0) <= bound + 1e-14
    assert np.all(np.diff(scores) <= 0)
    assert np.all(scores > 0)
    if found.certified[0]:
        others = np.setdiff1d(free, points)
        assert count == top
        assert true_scores[points].min() > true_scores[others].max(initial=-np.inf)
    else:
        assert bound <= 1.2 * tol


@settings(deadline=None)
@given(problems(), st.sampled_from([1.0, 1.4]), st.sampled_from([0.3, 1e-2]))
def test_push_is_what_the_reference_does(problem, relaxation, level):
    system, start = problem
    start = Start(start.points, start.given).prepared()
    work = system._workspace()
    n = push.begin(system.system, work, start)
    n, steps = push_below(system, work, n, level, relaxation)
    A, b = dense(system), np.zeros(system.n_points)
    b[start.points] = start.given
    rounding = 4 * np.finfo(float).eps * np.diag(A).max()
    np.testing.assert_allclose(work.residual, b - A @ work.value, atol=(1 + steps) * rounding)
    n_queued, above, below = push.gather(work, n, level)
    assert n_queued == 0
    assert max(above, below) == np.abs(work.residual).max() <= level
    x, r, by_reference = reference.push(A, b, start.points, level, relaxation)
    assert steps == by_reference
    np.testing.assert_allclose(work.value, x, atol=1e-12)
    np.testing.assert_allclose(work.residual, r, atol=1e-12)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 5.0, 50.0]))
def test_gradients_are_those_of_the_reference(seed, beta):
    rng = np.random.default_rng(seed)
    weights = random_graph(seed, 12, 0.6) + line(12)
    system = LocalSystem(weights, beta, rng.uniform(0.1, 2, 12), np.ones(12))
    b = rng.uniform(size=12)
    work = system._workspace()
    n = push.begin(system.system, work, Start(np.arange(12), b).prepared())
    n_touched = gradients.copy_rows(system.system, work, n, 0)
    square = gradients.set_out(system.system, work, n, n_touched)
    rows = work.ends, work.columns, work.weights
    n_steps, _ = gradients.advance(*rows, work, n, square, 0.05, 200)
    gradients.settle(work, n)
    margin = system.system.margin
    A = margin[:, None] * dense(system)
    np.testing.assert_allclose(A, A.T, atol=1e-12)
    by_reference = reference.conjugate_gradients(A, margin * b, np.zeros(12), n_steps)
    np.testing.assert_allclose(work.value, by_reference, atol=1e-9)
    residual = b - dense(system) @ work.value
    np.testing.assert_allclose(work.residual, residual, atol=1e-9)
    assert np.abs(residual).max() <= 0.05 + 1e-9


@settings(deadline=None)
@given(problems(), st.integers(1, 5), st.sampled_from([0.3, 1e-1, 1e-3, 1e-6]))
def test_certificate_is_that_of_the_reference(problem, top, level):
    system, start = problem
    start = Start(start.points, start.given).prepared()
    system.system = system.system._replace(scale=np.ones(system.n_points), largest_scale=1.0)
    work = system._workspace()
    n = push.begin(system.system, work, start)
    n, _ = push_below(system, work, n, level)
    last, found = certificate.best_values(system.system, work, top, 0.0)
    if found <= top:
        return
    A, b = dense(system), np.zeros(system.n_points)
    b[start.points] = start.given
    cut, gap = certificate.cut_behind(system.system, work, top, last, level)
    if gap == 0.0:
        return
    by_reference = reference.cut_behind(A, b, work.value, top, level)
    roundoff = 2 * system.system.roundoff * level
    np.testing.assert_allclose((cut, gap), by_reference, rtol=0, atol=1e-12 + roundoff)
    above, below = certificate.bounds(work, n, 0.0)
    certain = certificate.is_certain(system.system, work, top, cut, above, below, 0.0)
    by_reference = reference.certain_top(A, b, work.value, top, cut)
    assert (certain and cut > above) == by_reference
    judged, certain, _ = certificate.judge(system.system, work, top, 0.0, above, below, 0.0)
    assert not certain or reference.certain_top(A, b, work.value, top, judged)


@settings(deadline=None)
@given(problems(), st.sampled_from([0.3, 1e-1, 1e-3]))
def test_known_errors_are_steps_of_jacobi(problem, level):
    system, start = problem
    work, start = system._workspace(), Start(start.points, start.given).prepared()
    n = push.begin(system.system, work, start)
    push_below(system, work, n, level)
    A = dense(system)
    for steps, error in ((2, errors.error_twice), (3, errors.error_thrice)):
        found = np.array([error(system.system, work, np.uint64(i)) for i in range(len(A))])
        known, share = reference.known_errors(A, work.residual, steps)
        roundoff = system.system.roundoff
        largest = np.abs(work.residual).max()
        np.testing.assert_allclose(found[:, 0], known, rtol=0, atol=1e-12 + roundoff * largest)
        np.testing.assert_allclose(found[:, 1], share, rtol=0, atol=1e-12 + roundoff)


def test_long_rows_are_not_read_on_the_way_and_bounds_still_hold():
    n = 3 * errors.LONG_ROW
    star = sparse.lil_array((n, n))
    star[0, 1:] = star[1:, 0] = np.linspace(0.5, 1.5, n - 1)
    system = LocalSystem(star.tocsr() + line(n), 0.5, np.ones(n), np.ones(n))
    work, start = system._workspace(), Start(np.array([5]), np.ones(1)).prepared()
    reached = push.begin(system.system, work, start)
    reached, _ = push_below(system, work, reached, 1e-3)
    above, below = certificate.bounds(work, reached, 0.0)
    true = exact(system, start) - work.value
    for point in (1, 5, 100):
        known, share = errors.error_thrice(system.system, work, np.uint64(point))
        deep = reference.known_errors(dense(system), work.residual, 3)
        assert share > deep[1][point]
        assert known - share * below <= true[point] <= known + share * above


@settings(deadline=None, max_examples=50)
@given(problems(), st.sampled_from([0.1, 1e-2, 1e-3]))
def test_guesses_at_the_end_of_the_top_follow_chebyshev(problem, tol):
    system, start = problem
    system.system = system.system._replace(scale=np.ones(system.n_points), largest_scale=1.0)
    work, start = system._workspace(), Start(start.points, start.given).prepared()
    n = push.begin(system.system, work, start)
    n, _ = push_below(system, work, n, tol)
    above, below = certificate.bounds(work, n, 0.0)
    stand = NOT_BEGUN._replace(above=above, below=below)
    A, terms = dense(system), system.rule.terms
    known = [reference.known_errors(A, work.residual, steps) for steps in (1, 2, 3)]
    (once, _), (twice, _), (thrice, share) = known
    error = terms[0] * once + terms[1] * (twice - once) + terms[2] * (thrice - twice)
    low, high, bound = thrice - share * below, thrice + share * above, max(above, below)
    error = np.clip(error, np.maximum(low, high - bound), np.minimum(high, low + bound))
    found = [
        answers.better_guess(system.system, work, np.uint64(i), stand, terms) for i in range(len(A))
    ]
    roundoff = 4 * max(terms) * system.system.roundoff * bound
    np.testing.assert_allclose(found, work.value + error, rtol=0, atol=1e-12 + roundoff)


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
    system = LocalSystem(tree + tree.T, 1.0, np.ones(n), np.ones(n))
    work = system._workspace()
    work.residual[:] = -side
    work.residual[: rings[3][0]] = side
    A = sparse.diags_array(1 / system.inverse) - (tree + tree.T)
    error = spsolve(A.tocsc(), work.residual)[0]
    stand, terms = NOT_BEGUN._replace(above=1.0, below=1.0), term_weights(0.95)
    guess = answers.better_guess(system.system, work, np.uint64(0), stand, terms)
    assert abs(guess - error) <= 1.0


def test_many_ties_inside_the_top_are_proven():
    n_leaves = 2 * certificate.MOST_DOUBTFUL
    n = n_leaves + 3
    star = sparse.lil_array((n, n))
    star[0, 1 : n_leaves + 1] = 1.0
    star[n_leaves, n_leaves + 1] = star[n_leaves + 1, n_leaves + 2] = 1e-3
    system = LocalSystem((star + star.T).tocsr(), 1.0, np.ones(n), np.ones(n))
    start = Start(clamped=np.array([0]), seeds=np.ones(1), left_out=np.array([0]))
    found = system.best([start], [n_leaves])
    assert found.certified[0]
    assert set(found.points[0]) == set(range(1, n_leaves + 1))


def test_a_workspace_is_left_clean():
    system = LocalSystem(random_graph(0, 30), 2.0, np.ones(30), np.ones(30))
    start = Start(
        np.array([3]),
        np.array([1.0]),
        clamped=np.array([5]),
        seeds=np.array([0.5]),
        left_out=np.array([5, 6]),
    )
    pulling = start._replace(pulled=np.array([4, 4]), pull=np.array([1.0, 2.0]))
    first = system.solve(start)
    pulled = system.solve(pulling)
    certain = system.best([start], [3])
    within = system.best([start], [3], tol=0.5)
    again = system.solve(start)
    assert certain.certified[0]
    assert not within.certified[0]
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.array_equal(first.values, pulled.values)
    assert len(system._idle) == 1
    work = system._idle[0]
    assert not work.residual.any()
    assert not work.value.any()
    assert not work.marks.any()
    assert work.n_valued[0] == work.n_likely[0] == 0
    np.testing.assert_array_equal(work.inverse, system.inverse)


@pytest.mark.parametrize("patience", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("beta", [1.0, 100.0])
def test_touched_points_do_not_grow_with_the_database(patience, beta):
    touched = []
    for n in (2_000, 20_000):
        system = LocalSystem(line(n), beta, np.ones(n), np.ones(n), patience)
        start = Start(clamped=np.array([n // 2]), seeds=np.ones(1))
        touched.append(len(system.solve(start, tol=1e-6).points))
    assert touched[0] == touched[1] < 1_000


def test_ties_end_at_the_tolerance():
    system = LocalSystem(line(5), 1.0, np.ones(5), np.ones(5))
    start = Start(clamped=np.array([2]), seeds=np.ones(1))
    assert system.best([start], [2]).certified[0]  # both neighbours
    assert not system.best([start], [1]).certified[0]  # one of two alike


def test_a_batch_answers_like_its_queries():
    system = LocalSystem(random_graph(3, 40), 2.0, np.ones(40), np.ones(40))
    starts = [
        Start(clamped=np.array([1]), seeds=np.ones(1), left_out=np.array([1])),
        Start(np.array([4, 5]), np.array([1.0, 0.5]), left_out=np.array([4, 5])),
        Start(np.array([7]), np.ones(1), pulled=np.array([7]), pull=np.ones(1)),
    ]
    together = system.best(starts, [6, 6, 6])
    for row, start in enumerate(starts):
        alone = system.best([start], [6])
        np.testing.assert_array_equal(together.points[row], alone.points[0])
        np.testing.assert_array_equal(together.scores[row], alone.scores[0])
    own = system.best(starts[1:2], [6]).own
    np.testing.assert_array_equal(together.own[1:], own)


def test_single_precision_is_solved_as_it_is_stored():
    weights = random_graph(1, 40)
    weights.data = weights.data.astype(np.float32)
    system = LocalSystem(weights, 2.0, np.ones(40), np.ones(40))
    assert system.system.spread.dtype == np.float32
    start = Start(np.array([0]), np.array([1.0]))
    reached = system.solve(start, tol=1e-10)
    values = np.zeros(40)
    values[reached.points] = reached.values
    assert np.abs(values - exact(system, start)).max() < 1e-6


def test_uneven_margins_are_solved_for_the_weights_as_they_are_given():
    weights = random_graph(1, 40).astype(np.float32)
    margin = np.random.default_rng(0).uniform(0.1, 2, 40)
    system = LocalSystem(weights, 0.85, margin, np.ones(40))
    given = 0.85 * weights.toarray().astype(np.float64)
    A = np.diag(margin + given.sum(axis=1)) - given
    reached = system.solve(Start(np.array([0]), np.ones(1)), tol=1e-10)
    values = np.zeros(40)
    values[reached.points] = reached.values
    b = np.zeros(40)
    b[0] = margin[0]
    error = np.abs(values - np.linalg.solve(A, b)).max()
    assert error <= max(reached.above, reached.below) <= 1.2e-10


@pytest.mark.parametrize("beta", [60.0, 1e5, 1e7])
def test_rows_sum_to_one_as_they_are_stored(beta):
    rng = np.random.default_rng(0)
    dense_weights = np.zeros((200, 200))
    dense_weights[:3] = rng.uniform(size=(3, 200))
    dense_weights[:3, :3] = 0.0
    hubs = sparse.csr_array((dense_weights + dense_weights.T).astype(np.float32))
    system = LocalSystem(hubs, beta, np.ones(200), np.ones(200))
    sums = dense(system).sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-15 * 200 * beta)
    found = system.best([Start(np.array([7]), np.ones(1))], [5], 1e-6)
    true = exact(system, Start(np.array([7]), np.ones(1)))
    error = np.abs(found.scores[0] - true[found.points[0]]).max()
    assert error <= found.bounds[0].max() + 1e-12


def test_rows_that_do_not_dominate_are_refused():
    with pytest.raises(InputError, match="every one must be positive"):
        LocalSystem(line(3), 1.0, np.array([1.0, 0.0, 1.0]), np.ones(3))


def test_a_long_solve_comes_back_to_be_stopped(monkeypatch):
    system = LocalSystem(random_graph(4, 40), 50.0, np.ones(40), np.ones(40))
    starts = [Start(np.array([i]), np.ones(1)) for i in range(5)]
    calls, answer = [], answers.answer

    def counted(*given):
        # A little work at a time, as if there were much of it.
        calls.append(given[5])
        batch = given[3]._replace(sizes=given[3].sizes[: given[5] + 1])
        return answer(*given[:3], batch, *given[4:])

    whole = system.best(starts, [4] * 5)
    monkeypatch.setattr(answers, "answer", counted)
    parts = system.best(starts, [4] * 5)
    assert calls == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(parts.points, whole.points)


def test_a_copy_by_pickle_answers_alike():
    system = LocalSystem(random_graph(2, 20), 1.0, np.ones(20), np.ones(20))
    start = Start(np.array([0]), np.array([1.0]))
    before = system.solve(start)
    copy = pickle.loads(pickle.dumps(system))  # noqa: S301
    np.testing.assert_array_equal(copy.solve(start).values, before.values)
