"""Re-ranking by lists and by means, against dense references."""

import re

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankfold import (
    RANKERS,
    Distance,
    FaissEngine,
    HypergraphRanking,
    InputError,
    KReciprocal,
    Query,
    QueryExpansion,
    datasets,
)
from rankfold.check import check_query

QUERIES = {
    "point": Query(indices=7),
    "points": Query(indices=[7, 30], weights=[1.0, 0.4]),
    "unseen": Query(vectors=[0.3, 0.9, 1.1]),
    "mixed": Query(indices=[3], vectors=[[0.3, 0.9, 1.1], [-0.5, 0.2, 0.1]], weights=[1, 2, 0.5]),
    "negative": Query(indices=[7, 3, 10], weights=[1.0, -0.5, 0.0]),
    "negative unseen": Query(
        indices=[3, 8], vectors=[[0.3, 0.9, 1.1], [-0.5, 0.2, 0.1]], weights=[2.0, -0.3, 1.0, -3.0]
    ),
}


def sheet(n=50, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 3, n)
    X = np.column_stack([np.cos(2 * t), np.sin(2 * t), rng.uniform(0, 2, n)])
    return X + rng.normal(0, 0.1, X.shape)


def with_copies():
    """Two sheets far apart, a point alone, and more copies of a point than have room in a list."""
    X = np.vstack([sheet(20, 1), sheet(20, 2) + 300, [[0, 900.0, 0]]])
    return np.vstack([X, np.repeat(X[3:4], 12, axis=0)])


DATA = {"sheet": sheet(), "copies": with_copies()}


def scores_of(ranker, query):
    (ranking,) = ranker.rank_many([query], include_query=True)
    scores = np.empty(len(ranking.indices))
    scores[ranking.indices] = ranking.scores
    return scores


def k_reciprocal(X, query, settings):
    d = reference.sq_distances(np.vstack([X, query.vectors]))
    return reference.k_reciprocal(d, len(X), query.indices, query.weights, *settings)


def hypergraph(X, query, settings, n_joined):
    d = reference.sq_distances(np.vstack([X, query.vectors]))
    _, rows = reference.adaptive_graph(d, len(X), n_joined)
    return reference.hypergraph(d, len(X), rows, query.indices, query.weights, *settings)


def close(ranker, query, expected):
    np.testing.assert_allclose(scores_of(ranker, query), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("chosen", [(20, 6, 0.3), (5, 1, 0.0), (4, 9, 0.5), (80, 80, 1.0)])
def test_k_reciprocal_equals_the_reference(data, query, chosen):
    X = DATA[data]
    ranker = KReciprocal(*chosen).fit(X)
    close(ranker, query, k_reciprocal(X, check_query(query, *X.shape), chosen))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("chosen", [(20, 2), (5, 1), (4, 4)])
def test_lhrr_equals_the_reference(data, query, chosen):
    X = DATA[data]
    ranker = HypergraphRanking(*chosen).fit(X)
    joined = ranker.graph_.n_neighbors_
    close(ranker, query, hypergraph(X, check_query(query, *X.shape), chosen, joined))


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("chosen", [(10, 3.0, 0), (3, 0.0, 0), (4, 1.5, 5), (100, 1.0, 100)])
def test_query_expansion_equals_the_reference(data, metric, query, chosen):
    X = DATA[data]
    ranker = QueryExpansion(*chosen, metric=metric).fit(X)
    asked = check_query(query, *X.shape)
    given = asked.indices, asked.weights, *chosen, metric == "cosine"
    expected = reference.query_expansion(X, asked.vectors, *given)
    np.testing.assert_allclose(scores_of(ranker, query), expected, rtol=1e-8, atol=1e-9)


@examples(40)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), k=st.integers(2, 12), data=st.data())
def test_any_points_equal_the_reference(seed, n, k, data):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    query = check_query(data.draw(st.integers(0, n - 1)), n, 3)
    close(KReciprocal(k, 3).fit(X), query, k_reciprocal(X, query, (k, 3, 0.3)))
    ranker = HypergraphRanking(k).fit(X)
    close(ranker, query, hypergraph(X, query, (k, 2), ranker.graph_.n_neighbors_))


def test_the_scale_of_encodings_hardly_changes_the_order():
    """The authors divide by the largest distance of each point."""
    X = datasets.load("digits").X[:150]
    d = reference.sq_distances(X)
    ranker = KReciprocal().fit(X)
    shared = []
    for i in range(0, 150, 10):
        scores = reference.k_reciprocal(d, 150, [i], [1.0], 20, 6, 0.3, scale=d.max(axis=1))
        theirs = reference.nearest(-scores, [j for j in range(150) if j != i])[:20]
        shared.append(len(np.intersect1d(ranker.rank(i, top=20).indices, theirs)) / 20)
    assert np.mean(shared) >= 0.97


@pytest.mark.parametrize("name", ["k_reciprocal", "lhrr"])
def test_an_unseen_copy_answers_like_its_point(name):
    X = sheet()
    ranker = RANKERS[name]().fit(X)
    for i in (0, 31, 49):
        point, copy = scores_of(ranker, Query(indices=i)), scores_of(ranker, Query(vectors=X[i]))
        np.testing.assert_allclose(copy, point, rtol=1e-9, atol=1e-12)


def test_points_that_share_nothing_are_in_the_order_of_distance():
    X = with_copies()
    ranking = KReciprocal(5, 2).fit(X).rank(0)
    far = ranking.indices[np.isin(ranking.indices, np.arange(20, 41))]
    plain = Distance().fit(X).rank(0).indices
    np.testing.assert_array_equal(far, plain[np.isin(plain, far)])


@pytest.mark.parametrize("name", ["k_reciprocal", "lhrr"])
def test_few_points_of_a_class_are_found_better_than_by_distance(name):
    """Forty classes of ten on curves: more of the nine others among the first nine."""
    rng = np.random.default_rng(0)
    centres, along = rng.normal(size=(40, 8)) * 1.5, rng.normal(size=(40, 8))
    labels = np.repeat(np.arange(40), 10)
    t = np.tile(np.linspace(-2, 2, 10), 40)[:, None]
    X = centres[labels] + t * along[labels] + rng.normal(0, 0.3, (400, 8))
    found, plain = (
        (labels[ranker.fit(X).search(k=9)[0]] == labels[:, None]).mean()
        for ranker in (RANKERS[name](10), Distance())
    )
    assert found > plain + 0.03


def test_blocks_and_cuts_of_the_hypergraph_change_nothing(monkeypatch):
    X = sheet(90)
    whole = HypergraphRanking(8).fit(X).weights_.toarray()
    monkeypatch.setattr("rankfold.rankers.hypergraph.BLOCK_ROWS", 7)
    np.testing.assert_array_equal(HypergraphRanking(8).fit(X).weights_.toarray(), whole)
    monkeypatch.setattr("rankfold.rankers.hypergraph.MOST_KEPT", 6)
    cut = HypergraphRanking(8, 1).fit(X).weights_
    assert (np.diff(cut.indptr) >= 5).all()
    np.testing.assert_array_equal(cut.toarray(), cut.toarray().T)


def test_expansion_works_over_faiss_far_from_zero():
    X = sheet(300) + 1000.0
    for settings_ in ({}, {"augment": 5}):
        exact = QueryExpansion(**settings_).fit(X).rank(4, top=20)
        found = QueryExpansion(**settings_).fit(FaissEngine(X)).rank(4, top=20)
        np.testing.assert_array_equal(found.indices, exact.indices)
        np.testing.assert_allclose(found.scores, exact.scores, rtol=1e-3)


BAD = {
    "k_reciprocal": {"k1": [0, 2.5], "k2": [0, None], "distance_weight": [-0.1, 1.1, "x"]},
    "lhrr": {"n_neighbors": [1, "auto"], "n_steps": [0, None]},
    "query_expansion": {"n_neighbors": [0], "alpha": [-1.0, "x", np.nan], "augment": [-1, True]},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters(name):
    for key, values in BAD[name].items():
        for value in values:
            with pytest.raises(InputError, match=re.escape(f"{key} is {value!r}, but must be")):
                RANKERS[name](**{key: value}).fit(sheet())


def test_expansion_of_a_sparse_graph_is_refused():
    graph = sparse.csr_array(np.triu(np.ones((5, 5)), 1))
    with pytest.raises(InputError, match="such as KReciprocal") as caught:
        QueryExpansion(metric="precomputed").fit(graph)
    assert caught.value.argument == "metric"
