"""Neighbour lists become a graph: adaptive and Gaussian weights, Laplacian, the objective."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankfold.types import FloatArray, IntArray

NEARLY_ZERO = 1e-12
"""Relative squared distance at which an unseen vector counts as a copy of a point."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""Weights below this are zero, so that every sum of weights is zero or has an inverse."""


def adaptive_weights(
    sq_distances: FloatArray, n_neighbors: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the closed-form weights of the k nearest neighbours, Eq. (14) with Eq. (18).

    With the distances of row i ascending,
    ``s_ij = (d_{i,k+1} - d_ij) / (k d_{i,k+1} - sum_{j<=k} d_ij)`` and
    ``gamma_i = (k d_{i,k+1} - sum_{j<=k} d_ij) / 2``. Where the k+1 nearest are all at one
    distance this is 0/0, and each of the k gets 1/k. A row with m <= k neighbours uses
    the last of them as its (k+1)-th; a single neighbour gets all the weight.

    Parameters
    ----------
    sq_distances : array, shape (n_rows, width)
        Ascending; inf where a list has ended.
    n_neighbors : int

    Returns
    -------
    weights : array, shape (n_rows, n_neighbors)
        Every row with a neighbour sums to one.
    gamma : array, shape (n_rows,)
    reach : array, shape (n_rows,)
        The distance at which the weight falls to zero, ``d_{i,k+1}``.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_weights(np.array([[1.0, 2.0, 4.0]]), 2)[0]
    array([[0.6, 0.4]])
    """
    n_rows = len(sq_distances)
    missing = max(0, n_neighbors + 1 - sq_distances.shape[1])
    nearest = np.pad(
        sq_distances[:, : n_neighbors + 1], ((0, 0), (0, missing)), constant_values=np.inf
    )
    length = np.isfinite(nearest).sum(axis=1)
    reach = np.where(length > 0, nearest[np.arange(n_rows), np.maximum(length - 1, 0)], 0.0)
    present = np.isfinite(nearest[:, :n_neighbors])
    slack = np.where(present, reach[:, None] - np.where(present, nearest[:, :-1], 0.0), 0.0)
    total = slack.sum(axis=1)
    degenerate = total <= 0
    kept = np.maximum(length - 1, 1)[:, None]
    uniform = np.where(present & (np.arange(n_neighbors) < kept), 1.0 / kept, 0.0)
    weights = np.where(
        degenerate[:, None], uniform, slack / np.where(degenerate, 1.0, total)[:, None]
    )
    return weights, total / 2, reach


def projected_weights(sq_distances: FloatArray, gamma: float) -> tuple[FloatArray, FloatArray]:
    """Project ``-d_i / (2 gamma)`` on the simplex, Eq. (12), for every row.

    The solution is ``s_ij = (t_i - d_ij)_+ / (2 gamma)`` with the threshold
    ``t_i = 2 gamma eta_i`` that makes the row sum to one. For ``gamma = 0`` the weight is
    shared by the nearest points alone.

    Parameters
    ----------
    sq_distances : array, shape (n_rows, width)
        Ascending; inf where a list has ended.
    gamma : float

    Returns
    -------
    weights : array, shape (n_rows, width)
    threshold : array, shape (n_rows,)
        No point at or beyond this distance can have any weight.

    Examples
    --------
    >>> import numpy as np
    >>> projected_weights(np.array([[1.0, 2.0, 4.0]]), gamma=2.5)
    (array([[0.6, 0.4, 0. ]]), array([4.]))
    """
    present = np.isfinite(sq_distances)
    nearest = np.where(present[:, :1], sq_distances[:, :1], 0.0)
    # Only differences matter to the projection, and small ones survive this way.
    beyond = np.where(present, sq_distances - nearest, 0.0)
    counts = np.arange(1, sq_distances.shape[1] + 1)
    thresholds = (2 * gamma + np.cumsum(beyond, axis=1)) / counts
    support = np.maximum((present & (thresholds > beyond)).sum(axis=1), 1)
    threshold = thresholds[np.arange(len(beyond)), support - 1][:, None]
    weights = np.where(present, np.maximum(threshold - beyond, 0.0), 0.0)
    undecided = weights.sum(axis=1, keepdims=True) <= 0
    weights = np.where(undecided, present & (beyond <= 0), weights)
    totals = weights.sum(axis=1, keepdims=True)
    return weights / np.where(totals > 0, totals, 1.0), (nearest + threshold)[:, 0]


def gaussian_weights(relative_sq_distances: FloatArray) -> FloatArray:
    """Return ``w = exp(-x)`` for squared distances x in units of the bandwidth.

    Weights too small to be divided by are zero, so that every degree is either zero or has an
    inverse.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_weights(np.array([0.0, 2.0, 800.0, np.inf])).round(3)
    array([1.   , 0.135, 0.   , 0.   ])
    """
    weights = np.exp(-relative_sq_distances)
    return np.where(weights < SMALLEST, 0.0, weights)


def interpolating(weights: FloatArray, relative_sq_distances: FloatArray) -> FloatArray:
    """Return ``w / x``, the weights of an unseen vector at relative squared distances x.

    Plain weights hardly tell a copy of a point from something in its neighbourhood. These grow
    without end as the vector comes near a point (up to a factor of ``1e12``), so that it
    becomes that point, and in no other place do they jump.

    Examples
    --------
    >>> import numpy as np
    >>> interpolating(np.array([0.6, 0.4]), np.array([0.5, 0.8]))
    array([1.2, 0.5])
    """
    scaled = weights / np.maximum(relative_sq_distances, NEARLY_ZERO)
    return np.where(scaled < SMALLEST, 0.0, scaled)


def affinity_matrix(indices: IntArray, weights: FloatArray, n_columns: int) -> sparse.csr_array:
    """Collect weights of neighbour lists in a sparse matrix S, one row per list."""
    kept = weights > 0
    rows = np.nonzero(kept)[0]
    shape = (len(indices), n_columns)
    return sparse.csr_array((weights[kept], (rows, indices[kept])), shape=shape)


def symmetrize(affinity: sparse.csr_array) -> sparse.csr_array:
    """Return ``W = (S + S') / 2``.

    Rows of S beyond its columns belong to points outside the database, which no other
    point has as a neighbour; they become points of W like all others.
    """
    n_rows, n_columns = affinity.shape
    if n_rows > n_columns:
        affinity = affinity.copy()
        affinity.resize((n_rows, n_rows))
    return ((affinity + affinity.T) / 2).tocsr()


def degrees(affinity: sparse.csr_array) -> FloatArray:
    """Return the row sums of ``W = (S + S') / 2`` without building it."""
    total: FloatArray = affinity.sum(axis=1)
    total[: affinity.shape[1]] += affinity.sum(axis=0)
    return total / 2


def system_matrix(weights: sparse.csr_array, smoothness: float) -> sparse.csr_array:
    """Return ``A = 2 lambda L + I`` with ``L = diag(W 1) - W``."""
    diagonal = sparse.diags_array(1 + 2 * smoothness * weights.sum(axis=1))
    return (diagonal - 2 * smoothness * weights).tocsr()


def objective(
    affinity: sparse.csr_array,
    affinity_cost: float,
    gamma: float,
    smoothness: float,
    scores: FloatArray,
    free: IntArray,
) -> float:
    """Return the objective, Eq. (5), for scores that agree with the query exactly.

    ``sum_ij (d_ij s_ij + gamma s_ij^2) + lambda sum_ij s_ij (f_i - f_j)^2 + sum_free f_i^2``

    Parameters
    ----------
    affinity : sparse array S
    affinity_cost : float
        ``sum_ij d_ij s_ij``, which the caller knows from its neighbour lists.
    gamma, smoothness : float
    scores : array f
    free : array of int
        Points that are not part of the query.
    """
    rows = np.repeat(np.arange(affinity.shape[0]), np.diff(affinity.indptr))
    roughness = np.sum(affinity.data * (scores[rows] - scores[affinity.indices]) ** 2)
    ridge = gamma * np.sum(affinity.data**2)
    return float(affinity_cost + ridge + smoothness * roughness + np.sum(scores[free] ** 2))
