"""Figures that the paper prints, with the query counted as the paper counts it."""

import numpy as np
import pytest

from rankfold import RAN, Euclidean, GaussianGraph
from rankfold.rankers import Diffusion


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


SETTINGS = {
    # W <- W P + I from I, four steps.
    "self-diffusion": {"start": "identity", "update": "right", "n_steps": 4, "restart": 1.0},
    # A <- 0.85 P A + 0.15 I from W, three steps.
    "pagerank": {
        "start": "weights",
        "update": "left",
        "n_steps": 3,
        "alpha": 0.85,
        "restart": 0.15,
    },
}


@pytest.mark.parametrize(
    ("method", "name", "bandwidth", "cutoff", "precision", "recall"),
    [
        ("self-diffusion", "usps", 0.8, 50, 47.420, 59.275),
        ("pagerank", "usps", 0.8, 50, 47.395, 59.244),
        ("pagerank", "orl", 20.0, 15, 47.150, 70.725),
    ],
)
def test_baselines_as_printed(load, method, name, bandwidth, cutoff, precision, recall):
    """The kernel is exp(-2 bandwidth^2 d), all pairs, with self-affinity."""
    graph = GaussianGraph(1 / (2 * bandwidth), n_neighbors=None, self_affinity=True)
    ranker = Diffusion(graph=graph, **SETTINGS[method])
    found = precision_and_recall(ranker, load(name), cutoff)
    assert found == pytest.approx((precision, recall), abs=1e-3)
