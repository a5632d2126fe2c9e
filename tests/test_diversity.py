import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from rankfold import RAN, InputError, Query, datasets
from rankfold.diversity import diverse, diversify, n_candidates
from rankfold.neighbors import ENGINES, ExactEngine

amounts = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])


@st.composite
def candidates(draw):
    """Scores, best first, and squared distances, some between copies."""
    n = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, 2))
    X[rng.integers(0, n, size=n // 3)] = X[0]
    scores = -np.sort(-rng.choice([0.0, 0.3, 0.7, *rng.uniform(size=5)], size=n))
    return scores, reference.sq_distances(X)


@given(candidates(), amounts, st.integers(1, 20))
def test_it_is_the_reference(case, amount, top):
    scores, d = case
    order = diversify(scores, d, top, amount)
    if amount:
        assert order.tolist() == reference.diversify(scores, d, top, amount)
    else:
        assert order.tolist() == list(range(min(top, len(scores))))


@given(candidates(), amounts)
def test_it_is_a_permutation_that_begins_with_the_best(case, amount):
    order = diversify(*case, top=len(case[0]), amount=amount)
    assert order[0] == 0
    assert sorted(order) == list(range(len(case[0])))


@given(candidates(), amounts, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_units_of_distance_and_score_do_not_matter(case, amount, unit):
    scores, d = case
    order = diversify(scores, d, len(scores), amount)
    assert diversify(scores, unit * d, len(scores), amount).tolist() == order.tolist()
    assert diversify(unit * scores, d, len(scores), amount).tolist() == order.tolist()


@given(candidates(), amounts, st.integers(1, 14), st.integers(1, 14))
def test_fewer_results_are_the_beginning_of_more(case, amount, some, more):
    few, many = (diversify(*case, top=top, amount=amount) for top in sorted((some, more)))
    assert few.tolist() == many[: len(few)].tolist()


@given(candidates(), st.sampled_from([0.5, 0.75, 1.0]))
def test_copies_wait_for_all_that_are_as_relevant_as_similar(case, amount):
    scores, d = case
    order = diversify(scores, d, len(scores), amount).tolist()
    apart = [row[row > 0].min() for row in d if (row > 0).any()]
    unit = np.median(apart) if apart else 1.0
    span = scores[0] - scores[-1]
    relevance = (scores - scores[-1]) / span if span else np.ones(len(scores))
    for place in range(1, len(order)):
        chosen, left = order[:place], order[place:]
        if d[left[0], chosen].min() == 0:  # a copy is next: all others have waited longer
            similarity = np.exp(-d[np.ix_(left, chosen)].min(axis=1) / unit)
            assert (relevance[left] <= similarity).all()


def test_copies_come_after_others():
    X = np.array([[0.0, 0], [0, 0], [0, 0], [4, 0], [0, 4], [4, 4], [9, 9]])
    scores = [1.0, 0.99, 0.98, 0.9, 0.8, 0.7, 0.1]
    order = diversify(scores, reference.sq_distances(X), top=7, amount=0.5).tolist()
    assert order[0] == 0
    assert set(order[1:4]) == {3, 4, 5}
    assert diversify(scores, reference.sq_distances(X), 4, 0.0).tolist() == [0, 1, 2, 3]


def test_a_ranking_of_copies_shows_more_pictures():
    X = np.repeat(np.random.default_rng(0).normal(size=(40, 3)), 3, axis=0)
    ranker = RAN(n_neighbors=9).fit(X)
    ranking = ranker.rank(0, top=n_candidates(10))
    chosen = diverse(ranker.engine_, ranking, top=10, amount=0.75)
    shown = [{int(point) // 3 for point in answer.indices[:10]} for answer in (ranking, chosen)]
    assert len(shown[0]) < len(shown[1]) == 10
    scores = dict(zip(ranking.indices.tolist(), ranking.scores, strict=True))
    assert [scores[point] for point in chosen.indices.tolist()] == chosen.scores.tolist()
    assert not chosen.solution.certified


def test_no_diversity_is_the_ranking_itself():
    digits = datasets.load("digits")
    ranker = RAN().fit(digits.X)
    ranking = ranker.rank_many([Query(indices=[3, 5])], top=n_candidates(7))[0]
    same = diverse(ranker.engine_, ranking, 7, 0.0)
    assert same.indices.tolist() == ranking.indices[:7].tolist()
    assert same.scores.tolist() == ranking.scores[:7].tolist()


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_engines_measure_pairs(name, metric):
    X = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    ids = np.array([7, 2, 2, 29])
    pairs = ENGINES[name](X, metric).pairs(ids)
    expected = reference.sq_distances(X[ids], metric)
    np.testing.assert_allclose(pairs, expected, rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("metric", ["precomputed", "precomputed_sq"])
def test_pairs_of_given_distances(metric):
    d = reference.sq_distances(np.random.default_rng(1).normal(size=(9, 2)))
    ids = np.array([4, 0, 8])
    pairs = ExactEngine(d, metric).pairs(ids)
    expected = reference.sq_distances(d, metric)[np.ix_(ids, ids)]
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.parametrize(
    ("scores", "d", "top", "amount", "message"),
    [
        ([0.5, 1.0], np.zeros((2, 2)), 1, 0.5, "best first"),
        ([], np.zeros((0, 0)), 1, 0.5, "list of scores"),
        ([[1.0], [0.5]], np.zeros((2, 2)), 1, 0.5, "list of scores"),
        ([1.0, 0.5], np.zeros((3, 2)), 1, 0.5, "2 candidates"),
        ([1.0, 0.5], np.zeros((2, 3)), 1, 0.5, "shape"),
        ([1.0, 0.5], -np.ones((2, 2)), 1, 0.5, "negative"),
        ([1.0, np.nan], np.zeros((2, 2)), 1, 0.5, "NaN"),
        ([1.0, 0.5], np.zeros((2, 2)), 0, 0.5, "top is 0"),
        ([1.0, 0.5], np.zeros((2, 2)), 1, 1.5, "amount is 1.5"),
    ],
)
def test_bad_input_is_refused(scores, d, top, amount, message):
    with pytest.raises(InputError, match=message):
        diversify(scores, d, top, amount)
