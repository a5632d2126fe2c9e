"""The symmetric graph in CSR form, and what is made of it: degrees and transition matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from rankfold.solvers.system import GraphRows
from rankfold.types import FloatArray, IntArray, Weights

Lists = tuple[IntArray, FloatArray]


def link(
    indices: IntArray, weights: FloatArray, empty: Callable[..., Any] = np.empty
) -> sparse.csr_array:
    """Return ``W = (S + S') / 2`` of lists, like ``symmetrize(affinity_matrix(...))``.

    S itself and its transpose are never made, which is what takes the memory there. Entries of
    a row are not sorted: first the point's own neighbours, then those that chose it.

    Parameters
    ----------
    indices : array of int, shape (n_points, width)
    weights : array of float, shape (n_points, width)
        Rows of S; an entry that is not positive is no edge.

    Examples
    --------
    >>> import numpy as np
    >>> link(np.array([[1], [2], [1]], dtype=np.int32), np.ones((3, 1))).toarray()
    array([[0. , 0.5, 0. ],
           [0.5, 0. , 1. ],
           [0. , 1. , 0. ]])
    """
    from rankfold.graph.symmetric_kernels import count, fill  # compiled, loaded when used

    n_points = len(indices)
    # Slices are another type, for which all would be compiled once more.
    indices, weights = np.ascontiguousarray(indices), np.ascontiguousarray(weights)
    counts = count(indices, weights)
    total = int(counts.sum())
    wide = np.int32 if total < np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(n_points + 1, dtype=wide)
    np.cumsum(counts, out=indptr[1:])
    columns, data = empty((total,), wide), empty((total,), weights.dtype)
    fill(indices, weights, indptr[:-1].copy(), columns, data)
    return sparse.csr_array((data, columns, indptr), shape=(n_points, n_points))


def relink(
    graph: GraphRows,
    changed: IntArray,
    lists_of: Callable[[IntArray], Lists],
    n_points: int,
    factor: float,
) -> None:
    """Let ``factor (S + S') / 2`` follow lists of which a few have changed; the rest stays.

    It is then what `link` makes of all lists, but for the order of entries in a row.

    Parameters
    ----------
    graph : GraphRows
        The same of the lists before; points that are new have no row in it.
    changed : array of int
        Rows of S that differ, new ones among them.
    lists_of : callable
        Returns rows of S as they are now, as `link` takes them; an entry that is not positive is
        no edge.
    n_points : int
        How many points there are now.
    factor : float

    Examples
    --------
    >>> import numpy as np
    >>> before = np.array([[1], [0], [0]], dtype=np.int32), np.ones((3, 1))
    >>> after = np.array([[1], [2], [0]], dtype=np.int32), np.ones((3, 1))
    >>> graph = GraphRows.of(link(*before))
    >>> relink(graph, np.array([1]), lambda rows: (after[0][rows], after[1][rows]), 3, 1.0)
    >>> graph.csr().toarray()
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    n_before = graph.n_points
    _, have = _edges(lists_of(changed))
    # A neighbour of a changed row may have been chosen by it.
    rows = np.unique(np.concatenate([changed, graph.neighbors(changed[changed < n_before]), have]))
    # Who chooses one of these rows did so before, or has changed.
    around = np.union1d(rows, graph.neighbors(rows[rows < n_before]))
    fresh = _fresh_rows(lists_of(around), around, rows, n_points)
    graph.replace(rows, fresh.indptr, fresh.indices, factor * fresh.data, n_points)


def _edges(lists: Lists) -> tuple[IntArray, IntArray]:
    """Return the edges of some rows of S: places among the rows, and where they lead."""
    place, entry = np.nonzero(lists[1] > 0)
    return place, lists[0][place, entry]


def _fresh_rows(lists: Lists, around: IntArray, rows: IntArray, n_points: int) -> sparse.csr_array:
    """Return ``(S + S') / 2`` at some rows; they, and all that choose one of them, are around."""
    source, target = _edges(lists)
    given, source = lists[1][lists[1] > 0] / 2, around[source]
    wanted = np.zeros(n_points, dtype=bool)
    wanted[rows] = True
    own, received = wanted[source], wanted[target]
    row = np.searchsorted(rows, np.concatenate([source[own], target[received]]))
    column = np.concatenate([target[own], source[received]])
    weights = np.concatenate([given[own], given[received]])
    fresh = sparse.csr_array((weights, (row, column)), shape=(len(rows), n_points))
    fresh.sum_duplicates()
    return fresh


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
