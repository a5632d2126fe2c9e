"""Shape and distance in one order: what the blend says, and what it leaves alone."""

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ran_cases import QUERIES, by_reference, rank_quietly, sheet
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

import rankfold
from rankfold import (
    RAN,
    Distance,
    Index,
    InputError,
    ManifoldRanking,
    PersonalizedPageRank,
    Query,
    datasets,
)
from rankfold.check import check_query
from rankfold.rankers.ordering import HUBNESS, WEIGHT

SOLVERS = ("direct", "cg", "region")
N_BEST = 25


def example_distances(X, query):
    """Squared distances of all points to each example."""
    d = reference.sq_distances(np.vstack([X, query.vectors]))
    return d[[*query.indices, *range(len(X), len(d))]][:, : len(X)]


def mean_distances(X, query):
    """Squared distances to the positive examples, averaged by weight."""
    positive = np.maximum(query.weights, 0.0)
    return positive @ example_distances(X, query) / positive.sum()


def blended(X, query, ranker, shape, weight=WEIGHT):
    query = check_query(query, len(X), X.shape[1])
    W, _ = reference.adaptive_graph(reference.sq_distances(X), len(X), ranker.n_neighbors_)
    d, degrees = mean_distances(X, query), W.sum(axis=1)
    opposed = example_distances(X, query)[query.weights <= 0].min(axis=0, initial=np.inf)
    given = ranker.n_neighbors_, degrees, weight, opposed, len(query.weights) == 1
    return reference.blend(shape, d, query.indices, *given)


def scores_by_point(ranking, n_points):
    scores = np.full(n_points, np.nan)
    scores[ranking.indices] = ranking.scores
    return scores


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", QUERIES)
def test_blends_agree_with_the_reference(solver, name):
    X = sheet()
    ranker = RAN(n_neighbors=6, smoothness=3.0, solver=solver, tol=1e-12, budget=None).fit(X)
    shape = by_reference(X, QUERIES[name], ranker, 1)[0][0]
    expected, horizon = blended(X, QUERIES[name], ranker, shape)
    ranking = rank_quietly(ranker, QUERIES[name])
    np.testing.assert_allclose(ranking.scores, expected[ranking.indices], atol=1e-8)
    np.testing.assert_allclose(ranking.shape, shape[ranking.indices], atol=1e-8)
    assert ranking.solution.fused.horizon == pytest.approx(horizon)
    query = check_query(QUERIES[name], len(X), X.shape[1])
    measured = np.sqrt(mean_distances(X, query))[ranking.indices]
    np.testing.assert_allclose(ranking.distances, measured, atol=1e-8)


@given(
    seed=st.integers(0, 50),
    weight=st.floats(0.1, 20.0),
    n_neighbors=st.integers(2, 8),
    budget=st.one_of(st.none(), st.integers(5, 60)),
)
@examples(30)
def test_the_true_error_is_within_the_bound_and_the_certificate_is_true(
    seed, weight, n_neighbors, budget
):
    X = sheet(80, seed)
    ranker = RAN(n_neighbors, 30.0, solver="region", budget=budget, fusion=weight, tol=1e-4).fit(X)
    ranking = rank_quietly(ranker, Query(indices=7), top=N_BEST)
    shape = by_reference(X, Query(indices=7), ranker, 1)[0][0]
    expected, _ = blended(X, Query(indices=7), ranker, shape, weight)
    bound = ranking.solution.bound + 1e-12
    assert np.abs(ranking.scores - expected[ranking.indices]).max() <= bound
    assert np.abs(ranking.shape - shape[ranking.indices]).max() <= bound
    if ranking.solution.certified:
        others = np.setdiff1d(np.arange(len(X)), [7, *ranking.indices])
        assert expected[ranking.indices].min() >= expected[others].max() - 1e-12


def test_what_is_exact_is_certified():
    X = sheet()
    assert RAN(n_neighbors=6).fit(X).rank(7, top=10).solution.certified
    assert (
        not RAN(n_neighbors=6, fusion="reciprocal_rank").fit(X).rank(7, top=10).solution.certified
    )


@pytest.mark.parametrize("fusion", ["none", 0, 0.0])
def test_no_weight_is_the_paper(fusion):
    X = sheet()
    ranking = RAN(n_neighbors=6, fusion=fusion).fit(X).rank(7)
    shape = by_reference(X, Query(indices=7), RAN(n_neighbors=6).fit(X), 1)[0][0]
    np.testing.assert_allclose(ranking.scores, shape[ranking.indices], atol=1e-8)
    assert ranking.solution.fused is None
    assert ranking.distances is None
    np.testing.assert_array_equal(ranking.shape, ranking.scores)


def test_a_heavy_weight_puts_the_neighbours_first_in_their_order():
    X = sheet()
    heavy = RAN(n_neighbors=6, fusion=100).fit(X).rank(7, top=6)
    np.testing.assert_array_equal(heavy.indices, Distance().fit(X).rank(7, top=6).indices)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_nearest_stays_first(solver):
    data, queries = datasets.load("digits").X, range(0, 400, 4)
    shape, plain = RAN(fusion="none", solver=solver).fit(data[:400]), Distance().fit(data[:400])
    fused = shape.with_fusion("auto")
    nearest = [ranking.indices[0] for ranking in plain.rank_many(queries, top=1)]
    first = [ranking.indices[0] for ranking in shape.rank_many(queries, top=1)]
    assert np.mean(np.equal(first, nearest)) < 0.9
    for query in (*queries, Query(vectors=data[401])):
        distances = fused.rank_query(query, top=2).distances
        near = np.sqrt(-plain.rank_query(query, top=1).scores)
        np.testing.assert_allclose(distances[0], near[0])
        assert distances[0] <= distances[1]


def test_beyond_the_horizon_shape_decides():
    X = sheet(200)
    ranker, plain = RAN(n_neighbors=6).fit(X), Distance().fit(X)
    near = set(plain.rank(7, top=6).indices.tolist())
    ranking = ranker.rank(7)
    assert ranking.solution.fused.horizon == 1
    far = [place for place, point in enumerate(ranking.indices) if point not in near]
    assert (np.diff(ranking.shape[far]) <= 0).all()


def test_hubs_widen_the_horizon():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))  # in many dimensions some points are neighbours of very many
    ranker = RAN(n_neighbors=10).fit(X)
    hubs = np.argsort(-ranker.affinity_.sum(axis=0))
    horizons = [ranker.rank(int(point), top=5).solution.fused.horizon for point in hubs]
    hubness = [ranker.rank(int(point), top=5).solution.fused.hubness for point in hubs]
    np.testing.assert_allclose(horizons, np.interp(hubness, HUBNESS, (1.0, 2.0)))
    assert max(horizons) == 2


@pytest.mark.parametrize("name", QUERIES)
def test_reciprocal_ranks_agree_with_the_reference(name):
    X = sheet()
    ranker = RAN(n_neighbors=6, smoothness=3.0, fusion="reciprocal_rank").fit(X)
    ranking = rank_quietly(ranker, QUERIES[name])
    shape = by_reference(X, QUERIES[name], ranker, 1)[0][0]
    query = check_query(QUERIES[name], len(X), X.shape[1])
    expected = reference.reciprocal_ranks(shape, mean_distances(X, query), query.indices)
    positive = ranking.shape > 0
    np.testing.assert_allclose(
        ranking.scores[positive], expected[ranking.indices[positive]], atol=1e-12
    )


@pytest.mark.parametrize("method", [PersonalizedPageRank, ManifoldRanking])
def test_other_methods_take_it_too(method):
    X = sheet()
    alone, fused = method().fit(X).rank(7), method(fusion="auto").fit(X).rank(7)
    assert alone.solution.fused is None
    assert fused.solution.fused.kind == "blend"
    np.testing.assert_allclose(
        scores_by_point(alone, len(X))[fused.indices], fused.shape, rtol=1e-9
    )
    assert (fused.scores <= fused.shape * (1 + 1e-12)).all()


def test_the_scale_of_the_data_does_not_matter():
    X = sheet()
    ranking = RAN(n_neighbors=6).fit(X).rank(7)
    scaled = RAN(n_neighbors=6).fit(1e3 * X).rank(7)
    np.testing.assert_array_equal(ranking.indices, scaled.indices)
    np.testing.assert_allclose(ranking.scores, scaled.scores, rtol=1e-6)


def test_copies_of_the_query_come_first_and_lose_nothing():
    X = np.vstack([sheet(), np.tile(sheet()[7], (3, 1))])
    ranking = RAN(n_neighbors=3).fit(X).rank(7, top=5)
    assert set(ranking.indices[:3]) == {60, 61, 62}
    np.testing.assert_allclose(ranking.scores[:3], ranking.shape[:3])


def test_a_short_answer_is_the_head_of_a_long_one():
    X = datasets.load("digits").X
    ranker = RAN().fit(X)
    for query in (0, 100, 1000):
        long = ranker.rank(query, top=100)
        short = ranker.rank(query, top=10)
        np.testing.assert_array_equal(short.indices, long.indices[:10])


def test_distances_that_cannot_matter_are_not_measured_and_not_missed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60)) + 2 * rng.integers(2, size=(300, 1))
    ranker = RAN(n_neighbors=10).fit(X)
    wide = [q for q in range(300) if ranker.rank(q, top=1).solution.fused.horizon > 1]
    assert len(wide) > 20
    for query in wide:
        few, everything = ranker.rank(query, top=5), ranker.rank(query)
        np.testing.assert_array_equal(few.indices, everything.indices[:5])
        np.testing.assert_allclose(few.scores, everything.scores[:5], rtol=1e-12)
        np.testing.assert_allclose(few.distances, everything.distances[:5], rtol=1e-12)


def test_a_region_is_fused_without_a_look_at_all_points(monkeypatch):
    X = rankfold.datasets.synthetic.sheets(8_000, n_sheets=8).X
    ranker = RAN(n_neighbors=10).fit(X)
    monkeypatch.delattr(type(ranker.engine_), "sq_distances")
    monkeypatch.delattr(type(ranker.engine_), "search")
    ranking = ranker.rank(5, top=10)
    assert ranking.solution.solver == "region"
    assert ranking.solution.fused.kind == "blend"
    assert len(ranking) == 10


def test_given_graphs_are_fused_as_far_as_distances_are_known():
    X = sheet()
    d = np.sqrt(reference.sq_distances(X))
    graph = sparse.csr_array(np.where(d <= np.sort(d, axis=1)[:, 15:16], d, 0.0))
    ranking = RAN(n_neighbors=6, metric="precomputed").fit(graph).rank(7, top=20)
    assert len(ranking) == 20
    assert (np.diff(ranking.scores) <= 0).all()


@pytest.mark.parametrize("fusion", ["blend", -1, 101, np.nan, True, None, "0.5"])
def test_what_fusion_cannot_be(fusion):
    with pytest.raises(InputError, match="fusion is") as caught:
        RAN(fusion=fusion).fit(sheet())
    assert caught.value.argument == "fusion"


def two_clouds():
    """Return a graph of distances between near points of two clouds that do not touch."""
    rng = np.random.default_rng(0)
    X = np.concatenate([3 * rng.normal(size=(100, 2)), 3 * rng.normal(size=(100, 2)) + 60])
    return kneighbors_graph(X, 12, mode="distance")


def test_unknown_distances_are_no_neighbours():
    graph = two_clouds()
    alone, fused = (
        RAN(n_neighbors=5, metric="precomputed", fusion=fusion).fit(graph).rank([20, 150], top=10)
        for fusion in ("none", "auto")
    )
    np.testing.assert_array_equal(alone.indices, fused.indices)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_vector_without_a_known_neighbour_reaches_nothing(solver):
    ranker = RAN(n_neighbors=5, metric="precomputed", solver=solver).fit(two_clouds())
    ranking = ranker.rank(vectors=np.full(200, np.inf), top=4)
    np.testing.assert_array_equal(ranking.indices, [0, 1, 2, 3])
    assert not ranking.scores.any()


def test_a_selection_by_ranks_is_not_proven():
    X, kinds = sheet(30), {"kind": [row % 2 for row in range(30)]}
    with Index.build(X, payload=kinds, n_neighbors=5) as index:
        for top in (3, 8, 12):
            found = index.query(3, where="kind = 1", top=top, fusion="reciprocal_rank")
            assert not found.ranking.solution.certified


@pytest.mark.parametrize("top", [8, 50, 100])
def test_answers_of_small_data_are_certified_whatever_distance_makes_of_them(top):
    ranker = RAN().fit(datasets.load("digits").X)
    assert all(ranker.rank(point, top=top).solution.certified for point in range(0, 1797, 120))
