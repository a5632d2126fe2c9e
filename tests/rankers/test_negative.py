"""Negative examples: what they mean, for every method and every way to solve it."""

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ran_cases import RAN, READINGS, by_reference, rank_quietly, sheet

from rankfold import (
    RANKERS,
    AdaptiveGraph,
    Distance,
    FaissEngine,
    GraphTransduction,
    LocallyConstrainedDiffusion,
    ManifoldRanking,
    PersonalizedPageRank,
    Query,
    SelfDiffusion,
    TensorProductDiffusion,
)
from rankfold.check import check_query
from rankfold.datasets.synthetic import sheets
from rankfold.rankers.alternation import HEALTHY_REACH

every_method = pytest.mark.parametrize("name", RANKERS)

LOCAL = {
    "ran": lambda **given: RAN(n_neighbors=5, smoothness=3.0, **given),
    "pagerank": lambda **given: PersonalizedPageRank(0.9, **given),
    "manifold": lambda **given: ManifoldRanking(0.9, **given),
}


def blobs(seed=0, n=90, gap=6.0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), n // 3)
    return np.column_stack([labels * gap, np.zeros(n)]) + rng.normal(size=(n, 2)), labels


def scores_of(ranking, n_points):
    scores = np.full(n_points, np.nan)
    scores[ranking.indices] = ranking.scores
    return scores


@st.composite
def signed_queries(draw, n, n_features=3):
    """Ids and vectors with weights of either sign, at least one of them positive."""
    ids = draw(st.lists(st.integers(0, n - 1), max_size=4, unique=True))
    least = 0 if ids else 1
    n_vectors = draw(st.integers(least, 2))
    seed = draw(st.integers(0, 10_000))
    vectors = np.random.default_rng(seed).normal(size=(n_vectors, n_features))
    weight = st.sampled_from([-3.0, -1.0, -0.25, 0.0, 0.5, 1.0])
    size = len(ids) + n_vectors
    weights = draw(st.lists(weight, min_size=size, max_size=size))
    weights[draw(st.integers(0, size - 1))] = 1.0
    return Query(ids, vectors, weights)


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(6, 45),
    k=st.integers(1, 6),
    smoothness=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    reading=st.sampled_from(READINGS),
    solver=st.sampled_from(["direct", "cg", "region"]),
    max_iter=st.integers(1, 3),
    data=st.data(),
)
def test_ran_equals_the_reference(seed, n, k, smoothness, reading, solver, max_iter, data):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    query = data.draw(signed_queries(n))
    ranker = RAN(
        min(k, n - 2), smoothness, gamma=reading[0], candidates=reading[1], solver=solver,
        max_iter=max_iter, guard=False, tol=1e-12,
    ).fit(X)  # fmt: skip
    expected, _ = by_reference(X, query, ranker, max_iter)
    ranking = rank_quietly(ranker, query, include_query=True)
    assert sorted(ranking.indices) == list(range(n))
    done = max_iter if ranking.trace is None else len(ranking.trace.reach)
    error = np.abs(scores_of(ranking, n) - expected[done - 1]).max()
    assert error <= 1e-8
    if done == 1:
        rounding = 1e-14 * (1 + 4 * smoothness)  # of the reference itself
        assert error <= ranking.solution.bound + rounding


@pytest.mark.parametrize("method", LOCAL)
@examples(40)
@given(
    seed=st.integers(0, 1000),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
    top=st.integers(1, 40),
    data=st.data(),
)
def test_local_answers_are_within_their_bound_and_certain(method, seed, tol, top, data):
    X = np.vstack([sheet(40, seed), sheet(12, seed + 1) + 30.0])
    query = data.draw(signed_queries(len(X)))
    whole = LOCAL[method](solver="direct").fit(X).rank_many([query], include_query=True)[0]
    exact = scores_of(whole, len(X))
    found = LOCAL[method](solver="region", tol=tol).fit(X).rank_many([query], top=top)[0]
    own = check_query(query, len(X), 3).indices
    free = np.setdiff1d(np.arange(len(X)), own)
    assert len(found) == min(top, len(free))
    assert not np.isin(found.indices, own).any()
    slack = found.solution.bound + whole.solution.bound
    assert np.abs(found.scores - exact[found.indices]).max(initial=0.0) <= slack
    assert (np.diff(found.scores) <= 0).all()
    outside = np.setdiff1d(free, found.indices)
    if found.solution.certified and len(outside):
        assert exact[found.indices].min() > exact[outside].max() - whole.solution.bound


@pytest.mark.parametrize("method", LOCAL)
@pytest.mark.parametrize("include_query", [False, True])
@pytest.mark.parametrize("top", [1, 2, 3, 30, 160, 200])
def test_local_and_whole_answers_are_alike(method, include_query, top):
    X = sheet(200)
    X[150:] += 40.0
    query = Query([7, 30, 12, 90], weights=[1.0, -0.7, 0.5, 0.0])
    whole = LOCAL[method](solver="direct").fit(X)
    local = LOCAL[method](solver="region", tol=1e-12).fit(X)
    expected = whole.rank_many([query], top=top, include_query=include_query)[0]
    found = local.rank_many([query], top=top, include_query=include_query)[0]
    assert set(found.indices) == set(expected.indices)
    slack = found.solution.bound + expected.solution.bound
    np.testing.assert_allclose(found.scores, expected.scores, atol=slack)


DENSE = {
    "pagerank": (PersonalizedPageRank(0.9), reference.pagerank, (0.9,)),
    "manifold": (ManifoldRanking(0.9), reference.manifold, (0.9,)),
    "self_diffusion": (SelfDiffusion(7), reference.self_diffusion, (7,)),
    "transduction": (GraphTransduction(9), reference.transduction, (9,)),
    "harmonic": (GraphTransduction(None), reference.transduction, (None,)),
    "lcdp": (LocallyConstrainedDiffusion(4, 0.4), reference.lcdp, (4, 0.4)),
    "tensor": (TensorProductDiffusion(6, 0.3), reference.tensor, (6, 0.3)),
}


@pytest.mark.parametrize("method", DENSE)
@examples(25)
@given(seed=st.integers(0, 10_000), n=st.integers(10, 40), data=st.data())
def test_other_methods_equal_the_reference(method, seed, n, data):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    query = check_query(data.draw(signed_queries(n)), n, 3)
    ranker, dense, parameters = DENSE[method]
    found = ranker.set_params(graph=AdaptiveGraph(min(9, n - 2))).fit(X)
    ranking = found.rank_many([query], include_query=True)[0]
    d = reference.sq_distances(np.vstack([X, query.vectors]))
    graph = reference.adaptive_graph(d, n, min(9, n - 2))
    expected = dense(*graph, query.indices, query.weights, *parameters)
    error = np.abs(scores_of(ranking, n) - expected).max()
    assert error <= 1e-8
    assert error <= ranking.solution.bound + 1e-12  # the reference itself is rounded


@every_method
def test_a_copy_of_a_result_as_a_negative_example_pushes_it_down(name):
    X, _ = blobs()
    ranker = RANKERS[name]().fit(X)
    before = ranker.rank(4)
    for place in (0, 3, 10):
        result = before.indices[place]
        after = ranker.rank(4, vectors=X[result], weights=[1, -1])
        if name == "lcdp":  # by which a point need not be the one most like itself
            assert scores_of(after, len(X))[result] < before.scores[place]
        else:
            assert np.flatnonzero(after.indices == result)[0] > place


@every_method
def test_a_negative_example_pushes_its_surroundings_down(name):
    X, _ = blobs(gap=2.5)
    ranker = RANKERS[name]().fit(X)
    around = np.argsort(np.sum((X - X[30]) ** 2, axis=1))[1:6]
    before, after = ranker.rank(4), ranker.rank([4, 30], weights=[1, -1])
    places = [
        np.flatnonzero(np.isin(ranking.indices, around)).mean() for ranking in (before, after)
    ]
    assert places[1] > places[0] + 5


@every_method
def test_permuting_points_permutes_the_ranking(name):
    X, _ = blobs()
    order = np.random.default_rng(1).permutation(len(X))
    place = np.argsort(order)
    ids, weights = np.array([4, 50, 12, 33]), [1.0, -0.5, 0.4, 0.0]
    original = RANKERS[name]().fit(X).rank(ids, weights=weights)
    permuted = RANKERS[name]().fit(X[order]).rank(place[ids], weights=weights)
    found = scores_of(permuted, len(X))[place]
    np.testing.assert_allclose(found, scores_of(original, len(X)), atol=1e-10)
    np.testing.assert_array_equal(order[permuted.indices], original.indices)


@every_method
def test_only_ratios_of_weights_matter(name):
    ranker = RANKERS[name]().fit(blobs()[0])
    for factor in (0.125, 64.0):
        one = ranker.rank([4, 50, 12], weights=[1.0, -0.5, 0.25])
        other = ranker.rank([4, 50, 12], weights=np.array([1.0, -0.5, 0.25]) * factor)
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.scores, other.scores)


@every_method
def test_negative_examples_are_left_out_or_come_last(name):
    X, _ = blobs()
    ranker = RANKERS[name]().fit(X)
    asked = {"indices": [50, 4, 12, 33], "weights": [-0.5, 1.0, 0.5, 0.0]}
    assert not np.isin(ranker.rank(**asked).indices, asked["indices"]).any()
    everything = ranker.rank(**asked, include_query=True).indices
    assert everything[:2].tolist() == [4, 12]
    assert everything[-2:].tolist() == [33, 50]
    assert sorted(everything) == list(range(len(X)))
    assert not np.isin(ranker.rank(**asked, include_query=True, top=20).indices, [50, 33]).any()


@pytest.mark.parametrize("ranker", [RAN(5), GraphTransduction(50), GraphTransduction(None)])
def test_pinned_scores_are_the_weights(ranker):
    ranker.fit(blobs()[0])
    ranking = ranker.rank([4, 50, 12], weights=[2.0, -1.0, 0.0], include_query=True)
    assert scores_of(ranking, 90)[[4, 50, 12]].tolist() == [1.0, -0.5, 0.0]


@pytest.mark.parametrize("solver", ["direct", "cg", "region"])
def test_a_zero_blocks_the_flow_of_score(solver):
    """On a line every path beyond the blocked point leads through it."""
    line = np.arange(12.0)[:, None] ** 1.01
    ranking = RAN(1, 5.0, solver=solver).fit(line).rank([2, 5], weights=[1, 0])
    scores = scores_of(ranking, 12)
    assert (scores[[0, 1, 3, 4]] > 0).all()
    assert (scores[6:] == 0).all()


@pytest.mark.parametrize("engine", [None, FaissEngine])
@pytest.mark.parametrize("solver", ["direct", "region"])
def test_unreached_points_stand_between_by_distance_to_positive_examples(solver, engine):
    X, labels = blobs(gap=500.0)
    ids, weights = [0, 1, 40], [1.0, 0.5, -1.0]
    ranker = RAN(5, 3.0, solver=solver).fit(X if engine is None else engine(X))
    ranking = ranker.rank(ids, weights=weights)
    assert labels[ranking.indices].tolist() == [0] * 28 + [2] * 30 + [1] * 29
    signs = np.sign(ranking.scores)
    assert signs.tolist() == [1] * 28 + [0] * 30 + [-1] * 29
    expected = reference.plain_order(reference.sq_distances(X)[ids], weights, range(60))
    assert ranking.indices[28:58].tolist() == expected
    for top in (10, 40, 70):
        np.testing.assert_array_equal(ranker.rank(ids, weights=weights, top=top).indices,
                                      ranking.indices[:top])  # fmt: skip


def test_plain_distance_equals_the_reference():
    X, _ = blobs()
    unseen = np.array([[3.0, 0.5], [9.0, -1.0]])
    query = Query([4, 50, 12], unseen, [1.0, -0.5, 0.0, 0.3, -0.2])
    d = reference.sq_distances(np.vstack([X, unseen]))[:, :90]
    expected = reference.plain_scores(d[[4, 50, 12, 90, 91]], query.weights)
    ranking = Distance().fit(X).rank_many([query], include_query=True)[0]
    np.testing.assert_allclose(scores_of(ranking, 90), expected, atol=1e-10)


@pytest.mark.parametrize("solver", ["direct", "region"])
def test_the_guard_watches_positive_scores(solver):
    X = sheet(80)
    query = Query([7, 30], weights=[1.0, -1.0])
    ranker = RAN(
        5, 10.0, gamma="shared", scale=None, max_iter=6, guard=False, tol=1e-12, solver=solver
    ).fit(X)
    trace = rank_quietly(ranker, query).trace
    expected = [reference.reach(f) for f in by_reference(X, query, ranker, 6)[0]]
    np.testing.assert_allclose(trace.reach, expected[: len(trace.reach)], rtol=1e-6)
    guarded = rank_quietly(ranker.set_params(guard=True).fit(X), query).trace
    healthy = [reach >= HEALTHY_REACH * expected[0] for reach in expected]
    assert not all(healthy)
    assert guarded.stopped == "collapse"
    assert guarded.n_alternations == healthy.index(False)


def test_shared_gamma_never_increases_the_objective():
    ranker = RAN(5, 10.0, gamma="shared", max_iter=8, guard=False).fit(sheet(80))
    query = Query([7, 30, 12], weights=[1.0, -1.0, 0.0])
    values = np.array(rank_quietly(ranker, query).trace.objective)
    assert (np.diff(values) <= 1e-10 * values[0]).all()


@every_method
def test_a_query_that_fills_the_answer_by_itself(name):
    """Nothing but the query is asked for."""
    X, _ = blobs()
    kinds = [{}, {"solver": "region"}] if name in LOCAL else [{}]
    for given_solver in kinds:
        ranker = RANKERS[name](**given_solver).fit(X)
        ranking = ranker.rank([4, 50], weights=[1, -1], top=1, include_query=True)
        assert ranking.indices.tolist() == [4]


def test_what_is_cut_off_by_zero_is_part_of_the_tolerance():
    X = sheets(600, n_sheets=2).X
    ranker = RAN(10, 1.0, solver="region", tol=1e-3).fit(X)
    pairs = [[first, first + 1] for first in range(0, 60, 3)]
    rankings = [ranker.rank(pair, weights=[1, -1], top=300) for pair in pairs]
    assert max(ranking.solution.bound for ranking in rankings) <= 1e-3


EXTREMES = {
    "ran": lambda share, **given: RAN(
        n_neighbors=4, smoothness=share / (1 - share), fusion="none", **given
    ),
    "pagerank": lambda share, **given: PersonalizedPageRank(share, graph=FEW, **given),
    "manifold": lambda share, **given: ManifoldRanking(share, graph=FEW, **given),
}
FEW = AdaptiveGraph(4)


def refined(matrix, rhs):
    """Solve beyond double precision: residuals are measured in extended precision."""
    rough, x = np.linalg.inv(matrix.astype(np.float64)), np.zeros(len(rhs), np.longdouble)
    for _ in range(8):
        x += rough @ (rhs - matrix @ x).astype(np.float64)
    return x


def exact_scores(ranker, query):
    """Return the scores on the ranker's own graph, densely."""
    system = ranker._solvers.system
    couplings = system.couplings.toarray().astype(np.longdouble)
    matrix = np.diag(system.margin + couplings.sum(axis=1)) - couplings
    if hasattr(ranker, "_boundaries"):
        (boundary,) = ranker._boundaries([query])
    else:
        _, (boundary,) = ranker._attached([query])
    rhs = np.zeros(len(matrix), np.longdouble)
    np.add.at(rhs, boundary.points, boundary.rhs)
    np.add.at(matrix, (boundary.pulled, boundary.pulled), boundary.pull)
    matrix[boundary.clamped] = 0.0
    matrix[boundary.clamped, boundary.clamped] = 1.0
    rhs[boundary.clamped] = boundary.values
    return (system.scale * refined(matrix, rhs)).astype(np.float64)


@pytest.mark.parametrize("name", EXTREMES)
@examples(60)
@given(
    query=signed_queries(40),
    seed=st.integers(0, 10_000),
    share=st.sampled_from([1e-3, 0.5, 0.99, 1 - 1e-4, 1 - 1e-6]),
    solver=st.sampled_from(["direct", "cg", "region", "region"]),
    budget=st.sampled_from([None, 1, 5, 20, "auto"]),
    tol=st.sampled_from([1e-12, 1e-6, 1e-4, 1e-2]),
    top=st.integers(1, 40),
    include_query=st.booleans(),
)
def test_no_extreme_breaks_a_bound(
    name, query, seed, share, solver, budget, tol, top, include_query
):
    """Heavy tails make degrees uneven; the query's own points are no exception."""
    X = np.random.default_rng(seed).standard_t(1.5, size=(40, 3))
    ranker = EXTREMES[name](share, solver=solver, budget=budget, tol=tol).fit(X)
    ranking = rank_quietly(ranker, query, top=top, include_query=include_query)
    exact = exact_scores(ranker, check_query(query, 40, 3))
    error = np.abs(ranking.scores - exact[ranking.indices]).max(initial=0.0)
    assert error <= ranking.solution.bound + 1e-15 * np.abs(exact).max()
