import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rankfold.graph.adaptive import affinity_matrix, symmetrize
from rankfold.graph.symmetric import link


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@examples(100)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), width=st.integers(1, 6))
def test_link_is_the_mean_of_the_lists_and_their_transpose(dtype, seed, n, width):
    rng = np.random.default_rng(seed)
    indices = np.full((n, width), -1, dtype=np.int32)
    weights = np.zeros((n, width), dtype=dtype)
    for row in range(n):
        others = rng.permutation(np.delete(np.arange(n), row))[: rng.integers(0, width + 1)]
        indices[row, : len(others)] = others
        weights[row, : len(others)] = rng.uniform(0, 1, len(others)) * (rng.random() < 0.9)
    linked = link(indices, weights)
    expected = symmetrize(affinity_matrix(indices, weights, n))
    assert linked.dtype == dtype
    np.testing.assert_array_equal(linked.toarray(), expected.toarray())
    assert linked.nnz == expected.nnz
