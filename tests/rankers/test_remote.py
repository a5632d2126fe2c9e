"""RAN over an engine whose rows are fetched where a query reaches."""

from unittest.mock import patch

import numpy as np
import pytest
from distant_engine import FarEngine
from hypothesis import given, settings
from hypothesis import strategies as st
from ran_cases import QUERIES, RAN, by_reference, rank_quietly, sheet
from sklearn.exceptions import ConvergenceWarning

from rankfold import Query, datasets
from rankfold.check import InputError, check_query
from rankfold.datasets.synthetic import moons, rings, sheets
from rankfold.explaining import explain
from rankfold.neighbors import LivingEngine

WIDTH = 12


def clusters(seed):
    """Three groups that no edge connects, one of them of copies of a point."""
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(30, 3)), rng.normal(size=(25, 3)) + 50.0
    return np.vstack([*groups, np.full((14, 3), -50.0)])


def copies(seed):
    """A sheet of which many points lie in the same place."""
    X = sheet(60, seed)
    X[5:25] = X[5]
    return X


SHAPES = {
    "sheet": lambda seed: sheet(70, seed),
    "moons": lambda seed: moons(80, seed=seed).X,
    "rings": lambda seed: rings((15, 25, 35), seed=seed).X,
    "clusters": clusters,
    "copies": copies,
}


def far(X, width=WIDTH, **options):
    return FarEngine(LivingEngine.build(X, "euclidean", width), **options)


def scores_of(ranking, n_points):
    scores = np.zeros(n_points)
    scores[ranking.ids] = ranking.scores
    return scores


def check_against(exact, ranking, free, rounding):
    """Scores are within the bound, and a certified answer has the best."""
    bound = ranking.solution.bound + rounding
    assert np.abs(ranking.scores - exact[ranking.ids]).max(initial=0.0) <= bound
    assert (np.diff(ranking.scores) <= 0).all()
    outside = np.setdiff1d(free, ranking.ids)
    if ranking.solution.certified and len(outside) and len(ranking):
        assert exact[ranking.ids].min() > exact[outside].max() - rounding


@st.composite
def queries(draw, X):
    """One example or several, of the database or not, of any sign, one of them positive."""
    ids = draw(st.lists(st.integers(0, len(X) - 1), max_size=4, unique=True))
    n_vectors = draw(st.integers(0 if ids else 1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    vectors = X[rng.integers(0, len(X), n_vectors)] + rng.normal(0, 0.2, (n_vectors, X.shape[1]))
    n_examples = len(ids) + n_vectors
    weight = st.sampled_from([-3.0, -0.5, 0.0, 0.4, 1.0])
    weights = draw(st.lists(weight, min_size=n_examples, max_size=n_examples))
    weights[draw(st.integers(0, n_examples - 1))] = 1.0
    return Query(ids, vectors, weights)


@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None, max_examples=12)
@given(
    seed=st.integers(0, 1000),
    k=st.integers(1, 8),
    smoothness=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
    top=st.integers(1, 90),
    include_query=st.booleans(),
    budget=st.sampled_from(["auto", 1, 5, 20, None]),
    small=st.booleans(),
    data=st.data(),
)
def test_answers_equal_the_reference(
    shape, seed, k, smoothness, tol, top, include_query, budget, small, data
):
    X = SHAPES[shape](seed)
    query = data.draw(queries(X))
    with patch("rankfold.rankers.ran.DIRECT_LIMIT", len(X) if small else 0):
        ranker = RAN(k, smoothness, tol=tol, budget=budget).fit(far(X))
    exact = by_reference(X, query, ranker, 1)[0][0]
    rounding = 1e-14 * (1 + 4 * smoothness)  # of the reference itself
    ranking = ranker.rank_many([query], top=top, include_query=include_query)[0]
    own = check_query(query, len(X), X.shape[1]).ids
    free = np.setdiff1d(np.arange(len(X)), own)
    assert ranking.solution.converged
    assert len(set(ranking.ids)) == len(ranking)
    if include_query:
        assert len(ranking) == min(top, len(X))
        exact[own] = check_query(query, len(X), X.shape[1]).weights[: len(own)]
        bound = ranking.solution.bound + rounding
        assert np.abs(ranking.scores - exact[ranking.ids]).max() <= bound
    else:
        assert len(ranking) == min(top, len(free))
        check_against(exact, ranking, free, rounding)
    if ranking.solution.stopped == "tolerance":
        assert ranking.solution.bound <= 2.5 * tol
    if small or budget in ("auto", None):
        assert ranking.solution.stopped in ("proven", "tolerance")
    if small:
        assert ranking.solution.bound <= 2.5 * tol
    reached = ranker.scored(check_query(query, len(X), X.shape[1]))
    everything = np.zeros(len(X))
    everything[reached.points] = reached.scores
    assert np.abs(everything - exact)[free].max() <= 1.5 * tol + rounding


@pytest.mark.parametrize("smoothness", [0.1, 1.0, 30.0, 100.0])
@pytest.mark.parametrize("top", [5, 200])
def test_digits_equal_those_in_memory(smoothness, top):
    X = datasets.load("digits").X
    engine = far(X, width=42)
    here = RAN(20, smoothness, solver="direct").fit(X)
    there = RAN(20, smoothness).fit(engine)
    asked = [Query(ids=3), Query(ids=[8, 900], weights=[1.0, 0.5]), Query(vectors=X[[4]] + 0.3)]
    asked.append(Query.from_feedback([17], wrong=[23], wrong_weight=-0.5))
    for query in asked:
        exact = scores_of(here.rank_many([query])[0], len(X))
        ranking = there.rank_many([query], top=top)[0]
        free = np.setdiff1d(np.arange(len(X)), check_query(query, len(X), 64).ids)
        check_against(exact, ranking, free, 1e-10)
        np.testing.assert_allclose(ranking.scores, exact[ranking.ids], rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def large():
    return LivingEngine.build(sheets(50_000).X, "euclidean", 20)


@pytest.mark.parametrize(("smoothness", "most_trips"), [(1.0, 10), (10.0, 20)])
def test_a_query_fetches_little_of_a_large_database(large, smoothness, most_trips):
    engine = FarEngine(large)
    there = RAN(5, smoothness, budget=None).fit(engine)
    here = RAN(5, smoothness, solver="region", budget=None).fit(large)
    for point in (7, 1234, 40_000):
        engine.fetched.clear()
        ranking = there.rank(ids=point, top=10)
        expected = here.rank(ids=point, top=10)
        assert ranking.solution.certified
        assert set(ranking.ids) == set(expected.ids)
        gap = np.abs(scores_of(ranking, 50_000) - scores_of(expected, 50_000)).max()
        assert gap <= ranking.solution.bound + expected.solution.bound
        assert len(np.unique(np.concatenate(engine.fetched))) < 0.1 * 50_000
        assert ranking.solution.round_trips == len(engine.fetched) <= most_trips


def test_a_query_that_needs_too_many_rows_ends_with_the_bound_it_has(monkeypatch):
    monkeypatch.setattr("rankfold.solvers.region.MOST_ROWS", 20)
    monkeypatch.setattr("rankfold.rankers.ran.DIRECT_LIMIT", 0)
    X = sheet(400)
    engine = far(X)
    ranker = RAN(5, 30.0, budget=None).fit(engine)
    with pytest.warns(ConvergenceWarning, match="for 1 of 1 queries the solver ended"):
        ranking = ranker.rank(ids=7, top=30)
    assert not ranking.solution.converged
    assert not ranking.solution.certified
    assert len(np.unique(np.concatenate(engine.fetched))) < 400
    exact = scores_of(RAN(5, 30.0, solver="direct").fit(X).rank(ids=7), 400)
    error = np.abs(ranking.scores - exact[ranking.ids]).max()
    assert 1e-6 < error <= ranking.solution.bound
    assert not ranker.scored(check_query(7, 400, 3)).converged


def test_the_default_budget_needs_few_rows_and_exchanges_at_any_smoothness():
    X = np.random.default_rng(0).normal(size=(20_000, 6))
    living = LivingEngine.build(X, "euclidean", 22)
    engine = FarEngine(living)
    there, here = RAN(10).fit(engine), RAN(10, solver="region", budget=None).fit(living)
    shares = []
    for point in (3, 800, 15_000):
        engine.fetched.clear()
        ranking = there.rank(ids=point, top=20)
        expected = here.rank(ids=point, top=20)
        assert ranking.solution.stopped == "budget"
        assert ranking.solution.converged
        assert ranking.solution.round_trips == len(engine.fetched) <= 8
        shares.append(len(np.intersect1d(ranking.ids, expected.ids)) / 20)
        exact = scores_of(expected, 20_000)[ranking.ids]
        assert np.abs(ranking.scores - exact)[exact > 0].max() <= ranking.solution.bound
    assert np.mean(shares) >= 0.95


def test_exchanges_are_counted_and_a_shared_search_is_that_of_the_first():
    X = sheet(300)
    engine = far(X)
    ranker = RAN(5, 3.0).fit(engine)
    before = engine.round_trips
    rankings = ranker.rank_many([QUERIES["unseen"], QUERIES["point"], QUERIES["mixed"]], top=5)
    trips = [ranking.solution.round_trips for ranking in rankings]
    assert sum(trips) == engine.round_trips - before == len(engine.fetched) + 1
    alone = [ranker.rank_many([QUERIES[name]], top=5)[0] for name in ("unseen", "point", "mixed")]
    assert [one.solution.round_trips for one in alone] == [trips[0], trips[1], trips[2] + 1]


def test_threads_answer_alike():
    ranker = RAN(5, 3.0).fit(far(sheet(300)))
    alone, together = (ranker.rank_many(range(40), top=5, n_jobs=n_jobs) for n_jobs in (1, 3))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        assert one.solution.round_trips == other.solution.round_trips


@pytest.mark.parametrize("name", QUERIES)
def test_edges_and_explanations_are_those_in_memory(name):
    X, query = sheet(80), QUERIES[name]
    here = RAN(5, 3.0, solver="direct").fit(X)
    there = RAN(5, 3.0, tol=1e-9).fit(far(X, tells_alive=True))
    for point in (0, 11, 42):
        ours, theirs = (ranker.edges(point) for ranker in (there, here))
        order = np.argsort(ours.points)
        np.testing.assert_array_equal(ours.points[order], theirs.points)
        np.testing.assert_allclose(ours.weights[order], theirs.weights, rtol=1e-12)
    ours, theirs = (explain(ranker, query, point=20) for ranker in (there, here))
    assert ours.score == pytest.approx(theirs.score, abs=1e-8)
    amounts = ([example.amount for example in one.examples] for one in (ours, theirs))
    np.testing.assert_allclose(*amounts, rtol=0, atol=1e-8)
    assert ours.score_rank == theirs.score_rank
    assert ours.path_state == theirs.path_state
    assert ours.path is None or ours.path.steps[-1].end == 20


def test_changes_are_followed():
    X = sheet(90)
    living = LivingEngine.build(X[:80], "euclidean", WIDTH)
    engine = FarEngine(living)
    ranker = RAN(5, 3.0).fit(engine)
    living.remove([3, 12, 40])
    change = living.add(X[80:])
    engine.refresh()
    assert ranker.follow(change.rows, WIDTH)
    alive = np.flatnonzero(living.alive)
    exact = scores_of(RAN(5, 3.0, solver="direct").fit(X[alive]).rank(ids=5), len(alive))
    ranking = ranker.rank(ids=int(alive[5]), top=20)
    assert living.alive[ranking.ids].all()
    error = np.abs(ranking.scores - exact[np.searchsorted(alive, ranking.ids)])
    assert error.max() <= ranking.solution.bound
    with pytest.raises(InputError, match="ids holds 12, which was removed"):
        ranker.rank(ids=12, top=5)
    living.remove(alive[6:])
    engine.refresh()
    assert not ranker.follow(np.arange(90), WIDTH)


@pytest.mark.parametrize("left", [1, 2, 3, 4])
@pytest.mark.filterwarnings("ignore:n_neighbors=2 is too large")
def test_hardly_any_points(left):
    X = sheet(left)
    there, here = RAN(2, 3.0).fit(far(X)), RAN(2, 3.0, solver="direct").fit(X)
    for query in (0, Query(vectors=[0.3, 0.9, 1.1])):
        ours, theirs = (rank_quietly(ranker, query) for ranker in (there, here))
        np.testing.assert_array_equal(np.sort(ours.ids), np.sort(theirs.ids))
        bound = ours.solution.bound + theirs.solution.bound
        gap = np.abs(scores_of(ours, left) - scores_of(theirs, left))
        assert gap.max(initial=0.0) <= bound


def test_too_many_neighbours_for_the_points_warn():
    with pytest.warns(UserWarning, match="n_neighbors=9 is too large for 8 points"):
        assert RAN(9).fit(far(sheet(8))).n_neighbors_ == 6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_neighbors": "auto"}, "over a database it must be a number"),
        ({"n_neighbors": WIDTH}, f"holds lists of {WIDTH}.*use at most {WIDTH - 1}"),
        ({"n_neighbors": 5, "max_iter": 2}, "over a database one alternation is made"),
        ({"n_neighbors": 5, "solver": "direct"}, "over a database a region is solved"),
        ({"n_neighbors": 5, "solver": "cg"}, "over a database a region is solved"),
    ],
)
def test_what_needs_all_points_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        RAN(**settings).fit(far(sheet(60)))


def test_the_graph_of_all_points_is_refused():
    ranker = RAN(5).fit(far(sheet(60)))
    with pytest.raises(InputError, match="affinity_ needs the graph of all points"):
        _ = ranker.affinity_
    with pytest.raises(InputError, match="needs the graph of all points"):
        next(ranker.alternations(0))


def test_rows_that_never_come_end_the_query():
    """A database that loses rows under a query gives an answer that is not called converged."""

    class Forgetful(FarEngine):
        def around(self, slots):
            known = [7, *self._rows.lists.indices[7, :5]]
            return super().around(slots[np.isin(slots, known)])

    living = LivingEngine.build(sheet(200), "euclidean", WIDTH)
    ranker = RAN(5, 30.0).fit(Forgetful(living))
    with pytest.warns(ConvergenceWarning):
        ranking = ranker.rank(ids=7, top=60)
    assert not ranking.solution.converged
