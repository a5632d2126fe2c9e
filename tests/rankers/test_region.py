"""Answers from a region against the dense reference: scores within the bound, members certain."""

import pickle
import warnings

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import example, given
from hypothesis import strategies as st
from ran_cases import QUERIES, RAN, READINGS, by_reference, rank_quietly, sheet
from sklearn.exceptions import ConvergenceWarning

from rankfold import FaissEngine, GaussianGraph, ManifoldRanking, PersonalizedPageRank, Query
from rankfold.check import check_query
from rankfold.errors import InputError

METHODS = {
    "ran": lambda **given: RAN(n_neighbors=5, smoothness=3.0, **given),
    "pagerank": lambda **given: PersonalizedPageRank(0.9, **given),
    "manifold": lambda **given: ManifoldRanking(0.9, **given),
}


def all_scores(ranking, n_points):
    scores = np.zeros(n_points)
    scores[ranking.indices] = ranking.scores
    return scores


def others(query, n_points):
    return np.setdiff1d(np.arange(n_points), check_query(query, n_points, 3).indices)


@examples(40)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(12, 60),
    k=st.integers(1, 8),
    smoothness=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
    top=st.integers(1, 10),
    name=st.sampled_from(list(QUERIES)),
)
def test_one_alternation_is_within_its_bound(seed, n, k, smoothness, tol, top, name):
    X, query = sheet(n, seed), QUERIES[name]
    if name == "points":
        query = Query(indices=[7, 10], weights=[1.0, 0.4])
    ranker = RAN(k, smoothness, tol=tol, solver="region").fit(X)
    exact = by_reference(X, query, ranker, 1)[0][0]
    ranking = ranker.rank_many([query], top=top)[0]
    assert np.abs(ranking.scores - exact[ranking.indices]).max() <= ranking.solution.bound
    free = others(query, n)
    if ranking.solution.certified:
        outside = np.setdiff1d(free, ranking.indices)
        assert exact[ranking.indices].min() > exact[outside].max(initial=-1.0)
    whole = ranker.rank_many([query], top=n)[0]
    assert len(whole) == len(free)
    assert np.abs(all_scores(whole, n)[free] - exact[free]).max() <= whole.solution.bound
    assert whole.solution.bound <= 2.5 * tol


@examples(60)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(12, 60),
    smoothness=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    top=st.integers(1, 10),
    budget=st.integers(1, 60),
    method=st.sampled_from(list(METHODS)),
    name=st.sampled_from(list(QUERIES)),
)
def test_with_any_budget_errors_are_within_the_bound(
    seed, n, smoothness, top, budget, method, name
):
    X, query = sheet(n, seed), QUERIES[name]
    if name == "points":
        query = Query(indices=[7, 10], weights=[1.0, 0.4])
    settings = {"smoothness": smoothness} if method == "ran" else {}
    ranker = METHODS[method](solver="region", budget=budget).set_params(**settings).fit(X)
    exact = all_scores(METHODS[method](solver="direct").set_params(**settings).fit(X)
                       .rank_many([query])[0], n)  # fmt: skip
    ranking = ranker.rank_many([query], top=top)[0]
    solution, free = ranking.solution, others(query, n)
    assert np.abs(ranking.scores - exact[ranking.indices]).max() <= solution.bound + 1e-11
    if solution.certified:
        outside = np.setdiff1d(free, ranking.indices)
        assert exact[ranking.indices].min() > exact[outside].max(initial=-np.inf) - 1e-11
    reached = ranker.scored(check_query(query, n, 3), point=int(free[0]))
    everything = np.zeros(n)
    everything[reached.points] = reached.scores
    assert np.abs(everything - exact)[free].max() <= reached.bound + 1e-11


def test_a_budget_as_large_as_the_database_is_none():
    X = sheet(300)
    for method in METHODS.values():
        limited, unlimited = (
            method(solver="region", budget=budget).fit(X).rank(3, top=9) for budget in (300, None)
        )
        np.testing.assert_array_equal(limited.indices, unlimited.indices)
        np.testing.assert_array_equal(limited.scores, unlimited.scores)


def test_a_budget_limits_the_points_with_a_score():
    ranker = RAN(5, 100.0, solver="region", budget=40).fit(sheet(400))
    reached = ranker.scored(check_query(3, 400, 3), point=int(ranker.rank(3, top=1).indices[0]))
    assert np.count_nonzero(reached.scores) <= 41
    assert reached.stopped == "budget"
    assert reached.converged


@pytest.mark.parametrize("max_iter", [2, 4])
def test_alternations_with_a_budget_stay_in_their_region(max_iter):
    ranker = RAN(5, 30.0, solver="region", budget=60, max_iter=max_iter, guard=False)
    ranking = rank_quietly(ranker.fit(sheet(500)), Query(7), top=20)
    assert ranking.solution.stopped == "budget"
    assert ranking.trace.n_alternations == max_iter
    assert (ranking.scores > 0).all()
    assert len(set(ranking.indices)) == 20
    exact = rank_quietly(ranker.set_params(budget=None).fit(sheet(500)), Query(7), top=20)
    assert len(np.intersect1d(ranking.indices, exact.indices)) >= 15


@pytest.mark.parametrize("budget", ["many", 0, -3, 2.5, True])
def test_budgets_that_mean_nothing_are_refused(budget):
    for method in METHODS.values():
        with pytest.raises(InputError, match="budget is"):
            method(budget=budget).fit(sheet(30))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("gamma", "candidates"), READINGS)
@pytest.mark.parametrize("scale", ["natural", None])
@examples(15)
@example(seed=0, smoothness=30.0, n_alternations=3, name="point")  # a (k+1)-th neighbour matters
@given(
    seed=st.integers(0, 1000),
    smoothness=st.sampled_from([0.3, 3.0, 30.0]),
    n_alternations=st.integers(2, 4),
    name=st.sampled_from(list(QUERIES)),
)
def test_several_alternations_agree_with_the_reference(
    gamma, candidates, scale, seed, smoothness, n_alternations, name
):
    X, query = sheet(40, seed), QUERIES[name]
    ranker = RAN(
        5,
        smoothness,
        gamma=gamma,
        candidates=candidates,
        scale=scale,
        max_iter=n_alternations,
        tol=1e-12,
        guard=False,
        solver="region",
    ).fit(X)
    ranking = rank_quietly(ranker, query, top=40)
    scores, values = by_reference(X, query, ranker, n_alternations)
    done = ranking.trace.n_alternations
    free = others(query, 40)
    np.testing.assert_allclose(all_scores(ranking, 40)[free], scores[done - 1][free], atol=1e-8)
    course = np.array(ranking.trace.objective)
    np.testing.assert_allclose(course, values[: len(course)], rtol=1e-8)


def test_alternations_on_a_large_set_stay_where_the_query_is():
    """Far away from the query nothing is ever read."""
    near = sheet(300)
    far = sheet(5_000, seed=1) + 100.0
    X = np.vstack([near, far])

    class Watched:
        def __init__(self, lists):
            self.lists, self.rows = lists, set()

        def __getattr__(self, name):
            return getattr(self.lists, name)

        def take(self, rows):
            self.rows.update(np.asarray(rows).tolist())
            return self.lists.take(rows)

    ranker = RAN(5, 3.0, max_iter=3, tol=1e-4, guard=False, solver="region").fit(X)
    watched = Watched(ranker.neighbors_)
    ranker._alternation.lists = watched
    ranking = rank_quietly(ranker, Query(7), top=20)
    assert ranking.trace.n_alternations > 1
    assert ranking.indices.max() < 300
    assert watched.rows
    assert max(watched.rows) < 300


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("include_query", [False, True])
def test_local_and_whole_answers_are_alike(method, name, include_query):
    X, query = sheet(200), QUERIES[name]
    whole = METHODS[method](solver="direct").fit(X)
    local = METHODS[method](solver="region", tol=1e-11).fit(X)
    expected = whole.rank_many([query], top=30, include_query=include_query)[0]
    found = local.rank_many([query], top=30, include_query=include_query)[0]
    # The members are certain; their order is that of scores within the bound.
    assert set(found.indices) == set(expected.indices)
    gap = np.abs(all_scores(found, 200) - all_scores(expected, 200)).max()
    assert gap <= found.solution.bound + expected.solution.bound
    assert found.solution.certified
    assert expected.solution.certified


@pytest.mark.parametrize("method", ["pagerank", "manifold"])
@examples(30)
@given(
    seed=st.integers(0, 1000),
    alpha=st.sampled_from([0.1, 0.5, 0.9, 0.99]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
    self_affinity=st.booleans(),
)
def test_walks_that_return_are_within_their_bound(method, seed, alpha, tol, self_affinity):
    X = np.vstack([sheet(40, seed), [[500.0, 500.0, 500.0], [900.0, 0.0, 0.0]]])
    graph = GaussianGraph(0.3, n_neighbors=5, self_affinity=self_affinity)
    kinds = {"pagerank": PersonalizedPageRank, "manifold": ManifoldRanking}
    ranker = kinds[method](alpha, graph=graph, solver="region", tol=tol).fit(X)
    W = ranker.weights_.toarray()
    for ids, weights in (([3], [1.0]), ([3, 9], [1.0, 0.5]), ([40], [1.0])):
        exact = getattr(reference, method)(W, np.empty((0, 42)), ids, weights, alpha)
        query = Query(ids, weights=weights)
        ranking = ranker.rank_many([query], top=42, include_query=True)[0]
        error = np.abs(all_scores(ranking, 42) - exact).max()
        assert error <= ranking.solution.bound + 1e-15


def test_an_answer_longer_than_what_is_reached_goes_on_by_plain_distance():
    X = np.vstack([sheet(30), sheet(30) + 50.0])
    ranker = RAN(3, 1.0, solver="region").fit(X)
    ranking = ranker.rank(0, top=50)
    reached = ranking.scores > 0
    assert 0 < reached.sum() < 50
    assert not reached[reached.sum() :].any()
    rest = ranking.indices[~reached]
    distances = np.sum((X[rest] - X[0]) ** 2, axis=1)
    assert np.all(np.diff(distances) >= 0)
    assert len(set(ranking.indices.tolist())) == 50


@pytest.mark.parametrize("method", METHODS)
def test_threads_answer_in_order_and_alike(method):
    X = sheet(700)
    ranker = METHODS[method](solver="region").fit(X)
    alone = ranker.rank_many(range(700), top=5)
    together = ranker.rank_many(range(700), top=5, n_jobs=3)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.scores, other.scores)
    indices, _ = ranker.search(k=5, n_jobs=2)
    np.testing.assert_array_equal(indices[3], alone[3].indices)


def test_progress_is_shown_on_stderr_alone(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    ranker = RAN(5, 1.0, solver="region").fit(sheet(600))
    ranker.rank_many(range(600), top=5, progress=True)
    out, err = capfd.readouterr()
    assert not out
    assert "queries" in err


def test_the_solver_is_chosen_by_size_and_by_what_is_asked_for(monkeypatch):
    X = sheet(150)
    assert RAN(5, 1.0).fit(X).rank(0, top=10).solution.solver == "direct"
    monkeypatch.setattr("rankfold.solvers.DIRECT_LIMIT", 100)
    ranker = RAN(5, 1.0).fit(X)
    assert ranker.rank(0, top=10).solution.solver == "region"
    everything = ranker.rank(0)
    assert len(everything) == 149
    assert everything.solution.solver == "cg"
    assert set(everything.indices[:10]) == set(ranker.rank(0, top=10).indices)


def test_unfinished_alternations_warn():
    ranker = RAN(5, 3.0, max_iter=2, guard=False, tol=1e-9, solver="region").fit(sheet(100))
    with pytest.warns(ConvergenceWarning, match="1 of 1 queries ended at max_iter=2"):
        ranker.rank(0, top=5)


def test_a_copy_by_pickle_answers_alike():
    ranker = RAN(5, 3.0, max_iter=2, solver="region").fit(sheet(100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        before = ranker.rank(0, top=9)
        after = pickle.loads(pickle.dumps(ranker)).rank(0, top=9)  # noqa: S301
    np.testing.assert_array_equal(before.indices, after.indices)


def test_many_lists_in_single_precision_give_a_graph_in_single_precision(monkeypatch):
    monkeypatch.setattr("rankfold.graph.adaptive.SMALL", 100)
    X = sheet(500)
    ranker = RAN(5, 3.0, solver="region").fit(FaissEngine(X))
    exact = RAN(5, 3.0, solver="direct").fit(X)
    assert ranker._solvers.system.couplings.dtype == np.float32
    found, expected = ranker.rank(3, top=20), exact.rank(3, top=20)
    np.testing.assert_array_equal(found.indices, expected.indices)
    rounding = 1e-5
    gap = np.abs(found.scores - expected.scores).max()
    assert gap <= found.solution.bound + expected.solution.bound + rounding


@pytest.mark.parametrize("solver", ["direct", "cg", "region"])
@pytest.mark.parametrize("method", METHODS)
def test_lists_in_single_precision_suit_every_solver(method, solver):
    X = sheet(300)
    found = METHODS[method](solver=solver).fit(FaissEngine(X)).rank(3, top=20)
    expected = METHODS[method](solver="direct").fit(X).rank(3, top=20)
    assert set(found.indices) == set(expected.indices)


@pytest.mark.parametrize("method", ["pagerank", "manifold"])
def test_a_graph_of_all_pairs_is_refused(method):
    ranker = METHODS[method](solver="region", graph=GaussianGraph(n_neighbors=None))
    with pytest.raises(InputError, match="give the graph n_neighbors"):
        ranker.fit(sheet(30))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_points", [2, 3, 4])
def test_a_handful_of_points(method, n_points):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ranker = METHODS[method](solver="region").fit(sheet(n_points))
    ranking = ranker.rank(0)
    assert sorted(ranking.indices) == list(range(1, n_points))
    assert len(ranker.rank(0, top=1)) == 1


def test_an_answer_with_the_query_is_certain_of_fewer_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    local, whole = (RAN(5, 30.0, solver=solver).fit(X) for solver in ("region", "direct"))
    for top in (2, 3, 5, 8):
        answers = local.rank_many(range(300), top=top, include_query=True)
        expected, _ = whole.search(k=top, include_query=True)
        for answer, ids in zip(answers, expected, strict=True):
            if answer.solution.certified:
                assert set(answer.indices) == set(ids)


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_with_every_point_is_certain(method):
    ranker = METHODS[method](solver="region").fit(sheet(20))
    assert ranker.rank(0).solution.certified
    assert ranker.rank(list(range(20)), top=20, include_query=True).solution.certified


def test_rounding_larger_than_the_first_level_ends():
    X = np.vstack([np.zeros((400, 3)), sheet(60)])
    ranking = RAN(5, 1e9, solver="region").fit(X).rank(430, top=5)
    assert len(ranking) == 5
    walk = PersonalizedPageRank(1 - 1e-13, solver="region").fit(sheet(60))
    assert len(walk.rank(0, top=5)) == 5


@pytest.mark.parametrize("method", ["pagerank", "manifold"])
def test_a_vector_far_from_everything_is_answered_by_distance(method):
    X = sheet(60)
    ranker = METHODS[method](solver="region", graph=GaussianGraph(0.1, n_neighbors=5)).fit(X)
    ranking = ranker.rank(vectors=[1e3, 1e3, 1e3], top=5)
    nearest = np.argsort(np.sum((X - 1e3) ** 2, axis=1))[:5]
    np.testing.assert_array_equal(ranking.indices, nearest)


def test_few_queries_are_shared_among_threads():
    ranker = RAN(5, 1.0, solver="region").fit(sheet(100))
    alone = ranker.rank_many(range(10), top=3)
    for one, other in zip(alone, ranker.rank_many(range(10), top=3, n_jobs=4), strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)


@pytest.mark.parametrize("method", METHODS)
def test_another_budget_shares_what_was_fitted(method):
    ranker = METHODS[method](solver="region", budget=20).fit(sheet(300))
    before = ranker.rank(3, top=5)
    proven = ranker.with_budget(None)
    assert proven.get_params()["budget"] is None
    assert proven._solvers.system is ranker._solvers.system
    expected = METHODS[method](solver="region", budget=None).fit(sheet(300)).rank(3, top=5)
    np.testing.assert_array_equal(proven.rank(3, top=5).scores, expected.scores)
    np.testing.assert_array_equal(ranker.rank(3, top=5).scores, before.scores)
    with pytest.raises(InputError, match="budget is 'all'"):
        ranker.with_budget("all")
