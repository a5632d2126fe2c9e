"""Figures that the paper prints, with the query counted as the paper counts it."""

import numpy as np
import pytest

from rankfold import RAN, Euclidean


def precision_and_recall(ranker, dataset, cutoff):
    ranker.set_params(metric=dataset.metric)
    indices, _ = ranker.fit(dataset.X).rank_all(top=cutoff, include_query=True)
    hits = (dataset.labels[indices] == dataset.labels[:, None]).sum(axis=1)
    class_sizes = np.bincount(dataset.labels)[dataset.labels]
    return 100 * np.mean(hits / cutoff), 100 * np.mean(hits / class_sizes)


@pytest.mark.parametrize(
    ("name", "k", "smoothness", "cutoff", "precision", "recall"),
    [
        ("yale", 5, 90.0, 10, 72.00, 65.455),
        ("orl", 5, 0.1, 15, 49.017, 73.525),
        ("usps", 10, 1.0, 50, 58.190, 72.738),
    ],
)
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_ran_after_one_alternation(load, name, k, smoothness, cutoff, precision, recall, solver):
    ranker = RAN(k, smoothness, max_iter=1, scale=None, solver=solver)
    found = precision_and_recall(ranker, load(name), cutoff)
    assert found == pytest.approx((precision, recall), abs=1e-3)


@pytest.mark.parametrize(
    ("name", "cutoff", "precision"),
    [("yale", 10, 66.606), ("orl", 15, 41.567), ("usps", 50, 45.535)],
)
def test_euclidean(load, name, cutoff, precision):
    found, _ = precision_and_recall(Euclidean(), load(name), cutoff)
    assert found == pytest.approx(precision, abs=1e-3)
