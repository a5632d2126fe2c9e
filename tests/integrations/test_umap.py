"""Graphs of UMAP; in a file of its own, since it compiles itself."""

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from rankfold import RAN, datasets
from rankfold.integrations.scikit_learn import distances_of_weights


@pytest.fixture(scope="module")
def X():
    return datasets.load("digits").X[:300]


@pytest.mark.slow  # how weights become distances is in test_scikit_learn
@pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")
def test_weights_of_umap_which_scanpy_keeps_are_taken(X):
    from umap.umap_ import fuzzy_simplicial_set

    graph = kneighbors_graph(X, 30, mode="distance", include_self=True)
    indices, distances = graph.indices.reshape(-1, 30), graph.data.reshape(-1, 30)
    weights, *_ = fuzzy_simplicial_set(
        X, 30, np.random.RandomState(0), "euclidean", knn_indices=indices, knn_dists=distances
    )
    lengths = np.diff(weights.tocsr().indptr)
    assert lengths.min() < lengths.max()
    labels = datasets.load("digits").labels[:300]
    ranker = RAN(10, metric="precomputed").fit(distances_of_weights(weights))
    found, _ = ranker.search(k=10)
    plain, _ = RAN(10).fit(X).search(k=10)
    right = [np.mean(labels[rows] == labels[:, None]) for rows in (found, plain)]
    assert right[0] > right[1] - 0.02
