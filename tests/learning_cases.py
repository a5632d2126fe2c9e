"""Data of which it is known what learning one graph for all queries does."""

import numpy as np

from rankfold import datasets
from rankfold.datasets.synthetic import rings
from rankfold.graph.collective import Attempt

ALWAYS = (Attempt(1, 3, 0.0),)
"""Three rounds are kept, whatever they do."""


def strands():
    """Fifteen short lines in ten dimensions, near to each other."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 2, 15)
    return np.vstack(
        [
            np.outer(t, rng.normal(size=10))
            + 0.5 * rng.normal(size=10)
            + 0.02 * rng.normal(size=(15, 10))
            for _ in range(15)
        ]
    )


def curve(n_points, seed=0):
    """A closed curve in space with little noise; three rounds are kept, and it stays whole."""
    rng = np.random.default_rng(seed)
    t = (np.arange(n_points) + rng.uniform(-0.3, 0.3, n_points)) * 2 * np.pi / n_points
    noise = rng.normal(0, 0.01, (n_points, 3))
    return np.column_stack([np.cos(t), np.sin(2 * t), 0.5 * np.sin(t)]) + noise


RINGS = rings().X
"""Two rounds with the neighbours of the plain graph are kept, and a third is not."""

STRANDS = strands()
"""The first attempt fails, and one round with twice the neighbours is kept."""

MOONS = datasets.load("moons").X
"""Twice the neighbours reach further, but not because learning cut what they join."""

DIGITS = datasets.load("digits").X[:400]
"""Queries would reach too little."""
