"""Rounds of learning against the dense reference, and what the guard decides."""

from dataclasses import replace

import collective_reference
import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from learning_cases import ALWAYS, STRANDS
from ran_cases import sheet

from rankfold import ExactEngine, FaissEngine, datasets
from rankfold.graph import collective
from rankfold.graph.adaptive import ClosedForm
from rankfold.graph.collective import (
    CANDIDATES,
    SAMPLE,
    Attempt,
    learning_of,
    median_reach,
    profiles,
    sample_of,
)
from rankfold.neighbors import DynamicEngine
from rankfold.types import NOBODY

FINE = 1e-10
"""A residual so small that single precision of the profiles is all that is left."""

SINGLE = 1e-5
"""What learned distances may be off by then: ten times a lift of two profiles with three roundings.

A round learns from the graph of the one before, which this does not cover; it held all the same.
"""


def fine(X, k, smoothness=30.0, metric="euclidean", **options):
    learning = learning_of(ExactEngine(X, metric), k, smoothness)
    return replace(learning, profile_tol=FINE, **options)


def exact(X, k, smoothness=30.0, metric="euclidean"):
    return collective_reference.Collective(reference.sq_distances(X, metric), k, smoothness)


def one_round(learning, method, k, lists=None):
    """Weights after a round from a graph, by both, and how far they can be apart at most.

    Learned distances are off by no more than delta; the closed form is
    ``(t - d_j)_+ / sum_j (t - d_j)_+``: its parts move by 2 delta, and their sum by 2 k delta.
    """
    n = len(learning.live)
    source, neighbors = (lists, k) if lists is not None else (learning.candidates, method.k)
    graph = ClosedForm.of(source, neighbors).symmetric()
    lifted = learning._lifts(graph, "")
    found = ClosedForm.of(learning._relisted(method.unit, lifted), k).affinity(n).toarray()
    total = method.lifted(graph.toarray())
    learned = method.learned(total, 1)
    b = profiles(graph, 1.0, learning.profile_tol, 1).bounds
    b = b[:, None] + b
    delta = (method.weight * b * (2 * np.sqrt(total) + b)).max()
    expected = method.s_step(learned, k)
    rows = [reference.closed_form(learned[i], method.candidates[i], k) for i in range(n)]
    slack = 2 * min(gamma for _, gamma, _ in rows) - 2 * k * delta
    return found, expected, (2 * delta * (1 + k)) / slack if slack > 0 else np.inf


def assert_same_learning(found, expected, X):
    n_neighbors, learned, rounds = expected
    assert [(r.n_neighbors, r.number, r.kept) for r in found.rounds] == [
        (k, number, kept) for k, number, _, _, kept in rounds
    ]
    np.testing.assert_allclose(
        np.array([(r.reach, r.share) for r in found.rounds]),
        np.array([(reach, share) for _, _, reach, share, _ in rounds]),
        atol=SINGLE,
    )
    assert found.n_neighbors == n_neighbors
    if learned is None:
        assert len(found.lists.indices) == 0
        return
    indices, distances = found.lists.indices, found.lists.sq_distances
    assert len(indices) == len(X)
    for i, row in enumerate(indices):
        assert len(set(row)) == len(row)
        assert i not in row
        others = np.delete(learned[i], i)
        # The list holds the nearest in the learned distance, of those that were candidates.
        np.testing.assert_allclose(distances[i], learned[i][row], atol=SINGLE)
        assert (np.sort(others)[: len(row)] <= distances[i] + SINGLE).all()


@examples(12)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(20, 60),
    k=st.integers(1, 6),
    smoothness=st.sampled_from([1.0, 30.0]),
    tol=st.sampled_from([FINE, 1e-7]),
)
def test_a_round_is_within_its_bound(seed, n, k, smoothness, tol):
    X = sheet(n, seed)
    learning = replace(fine(X, k, smoothness), profile_tol=tol)
    found, expected, bound = one_round(learning, exact(X, k, smoothness), k)
    assert np.abs(found - expected).max() <= bound
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_later_round_is_within_its_bound(seed):
    X = sheet(50, seed)
    stages = []
    learning = fine(X, 4, attempts=ALWAYS, keep=stages.append)
    learning.run()
    assert [len(stage.rounds) for stage in stages] == [1, 2]
    method = exact(X, 4)
    for number, stage in enumerate(stages, 1):
        lists = learning._relisted(method.unit, stage.lifted / number)
        found, expected, bound = one_round(learning, method, 4, lists)
        assert bound < 1e-2
        assert np.abs(found - expected).max() <= bound


@examples(10)
@given(seed=st.integers(0, 1000), n=st.integers(13, 50), k=st.integers(1, 5))
def test_all_rounds_agree_with_the_reference(seed, n, k):
    X = sheet(n, seed)
    expected = exact(X, k).run()
    assert_same_learning(fine(X, k).run(), expected, X)


@pytest.mark.parametrize("metric", ["cosine", "precomputed", "precomputed_sq"])
def test_every_metric_agrees_with_the_reference(metric):
    X = sheet(50) + 2.0
    if metric.startswith("precomputed"):
        X = reference.sq_distances(X)
        X = np.sqrt(X) if metric == "precomputed" else X
    found = fine(X, 4, metric=metric, attempts=ALWAYS).run()
    assert found.n_rounds
    assert_same_learning(found, exact(X, 4, metric=metric).run(ALWAYS), X)


def test_duplicates_agree_with_the_reference():
    X = sheet(50)
    X[:8] = X[0]
    X[20:23] = X[20]
    assert_same_learning(fine(X, 3).run(), exact(X, 3).run(), X)


def test_nothing_but_duplicates_is_no_reason_to_fail():
    found = fine(np.ones((40, 2)), 3).run()
    assert np.isfinite([made.reach for made in found.rounds]).all()


@pytest.mark.parametrize("n", range(3, 11))
def test_a_handful_of_points_has_nothing_to_choose(n):
    k = min(5, n - 2)
    found = fine(sheet(n), k).run()
    assert_same_learning(found, exact(sheet(n), k).run(), sheet(n))
    assert (len(found.rounds) > 0) == (n - 1 >= 2 * (k + 1))


def test_removed_points_are_as_if_they_had_never_been():
    X = sheet(80)
    engine = DynamicEngine.build(X, "euclidean", CANDIDATES)
    engine.remove(np.arange(3, 80, 4))
    left = np.flatnonzero(engine.alive)
    found = replace(learning_of(engine, 4, 30.0), profile_tol=FINE, attempts=ALWAYS).run()
    fresh = fine(X[left], 4, attempts=ALWAYS).run()
    assert fresh.n_rounds
    assert [made.kept for made in found.rounds] == [made.kept for made in fresh.rounds]
    np.testing.assert_allclose(
        [made.reach for made in found.rounds], [made.reach for made in fresh.rounds], rtol=1e-12
    )
    np.testing.assert_array_equal(found.lists.indices[left], left[fresh.lists.indices])
    np.testing.assert_allclose(
        found.lists.sq_distances[left], fresh.lists.sq_distances, rtol=0, atol=1e-9
    )
    assert (found.lists.indices[~engine.alive] == NOBODY).all()


def test_lists_keep_the_precision_of_the_candidates():
    X = sheet(60)
    single = replace(learning_of(FaissEngine(X), 3, 30.0), profile_tol=FINE).run()
    assert single.lists.sq_distances.dtype == np.float32
    double = fine(X, 3).run()
    assert double.lists.sq_distances.dtype == np.float64
    assert single.lists.indices.dtype == double.lists.indices.dtype == np.int32
    rounding = np.finfo(np.float32).eps
    np.testing.assert_array_equal(single.lists.indices, double.lists.indices)
    np.testing.assert_allclose(
        single.lists.sq_distances, double.lists.sq_distances, rtol=rounding, atol=SINGLE
    )


def test_coarse_profiles_bring_lists_near_to_the_exact_ones():
    X = sheet(60)
    method = exact(X, 4)
    expected = method.learned(method.lifted(method.plain), 1)
    learning = replace(fine(X, 4, attempts=(Attempt(1, 1, 0.0),)), profile_tol=3e-4)
    lists = learning.run().lists
    bounds = profiles(ClosedForm.of(learning.candidates, 4).symmetric(), 1.0, 3e-4, 1).bounds
    b = bounds[:, None] + bounds[lists.indices]
    exact_distances = np.take_along_axis(expected, lists.indices.astype(np.intp), 1)
    lifts = (exact_distances - np.take_along_axis(method.d, lists.indices.astype(np.intp), 1)) / 10
    bound = 10 * b * (2 * np.sqrt(np.maximum(lifts, 0.0)) + b)
    assert (np.abs(lists.sq_distances - exact_distances) <= bound).all()


@pytest.mark.parametrize(
    ("name", "n_rounds", "factor"), [("rings", 2, 1), ("strands", 1, 2), ("tori", 3, 1)]
)
def test_clean_manifolds_are_learned(name, n_rounds, factor):
    found = learning_of(ExactEngine(data(name)), 5, 30.0).run()
    assert found.n_rounds == n_rounds
    assert found.n_neighbors == 5 * factor
    assert len(found.lists.indices) == len(data(name))


@pytest.mark.parametrize("n_points", [300, 400])
def test_digits_keep_the_plain_graph(n_points):
    found = learning_of(ExactEngine(data("digits")[:n_points]), 5, 30.0).run()
    assert found.n_rounds == 0
    assert [(made.n_neighbors, made.kept) for made in found.rounds] == [(5, False), (10, False)]
    assert found.rounds[0].reach < 0.8
    assert found.rounds[1].reach < 1.0
    assert found.n_neighbors == found.n_plain == 5
    assert found.unit == 1.0


def data(name):
    """Data of which it is known what learning does."""
    rng = np.random.default_rng(0)
    if name == "tori":  # like objects on a turntable: closed curves, far from each other
        t = np.arange(72) * 2 * np.pi / 72
        curve = np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t), np.sin(2 * t)])
        return np.vstack([curve @ rng.normal(size=(4, 20)) + rng.normal(size=20) for _ in range(5)])
    if name == "strands":
        return STRANDS
    return datasets.load(name).X[:400]


def test_more_neighbours_that_join_what_was_apart_are_not_kept():
    X = data("moons")
    found = learning_of(ExactEngine(X), 5, 30.0).run()
    assert found.n_rounds == 0
    assert found.rounds[1].reach > 1.1
    free = replace(learning_of(ExactEngine(X), 5, 30.0), attempts=(Attempt(2, 1, 1.1),)).run()
    assert free.n_rounds == 1


def test_the_rounds_of_an_attempt_end_with_the_first_that_reaches_too_little():
    X = data("rings")
    free = fine(X, 5, attempts=ALWAYS).run()
    reach = [made.reach for made in free.rounds]
    assert free.n_rounds == 3
    strict = fine(X, 5, attempts=(Attempt(1, 3, (reach[0] + reach[1]) / 2),)).run()
    assert [(made.number, made.kept) for made in strict.rounds] == [(1, True), (2, False)]
    assert [made.reach for made in strict.rounds] == reach[:2]
    one = fine(X, 5, attempts=(Attempt(1, 1, 0.0),)).run()
    np.testing.assert_array_equal(strict.lists.indices, one.lists.indices)
    np.testing.assert_array_equal(strict.lists.sq_distances, one.lists.sq_distances)


def test_an_attempt_that_there_are_too_few_candidates_for_is_left_out():
    found = fine(sheet(100), 11, attempts=(Attempt(2, 1, 0.0),)).run()
    assert found.rounds == ()
    assert fine(sheet(100), 10, attempts=(Attempt(2, 1, 0.0),)).run().n_rounds == 1


@pytest.mark.parametrize("smoothness", [1.0, 30.0])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_reach_is_the_effective_number_of_points(smoothness, n_jobs, monkeypatch):
    X = sheet(60)
    method = exact(X, 4, smoothness)
    graph = ClosedForm.of(fine(X, 4).candidates, 4).symmetric()
    sample = np.array([3, 8, 20, 41, 55])
    expected = collective_reference.median_reach(method.plain, smoothness, sample)
    found = median_reach(graph, smoothness, sample, n_jobs)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    monkeypatch.setattr(collective, "DIRECT_LIMIT", 10)
    near = median_reach(graph, smoothness, sample, n_jobs)
    assert near != found
    # No score is off by more than TOL: sums by 60 TOL, squares of scores by 2 TOL each.
    np.testing.assert_allclose(near, expected, rtol=2 * (60 + 2 * 60) * collective.TOL)


def test_the_points_that_are_asked_are_always_the_same():
    live = np.arange(5, 2000, 3)
    sample = sample_of(live)
    assert len(np.unique(sample)) == SAMPLE
    assert np.isin(sample, live).all()
    np.testing.assert_array_equal(sample, sample_of(live))
    np.testing.assert_array_equal(sample_of(np.arange(7)), np.arange(7))


@pytest.mark.parametrize("name", ["rings", "tori", "moons", "strands"])
def test_learning_goes_on_from_every_stage(name):
    stages = []
    learning = learning_of(ExactEngine(data(name)), 5, 30.0, keep=stages.append)
    expected = learning.run()
    assert len(stages) == {"rings": 2, "tori": 2, "moons": 1, "strands": 1}[name]
    for stage in stages:
        found = replace(learning, keep=None).run(stage)
        assert found.rounds == expected.rounds
        np.testing.assert_array_equal(found.lists.indices, expected.lists.indices)
        np.testing.assert_array_equal(found.lists.sq_distances, expected.lists.sq_distances)


def test_an_attempt_with_the_neighbours_of_another_begins_from_nothing():
    X, stages = data("rings"), []
    attempts = (Attempt(1, 2, 9.0), Attempt(1, 2, 0.0))
    learning = fine(X, 5, attempts=attempts, keep=stages.append)
    found, alone = learning.run(), fine(X, 5, attempts=attempts[1:]).run()
    assert [(made.number, made.kept) for made in found.rounds] == [(1, False), (1, True), (2, True)]
    assert found.rounds[1:] == alone.rounds
    np.testing.assert_array_equal(found.lists.sq_distances, alone.lists.sq_distances)
    assert [stage.attempt for stage in stages] == [1, 1]
    for stage in stages:
        again = replace(learning, keep=None).run(stage)
        assert again.rounds == found.rounds
        np.testing.assert_array_equal(again.lists.sq_distances, found.lists.sq_distances)


def test_profiles_of_no_weight_leave_lists_as_they_are():
    engine = DynamicEngine.build(sheet(90), "euclidean", CANDIDATES)
    engine.remove([3, 50])
    learning = replace(learning_of(engine, 4, 30.0), weight=0.0, attempts=ALWAYS)
    found, plain = learning.run(), learning.candidates
    width = found.lists.width
    np.testing.assert_array_equal(found.lists.indices, plain.indices[:, :width])
    np.testing.assert_array_equal(
        found.lists.sq_distances, plain.sq_distances[:, :width] / found.unit
    )


def test_ctrl_c_between_rounds_leaves_a_stage_to_go_on_from():
    stages = []

    def stop(stage):
        stages.append(stage)
        raise KeyboardInterrupt

    learning = learning_of(ExactEngine(data("tori")), 5, 30.0, keep=stop)
    before = learning.candidates.sq_distances.copy()
    with pytest.raises(KeyboardInterrupt):
        learning.run()
    (stage,) = stages
    np.testing.assert_array_equal(learning.candidates.sq_distances, before)
    lifted = stage.lifted.copy()
    again, whole = (replace(learning, keep=None).run(begin) for begin in (stage, None))
    np.testing.assert_array_equal(stage.lifted, lifted)
    assert again.rounds == whole.rounds
    np.testing.assert_array_equal(again.lists.sq_distances, whole.lists.sq_distances)


@pytest.mark.parametrize("name", ["rings", "digits"])
def test_threads_change_nothing(name, monkeypatch):
    monkeypatch.setattr("rankfold.graph.collective.BLOCK_ROWS", 64)
    learning = learning_of(ExactEngine(data(name)), 5, 30.0)
    one, two = (replace(learning, n_jobs=n_jobs).run() for n_jobs in (1, 2))
    assert one.rounds == two.rounds
    np.testing.assert_array_equal(one.lists.indices, two.lists.indices)
    np.testing.assert_array_equal(one.lists.sq_distances, two.lists.sq_distances)


def test_progress_names_the_round(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    learning_of(ExactEngine(data("rings")), 5, 30.0, progress=True).run()
    out, err = capfd.readouterr()
    assert not out
    assert "round 1 of 3, 5 neighbours" in err
    assert "round 3 of 3, 5 neighbours" in err
