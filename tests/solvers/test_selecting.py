"""Selection and sorting agree with NumPy's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankfold.solvers.selecting import put_largest_first, sort_by_score

NUMBERS = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.5000001, 2.0, 7.0, 1e9]), min_size=1)


@settings(deadline=None)
@given(NUMBERS, st.data())
def test_the_largest_are_in_front_and_the_last_of_them_is_the_smallest(numbers, data):
    k = data.draw(st.integers(1, len(numbers)))
    values = np.array([*numbers, np.inf])  # what is beyond is left alone
    put_largest_first(values, len(numbers), k)
    descending = np.sort(numbers)[::-1]
    np.testing.assert_array_equal(np.sort(values[:k])[::-1], descending[:k])
    np.testing.assert_array_equal(np.sort(values[:-1])[::-1], descending)
    assert values[k - 1] == descending[k - 1]
    assert values[-1] == np.inf


@settings(deadline=None)
@given(NUMBERS, st.integers(0, 1000))
def test_points_are_sorted_by_score_and_then_by_index(numbers, seed):
    scores = np.array(numbers)
    points = np.random.default_rng(seed).permutation(len(numbers)).astype(np.int32)
    order = np.lexsort([points, -scores])
    expected = points[order], scores[order]
    sort_by_score(points, scores, len(numbers))
    np.testing.assert_array_equal(points, expected[0])
    np.testing.assert_array_equal(scores, expected[1])
