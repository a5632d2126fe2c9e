"""The strongest walk against all simple paths, and scores against the sum over all walks."""

import itertools

import numpy as np
import pytest

from rankfold import RANKERS, AdaptiveGraph, GaussianGraph, Query
from rankfold.check import check_query
from rankfold.explanation.explain import strongest_walk
from rankfold.rankers.flow import Edges, Entry, Flow, degree_or_one

EXACT = ["ran", "pagerank", "manifold", "transduction", "self_diffusion"]


def points(seed, n_points=9):
    return np.random.default_rng(seed).normal(size=(n_points, 2))


def queries(X):
    near = X[:2] + 0.05
    return {
        "point": Query(indices=2),
        "points": Query(indices=[2, 5], weights=[1.0, 0.3]),
        "vector": Query(vectors=near[0]),
        "vectors": Query(vectors=near, weights=[0.4, 1.0]),
        "mixture": Query(indices=[4, 1], vectors=near, weights=[0.2, 0.5, 1.0, 0.7]),
    }


def fitted(name, X, **settings):
    if name == "ran":
        return RANKERS[name](n_neighbors=3, smoothness=2.0, **settings).fit(X)
    return RANKERS[name](graph=GaussianGraph(n_neighbors=3), **settings).fit(X)


def dense_steps(flow, n_points):
    """Factors of all edges: entry (b, a) for the step from a to b."""
    steps = np.zeros((n_points, n_points))
    for a in range(n_points):
        for b, weight in zip(*flow.edges(a), strict=True):
            if b not in flow.ends:
                steps[b, a] = flow.factor(a, int(b), float(weight))
    return steps


def entering(flow, n_points):
    amounts = np.zeros(n_points)
    for entry in flow.entries:
        amounts[entry.point] += entry.amount * entry.factor
    return amounts


def best_by_force(flow, target, n_points):
    """The largest product over all entries and all simple paths."""
    steps, best = dense_steps(flow, n_points), 0.0
    for entry in flow.entries:
        others = [p for p in range(n_points) if p not in (target, entry.point)]
        middles = itertools.chain.from_iterable(
            itertools.permutations(others, length) for length in range(len(others) + 1)
        )
        if entry.point == target:
            middles = [None]
        for middle in middles:
            path = [target] if middle is None else [entry.point, *middle, target]
            if flow.most_steps is not None and len(path) - 1 > flow.most_steps:
                continue
            product = abs(entry.amount * entry.factor)
            for a, b in itertools.pairwise(path):
                product *= steps[b, a]
            best = max(best, product)
    return best


def product_of(flow, found):
    product = abs(found.entry.amount * found.entry.factor)
    for a, b in itertools.pairwise(found.points):
        neighbors, weights = flow.edges(b)
        product *= flow.factor(a, b, float(weights[neighbors == a][0]))
    return product


def check_sum_over_walks(ranker, query):
    flow, n_points = ranker.flow(query), ranker.engine_.n_points
    steps, amounts = dense_steps(flow, n_points), entering(flow, n_points)
    total, walk = np.zeros(n_points), amounts
    n_steps = 20_000 if flow.most_steps is None else flow.most_steps + 1
    for _ in range(n_steps):
        total += walk
        walk = steps @ walk
    scored = ranker.scored(query)
    scores = np.zeros(n_points)
    scores[scored.points] = scored.scores
    others = np.setdiff1d(np.arange(n_points), query.indices)
    np.testing.assert_allclose(total[others], scores[others], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("kind", ["point", "points", "vector", "vectors", "mixture"])
def test_score_is_the_sum_over_all_walks(name, kind):
    X = points(1, 30)
    ranker = fitted(name, X)
    query = check_query(queries(X)[kind], *X.shape)
    check_sum_over_walks(ranker, query)


@pytest.mark.parametrize("name", EXACT[1:])
@pytest.mark.parametrize("kind", ["points", "mixture"])
@pytest.mark.parametrize(
    "graph",
    [
        GaussianGraph(n_neighbors=None),
        GaussianGraph(n_neighbors=4, self_affinity=True),
        AdaptiveGraph(n_neighbors=3),
    ],
    ids=["dense", "with itself", "adaptive"],
)
def test_scores_on_other_graphs_are_sums_over_walks_too(name, kind, graph):
    X = points(4, 25)
    ranker = RANKERS[name](graph=graph).fit(X)
    query = check_query(queries(X)[kind], *X.shape)
    check_sum_over_walks(ranker, query)


@pytest.mark.parametrize("name", [*EXACT, "lcdp", "tensor"])
@pytest.mark.parametrize("kind", ["point", "mixture"])
def test_strongest_walk_is_the_best_of_all_paths(name, kind):
    X = points(2, 7)
    ranker = fitted(name, X)
    query = check_query(queries(X)[kind], *X.shape)
    flow = ranker.flow(query)
    for target in np.setdiff1d(np.arange(len(X)), query.indices):
        found = strongest_walk(flow, int(target))
        expected = best_by_force(flow, int(target), len(X))
        assert found.complete
        if expected == 0:
            assert found.entry is None
            continue
        assert found.points[-1] == target
        assert found.points[0] == found.entry.point
        assert product_of(flow, found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("most_steps", [1, 2, 3, 4, None])
@pytest.mark.parametrize("seed", range(6))
def test_a_limit_of_steps_is_kept_and_the_best_within_it_found(most_steps, seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(size=(7, 7)) ** 6 * (rng.uniform(size=(7, 7)) < 0.6), 1)
    weights += weights.T

    def edges(point):
        return Edges.of(weights, point)

    flow = Flow(edges, degree_or_one, (Entry(0, 0, 1.0),), lean=0.5, most_steps=most_steps)
    for target in range(1, 7):
        found = strongest_walk(flow, target)
        expected = best_by_force(flow, target, 7)
        product = product_of(flow, found) if found.entry else 0.0
        assert product == pytest.approx(expected, rel=1e-12)
        assert most_steps is None or len(found.points) - 1 <= most_steps


def test_a_search_that_gives_up_says_so():
    chain = np.diag(np.ones(49), 1)
    chain += chain.T

    def edges(point):
        return Edges.of(chain, point)

    flow = Flow(edges, degree_or_one, (Entry(0, 0, 1.0),))
    found = strongest_walk(flow, 49, most_points=20)
    assert found == (None, (), 20, False)
    assert strongest_walk(flow, 49, most_points=50).points == tuple(range(50))


def test_a_negative_example_has_a_path_too():
    X = points(3, 8)
    ranker = fitted("ran", X)
    query = check_query(2, *X.shape)
    flow = ranker.flow(Query(query.indices, query.vectors, -query.weights))
    assert strongest_walk(flow, 5).points == strongest_walk(ranker.flow(query), 5).points
