"""The data sets that learning one graph for all queries is measured on."""

import os

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from rankfold import Dataset, datasets

SETS = ("digits", "usps", "orl", "yale", "coil20", "umist")
SUBSETS = {"digits": 400, "coil20": 500, "umist": 300, "mnist": 1000}
FRESH = (
    ("digits", 900), ("usps_all", 900), ("coil20", 1000), ("umist", 400), ("mnist", 300),
    ("mnist", 3000),
)  # fmt: skip


def part(name, n_points, seed=0):
    """Return some points of a set of vectors, always the same."""
    whole = datasets.load(name)
    rows = np.random.default_rng(seed).permutation(len(whole.labels))[:n_points]
    return Dataset(f"{name}, {n_points:,} of it", whole.X[rows], whole.labels[rows])


def seven(n_of_mnist):
    """Yield the sets that goals are set for."""
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    for name in SETS:
        yield datasets.load(name)
    yield part("mnist", n_of_mnist)


def others():
    """Yield more sets, which no goal is set for."""
    yield datasets.load("usps_all")
    for name, loader in (("iris", load_iris), ("wine", load_wine), ("cancer", load_breast_cancer)):
        X, labels = loader(return_X_y=True)
        yield Dataset(name, StandardScaler().fit_transform(X), labels)
    for name, n_points in SUBSETS.items():
        yield part(name, n_points)


def fresh():
    """Yield samples that were not looked at when settings were chosen."""
    for name, n_points in FRESH:
        yield part(name, n_points, seed=1)


def taken(dataset, rows):
    """Return the vectors, or the distances, of some points."""
    if dataset.metric.startswith("precomputed"):
        return dataset.X[np.ix_(rows, rows)]
    return dataset.X[rows]
