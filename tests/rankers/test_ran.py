"""RAN against the dense reference, its certificates, and what the paper promises of it."""

import warnings

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ran_cases import QUERIES, RAN, READINGS, by_reference, rank_quietly, sheet
from sklearn.exceptions import ConvergenceWarning

from rankfold import Query, datasets
from rankfold.check import check_query
from rankfold.errors import InputError
from rankfold.rankers import alternation
from rankfold.rankers.graph_step import CandidateLists
from rankfold.rankers.region_steps import RegionSteps


@pytest.mark.one_in(5)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("solver", ["direct", "cg"])
@pytest.mark.parametrize("scale", ["natural", None])
@pytest.mark.parametrize(("gamma", "candidates"), READINGS)
def test_equals_the_reference(gamma, candidates, scale, solver, query):
    X = sheet()
    for n_alternations in (1, 2, 4):
        ranker = RAN(
            4,
            3.0,
            gamma=gamma,
            candidates=candidates,
            scale=scale,
            solver=solver,
            max_iter=n_alternations,
            guard=False,
            tol=1e-15,
        ).fit(X)
        scores, values = by_reference(X, query, ranker, n_alternations)
        ranking = rank_quietly(ranker, query, include_query=True)
        found = np.empty(len(X))
        found[ranking.indices] = ranking.scores
        np.testing.assert_allclose(found, scores[-1], atol=1e-8)
        if n_alternations == 1:
            assert ranking.trace is None
            continue
        np.testing.assert_allclose(ranking.trace.objective, values, rtol=1e-8)
        assert ranking.trace.n_alternations == n_alternations


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 45),
    k=st.integers(1, 8),
    smoothness=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    reading=st.sampled_from(READINGS),
    scale=st.sampled_from(["natural", None]),
    metric=st.sampled_from(["euclidean", "cosine"]),
    data=st.data(),
)
def test_equals_the_reference_on_random_data(seed, n, k, smoothness, reading, scale, metric, data):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    ids = data.draw(st.lists(st.integers(0, n - 1), max_size=2, unique=True))
    vectors = np.random.default_rng(seed + 1).normal(size=(0 if ids and seed % 2 else 1, 3))
    query = Query(indices=ids, vectors=vectors)
    ranker = RAN(
        min(k, n - 2), smoothness, metric=metric, gamma=reading[0], candidates=reading[1],
        scale=scale, max_iter=3, guard=False, tol=1e-15,
    ).fit(X)  # fmt: skip
    scores, _ = by_reference(X, query, ranker, 3)
    ranking = rank_quietly(ranker, query, include_query=True)
    found = np.empty(n)
    found[ranking.indices] = ranking.scores
    np.testing.assert_allclose(found, scores[len(ranking.trace.reach) - 1], atol=1e-8)


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    smoothness=st.sampled_from([0.1, 1.0, 10.0, 1000.0]),
    solver=st.sampled_from(["direct", "cg"]),
    unseen=st.booleans(),
)
def test_the_certificate_bounds_the_true_error(seed, smoothness, solver, unseen):
    X = np.random.default_rng(seed).normal(size=(40, 3))
    ranker = RAN(4, smoothness, solver=solver).fit(X)
    query = Query(vectors=X[:2] + 0.1) if unseen else Query(indices=[1, 5])
    ranking = ranker.rank_many([query], include_query=True)[0]
    exact = by_reference(X, query, ranker, 1)[0][0]
    # The reference itself is rounded, at the size of its condition number.
    slack = 1e-15 * (1 + 4 * smoothness)
    assert np.abs(ranking.scores - exact[ranking.indices]).max() <= ranking.solution.bound + slack
    assert ranking.solution.bound < 1e-8


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 8),
    smoothness=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    scale=st.sampled_from(["natural", None]),
)
def test_shared_gamma_never_increases_the_objective(seed, k, smoothness, scale):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    ranker = RAN(k, smoothness, gamma="shared", scale=scale, max_iter=8, guard=False).fit(X)
    values = np.array(rank_quietly(ranker, Query(indices=0)).trace.objective)
    assert (np.diff(values) <= 1e-10 * values[0]).all()


@pytest.mark.parametrize("scale", ["natural", None])
@pytest.mark.parametrize(
    "name",
    ["digits", "yale"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("usps", "orl", "coil20", "umist")],
)
def test_shared_gamma_never_increases_the_objective_on_real_data(load, name, scale):
    dataset = load(name)
    ranker = RAN(gamma="shared", scale=scale, metric=dataset.metric, max_iter=6, guard=False)
    ranker.fit(dataset.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rankings = ranker.rank_many(range(0, len(dataset.labels), len(dataset.labels) // 3))
    for ranking in rankings:
        values = np.array(ranking.trace.objective)
        assert (np.diff(values) <= 1e-10 * values[0]).all()


def test_lists_are_lengthened_only_where_the_certificate_fails(monkeypatch):
    """With 200 points and lists of 20, strong adaptation must look further, but not everywhere."""
    X = sheet(200)
    searched = []
    original = CandidateLists.rows

    def rows(self, rows, width):
        searched.append((len(rows), width))
        return original(self, rows, width)

    monkeypatch.setattr(CandidateLists, "rows", rows)
    ranker = RAN(5, 3.0, scale=None, max_iter=2, guard=False).fit(X)
    ranking = rank_quietly(ranker, Query(indices=7), include_query=True)
    longer = [(count, width) for count, width in searched if width > 20]
    assert longer
    assert longer[0][0] < 100
    scores, _ = by_reference(X, Query(indices=7), ranker, 2)
    np.testing.assert_allclose(ranking.scores, scores[-1][ranking.indices], atol=1e-8)


def test_unreached_points_follow_by_plain_distance():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0], [50, 0], [100, 0]])
    X = np.repeat(centres, 20, axis=0) + rng.normal(size=(60, 2))
    ranking = RAN(5).fit(X).rank(0)
    unreached = ranking.scores == 0
    assert unreached.sum() == 40
    d = reference.sq_distances(X)[0]
    expected = reference.plain_order([d], [1.0], left_out=range(20))
    assert ranking.indices[unreached].tolist() == expected
    both = RAN(5).fit(X).rank([0, 1], weights=[1, 3])
    d = reference.sq_distances(X)[:2]
    expected = reference.plain_order(d, [1, 3], left_out=range(20))
    assert both.indices[both.scores == 0].tolist() == expected


def test_order_below_the_error_bound_is_plain_distance():
    """At small smoothness scores fall below any solver's precision; their order must not show."""
    digits = datasets.load("digits")
    d = reference.sq_distances(digits.X[:400])[0]
    for solver in ("cg", "direct"):
        ranking = RAN(5, 0.1, solver=solver).fit(digits.X[:400]).rank(0)
        positive = ranking.scores > 0
        assert ranking.scores[positive].min() > ranking.solution.bound / 2
        tail = ranking.indices[~positive]
        assert len(tail) > 20
        expected = reference.plain_order([d], [1.0], left_out=[0, *ranking.indices[positive]])
        assert tail.tolist() == expected


@pytest.mark.parametrize("solver", ["cg", "direct"])
def test_scores_cut_to_zero_are_within_the_bound(solver):
    X = sheet(120)
    ranker = RAN(4, 0.05, solver=solver).fit(X)
    ranking = ranker.rank(0, include_query=True)
    exact = by_reference(X, Query(indices=0), ranker, 1)[0][0]
    assert (ranking.scores == 0).any()
    assert np.abs(ranking.scores - exact[ranking.indices]).max() <= ranking.solution.bound


def test_parameters_changed_after_fit_wait_for_the_next_fit():
    ranker = RAN(5, 3.0).fit(sheet())
    before = ranker.rank(0)
    after = ranker.set_params(smoothness=100.0, gamma="shared", max_iter=9).rank(0)
    np.testing.assert_array_equal(before.scores, after.scores)
    assert after.trace is None


def test_an_unsolved_system_warns():
    line = np.arange(3000.0)[:, None] ** 1.0001
    ranker = RAN(1, 1e9, solver="cg").fit(line)
    with pytest.warns(ConvergenceWarning, match="the solver ended before"):
        ranking = ranker.rank(0, top=5)
    assert not ranking.solution.converged


def test_nearly_equal_distances_keep_a_graph():
    """A gamma below the rounding of the distances must not empty the rows of S."""
    d = 1 - np.eye(40)
    d[3, 4] = d[4, 3] = 1 - 2.3e-16
    ranker = RAN(5, gamma="shared", metric="precomputed_sq", scale=None, max_iter=3, guard=False)
    ranking = rank_quietly(ranker.fit(d), Query(indices=0))
    assert min(ranking.trace.query_degree) > 0
    assert (ranking.scores > 0).any()


def test_converges_and_says_so():
    ranking = RAN(8, 0.05, scale=None, max_iter=200, guard=False).fit(sheet()).rank(0)
    trace = ranking.trace
    assert trace.stopped == "converged"
    assert 1 < trace.n_alternations < 200
    before, last = trace.objective[-3], trace.objective[-1]
    assert abs(last - before) <= 1e-6 * abs(last)


def test_ending_at_max_iter_warns():
    ranker = RAN(5, 3.0, max_iter=2, guard=False).fit(sheet())
    with pytest.warns(ConvergenceWarning, match="1 of 1 queries ended at max_iter=2"):
        ranking = ranker.rank(0)
    assert ranking.trace.stopped == "max_iter"
    assert ranking.trace.n_alternations == 2


def test_shared_factorization_equals_single_solves():
    X = sheet(120)
    queries = [*range(0, 120, 7), *QUERIES.values()]
    together = RAN(6, solver="direct").fit(X).rank_many(queries)
    apart = RAN(6, solver="cg").fit(X).rank_many(queries)
    for left, right in zip(together, apart, strict=True):
        np.testing.assert_allclose(
            left.scores[np.argsort(left.indices)],
            right.scores[np.argsort(right.indices)],
            atol=1e-10,
        )


@pytest.mark.parametrize("k", [58, 59, 60, 1000])
def test_more_neighbors_than_points(k):
    X = sheet(60)
    expected = RAN(58).fit(X).rank(0)
    if k > 58:
        with pytest.warns(UserWarning, match=f"n_neighbors={k} is too large for 60 points"):
            ranker = RAN(k).fit(X)
    else:
        ranker = RAN(k).fit(X)
    assert ranker.n_neighbors_ == 58
    np.testing.assert_array_equal(ranker.rank(0).indices, expected.indices)


def test_auto_says_what_it_chose():
    rng = np.random.default_rng(0)
    assert RAN().fit(sheet(300)).n_neighbors_ == 10
    diffuse = rng.normal(size=(300, 60))
    chosen, given = RAN().fit(diffuse), RAN(20).fit(diffuse)
    assert chosen.n_neighbors_ == 20
    np.testing.assert_array_equal(chosen.affinity_.toarray(), given.affinity_.toarray())
    assert np.count_nonzero(chosen.affinity_.toarray(), axis=1).min() == 20


def test_natural_scale_does_not_depend_on_the_unit_of_the_data():
    X = sheet()
    ranker = RAN(5, max_iter=3, guard=False)
    small = rank_quietly(ranker.fit(X), Query(indices=0))
    large = rank_quietly(ranker.fit(X * 255), Query(indices=0))
    np.testing.assert_array_equal(small.indices, large.indices)
    np.testing.assert_allclose(small.trace.objective, large.trace.objective, rtol=1e-9)
    raw = RAN(5, max_iter=3, guard=False, scale=None)
    first = rank_quietly(raw.fit(X), Query(indices=0)).scores
    assert np.abs(first - rank_quietly(raw.fit(X * 255), Query(indices=0)).scores).max() > 1e-3


def test_no_array_grows_with_the_square_of_the_points():
    """4,000 points would need 128 MB for one N x N array of numbers."""
    import tracemalloc

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    tracemalloc.start()
    ranker = RAN(5, max_iter=3, guard=False).fit(X)
    rank_quietly(ranker, Query(indices=0), top=10)
    unseen = [Query(vectors=vector) for vector in rng.normal(size=(100, 3))]
    RAN(20).fit(X).rank_many(unseen, top=10)
    rank_quietly(ranker, Query(vectors=rng.normal(size=(300, 3))), top=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


class TestSynthetic:
    """Figures 1 and 2."""

    @pytest.mark.parametrize("seed", range(5))
    def test_two_moons(self, seed):
        moons = datasets.load("moons") if not seed else datasets.synthetic.moons(seed=seed)
        indices, _ = RAN(n_neighbors=10).fit(moons.X).search(k=len(moons.X))
        for query in range(0, 400, 20):
            own = np.count_nonzero(moons.labels == moons.labels[query]) - 1
            assert (moons.labels[indices[query, :own]] == moons.labels[query]).all()

    @pytest.mark.parametrize("seed", range(5))
    def test_three_rings_rank_from_inner_to_outer(self, seed):
        rings = datasets.synthetic.rings(seed=seed)
        ranker = RAN(n_neighbors=15).fit(rings.X)
        for query in np.flatnonzero(rings.labels == 0)[::6]:
            ranking = ranker.rank(query)
            assert (ranking.scores > 0).all()
            assert (np.diff(rings.labels[ranking.indices]) >= 0).all()


@pytest.mark.parametrize(("gamma", "candidates"), READINGS)
def test_alternations_are_those_of_the_reference(gamma, candidates):
    X = sheet()
    ranker = RAN(6, 5.0, gamma=gamma, candidates=candidates, solver="direct").fit(X)
    expected, _ = by_reference(X, Query(indices=7), ranker, 4)
    for scores, ranking in zip(expected, ranker.alternations(7, include_query=True), strict=False):
        np.testing.assert_allclose(ranking.scores, scores[ranking.indices], atol=1e-8)
        assert ranking.indices[0] == 7
    assert len(next(ranker.alternations([7, 3], top=5))) == 5
    with pytest.raises(InputError, match="database has rows 0 to 59"):
        next(ranker.alternations(60))


@pytest.mark.parametrize("gamma", ["own", "shared"])
@pytest.mark.parametrize("budget", [3, 8, 20, None])
@pytest.mark.parametrize("smoothness", [0.3, 10.0])
def test_later_alternations_are_within_their_bound_on_the_whole_graph(
    budget, smoothness, gamma, monkeypatch
):
    learned = []

    def remembering(turns, graph, start):
        learned.append((turns, graph))
        return solve(turns, graph, start)

    steps, name = (
        (alternation.HalfSteps, "_solve") if budget is None else (RegionSteps, "learn_scores")
    )
    solve = getattr(steps, name)
    monkeypatch.setattr(steps, name, remembering)
    for seed in range(12):
        X = np.random.default_rng(seed).standard_t(2, size=(60, 2))
        ranker = RAN(
            n_neighbors=4, smoothness=smoothness, max_iter=3, solver="region", budget=budget,
            gamma=gamma, guard=False, tol=1e-3, fusion="none",
        ).fit(X)  # fmt: skip
        query = check_query(Query([0, 1, 2], weights=[1.0, 0.5, -0.5]), 60, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = ranker.scored(query, 0)
        turns, graph = learned[-1]
        if budget is None:
            weights = ranker._alternation.base(later=True).weights.toarray()
            rows = np.zeros((len(graph.points), 60))
            rows[:, graph.columns] = graph.weights.toarray()
            weights[graph.points], weights[:, graph.points] = rows, rows.T
        else:
            affinity = (
                ranker._alternation._incoming_edges(later=True).sources.toarray().T.astype(float)
            )
            numbers = numbers_of(turns, ranker.neighbors_)
            for point, count, columns, shares in zip(
                turns.points, graph.counts, graph.columns, graph.weights, strict=True
            ):
                affinity[point] = 0.0
                affinity[point, numbers[columns[:count]]] = shares[:count]
            weights = (affinity + affinity.T) / 2
        exact = reference.f_step(weights, smoothness, query.indices, query.weights)
        scores = np.zeros(60)
        scores[solution.points] = solution.scores
        assert np.abs(scores - exact).max() <= solution.bound + 1e-13


def numbers_of(turns, neighbors):
    """Return which points places of a region stand for."""
    numbers = np.zeros(turns.later.n_all, dtype=int)
    numbers[: len(turns.points)] = turns.points
    numbers[turns.later.lists] = neighbors.indices[turns.points]
    return numbers


@pytest.mark.parametrize(("gamma", "candidates"), READINGS)
@pytest.mark.parametrize("name", QUERIES)
def test_with_a_budget_a_whole_component_is_learned_like_the_reference(gamma, candidates, name):
    """Nothing is cut off: what the budget leaves out has no score."""
    X, query = np.vstack([sheet(), sheet(20) + 50.0]), QUERIES[name]
    ranker = RAN(
        5, 3.0, gamma=gamma, candidates=candidates, max_iter=3, tol=1e-12, guard=False,
        solver="region", budget=70,
    ).fit(X)  # fmt: skip
    ranking = rank_quietly(ranker, query, top=80, include_query=True)
    scores, values = by_reference(X, query, ranker, 3)
    found = np.zeros(80)
    found[ranking.indices] = ranking.scores
    np.testing.assert_allclose(found, scores[2], atol=1e-8)
    np.testing.assert_allclose(ranking.trace.objective, values, rtol=1e-8)
