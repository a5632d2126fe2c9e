"""The patterns of the paper's first two figures."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_moons

from rankfold.types import Dataset


def moons(n_points: int = 400, noise: float = 0.05, seed: int = 0) -> Dataset:
    """Return two interleaved half circles, Fig. 1; label 0 is the upper one."""
    X, labels = make_moons(n_points, noise=noise, random_state=seed)
    return Dataset("moons", X, labels.astype(np.intp))


def rings(sizes: tuple[int, ...] = (60, 120, 180), noise: float = 0.05, seed: int = 0) -> Dataset:
    """Return rings of radius 1, 2, 3, ... around one centre, Fig. 2; label 0 is the innermost."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    angles = np.concatenate([np.arange(size) * 2 * np.pi / size for size in sizes])
    circles = (labels + 1)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return Dataset("rings", circles + rng.normal(0, noise, circles.shape), labels)
