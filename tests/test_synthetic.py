import numpy as np
import pytest

from rankfold import ExactEngine, InputError
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors import intrinsic_dimension


def test_sheets_have_equal_shares_and_lie_apart():
    data = sheets(3001, n_sheets=3)
    assert data.X.shape == (3001, 32)
    assert data.X.dtype == np.float32
    assert np.bincount(data.labels).tolist() == [1001, 1000, 1000]
    nearest = ExactEngine(data.X).rows(np.arange(3001), 1).indices[:, 0]
    assert (data.labels[nearest] == data.labels).mean() > 0.99
    assert (data.labels[1:] == data.labels[:-1]).mean() < 0.5


def test_sheets_have_few_dimensions_and_bend():
    data = sheets(4000, n_sheets=1, noise=0.0)
    lists = ExactEngine(data.X).rows(np.arange(4000), 20)
    assert 2.5 < intrinsic_dimension(lists) < 3.5
    spectrum = np.linalg.svd(data.X - data.X.mean(axis=0), compute_uv=False)
    assert (spectrum[:3] ** 2).sum() < 0.9 * (spectrum**2).sum()


def test_sheets_go_by_the_seed():
    np.testing.assert_array_equal(sheets(50, seed=1).X, sheets(50, seed=1).X)
    assert (sheets(50, seed=1).X != sheets(50, seed=2).X).any()


@pytest.mark.parametrize("numbers", [{"n_points": 0}, {"n_points": 5, "n_sheets": 0}])
def test_sheets_need_points(numbers):
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        sheets(**numbers)
