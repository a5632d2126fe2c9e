"""The data sets that learning one graph for all queries is measured on."""

import os
from dataclasses import replace

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from rankfold import Dataset, datasets
from rankfold.datasets import synthetic

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


def drawn():
    """Yield patterns that are drawn: whether their parts touch is a matter of the noise."""
    for n_points in (400, 800):
        for noise in (0.05, 0.1):
            for seed in (0, 1):
                name = f"moons, {n_points}, noise {noise:g}, seed {seed}"
                yield replace(synthetic.moons(n_points, noise, seed), name=name)
    for noise in (0.05, 0.1, 0.15):
        yield replace(synthetic.rings(noise=noise), name=f"rings, noise {noise:g}")
    yield synthetic.sheets(1500, dimension=2, ambient=8, noise=0.1)


def taken(dataset, rows):
    """Return the vectors, or the distances, of some points."""
    if dataset.metric.startswith("precomputed"):
        return dataset.X[np.ix_(rows, rows)]
    return dataset.X[rows]
