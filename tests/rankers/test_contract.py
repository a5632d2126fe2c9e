"""What every ranker owes its users, run over the table of methods."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankfold import RANKERS, InputError, Query, datasets

pytestmark = pytest.mark.parametrize("name", RANKERS)


def blobs(seed=0, n=90):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 4)) * 6
    labels = np.repeat(np.arange(3), n // 3)
    return centres[labels] + rng.normal(size=(n, 4)), labels


QUERIES = [
    Query(indices=4),
    Query(indices=[4, 50]),
    Query(vectors=np.array([1.0, 0.5, -2.0, 0.0])),
    Query(vectors=np.arange(8.0).reshape(2, 4), weights=[1, 3]),
    Query(indices=[7, 3], vectors=np.ones(4), weights=[2.0, 1.0, 0.5]),
    Query(indices=[7, 50, 12], weights=[1.0, -0.5, 0.0]),
    Query(indices=[7, 3], vectors=np.ones(4), weights=[2.0, 1.0, -0.5]),
]


DEGREE_POWERS = {"pagerank": 1.0, "manifold": 0.5}
"""Scores that fall along every path from the query only after division by this power of the
degree: a walk is more often where more edges lead to."""

VECTORS_ONLY = {"query_expansion"}
"""Methods that average vectors, which distances do not have."""

NOT_ITSELF = {"lcdp", "query_expansion"}
"""Methods by which a point need not be the one most like itself."""

PAIRWISE = {"lcdp", "tensor"}
"""Methods that compare where walks from two points end; on very few points all end alike."""


def same(left, right):
    np.testing.assert_array_equal(left.indices, right.indices)
    np.testing.assert_allclose(left.scores, right.scores, atol=1e-12)


def test_obvious_answer(name):
    X, labels = blobs()
    ranking = RANKERS[name]().fit(X).rank(0, top=29)
    assert (labels[ranking.indices] == labels[0]).all()


def test_every_point_appears_once_and_scores_descend(name):
    X, _ = blobs()
    ranker = RANKERS[name]().fit(X)
    for ranking in ranker.rank_many(QUERIES, include_query=True):
        assert sorted(ranking.indices) == list(range(len(X)))
    for query, ranking in zip(QUERIES, ranker.rank_many(QUERIES), strict=True):
        asked = np.atleast_1d([] if query.indices is None else query.indices).astype(int)
        assert sorted(ranking.indices) == sorted(set(range(len(X))) - set(asked.tolist()))
        assert (np.diff(ranking.scores) <= 0).all()


def test_batch_equals_single(name):
    ranker = RANKERS[name]().fit(blobs()[0])
    for query, together in zip(QUERIES, ranker.rank_many(QUERIES, top=12), strict=True):
        same(ranker.rank_query(query, top=12), together)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("include_query", [True, False])
@pytest.mark.parametrize("top", [7, 500])
def test_search_among_its_own_points_equals_single_queries(name, include_query, top):
    X, _ = blobs()
    ranker = RANKERS[name]().fit(X)
    indices, scores = ranker.search(k=top, include_query=include_query)
    most = len(X) if include_query else len(X) - 1
    assert indices.shape == scores.shape == (len(X), min(top, most))
    for i in (0, 31, 89):
        ranking = ranker.rank(i, top=top, include_query=include_query)
        np.testing.assert_array_equal(indices[i], ranking.indices)
        np.testing.assert_allclose(scores[i], ranking.scores, atol=1e-12)


def test_answers_do_not_depend_on_the_blocks(name, monkeypatch):
    ranker = RANKERS[name]().fit(blobs()[0])
    whole = ranker.rank_many(QUERIES)
    monkeypatch.setattr("rankfold.rankers.base.BLOCK_BYTES", 8 * 90 * 2)
    for left, right in zip(whole, ranker.rank_many(QUERIES), strict=True):
        same(left, right)


@pytest.mark.parametrize("top", [1, 4, 40, 80])
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(name, top):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(90, 3)) + np.repeat([[0], [50], [100]], 30, axis=0)
    ranker = RANKERS[name]().fit(X)
    for query in (Query(indices=4), Query(indices=[4, 50]), Query(vectors=X[7])):
        short, complete = (ranker.rank_many([query], top=t)[0] for t in (top, None))
        np.testing.assert_array_equal(short.indices, complete.indices[:top])


def test_permuting_points_permutes_the_ranking(name):
    X, _ = blobs()
    order = np.random.default_rng(1).permutation(len(X))
    place = np.argsort(order)
    original = RANKERS[name]().fit(X).rank([4, 50])
    permuted = RANKERS[name]().fit(X[order]).rank(place[[4, 50]])
    np.testing.assert_array_equal(order[permuted.indices], original.indices)
    np.testing.assert_allclose(permuted.scores, original.scores, atol=1e-10)


def test_scaling_the_data_leaves_the_order(name):
    X, _ = blobs()
    original = RANKERS[name]().fit(X).rank(4)
    np.testing.assert_array_equal(RANKERS[name]().fit(X * 1000).rank(4).indices, original.indices)


def test_the_query_comes_first_when_included(name):
    X, _ = blobs()
    ranking = RANKERS[name]().fit(X).rank([4, 50], weights=[1, 2], include_query=True, top=5)
    assert ranking.indices[:2].tolist() == [50, 4]
    assert len(ranking.indices) == 5
    alone = RANKERS[name]().fit(X).rank([4, 50], include_query=True, top=1)
    assert alone.indices.tolist() == [4]


def test_an_unseen_copy_ranks_its_point_first(name):
    X, _ = blobs()
    ranker = RANKERS[name]().fit(X)
    first = [
        ranking.indices[0] for ranking in ranker.rank_many([Query(vectors=x) for x in X], top=1)
    ]
    expected = np.arange(len(X))
    if name in VECTORS_ONLY:  # a point is not averaged with itself, a copy is averaged with it
        return
    if name in NOT_ITSELF:
        points = ranker.rank_many(range(len(X)), include_query=True)
        expected = [ranking.indices[np.argmax(ranking.scores)] for ranking in points]
    assert np.mean(np.equal(first, expected)) >= 0.9


def test_only_ratios_of_weights_matter(name):
    ranker = RANKERS[name]().fit(blobs()[0])
    same(ranker.rank([4, 50], weights=[1, 2]), ranker.rank([4, 50], weights=[50, 100]))
    equal = ranker.rank([4, 50])
    same(equal, ranker.rank([4, 50], weights=[3, 3]))
    heavy = ranker.rank([4, 50], weights=[1, 1000])
    assert not np.array_equal(equal.indices, heavy.indices)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_very_few_points(name, n):
    X = np.arange(n, dtype=float)[:, None] ** 2
    ranker = RANKERS[name]().fit(X)
    for ranking, expected in (
        (ranker.rank(0), list(range(1, n))),
        (ranker.rank(vectors=[0.1]), list(range(n))),
    ):
        assert sorted(ranking.indices) == expected
        assert np.isfinite(ranking.scores).all()
        found = ranking.indices
        if name in DEGREE_POWERS:
            power = ranker.weights_.sum(axis=1)[found] ** DEGREE_POWERS[name]
            found = found[np.lexsort((found, -ranking.scores / power.clip(1e-9)))]
        if name not in PAIRWISE:
            assert found.tolist() == expected


def test_all_points_alike(name):
    ranking = RANKERS[name]().fit(np.ones((30, 2))).rank(5)
    assert sorted(ranking.indices) == [i for i in range(30) if i != 5]
    assert np.isfinite(ranking.scores).all()


def test_all_points_as_the_query(name):
    X, _ = blobs(n=30)
    assert RANKERS[name]().fit(X).rank(np.arange(30)).indices.size == 0
    everything = RANKERS[name]().fit(X).rank(np.arange(30), include_query=True)
    assert everything.indices.tolist() == list(range(30))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_number_types(name, dtype):
    X = np.random.default_rng(0).integers(0, 100, size=(80, 5)).astype(dtype)
    ranking = RANKERS[name]().fit(X).rank(vectors=X[3], top=10)
    expected = RANKERS[name]().fit(X.astype(float)).rank(vectors=X[3].astype(float), top=10)
    same(ranking, expected)


@pytest.mark.parametrize("metric", ["precomputed", "precomputed_sq"])
def test_precomputed_equals_vectors(name, metric):
    X, _ = blobs()
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    given = squared if metric == "precomputed_sq" else np.sqrt(squared)
    if name in VECTORS_ONLY:
        with pytest.raises(InputError, match="averages vectors, which distances do not have"):
            RANKERS[name](metric=metric).fit(given)
        return
    ranker = RANKERS[name](metric=metric).fit(given)
    plain = RANKERS[name]().fit(X)
    for query, unseen in ((Query(indices=[4, 50]), None), (Query(vectors=X[:2]), given[:2])):
        asked = Query(query.indices, unseen)
        left, right = plain.rank_many([query])[0], ranker.rank_many([asked])[0]
        np.testing.assert_array_equal(left.indices, right.indices)
        np.testing.assert_allclose(left.scores, right.scores, atol=1e-8)


def test_inside_a_pipeline(name):
    digits = datasets.load("digits")
    pipeline = make_pipeline(StandardScaler(), PCA(16, random_state=0), RANKERS[name]())
    ranker = pipeline.fit(digits.X)[-1]
    right = digits.labels[ranker.rank(0, top=10).indices] == digits.labels[0]
    assert right.mean() >= 0.9
    unseen = pipeline[:-1].transform(digits.X[:1])
    if name not in NOT_ITSELF:
        assert ranker.rank(vectors=unseen, top=1).indices.tolist() == [0]


def test_clone_and_parameters(name):
    ranker = RANKERS[name](metric="cosine")
    assert clone(ranker).get_params() == ranker.get_params()
    assert ranker.set_params(metric="euclidean").metric == "euclidean"
    assert not [key for key in vars(ranker) if key.endswith("_")]


def test_fitting_again_forgets_the_first_data(name):
    X, _ = blobs()
    fresh = RANKERS[name]().fit(X[:50]).rank(3)
    same(RANKERS[name]().fit(X).fit(X[:50]).rank(3), fresh)


def test_fit_leaves_the_data_alone(name):
    X, _ = blobs()
    before = X.copy()
    RANKERS[name](metric="cosine").fit(X).rank(vectors=X[0])
    np.testing.assert_array_equal(X, before)
