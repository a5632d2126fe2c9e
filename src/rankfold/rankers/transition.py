"""Weights become steps of a walk."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankfold.types import FloatArray, Weights


def degrees(weights: Weights) -> FloatArray:
    """Return the sum of every row."""
    sums: FloatArray = np.asarray(weights.sum(axis=1))
    return sums


def inverse(values: FloatArray) -> FloatArray:
    """Return ``1 / v``, and 0 where ``v`` is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def scale_rows(weights: Weights, factors: FloatArray) -> Weights:
    """Multiply every row by its factor."""
    if sparse.issparse(weights):
        return (sparse.diags_array(factors) @ weights).tocsr()
    return weights * factors[:, None]


def random_walk(weights: Weights, laziness: float = 0.0) -> Weights:
    """Return ``P = laziness I + (1 - laziness) D^-1 W``; rows sum to one.

    The walk from a point without neighbours ends there: its row of ``D^-1 W`` is zero.

    Examples
    --------
    >>> import numpy as np
    >>> random_walk(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0], [3.0, 0.0, 0.0]]))
    array([[0.  , 0.25, 0.75],
           [1.  , 0.  , 0.  ],
           [1.  , 0.  , 0.  ]])
    """
    steps = scale_rows(weights, (1 - laziness) * inverse(degrees(weights)))
    if not laziness:
        return steps
    stay = laziness * sparse.eye_array(weights.shape[0], format="csr")
    if sparse.issparse(steps):
        return (steps + stay).tocsr()
    steps[np.diag_indices_from(steps)] += laziness
    return steps


def symmetric_walk(weights: Weights) -> Weights:
    """Return ``S = D^-1/2 W D^-1/2``, whose eigenvalues lie between -1 and 1."""
    roots = np.sqrt(inverse(degrees(weights)))
    scaled = scale_rows(weights, roots)
    if sparse.issparse(scaled):
        return (scaled @ sparse.diags_array(roots)).tocsr()
    return scaled * roots


def strongest(weights: Weights, n_neighbors: int | None) -> Weights:
    """Keep the largest weights of every row, ties by index; all of them for None.

    Examples
    --------
    >>> import numpy as np
    >>> strongest(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]), 1).toarray()
    array([[0., 0., 3.],
           [0., 0., 2.],
           [3., 0., 0.]])
    """
    if n_neighbors is None:
        return weights
    edges = sparse.csr_array(weights).tocoo()
    order = np.lexsort((edges.col, -edges.data, edges.row))
    rows = edges.row[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = order[place < n_neighbors]
    return sparse.csr_array(
        (edges.data[kept], (edges.row[kept], edges.col[kept])), shape=weights.shape
    )
