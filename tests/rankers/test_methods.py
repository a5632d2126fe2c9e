"""Every diffusion against its dense reference, its closed form, and other people's code."""

import warnings
from functools import cache

import networkx as nx
import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading
from sknetwork.ranking import PageRank

from rankfold import (
    AdaptiveGraph,
    ExactEngine,
    GaussianGraph,
    GraphTransduction,
    LocallyConstrainedDiffusion,
    ManifoldRanking,
    PersonalizedPageRank,
    Query,
    SelfDiffusion,
    TensorProductDiffusion,
)
from rankfold.check import check_query
from rankfold.rankers import Diffusion


def sheet(n=50, seed=0):
    """A curved sheet with noise: some structure, no ties."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 3, n)
    X = np.column_stack([np.cos(2 * t), np.sin(2 * t), rng.uniform(0, 2, n)])
    return X + rng.normal(0, 0.1, X.shape)


def islands():
    """Three sheets far apart, one point alone, and duplicates."""
    X = np.vstack([sheet(14, 1), sheet(14, 2) + 300, sheet(14, 3) - 300, [[0, 900.0, 0]]])
    return np.vstack([X, X[3:4], X[3:4], X[20:21]])


DATA = {"sheet": sheet(), "islands": islands()}

GRAPHS = {
    "adaptive": (
        AdaptiveGraph(5),
        lambda d, n: reference.adaptive_graph(d, n, 5),
    ),
    "self-tuning": (
        GaussianGraph(n_neighbors=6),
        lambda d, n: reference.gaussian_graph(d, n, k=6),
    ),
    "self-tuning dense": (
        GaussianGraph(n_neighbors=None),
        lambda d, n: reference.gaussian_graph(d, n),
    ),
    "fixed": (
        GaussianGraph(0.4, n_neighbors=6, self_affinity=True),
        lambda d, n: reference.gaussian_graph(d, n, 0.4, 6, True),
    ),
    "fixed dense": (
        GaussianGraph(0.4, n_neighbors=None, self_affinity=True),
        lambda d, n: reference.gaussian_graph(d, n, 0.4, None, True),
    ),
}

METHODS = {
    "pagerank": (PersonalizedPageRank(0.9), reference.pagerank, (0.9,)),
    "pagerank cg": (PersonalizedPageRank(0.9, solver="cg"), reference.pagerank, (0.9,)),
    "manifold": (ManifoldRanking(0.9), reference.manifold, (0.9,)),
    "manifold cg": (ManifoldRanking(0.9, solver="cg"), reference.manifold, (0.9,)),
    "manifold iteration": (
        ManifoldRanking(0.9, solver="iteration"),
        reference.manifold,
        (0.9,),
    ),
    "self_diffusion": (SelfDiffusion(7), reference.self_diffusion, (7,)),
    "transduction": (GraphTransduction(9), reference.transduction, (9,)),
    "lcdp": (LocallyConstrainedDiffusion(4, 0.4), reference.lcdp, (4, 0.4)),
    "lcdp strongest": (
        LocallyConstrainedDiffusion(3, 0.2, n_neighbors=4),
        reference.lcdp,
        (3, 0.2, 4),
    ),
    "tensor": (TensorProductDiffusion(6, 0.3), reference.tensor, (6, 0.3)),
    "tensor damped": (
        TensorProductDiffusion(6, 0.0, alpha=0.8, n_neighbors=4),
        reference.tensor,
        (6, 0.0, 0.8, 4),
    ),
}

QUERIES = {
    "point": Query(indices=7),
    "points": Query(indices=[7, 30], weights=[1.0, 0.4]),
    "unseen": Query(vectors=[0.3, 0.9, 1.1]),
    "mixed": Query(indices=[3], vectors=[[0.3, 0.9, 1.1], [-0.5, 0.2, 0.1]], weights=[1, 2, 0.5]),
    "copy": Query(vectors=sheet()[11]),
    "negative": Query(indices=[7, 3, 10], weights=[1.0, -0.5, 0.0]),
    "negative unseen": Query(
        indices=[3, 8], vectors=[[0.3, 0.9, 1.1], [-0.5, 0.2, 0.1]], weights=[2.0, -0.3, 1.0, -3.0]
    ),
}


def scores_of(ranker, query):
    (ranking,) = ranker.rank_many([query], include_query=True)
    scores = np.empty(len(ranking.indices))
    scores[ranking.indices] = ranking.scores
    return scores


def by_reference(X, query, build, method, settings):
    query = check_query(query, len(X), X.shape[1])
    d = reference.sq_distances(np.vstack([X, query.vectors]))
    return method(*build(d, len(X)), query.indices, query.weights, *settings)


@cache
def dense_graph(data, graph, query):
    """Return the reference of a graph with a query, which all methods share."""
    X = DATA[data]
    vectors = check_query(QUERIES[query], len(X), X.shape[1]).vectors
    return GRAPHS[graph][1](reference.sq_distances(np.vstack([X, vectors])), len(X))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("method", METHODS)
def test_equals_the_reference(method, graph, data):
    ranker, dense, settings = METHODS[method]
    X = DATA[data]
    ranker = ranker.set_params(graph=GRAPHS[graph][0]).fit(X)
    for name, query in QUERIES.items():
        asked = check_query(query, len(X), X.shape[1])
        expected = dense(*dense_graph(data, graph, name), asked.indices, asked.weights, *settings)
        found = scores_of(ranker, query)
        np.testing.assert_allclose(found, expected, atol=1e-8)
        assert (found[expected == 0] == 0).all()
        bound = ranker.rank_many([query])[0].solution.bound
        assert (np.abs(expected[found == 0]) <= bound).all()


@pytest.mark.parametrize("graph", ["adaptive", "self-tuning", "self-tuning dense"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_transduction_without_end_is_harmonic(graph, query):
    made, build = GRAPHS[graph]
    ranker = GraphTransduction(None, graph=made).fit(sheet())
    expected = by_reference(sheet(), query, build, reference.transduction, (None,))
    (ranking,) = ranker.rank_many([query], include_query=True)
    np.testing.assert_allclose(ranking.scores, expected[ranking.indices], atol=1e-8)
    assert (
        np.abs(ranking.scores - expected[ranking.indices]).max() <= ranking.solution.bound + 1e-12
    )
    assert ranking.solution.bound < 1e-6


def test_transduction_approaches_the_harmonic_limit():
    query = Query(indices=[7, 30], weights=[1.0, 0.4])
    limit = scores_of(GraphTransduction(None).fit(sheet()), query)
    gaps = [
        np.abs(scores_of(GraphTransduction(steps).fit(sheet()), query) - limit).max()
        for steps in (10, 100, 1000, 10_000)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-8


def test_transduction_leaves_other_components_alone():
    for n_steps in (50, None):
        ranker = GraphTransduction(n_steps, graph=AdaptiveGraph(4)).fit(islands())
        scores = scores_of(ranker, Query(indices=[0, 5], weights=[1, 0.5]))
        assert (scores[14:42] == 0).all()
        assert (scores[:14] > 0).all()
    alone = GraphTransduction(None, graph=GaussianGraph(0.5)).fit(islands())
    np.testing.assert_array_equal(scores_of(alone, Query(indices=42)), np.eye(46)[42])


@pytest.mark.parametrize("graph", ["adaptive", "self-tuning", "fixed dense"])
@pytest.mark.parametrize("alpha", [0.5, 0.85, 0.99])
def test_pagerank_equals_networkx_and_scikit_network(graph, alpha):
    """Every point has neighbours, where all three conventions agree."""
    ranker = PersonalizedPageRank(alpha, graph=GRAPHS[graph][0]).fit(sheet())
    W = ranker.weights_ if isinstance(ranker.weights_, np.ndarray) else ranker.weights_.toarray()
    weights = {7: 1.0, 30: 0.4}
    found = scores_of(ranker, Query(indices=list(weights), weights=list(weights.values())))
    found /= found.sum()
    theirs = nx.pagerank(
        nx.from_numpy_array(W), alpha, personalization=weights, tol=1e-14, max_iter=100_000
    )
    np.testing.assert_allclose(found, [theirs[i] for i in range(len(W))], atol=1e-8)
    network = PageRank(alpha, solver="piteration", n_iter=100_000, tol=1e-14)
    np.testing.assert_allclose(found, network.fit_predict(W, weights), atol=1e-8)


def test_pagerank_sums_to_the_weight_of_the_query():
    scores = scores_of(PersonalizedPageRank().fit(sheet()), QUERIES["mixed"])
    assert scores.sum() == pytest.approx(1.75)


@pytest.mark.parametrize("alpha", [0.2, 0.9])
def test_manifold_ranking_equals_label_spreading(alpha):
    """LabelSpreading divides by the sum over classes, so two one-point classes are compared."""
    X = sheet()
    ranker = ManifoldRanking(alpha, graph=GaussianGraph(0.5, n_neighbors=None)).fit(X)
    first, second = (scores_of(ranker, Query(indices=i)) for i in (7, 30))
    labels = np.full(len(X), -1)
    labels[[7, 30]] = 0, 1
    # Its kernel is exp(-gamma d), and its Laplacian has no self-affinity either.
    theirs = LabelSpreading(gamma=2.0, alpha=alpha, tol=1e-14, max_iter=100_000).fit(X, labels)
    np.testing.assert_allclose(
        first / (first + second), theirs.label_distributions_[:, 0], atol=1e-8
    )


def test_manifold_iteration_says_when_it_is_not_done():
    with pytest.warns(ConvergenceWarning, match="for 1 of 1 queries the solver ended"):
        ranking = ManifoldRanking(solver="iteration", max_iter=3).fit(sheet()).rank(0)
    assert ranking.solution.n_iter == 3
    assert not ranking.solution.converged
    done = ManifoldRanking(solver="iteration").fit(sheet()).rank(0)
    assert done.solution.converged
    assert done.solution.bound < 2e-9


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    alpha=st.sampled_from([0.1, 0.9, 0.99, 0.999]),
    method=st.sampled_from(["manifold", "pagerank"]),
    solver=st.sampled_from(["direct", "cg", "iteration"]),
    max_iter=st.sampled_from([1, 5, 50]),
    graph=st.sampled_from(list(GRAPHS)),
    query=st.sampled_from(
        [
            Query(indices=[1, 5]),
            Query(vectors=np.ones(3)),
            Query(indices=[1, 5], vectors=np.ones(3), weights=[1.0, -2.0, -0.5]),
        ]
    ),
)
def test_the_certificate_bounds_the_true_error(seed, alpha, method, solver, max_iter, graph, query):
    X = np.random.default_rng(seed).normal(size=(40, 3))
    made, build = GRAPHS[graph]
    if method == "manifold":
        ranker = ManifoldRanking(alpha, graph=made, solver=solver, max_iter=max_iter)
    else:
        ranker = PersonalizedPageRank(
            alpha, graph=made, solver="cg" if solver == "iteration" else solver
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (ranking,) = ranker.fit(X).rank_many([query], include_query=True)
    exact = by_reference(X, query, build, getattr(reference, method), (alpha,))
    # The reference itself is rounded, at the size of its condition number.
    slack = 1e-14 / (1 - alpha)
    assert np.abs(ranking.scores - exact[ranking.indices]).max() <= ranking.solution.bound + slack
    if solver != "iteration":
        assert ranking.solution.bound < 1e-7


@pytest.mark.parametrize("read", ["row", "column"])
@pytest.mark.parametrize("update", ["left", "right", "both"])
@pytest.mark.parametrize("start", ["identity", "weights", "walk", "transition"])
def test_any_diffusion_equals_its_matrix(start, update, read, monkeypatch):
    monkeypatch.setattr("rankfold.rankers.diffusion.BLOCK_BYTES", 8 * 50 * 7 * 12)
    ranker = Diffusion(
        start=start, update=update, n_steps=5, alpha=0.8, restart=0.3, read=read,
        n_neighbors=4, laziness=0.1,
    ).fit(sheet())  # fmt: skip
    W = ranker.weights_.toarray()
    T = reference.walk(reference.keep_strongest(W, 4), 0.1)
    A = reference.diffusion(W, T, start, update, 5, 0.8, 0.3)
    indices, scores = ranker.search(k=len(W), include_query=True)
    found = np.empty_like(A)
    np.put_along_axis(found, indices, scores, axis=1)
    np.testing.assert_allclose(found, A if read == "row" else A.T, atol=1e-12)


def test_symmetric_diffusion_approaches_manifold_ranking():
    graph = GaussianGraph(n_neighbors=5)
    steps = Diffusion(
        graph=graph, start="identity", transition="symmetric", update="left", n_steps=400,
        alpha=0.9, restart=0.1,
    )  # fmt: skip
    limit = scores_of(ManifoldRanking(0.9, graph=graph).fit(sheet()), Query(indices=7))
    np.testing.assert_allclose(scores_of(steps.fit(sheet()), Query(indices=7)), limit, atol=1e-12)


def test_large_data_is_solved_by_conjugate_gradients(monkeypatch):
    small = scores_of(PersonalizedPageRank().fit(sheet()), QUERIES["mixed"])
    monkeypatch.setattr("rankfold.solvers.DIRECT_LIMIT", 10)
    (ranking,) = PersonalizedPageRank().fit(sheet()).rank_many([QUERIES["mixed"]])
    assert ranking.solution.n_iter > 0
    large = scores_of(PersonalizedPageRank().fit(sheet()), QUERIES["mixed"])
    np.testing.assert_allclose(large, small, atol=1e-9)


def test_graphs_say_what_they_chose():
    engine = ExactEngine(sheet())
    graph = AdaptiveGraph()
    graph.build(engine)
    assert graph.n_neighbors_ == 10
    with pytest.warns(UserWarning, match="n_neighbors=90 is too large for 50 points"):
        assert GaussianGraph(n_neighbors=90).build(engine).nnz == 50 * 49
