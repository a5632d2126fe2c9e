"""What every method on a graph owes its users, on every kind of graph."""

import re

import numpy as np
import pytest
import reference
from sklearn.base import clone

from rankfold import (
    RANKERS,
    AdaptiveGraph,
    GaussianGraph,
    GraphTransduction,
    InputError,
    ManifoldRanking,
    Query,
)

ON_GRAPHS = [name for name, method in RANKERS.items() if "graph" in method().get_params()]

GRAPHS = {
    "adaptive": "adaptive",
    "gaussian": "gaussian",
    "dense": GaussianGraph(n_neighbors=None),
    "fixed": GaussianGraph(1.0, n_neighbors=6, self_affinity=True),
    "fixed dense": GaussianGraph(1.0, n_neighbors=None),
}

every_method = pytest.mark.parametrize("name", ON_GRAPHS)
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)

QUERIES = [
    Query(indices=4),
    Query(indices=[4, 50], weights=[1, 3]),
    Query(vectors=np.array([1.0, 0.5])),
    Query(indices=[7], vectors=np.array([[3.0, 0.5], [40.0, 0.0]]), weights=[2.0, 1.0, 0.5]),
]


def blobs(seed=0, gap=6.0, n=60):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), n // 3)
    return np.column_stack([labels * gap, np.zeros(n)]) + rng.normal(size=(n, 2)), labels


def scores_of(ranker, query):
    (ranking,) = ranker.rank_many([query], include_query=True)
    scores = np.empty(len(ranking.indices))
    scores[ranking.indices] = ranking.scores
    return scores


def check_answer(ranking, n_points):
    assert sorted(ranking.indices) == list(range(n_points))
    assert np.isfinite(ranking.scores).all()
    assert (ranking.scores >= 0).all()
    assert np.isfinite(ranking.solution.bound)
    assert ranking.solution.converged


@every_method
@every_graph
def test_obvious_answer(name, graph):
    X, labels = blobs(gap=12.0)
    indices, _ = RANKERS[name](graph=graph).fit(X).search(k=19)
    assert (labels[indices] == labels[:, None]).mean() > 0.99


@every_method
@every_graph
def test_batch_equals_single(name, graph):
    X, _ = blobs()
    ranker = RANKERS[name](graph=graph).fit(X)
    for query, together in zip(QUERIES, ranker.rank_many(QUERIES, include_query=True), strict=True):
        check_answer(together, len(X))
        expected = np.empty(len(X))
        expected[together.indices] = together.scores
        np.testing.assert_allclose(scores_of(ranker, query), expected, rtol=1e-9, atol=1e-12)
    indices, scores = ranker.search(k=len(X), include_query=True)
    for i in (0, 31, 59):
        np.testing.assert_allclose(
            scores_of(ranker, i)[indices[i]], scores[i], rtol=1e-9, atol=1e-12
        )


@every_method
@every_graph
def test_permuting_points_permutes_the_scores(name, graph):
    X, _ = blobs()
    order = np.random.default_rng(1).permutation(len(X))
    place = np.argsort(order)
    original = scores_of(RANKERS[name](graph=graph).fit(X), Query(indices=[4, 50]))
    permuted = scores_of(RANKERS[name](graph=graph).fit(X[order]), Query(indices=place[[4, 50]]))
    np.testing.assert_allclose(permuted, original[order], rtol=1e-7, atol=1e-10)


@every_method
@every_graph
def test_an_unseen_copy_answers_like_its_point(name, graph):
    X, _ = blobs()
    ranker = RANKERS[name](graph=graph).fit(X)
    for i in (0, 31, 59):
        point, copy = scores_of(ranker, i), scores_of(ranker, Query(vectors=X[i]))
        np.testing.assert_allclose(copy, point, rtol=1e-6, atol=1e-8)


@every_method
@every_graph
def test_a_vector_near_a_point_answers_nearly_like_it(name, graph):
    X, _ = blobs()
    ranker = RANKERS[name](graph=graph).fit(X)
    point = scores_of(ranker, 31)
    gaps = [
        np.abs(scores_of(ranker, Query(vectors=X[31] + step)) - point).max()
        for step in (1e-1, 1e-2, 1e-3)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-3 * point.max()


@every_method
@every_graph
def test_disconnected_graphs(name, graph):
    """Far parts score zero, exactly, and follow by plain distance."""
    X, labels = blobs(gap=5000.0)
    ranker = RANKERS[name](graph=graph).fit(X)
    unlinked = ranker.weights_[[0]][:, labels > 0].sum() == 0
    ranking = ranker.rank(0, include_query=True)
    check_answer(ranking, len(X))
    if unlinked:
        far = ranking.indices[ranking.scores == 0]
        assert set(far) >= set(np.flatnonzero(labels > 0))
        d = reference.sq_distances(X)
        expected = reference.plain_order([d[0]], [1.0], set(range(len(X))) - set(far))
        assert far.tolist() == expected


@every_method
@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_isolated_points(name, n_neighbors):
    """A point whose weights all vanish reaches nobody, and nobody reaches it."""
    X, _ = blobs()
    X[[10, 40]] = [[500.0, 0.0], [0.0, 500.0]]
    graph = GaussianGraph(1.0, n_neighbors=n_neighbors)
    ranker = RANKERS[name](graph=graph).fit(X)
    d = reference.sq_distances(X)
    for query, rows in (
        (Query(indices=10), [10]),
        (Query(indices=[10, 40]), [10, 40]),
        (Query(vectors=X[10]), []),
        (Query(vectors=[900.0, 900.0]), []),
    ):
        (ranking,) = ranker.rank_many([query])
        assert np.isfinite(ranking.scores).all()
        others = ranking.indices[~np.isin(ranking.indices, [10, 40])]
        assert (ranking.scores[~np.isin(ranking.indices, [10, 40])] == 0).all()
        if rows:
            assert others.tolist() == [
                i for i in reference.plain_order(d[rows], np.ones(len(rows)), rows) if i in others
            ]
    scores = scores_of(ranker, 0)
    assert scores[[10, 40]].tolist() == [0, 0]


@every_method
@every_graph
@pytest.mark.parametrize("copies", [2, 12])
def test_duplicates(name, graph, copies):
    X = np.repeat(blobs(n=15)[0], copies, axis=0)
    ranker = RANKERS[name](graph=graph).fit(X)
    for query in (0, Query(indices=[0, 1]), Query(vectors=X[0]), Query(vectors=X[:2] + 0.1)):
        (ranking,) = ranker.rank_many([query], include_query=True)
        check_answer(ranking, len(X))
    same = RANKERS[name](graph=graph).fit(np.ones((30, 2)))
    check_answer(same.rank(5, include_query=True), 30)
    check_answer(same.rank(vectors=[1.0, 1.0]), 30)


@every_method
@every_graph
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_very_few_points(name, graph, n):
    if isinstance(graph, GaussianGraph) and graph.n_neighbors:
        graph = GaussianGraph(1.0, self_affinity=True)
    ranker = RANKERS[name](graph=graph).fit(np.arange(n, dtype=float)[:, None] ** 2)
    check_answer(ranker.rank(0, include_query=True), n)
    check_answer(ranker.rank(vectors=[0.1]), n)


@every_method
def test_points_without_any_distance_or_beyond_all_scales(name):
    X = np.array([[0.0], [1e-160], [1.0], [1e150], [1.1e150], [2e150]])
    for graph in (*GRAPHS.values(), GaussianGraph(1e-150, n_neighbors=None)):
        if isinstance(graph, GaussianGraph) and graph.n_neighbors:
            graph = clone(graph).set_params(n_neighbors=2)
        ranker = RANKERS[name](graph=graph).fit(X)
        check_answer(ranker.rank(2, include_query=True), len(X))


@every_method
def test_graphs_are_parameters_like_all_others(name):
    ranker = RANKERS[name](graph=GaussianGraph(n_neighbors=4))
    assert clone(ranker).graph.n_neighbors == 4
    ranker.set_params(graph__n_neighbors=3, graph__self_affinity=True)
    X, _ = blobs()
    left = ranker.fit(X).rank(0)
    assert vars(ranker.graph) == {
        "bandwidth": "self-tuning", "n_neighbors": 3, "self_affinity": True
    }  # fmt: skip
    right = RANKERS[name](graph=GaussianGraph(n_neighbors=3, self_affinity=True)).fit(X).rank(0)
    np.testing.assert_array_equal(left.indices, right.indices)


BAD = {
    "name": ({"graph": "knn"}, "graph is 'knn', but must be one of 'adaptive', 'gaussian', or"),
    "class": ({"graph": GaussianGraph}, "but must be one of 'adaptive', 'gaussian', or"),
    "none": ({"graph": None}, "graph is None"),
    "bandwidth": ({"graph": GaussianGraph(0.0)}, "bandwidth is 0.0, but must be a finite number"),
    "word": ({"graph": GaussianGraph("auto")}, "bandwidth is 'auto'"),
    "neighbors": ({"graph": GaussianGraph(n_neighbors=0)}, "n_neighbors is 0"),
    "adaptive": ({"graph": AdaptiveGraph("all")}, "n_neighbors is 'all'"),
    "self": ({"graph": GaussianGraph(self_affinity="no")}, "self_affinity is 'no', but must be"),
}


@every_method
@pytest.mark.parametrize(("parameters", "message"), BAD.values(), ids=BAD)
def test_bad_graphs(name, parameters, message):
    with pytest.raises(InputError, match=re.escape(message)):
        RANKERS[name](**parameters).fit(blobs()[0])


BAD_PARAMETERS = {
    "pagerank": {"alpha": [0, 1, 1.5, "x", True, None, float("nan")], "solver": ["iteration"]},
    "manifold": {"alpha": [0, 1], "solver": ["lu"], "max_iter": [0], "tol": [0.0]},
    "self_diffusion": {"n_steps": [0, 1.5, None]},
    "transduction": {"n_steps": [0, "all"]},
    "lcdp": {"n_steps": [0], "laziness": [-0.1, 1.0], "n_neighbors": [0, "auto"]},
    "tensor": {"n_steps": [0], "laziness": [1], "alpha": [0, 1.1], "n_neighbors": [0]},
}


@every_method
def test_bad_parameters(name):
    for key, values in BAD_PARAMETERS[name].items():
        for value in values:
            with pytest.raises(InputError, match=re.escape(f"{key} is {value!r}, but must be")):
                RANKERS[name](**{key: value}).fit(blobs()[0])


def test_dense_graphs_of_many_points_are_refused(monkeypatch):
    monkeypatch.setattr("rankfold.graph.gaussian.DENSE_LIMIT", 50)
    with pytest.raises(InputError, match=r"60 points.*at most 50; give n_neighbors"):
        ManifoldRanking(graph=GaussianGraph(n_neighbors=None)).fit(blobs()[0])


@every_method
@pytest.mark.parametrize("n_neighbors", [2, None])
def test_unseen_vectors_on_the_edge_of_what_a_kernel_can_see(name, n_neighbors):
    """Weights underflow somewhere between 37 and 39 bandwidths; scores must not notice."""
    graph = GaussianGraph(bandwidth=1.0, n_neighbors=n_neighbors)
    ranker = RANKERS[name](graph=graph).fit(np.arange(4.0)[:, None])
    for distance in np.linspace(36, 40, 81):
        ranking = ranker.rank(vectors=[-distance])
        assert np.isfinite(ranking.scores).all()
        assert np.isfinite(ranking.solution.bound)


def test_the_harmonic_limit_on_a_graph_of_tiny_weights():
    """Two clamped ends of a line: harmonic scores fall evenly, whatever the size of weights."""
    line = np.arange(8.0)[:, None]
    for bandwidth in (0.06, 0.08, 0.1, 1.0):
        graph = GaussianGraph(bandwidth=bandwidth, n_neighbors=1)
        ranking = GraphTransduction(None, graph=graph).fit(line).rank([0, 7], weights=[1, 0.25])
        assert ranking.solution.converged
        expected = 1 - 0.75 * np.arange(1, 7) / 7
        np.testing.assert_allclose(ranking.scores, expected, atol=1e-8)


class Given:
    """A graph that a user brings."""

    def __init__(self, weights):
        self.weights = weights

    def build(self, engine):
        return self.weights

    def attach(self, engine, vectors):
        raise AssertionError("not asked for")


@every_method
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.triu(np.ones((5, 5)), 1), "not symmetric"),
        (-np.ones((5, 5)), "negative, NaN or infinite"),
        (np.full((5, 5), np.nan), "negative, NaN or infinite"),
        (np.ones((4, 4)), r"shape \(4, 4\), but there are 5 points"),
    ],
)
def test_a_graph_of_ones_own_is_checked(name, weights, message):
    with pytest.raises(InputError, match=message):
        RANKERS[name](graph=Given(weights)).fit(np.arange(5.0)[:, None])


@every_method
def test_a_graph_of_ones_own_is_used(name):
    chain = np.diag(np.ones(4), 1)
    ranker = RANKERS[name](graph=Given(chain + chain.T)).fit(np.zeros((5, 1)))
    assert sorted(ranker.rank(0).indices) == [1, 2, 3, 4]
