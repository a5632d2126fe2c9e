"""RAN(adapt="collective"): answers on the learned graph, by every solver, and what they rest on."""

import threading
import warnings
from functools import cache

import numpy as np
import pytest
import reference
from learning_cases import STRANDS, curve
from ran_cases import QUERIES, RAN, READINGS, rank_quietly
from sklearn.base import clone

from rankfold import InputError, Query, datasets
from rankfold.check import check_query
from rankfold.graph.collective import CANDIDATES, learning_of
from rankfold.neighbors import DynamicEngine
from rankfold.types import NOBODY

N = 90
SOLVERS = ["direct", "cg", "region"]


def collective(**options):
    return RAN(4, 3.0, adapt="collective", **options)


@cache
def fitted(**options):
    """Return a ranker on a curve, which tests only ask."""
    return collective(**options).fit(curve(N))


def all_scores(ranking, n_points=N):
    scores = np.zeros(n_points)
    scores[ranking.indices] = ranking.scores
    return scores


def by_reference(X, query, ranker, n_alternations):
    """Scores on the ranker's lists, by the dense reference; distances end with the lists."""
    n, lists = len(X), ranker.neighbors_
    query = check_query(query, n, X.shape[1])
    everything = np.vstack([X, query.vectors])
    plain = reference.sq_distances(everything) / ranker.collective_.unit
    d = np.full(plain.shape, np.inf)
    for i in range(n):
        there = lists.indices[i] != NOBODY
        d[i, lists.indices[i][there]] = lists.sq_distances[i][there]
    for i in range(n, len(everything)):
        near = reference.nearest(plain[i], range(n))[: lists.width]
        d[i, near] = plain[i, near]
    k, smoothness, gamma = ranker.n_neighbors_, ranker.smoothness, ranker.gamma
    method = reference.RAN(d, n, k, smoothness, gamma, ranker.candidates, natural=True)
    method.allowed = [[j for j in range(n) if np.isfinite(row[j])] for row in d]
    points = [*query.indices, *range(n, len(everything))]
    scores, _ = method.run(points, query.weights, n_alternations)
    return [f[:n] for f in scores]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", QUERIES)
def test_every_solver_answers_like_the_reference(solver, name):
    X, query = curve(N), QUERIES[name]
    ranker = fitted(solver=solver, tol=1e-11)
    assert ranker.collective_.n_rounds
    expected = by_reference(X, query, ranker, 1)[0]
    ranking = ranker.rank_many([query])[0]
    np.testing.assert_allclose(ranking.scores, expected[ranking.indices], rtol=0, atol=1e-8)
    free = np.setdiff1d(np.arange(N), check_query(query, N, 3).indices)
    np.testing.assert_array_equal(np.sort(ranking.indices), free)
    few = ranker.rank_many([query], top=7)[0]
    bound = few.solution.bound + 1e-12
    assert np.abs(few.scores - expected[few.indices]).max() <= bound
    assert few.solution.certified
    assert set(few.indices) == set(ranking.indices[:7])


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("gamma", "candidates"), READINGS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", QUERIES)
def test_alternations_on_top_answer_like_the_reference(gamma, candidates, solver, name):
    X, query = curve(N), QUERIES[name]
    ranker = fitted(
        gamma=gamma, candidates=candidates, max_iter=3, tol=1e-12, guard=False, solver=solver
    )
    ranking = rank_quietly(ranker, query, top=N)
    expected = by_reference(X, query, ranker, 3)[ranking.trace.n_alternations - 1]
    assert ranking.trace.n_alternations == 3
    np.testing.assert_allclose(ranking.scores, expected[ranking.indices], rtol=0, atol=1e-8)


def test_the_learned_graph_is_another_one():
    X = curve(N)
    plain, learned = RAN(4, 3.0).fit(X), collective().fit(X)
    assert learned.n_neighbors_ == learned.collective_.n_neighbors
    assert abs(plain.affinity_ - learned.affinity_).max() > 0.01
    np.testing.assert_allclose(learned.affinity_.sum(axis=1), 1.0)
    np.testing.assert_array_equal(learned.neighbors_.indices, learned.collective_.lists.indices)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("options", [{}, {"max_iter": 3}, {"max_iter": 2, "gamma": "shared"}])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_points", [5, 300])
def test_where_it_is_declined_answers_are_those_of_ran(options, solver, n_points):
    X = datasets.load("digits").X[:n_points]
    k = 3 if n_points == 5 else 5
    plain = RAN(k, solver=solver, **options).fit(X)
    ranker = RAN(k, solver=solver, adapt="collective", **options).fit(X)
    assert ranker.collective_.n_rounds == 0
    for query in (Query(3), Query([3, 1], weights=[1.0, -0.5]), Query(vectors=X[2] + 0.5)):
        for top in (None, 2):
            expected = rank_quietly(plain, query, top=top)
            found = rank_quietly(ranker, query, top=top)
            np.testing.assert_array_equal(found.indices, expected.indices)
            np.testing.assert_array_equal(found.scores, expected.scores)
    assert ranker.mean_gamma_ == plain.mean_gamma_
    assert ranker.unit_ == plain.unit_


@pytest.mark.parametrize("gamma", ["own", "shared"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_where_it_is_declined_any_point_may_become_a_neighbour(gamma, solver):
    engine = DynamicEngine.build(datasets.load("digits").X[:300], "euclidean", CANDIDATES)
    engine.learned = learning_of(engine, 5, 30.0).run()
    assert engine.learned.n_rounds == 0
    options = {"gamma": gamma, "solver": solver, "max_iter": 2, "guard": False}
    plain, ranker = (RAN(5, 1.0, adapt=a, **options).fit(engine) for a in ("query", "collective"))
    assert ranker.collective_ is engine.learned
    # Two examples of the same score are drawn together, though neither is in the other's list.
    near = engine.rows(np.arange(300), ranker.neighbors_.width + 1).indices[3]
    query = Query([3, near[-1]])
    expected, found = rank_quietly(plain, query), rank_quietly(ranker, query)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.scores, expected.scores)
    ranker.set_params(candidates="local").fit(engine)
    assert (
        np.abs(all_scores(rank_quietly(ranker, query), 300) - all_scores(found, 300)).max() > 0.01
    )


@pytest.mark.parametrize("n_points", range(2, 11))
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_handful_of_points(n_points, solver):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_neighbors=4 is too large")
        ranker = collective(solver=solver).fit(curve(n_points))
    assert sorted(ranker.rank(0).indices) == list(range(1, n_points))
    assert len(ranker.rank(vectors=[0.3, 0.9, 1.1], top=1)) == 1


@pytest.mark.parametrize("metric", ["cosine", "precomputed", "precomputed_sq"])
def test_every_metric_agrees_across_solvers(metric):
    X = curve(N) + 2.0
    if metric.startswith("precomputed"):
        X = reference.sq_distances(X)
        X = np.sqrt(X) if metric == "precomputed" else X
    answers = [collective(metric=metric, solver=s, tol=1e-11).fit(X).rank(7) for s in SOLVERS]
    for answer in answers[1:]:
        np.testing.assert_allclose(all_scores(answer), all_scores(answers[0]), atol=1e-8)


def test_it_is_cloned_with_its_parameters():
    ranker = collective(max_iter=2)
    assert ranker.get_params()["adapt"] == "collective"
    copy = clone(ranker.fit(curve(N)))
    assert copy.get_params() == ranker.get_params()
    assert not hasattr(copy, "collective_")
    assert clone(ranker).set_params(adapt="query").adapt == "query"


def test_a_ranker_fitted_again_forgets_what_was_learned():
    ranker = collective().fit(curve(N))
    ranker.set_params(adapt="query").fit(curve(N))
    expected = RAN(4, 3.0).fit(curve(N)).rank(3)
    np.testing.assert_array_equal(ranker.rank(3).scores, expected.scores)
    assert not hasattr(ranker, "collective_")


def living(learned=True, k=4, n=N):
    engine = DynamicEngine.build(curve(n), "euclidean", CANDIDATES)
    if learned:
        engine.learned = learning_of(engine, k, 3.0).run()
    return engine


def test_the_graph_that_an_engine_keeps_is_taken_over():
    engine = living()
    ranker = collective().fit(engine)
    assert ranker.collective_ is engine.learned
    fresh = collective().fit(curve(N))
    np.testing.assert_array_equal(ranker.rank(3).indices, fresh.rank(3).indices)
    np.testing.assert_array_equal(ranker.rank(3).scores, fresh.rank(3).scores)


def test_a_graph_kept_for_other_neighbours_is_learned_anew():
    engine = living(k=3)
    ranker = collective().fit(engine)
    assert ranker.collective_ is not engine.learned
    assert ranker.collective_.n_plain == 4
    fresh = collective().fit(curve(N))
    np.testing.assert_array_equal(ranker.neighbors_.indices, fresh.neighbors_.indices)


@pytest.mark.parametrize("max_iter", [1, 3])
def test_solvers_agree_after_changes(max_iter):
    engine = living()
    engine.remove(np.arange(2, 60, 3))
    engine.add(curve(12, seed=1))
    queries = [Query(1), Query(95), Query(vectors=[0.3, 0.9, 1.1]), Query([1, 93], weights=[1, -1])]
    options = {"max_iter": max_iter, "tol": 1e-12, "guard": False}
    rankers = [collective(solver=solver, **options).fit(engine) for solver in SOLVERS]
    for query in queries:
        answers = [all_scores(rank_quietly(r, query), 102) for r in rankers]
        assert np.count_nonzero(answers[0]) > 50  # new points are reached, and reach the others
        assert not answers[0][~engine.alive].any()
        for answer in answers[1:]:
            np.testing.assert_allclose(answer, answers[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_when_few_points_are_left_it_still_answers(solver):
    engine = living(n=60)
    engine.remove(np.arange(8, 60))
    ranker = collective(solver=solver).fit(engine)
    assert sorted(ranker.rank(0).indices) == list(range(1, 8))
    np.testing.assert_allclose(ranker.affinity_.sum(axis=1)[:8], 1.0)


def test_a_ranker_follows_changes_as_one_fitted_anew():
    engine = living()
    ranker = collective(solver="region", tol=1e-11).fit(engine)
    rng = np.random.default_rng(0)
    for turn in range(4):
        gone = rng.permutation(np.flatnonzero(engine.alive))[:9]
        rows = [engine.remove(gone).rows, engine.add(curve(4, seed=turn)).rows, gone]
        assert ranker.follow(np.unique(np.concatenate(rows)), engine.width)
        fresh = collective(solver="region", tol=1e-11).fit(engine)
        live = np.flatnonzero(engine.alive)
        for point in (live[0], live[-1]):
            found, expected = (r.rank(int(point)) for r in (ranker, fresh))
            bound = found.solution.bound + expected.solution.bound
            gaps = all_scores(found, engine.n_points) - all_scores(expected, engine.n_points)
            assert np.abs(gaps).max() <= bound + 1e-12


def test_a_ranker_does_not_follow_where_one_fitted_anew_has_another_graph():
    X = STRANDS
    engine = DynamicEngine.build(X, "euclidean", CANDIDATES)
    engine.learned = learning_of(engine, 5, 30.0).run()
    assert engine.learned.n_neighbors == 10
    engine.remove(np.arange(9, len(X)))
    options = {"adapt": "collective", "solver": "region"}
    ranker = RAN(5, **options).fit(engine)
    assert ranker.collective_ is not engine.learned  # too few points for ten neighbours
    rows = engine.add(X[9:60]).rows
    assert RAN(5, **options).fit(engine).collective_ is engine.learned
    assert not ranker.follow(rows, engine.width)


def test_threads_answer_alike():
    ranker = collective(solver="region").fit(curve(N))
    alone, together = (ranker.rank_many(range(N), top=5, n_jobs=n_jobs) for n_jobs in (1, 2))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.scores, other.scores)


def test_ctrl_c_while_learning_leaves_no_thread_and_nothing_learned(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankfold.graph.collective.BLOCK_ROWS", 16)
    monkeypatch.setattr("rankfold.graph.kernels.lift", stop)
    before = threading.active_count()
    engine, ranker = living(learned=False), collective()
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(engine)
    assert threading.active_count() == before
    assert engine.learned is None
    assert not hasattr(ranker, "collective_")


@pytest.mark.parametrize("adapt", ["all", None, True])
def test_another_word_for_whom_to_adapt_is_refused(adapt):
    with pytest.raises(InputError, match="adapt"):
        RAN(adapt=adapt).fit(curve(N))
