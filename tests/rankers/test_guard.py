"""The collapse of an iterated alternation, and the guard that sees it coming."""

import warnings

import numpy as np
import pytest
from ran_cases import RAN
from sklearn.exceptions import ConvergenceWarning

from rankfold import Dataset, datasets, metrics
from rankfold.rankers.alternation import HEALTHY_REACH


@pytest.fixture(scope="module")
def digits():
    """40 images of each digit, in which the collapse was first seen."""
    whole = datasets.load("digits")
    rows = np.concatenate([np.flatnonzero(whole.labels == label)[:40] for label in range(10)])
    return Dataset("digits", whole.X[rows], whole.labels[rows])


def over_adapting(dataset):
    """Points in a unit in which lambda = 10 lifts neighbours far apart."""
    ranker = RAN(5, 10.0).fit(dataset.X)
    return dataset.X / np.sqrt(ranker.unit_ * ranker.smoothness)


def answers(dataset, X, queries, **parameters):
    ranker = RAN(5, 10.0, scale=None, **parameters).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.rank_many(queries, top=39)


def precision(dataset, queries, rankings):
    return 100 * np.mean(
        [
            metrics.precision(dataset.labels[ranking.indices] == dataset.labels[query], 39)
            for query, ranking in zip(queries, rankings, strict=True)
        ]
    )


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param({"gamma": "own"}, id="own", marks=pytest.mark.slow),
        pytest.param({"gamma": "shared"}, id="shared", marks=pytest.mark.slow),
        pytest.param({"gamma": "shared", "candidates": "local"}, id="shared-local"),
    ],
)
def test_the_guard_prevents_the_collapse(digits, reading):
    X, queries = over_adapting(digits), range(0, 400, 10)
    first = answers(digits, X, queries)
    collapsed = answers(digits, X, queries, max_iter=10, guard=False, **reading)
    guarded = answers(digits, X, queries, max_iter=10, **reading)
    base = precision(digits, queries, first)
    assert precision(digits, queries, collapsed) < base - 5
    assert precision(digits, queries, guarded) > base - 0.5
    assert np.mean([ranking.collapsed for ranking in guarded]) > 0.5
    assert not any(ranking.collapsed for ranking in collapsed)


def test_the_last_healthy_alternation_is_returned(digits):
    X, queries = over_adapting(digits), range(0, 400, 20)
    rankings = zip(queries, answers(digits, X, queries, max_iter=10), strict=True)
    collapsed = [(query, ranking) for query, ranking in rankings if ranking.collapsed]
    assert collapsed
    for query, guarded in collapsed:
        trace = guarded.trace
        assert trace.n_alternations == len(trace.reach) - 1
        assert trace.reach[-1] < HEALTHY_REACH * trace.reach[0]
        assert all(reach >= HEALTHY_REACH * trace.reach[0] for reach in trace.reach[:-1])
        healthy = answers(digits, X, [query], max_iter=trace.n_alternations, guard=False)[0]
        np.testing.assert_array_equal(guarded.indices, healthy.indices)
        np.testing.assert_allclose(guarded.scores, healthy.scores, atol=1e-12)


def test_the_querys_degree_is_in_the_trace(digits):
    X = over_adapting(digits)
    trace = answers(digits, X, [0], max_iter=10, guard=False, gamma="shared")[0].trace
    assert len(trace.query_degree) == len(trace.reach) == trace.n_alternations
    assert trace.query_degree[1] < 0.8 * trace.query_degree[0]


@pytest.mark.one_in(12)
@pytest.mark.parametrize("max_iter", [3, 10])
@pytest.mark.parametrize("name", ["digits", "usps", "orl", "yale", "coil20", "umist"])
def test_guarded_alternations_stay_near_the_first(load, name, max_iter):
    dataset = load(name)
    n_points = len(dataset.labels)
    queries = np.random.default_rng(0).permutation(n_points)[:100].tolist()
    top = int(np.bincount(dataset.labels).max())

    def mean_precision(**parameters):
        ranker = RAN(metric=dataset.metric, **parameters).fit(dataset.X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            rankings = ranker.rank_many(queries, top=top)
        right = [
            (dataset.labels[ranking.indices] == dataset.labels[query]).mean()
            for query, ranking in zip(queries, rankings, strict=True)
        ]
        return 100 * np.mean(right)

    assert mean_precision(max_iter=max_iter) >= mean_precision() - 0.5
