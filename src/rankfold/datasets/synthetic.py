"""The patterns of the paper's first two figures, and curved sheets of any number of points."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_moons

from rankfold.check import check_count
from rankfold.types import Dataset


def moons(n_points: int = 400, noise: float = 0.05, seed: int = 0) -> Dataset:
    """Return two interleaved half circles, Fig. 1; label 0 is the upper one.

    Parameters
    ----------
    n_points : int
        Of both together.
    noise : float
        Standard deviation of what is added to each coordinate; the radius is 1.
    seed : int
    """
    X, labels = make_moons(n_points, noise=noise, random_state=seed)
    return Dataset("moons", X, labels.astype(np.intp))


def rings(sizes: tuple[int, ...] = (60, 120, 180), noise: float = 0.05, seed: int = 0) -> Dataset:
    """Return rings of radius 1, 2, 3, ... around one centre, Fig. 2; label 0 is the innermost.

    Parameters
    ----------
    sizes : tuple of int
        Points of each ring, the innermost first.
    noise : float
        Standard deviation of what is added to each coordinate.
    seed : int
    """
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    angles = np.concatenate([np.arange(size) * 2 * np.pi / size for size in sizes])
    circles = (labels + 1)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return Dataset("rings", circles + rng.normal(0, noise, circles.shape), labels)


def sheets(
    n_points: int,
    n_sheets: int = 10,
    dimension: int = 3,
    ambient: int = 32,
    noise: float = 0.02,
    seed: int = 0,
) -> Dataset:
    """Return points on curved sheets of low dimension in a space of many, for large tests.

    Sheet ``s`` is the image of a cube: ``x = c_s + sin(t F_s + p_s) + noise`` with ``t`` uniform
    in ``[-1, 1]^dimension`` and a random centre, random frequencies and random phases. The
    points come in random order, as float32, and are made one sheet at a time, so that memory
    beyond the result stays that of the largest sheet. The label is the sheet.

    Parameters
    ----------
    n_points, n_sheets : int
        Points in all, and the sheets that share them.
    dimension, ambient : int
        Of a sheet, and of the space around it.
    noise : float
        Standard deviation of what is added to each coordinate.
    seed : int

    Examples
    --------
    >>> sheets(1000, n_sheets=4).X.shape
    (1000, 32)
    """
    check_count(n_sheets, "n_sheets")
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(check_count(n_points, "n_points")) % n_sheets)
    members = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=n_sheets))
    X = np.empty((n_points, ambient), dtype=np.float32)
    for rows in np.split(members, ends[:-1]):
        center = rng.normal(size=ambient)
        frequencies = rng.normal(size=(dimension, ambient))
        phases = rng.uniform(0, 2 * np.pi, size=ambient)
        places = rng.uniform(-1, 1, size=(len(rows), dimension))
        scatter = rng.normal(0, noise, size=(len(rows), ambient))
        X[rows] = center + np.sin(places @ frequencies + phases) + scatter
    return Dataset("sheets", X, labels)
