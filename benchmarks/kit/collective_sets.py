"""The data sets that learning one graph for all queries is measured on."""

import os
from dataclasses import replace

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_swiss_roll,
)
from sklearn.preprocessing import StandardScaler

from rankfold import Dataset, datasets
from rankfold.datasets import synthetic

SETS = ("digits", "usps", "orl", "yale", "coil20", "umist")
SUBSETS = {"digits": 400, "coil20": 500, "umist": 300, "mnist": 1000}
FRESH = (
    ("digits", 900), ("usps_all", 900), ("coil20", 1000), ("umist", 400), ("mnist", 300),
    ("mnist", 3000),
)  # fmt: skip


FIFTHS = (0.2, 0.4, 0.6, 0.8)


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
        yield part(name, n_points, seed=17)


def drawn():
    """Yield patterns that settings were chosen on: whether parts touch is a matter of noise."""
    for n_points in (400, 800):
        for noise in (0.05, 0.1):
            for seed in (0, 1):
                name = f"moons, {n_points}, noise {noise:g}, seed {seed}"
                yield replace(synthetic.moons(n_points, noise, seed), name=name)
    for noise in (0.05, 0.1, 0.15):
        yield replace(synthetic.rings(noise=noise), name=f"rings, noise {noise:g}")
    yield synthetic.sheets(1500, dimension=2, ambient=8, noise=0.1)


def drawn_later():
    """Yield patterns that were not looked at before all settings were settled."""
    for noise in (0.02, 0.06):
        yield spirals(3, 300, noise)
    for spread in (0.5, 1.0, 2.0):
        X, labels = make_blobs(900, 10, centers=6, cluster_std=spread, random_state=17)
        yield Dataset(f"blobs, spread {spread:g}", X, labels)
    for gap in (0.6, 0.8):
        X, labels = make_circles(800, noise=0.05, factor=gap, random_state=17)
        yield Dataset(f"circles, inner {gap:g}", X, labels)
    X, place = make_swiss_roll(1500, noise=0.3, random_state=17)
    yield Dataset("swiss roll, cut in five", X, np.digitize(place, np.quantile(place, FIFTHS)))


def spirals(n_arms, n_points, noise):
    """Return arms of a spiral around each other."""
    rng = np.random.default_rng(17)
    t = np.sqrt(rng.uniform(0.05, 1, (n_arms, n_points)))
    angles = 6 * t + 2 * np.pi * np.arange(n_arms)[:, None] / n_arms
    X = np.stack([t * np.cos(angles), t * np.sin(angles)], axis=-1).reshape(-1, 2)
    labels = np.repeat(np.arange(n_arms), n_points)
    return Dataset(f"spirals, noise {noise:g}", X + rng.normal(0, noise, X.shape), labels)


def taken(dataset, rows):
    """Return the vectors, or the distances, of some points."""
    if dataset.metric.startswith("precomputed"):
        return dataset.X[np.ix_(rows, rows)]
    return dataset.X[rows]
