import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankfold import Neighbors
from rankfold.neighbors import merge_lists


def lists(rows):
    indices = np.array([[index for index, _ in row] for row in rows], dtype=np.intp)
    return Neighbors(indices, np.array([[distance for _, distance in row] for row in rows]))


entries = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([0.0, 1.0, 2.0])), min_size=1, max_size=8
)


@given(left=entries, right=entries, width=st.integers(1, 12), own=st.integers(0, 9))
def test_merge_equals_sorting_by_hand(left, right, width, own):
    merged = merge_lists([lists([left]), lists([right])], width, np.array([own]))
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
    merged = merge_lists([short, lists([[(5, 2.0), (-1, np.inf)]])], 3)
    assert merged.indices.tolist() == [[3, 5, -1]]
