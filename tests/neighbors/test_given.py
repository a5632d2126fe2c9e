"""Graphs of distances from elsewhere: lists of any length."""

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ran_cases import RAN
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph, radius_neighbors_graph

from rankfold import RANKERS, ExactEngine, InputError, Query, datasets
from rankfold.neighbors import Engine, GivenEngine

N, WIDTH = 300, 45


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits").X[: N + 3]


@pytest.fixture(scope="module")
def finder(digits):
    return KNeighborsTransformer(mode="distance", n_neighbors=WIDTH).fit(digits[:N])


def graph_of(entries, n):
    rows, columns, distances = zip(*entries, strict=True)
    return sparse.csr_array((np.array(distances, dtype=float), (rows, columns)), shape=(n, n))


def same(left, right):
    np.testing.assert_array_equal(left.indices, right.indices)
    np.testing.assert_allclose(left.scores, right.scores, rtol=1e-9, atol=1e-12)


ON_LISTS = [name for name in RANKERS if name not in ("k_reciprocal", "query_expansion")]
"""Methods that read neighbour lists only: no vectors, and no distance of what is far away."""


@pytest.mark.parametrize("name", ON_LISTS)
def test_a_graph_answers_like_the_vectors_it_was_made_of(name, digits, finder):
    own = RANKERS[name]().fit(digits[:N])
    given_graph = RANKERS[name](metric="precomputed").fit(finder.transform(digits[:N]))
    same(given_graph.rank(3, top=30), own.rank(3, top=30))
    unseen = finder.transform(digits[N:])
    same(given_graph.rank(vectors=unseen[[0]], top=30), own.rank(vectors=digits[N], top=30))


@pytest.mark.parametrize(
    "settings",
    [{"solver": "region"}, {"solver": "cg"}, {"max_iter": 5, "tol": 1e-3}, {"adapt": "collective"}],
    ids=str,
)
def test_every_way_of_ran_reads_it(settings, digits, finder):
    own = RAN(**settings).fit(digits[:N])
    graph = finder.transform(digits[:N])
    same(RAN(metric="precomputed", **settings).fit(graph).rank(7, top=20), own.rank(7, top=20))


def test_squared_distances_are_used_as_they_are(digits, finder):
    graph = finder.transform(digits[:N])
    squared = RAN(metric="precomputed_sq").fit(graph.power(2))
    same(squared.rank(0, top=20), RAN(metric="precomputed").fit(graph).rank(0, top=20))


@examples(30)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), k=st.integers(1, 45))
def test_lists_of_a_full_graph_are_those_of_the_exact_engine(seed, n, k):
    X = np.random.default_rng(seed).integers(0, 3, size=(n, 2)).astype(float)  # many duplicates
    exact = ExactEngine(X)
    d = exact.pairs(np.arange(n))
    everything = sparse.csr_array(
        (d.ravel(), np.tile(np.arange(n), n), np.arange(0, n * n + 1, n)), shape=(n, n)
    )  # zeros are stored
    engine = GivenEngine(everything, "precomputed_sq")
    assert isinstance(engine, Engine)
    for found, expected in [
        (engine.rows(np.arange(n), k), exact.rows(np.arange(n), k)),
        (engine.search(d, k), exact.search(X, k)),
    ]:
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.sq_distances, expected.sq_distances)
    np.testing.assert_array_equal(engine.pairs(np.arange(n)), d)


def test_lists_have_any_length_and_need_no_symmetry():
    engine = GivenEngine(graph_of([(0, 1, 2), (0, 2, 1), (0, 3, 2), (2, 0, 0), (2, 2, 0)], 4))
    found = engine.rows(np.arange(4), 2)
    assert found.indices.tolist() == [[2, 1], [-1, -1], [0, -1], [-1, -1]]
    assert found.sq_distances.tolist() == [
        [1.0, 4.0],
        [np.inf, np.inf],
        [0.0, np.inf],
        [np.inf, np.inf],
    ]
    assert engine.lengths.tolist() == [3, 0, 1, 0]
    assert engine.pairs(np.array([0, 2])).tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_entries_that_are_stored_twice_are_added_as_sparse_arrays_do():
    twice = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert GivenEngine(twice).rows(np.array([0]), 1).sq_distances.tolist() == [[9.0]]


@pytest.mark.parametrize("name", [*ON_LISTS, "k_reciprocal"])
@pytest.mark.parametrize("top", [5, None])
def test_every_point_is_ranked_also_where_nothing_is_known_of_it(name, top):
    X = datasets.load("moons").X[::8]
    graph = radius_neighbors_graph(X, 0.3, mode="distance")
    assert len(set(np.diff(graph.indptr))) > 3  # of many lengths
    ranker = RANKERS[name](metric="precomputed").fit(graph)
    for query in (0, Query(indices=[0, 31])):
        ranking = ranker.rank_many([query], top=top)[0]
        n_others = len(X) - (1 if query == 0 else 2)
        assert len(np.unique(ranking.indices)) == len(ranking) == (top or n_others)


def test_local_and_whole_answers_end_in_the_same_order():
    blobs = np.array([[0.0], [1.0], [2.1], [100.0], [101.0], [102.1]])
    graph = kneighbors_graph(blobs, 2, mode="distance")
    answers = [
        RAN(1, metric="precomputed", solver=solver).fit(graph).rank(4)
        for solver in ("direct", "cg", "region")
    ]
    for ranking in answers:
        assert ranking.indices.tolist() == [*ranking.indices[:2], 0, 1, 2]
        assert set(ranking.indices[:2]) == {3, 5}


def test_too_many_neighbours_are_refused(digits):
    graph = kneighbors_graph(digits[:50], 8, mode="distance")
    with pytest.raises(InputError, match=r"needs lists of 9 neighbours .* has 8.*n_neighbors=7 or"):
        RAN(8, metric="precomputed").fit(graph)
    assert RAN(7, metric="precomputed").fit(graph).n_neighbors_ == 7
    assert RAN(metric="precomputed").fit(graph).n_neighbors_ <= 7


def test_lists_of_which_some_are_short_are_told_of(digits):
    graph = kneighbors_graph(digits[:50], 8, mode="distance").tolil()
    graph[4] = 0
    graph[4, 5] = 1.0
    told = pytest.warns(UserWarning, match=r"1 of 50 lists .* shorter, that of point 4 with 1")
    with told as warned:
        ranker = RAN(7, metric="precomputed").fit(graph.tocsr())
    assert warned[0].filename == __file__  # it points to the call, not into the package
    assert ranker.affinity_[[4]].indices.tolist() == [5]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([(0, 2, 1.0), (1, 0, 2.0), (2, 1, -1.0)], "negative distance -1 at row 2, column 1"),
        ([(0, 1, 1.0), (2, 2, 0.5)], "point 2 is at distance 0.5 from itself"),
        ([(0, 1, np.inf)], "leave out entries that are unknown"),
        ([(0, 1, np.nan)], "leave out entries that are unknown"),
    ],
)
def test_graphs_that_are_none_are_refused(entries, message):
    with pytest.raises(InputError, match=message):
        GivenEngine(graph_of(entries, 3))


def test_other_shapes_and_metrics_are_refused():
    with pytest.raises(InputError, match=r"shape \(2, 3\), but must be a square sparse"):
        GivenEngine(sparse.csr_array((2, 3)))
    with pytest.raises(InputError, match="is a ndarray"):
        GivenEngine(np.zeros((2, 2)))
    with pytest.raises(InputError, match="metric is 'cosine'"):
        GivenEngine(sparse.csr_array((2, 2)), "cosine")
    with pytest.raises(InputError, match=r"X is sparse, .* takes metric='precomputed'"):
        RAN().fit(sparse.csr_array(np.eye(4)))
    with pytest.raises(NotFittedError):
        RAN(metric="precomputed").rank(0)


def test_unseen_rows_are_checked(digits, finder):
    ranker = RAN(5, metric="precomputed").fit(finder.transform(digits[:N]))
    row = np.full(N, np.inf)
    row[[3, 4, 5]] = 1.0
    sparse_row = sparse.csr_array((np.ones(3), ([0, 0, 0], [3, 4, 5])), shape=(1, N))
    same(ranker.rank(vectors=row, top=5), ranker.rank(vectors=sparse_row, top=5))
    same(ranker.rank(vectors=row, top=5), ranker.rank(vectors=sparse_row[0], top=5))
    for wrong, message in [
        (-row, "NaN or infinity"),
        (np.where(np.isinf(row), np.inf, -1.0), "negative distance"),
        (sparse_row * np.inf, "infinite distances"),
        (sparse_row[:, :10], r"shape \(1, 10\)"),
    ]:
        with pytest.raises(InputError, match=message):
            ranker.rank(vectors=wrong)


def test_cosine_distances_in_single_precision_may_be_rounded_below_zero(digits):
    lengths = np.linalg.norm(digits[:N], axis=1, keepdims=True)
    unit = (digits[:N] / lengths).astype(np.float32)
    exact = RAN(n_neighbors=5, metric="cosine").fit(digits[:N]).rank(0, top=20)
    whole = np.float32(1) - unit @ unit.T
    whole[0, 0] = -7e-7
    graph = sparse.csr_array(whole)
    for distances in (whole, graph):
        found = RAN(n_neighbors=5, metric="precomputed_sq").fit(distances).rank(0, top=20)
        np.testing.assert_array_equal(found.indices, exact.indices)
