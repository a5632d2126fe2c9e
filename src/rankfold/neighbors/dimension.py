"""How many neighbours suit the data, read off the data alone."""

from __future__ import annotations

import numpy as np

from rankfold.types import Neighbors

DIMENSION_NEIGHBORS = 20
"""Length of the lists over which the intrinsic dimension is measured."""

DIFFUSE_DIMENSION = 10.0
"""Above this intrinsic dimension data counts as diffuse rather than as a clean manifold."""

CLEAN_NEIGHBORS, DIFFUSE_NEIGHBORS = 10, 20


def intrinsic_dimension(neighbors: Neighbors) -> float:
    """Return the median local intrinsic dimension, by maximum likelihood.

    For a point with distances ``T_1 <= ... <= T_m`` to its neighbours the estimate of
    Levina and Bickel (2004) is ``(m - 1) / sum_j log(T_m / T_j)``. Neighbours at distance
    zero say nothing and are left out; nan when no point has two others at different
    distances.

    Parameters
    ----------
    neighbors : Neighbors
        Lists of at least 20, if there are so many points; no more are read.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.neighbors import ExactEngine
    >>> line = np.random.default_rng(0).uniform(size=(500, 1)) @ np.ones((1, 8))
    >>> lists = ExactEngine(line).rows(np.arange(500), 20)
    >>> 0.8 < intrinsic_dimension(lists) < 1.2
    True
    """
    sq_distances = neighbors.head(DIMENSION_NEIGHBORS).sq_distances
    usable = np.isfinite(sq_distances) & (sq_distances > 0)
    logs = np.log(np.where(usable, sq_distances, 1.0)) / 2
    farthest = np.where(usable, logs, -np.inf).max(axis=1, initial=-np.inf, keepdims=True)
    sums = np.where(usable, farthest - logs, 0.0).sum(axis=1)
    defined = sums > 0
    if not defined.any():
        return float("nan")
    return float(np.median((usable.sum(axis=1)[defined] - 1) / sums[defined]))


def choose_n_neighbors(neighbors: Neighbors) -> int:
    """Choose k from the intrinsic dimension: 10 on clean manifolds, 20 in diffuse data.

    Parameters
    ----------
    neighbors : Neighbors
        As for `intrinsic_dimension`; data are diffuse where it is above 10.
    """
    diffuse = intrinsic_dimension(neighbors) > DIFFUSE_DIMENSION
    return DIFFUSE_NEIGHBORS if diffuse else CLEAN_NEIGHBORS
