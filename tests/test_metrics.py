"""Measures against ir-measures, against their definitions, and by hand."""

import ir_measures
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, RR, P, Qrel, R, Rprec, ScoredDoc, nDCG

from rankfold import InputError, metrics
from rankfold.evaluation import evaluate_runs

THEIRS = {
    "precision@3": P @ 3,
    "precision@10": P @ 10,
    "recall@3": R @ 3,
    "recall@10": R @ 10,
    "ndcg@3": nDCG @ 3,
    "ndcg@10": nDCG @ 10,
    "average_precision": AP,
    "reciprocal_rank": RR,
    "r_precision": Rprec,
}

# Few distinct scores, so that most results are tied; the last two are equal in single precision.
SCORES = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 1.0 + 1e-12])
POINTS = [str(number) for number in range(15)]


@st.composite
def judged_runs(draw):
    queries = [f"q{number}" for number in range(draw(st.integers(1, 3)))]
    run = {
        query: draw(st.dictionaries(st.sampled_from(POINTS), SCORES, min_size=1))
        for query in queries
    }
    grades = st.dictionaries(st.sampled_from(POINTS), st.integers(0, 3))
    qrels = {}
    for query in queries:
        qrels[query] = {**draw(grades), draw(st.sampled_from(POINTS)): draw(st.integers(1, 3))}
    return run, qrels


@examples(150)
@given(judged_runs())
def test_equal_to_ir_measures_on_runs_with_ties(case):
    run, qrels = case
    found = evaluate_runs({"run": run}, qrels, list(THEIRS), plain="run")
    judged = [Qrel(q, point, g) for q, grades in qrels.items() for point, g in grades.items()]
    scored = [ScoredDoc(q, point, s) for q, scores in run.items() for point, s in scores.items()]
    theirs = {
        (str(result.measure), result.query_id): result.value
        for result in ir_measures.iter_calc(list(THEIRS.values()), judged, scored)
    }
    assert len(theirs) == len(THEIRS) * len(qrels)
    for name, measure in THEIRS.items():
        expected = [theirs[str(measure), query] for query in found.queries]
        np.testing.assert_allclose(found.values["run"][name], expected, rtol=0, atol=1e-9)


def test_trec_order():
    assert metrics.trec_order(["9", "10", "2"], [1.0, 1.0, 1.0]).tolist() == [0, 2, 1]
    assert metrics.trec_order(["a", "b"], [0.5 + 1e-12, 0.5]).tolist() == [1, 0]
    assert metrics.trec_order([], []).tolist() == []


def test_by_hand():
    relevant = [False, True, False, True, True, False]
    assert metrics.precision(relevant, 4) == 2 / 4
    assert metrics.recall(relevant, 4, 5) == 2 / 5
    assert metrics.r_precision(relevant, 5) == 3 / 5
    assert metrics.reciprocal_rank(relevant) == 1 / 2
    assert metrics.reciprocal_rank([False]) == metrics.reciprocal_rank([]) == 0.0
    assert metrics.average_precision(relevant, 4) == pytest.approx((1 / 2 + 2 / 4 + 3 / 5) / 4)
    halves = (0 / 1 + 1 / 2) + (1 / 3 + 2 / 4) + (2 / 4 + 3 / 5)
    assert metrics.trapezoidal_average_precision(relevant, 4) == pytest.approx(halves / 8)
    gain = 1 / np.log2(3) + 1 / np.log2(5)
    best = 1 + 1 / np.log2(3) + 1 / np.log2(4) + 1 / np.log2(5)
    assert metrics.ndcg(relevant, 4, [1] * 5) == pytest.approx(gain / best)


def test_graded_gains():
    found, ideal = [1.0, 0.0, 3.0], [3.0, 2.0, 1.0]
    expected = (1 + 3 / 2) / (3 + 2 / np.log2(3) + 1 / 2)
    assert metrics.ndcg(found, 3, ideal) == pytest.approx(expected)
    assert metrics.ndcg(found, 3, ideal[::-1]) == pytest.approx(expected)
    assert metrics.ndcg([3, 2, 1], 2, ideal) == 1.0


def test_bulls_eye_counts_the_query_where_it_is_a_result():
    hits = [True] + [False] * 2 + [True] + [False] * 2 + [True]
    assert metrics.bulls_eye(hits, 3) == 2 / 3
    assert metrics.bulls_eye(hits[1:], 2) == 1 / 2
    assert metrics.bulls_eye([True] * 20 + [False] * 60, 20) == 1.0


@examples(100)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 5))
def test_trapezoids_are_the_area_below_the_curve(relevant, n_missed):
    n_relevant = max(1, sum(relevant) + n_missed)
    hits = np.cumsum(relevant)
    precisions = np.concatenate([[1.0], hits / np.arange(1, len(hits) + 1)])
    recalls = np.concatenate([[0.0], hits / n_relevant])
    area = np.trapezoid(precisions, recalls)
    found = metrics.trapezoidal_average_precision(relevant, n_relevant)
    assert found == pytest.approx(area)
    assert found <= metrics.average_precision(relevant, n_relevant) + 1e-12


@examples(100)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 40))
def test_bounds_and_the_perfect_ranking(relevant, cutoff):
    n_relevant = max(1, sum(relevant))
    ordered = sorted(relevant, reverse=True)
    for measure in (
        lambda flags: metrics.average_precision(flags, n_relevant),
        lambda flags: metrics.trapezoidal_average_precision(flags, n_relevant),
        lambda flags: metrics.ndcg(flags, cutoff, [1] * n_relevant),
        lambda flags: metrics.r_precision(flags, n_relevant),
        lambda flags: metrics.bulls_eye(flags, n_relevant),
        metrics.reciprocal_rank,
    ):
        assert 0 <= measure(relevant) <= measure(ordered) + 1e-12
        assert measure(ordered) == pytest.approx(float(any(relevant)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.average_precision([True, True], 1), "n_relevant is 1; count every"),
        (lambda: metrics.trapezoidal_average_precision([True], 0), "n_relevant is 0"),
        (lambda: metrics.bulls_eye([True], 0), "n_relevant is 0"),
        (lambda: metrics.r_precision([True], 1.5), "n_relevant is 1.5"),
        (lambda: metrics.ndcg([True], 0, [1]), "cutoff is 0"),
        (lambda: metrics.ndcg([True], 5, [0]), "ideal holds nothing above zero"),
        (lambda: metrics.ndcg([-1.0], 5, [1]), "gains must be a flat list"),
        (lambda: metrics.ndcg([1.0], 5, [np.nan]), "ideal must be a flat list"),
        (lambda: metrics.trec_order(["a"], [1.0, 2.0]), "there are 1 ids"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
