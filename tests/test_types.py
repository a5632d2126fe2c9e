import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankfold import Neighbors, Ranking, Solution


def lists(rows):
    indices = np.array([[index for index, _ in row] for row in rows], dtype=np.intp)
    return Neighbors(indices, np.array([[distance for _, distance in row] for row in rows]))


entries = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([0.0, 1.0, 2.0])), min_size=1, max_size=8
)


@given(left=entries, right=entries, width=st.integers(1, 12), own=st.integers(0, 9))
def test_merge_equals_sorting_by_hand(left, right, width, own):
    merged = Neighbors.merge([lists([left]), lists([right])], width, np.array([own]))
    best = {}
    for index, distance in left + right:
        if index != own:
            best[index] = min(distance, best.get(index, np.inf))
    expected = sorted((distance, index) for index, distance in best.items())[:width]
    fill = width - len(expected)
    assert merged.indices[0].tolist() == [index for _, index in expected] + [-1] * fill
    assert merged.sq_distances[0].tolist() == [d for d, _ in expected] + [np.inf] * fill


def test_padding_never_hides_a_neighbor():
    short = lists([[(3, 1.0), (-1, np.inf)]])
    merged = Neighbors.merge([short, lists([[(5, 2.0), (-1, np.inf)]])], 3)
    assert merged.indices.tolist() == [[3, 5, -1]]


def test_a_ranking_shows_its_best():
    scores = np.array([1.0, 0.5, 0.25, 0.125, 0.1, 0.05])
    ranking = Ranking(Solution(np.array([4, 2, 9, 1, 7, 3]), scores, 1e-12))
    assert len(ranking) == 6
    assert repr(ranking) == (
        "Ranking(6 points, {4: 1, 2: 0.5, 9: 0.25, 1: 0.125, 7: 0.1, ...}, bound=1.0e-12)"
    )


def test_head_and_take():
    neighbors = lists([[(1, 1.0), (2, 2.0)], [(0, 1.0), (2, 3.0)]])
    assert neighbors.head(1).indices.tolist() == [[1], [0]]
    assert neighbors.take(np.array([1])).sq_distances.tolist() == [[1.0, 3.0]]
    assert neighbors.width == 2
