"""The graph of a region: rows that scores have changed, and those around them.

Scores are zero outside a region, so rows of the graph that neither belong to a point with a score
nor border on one stay as they are at scores zero. With the base graph ``W`` of scores zero and
the change ``D`` of the rows of the region,

    W_now = W + (D + D') / 2,

of which only the rows of the region are ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rankfold.rankers.graph_step import Graph
from rankfold.types import FloatArray, IntArray, Neighbors


class LocalScores(NamedTuple):
    """Scores of some points, in ascending order of the points; all others are zero."""

    points: IntArray
    values: FloatArray
    bound: float = 0.0
    n_steps: int = 0
    converged: bool = True


NO_SCORES = LocalScores(np.empty(0, dtype=np.intp), np.empty(0))


class Base(NamedTuple):
    """The graph at scores zero: its weights W, ``sum d_ij s_ij`` and ``sum s_ij^2``.

    A row also depends on its (k+1)-th neighbour, at which weights end: row j of ``ending`` has
    the points whose weights end at j.
    """

    weights: sparse.csr_array
    cost: float
    squares: float
    ending: sparse.csr_array


def ending_at(neighbors: Neighbors, n_neighbors: int) -> sparse.csr_array:
    """Return which points have which as their (k+1)-th neighbour, by rows of the latter."""
    n_points = len(neighbors.indices)
    last = neighbors.indices[:, n_neighbors : n_neighbors + 1]
    point, _ = np.nonzero(last >= 0)
    entries = (np.ones(len(point), dtype=bool), (last[last >= 0], point))
    return sparse.csr_array(entries, shape=(n_points, n_points))


class RegionGraph(NamedTuple):
    """Rows of W for the points of a region, and the scores for which they were learned.

    Columns are places in ``columns``, which begins with the points of the region itself.
    """

    points: IntArray
    columns: IntArray
    weights: sparse.csr_array
    cost: float
    squares: float
    learned_for: LocalScores = NO_SCORES


def assemble(
    points: IntArray, base: Base, change: Graph | None, added: Graph, n_points: int
) -> RegionGraph:
    """Return the rows of ``W + (D + D') / 2`` for the points of a region.

    Parameters
    ----------
    points : array of int
        Ascending; those from ``n_points`` on are unseen vectors.
    base : Base
    change : Graph, optional
        D for the points of the database, by rows.
    added : Graph
        Rows of S for the unseen vectors.
    n_points : int
    """
    inside = points[points < n_points]
    rows = base.weights[inside].tocoo()
    parts = [(rows.row, rows.col, rows.data.astype(np.float64))]
    mirrored = []
    for first, graph in ((0, change), (len(inside), added)):
        if graph is not None:
            entries = graph.affinity.tocoo()
            parts.append((entries.row + first, entries.col, entries.data / 2))
            mirrored.append((entries.col, entries.row + first, entries.data / 2))
    columns = np.concatenate([part[1] for part in parts])
    numbering = _by_table if len(columns) > n_points else _by_search
    around, places_of = numbering(columns, inside, len(points), n_points)
    placed = [(row, places_of(column), w) for row, column, w in parts]
    for column, row, w in mirrored:
        places = places_of(column)
        own = places < len(points)
        placed.append((places[own], row[own], w[own]))
    row, column, data = (np.concatenate(arrays) for arrays in zip(*placed, strict=True))
    shape = (len(points), len(points) + len(around))
    weights = sparse.csr_array((data, (row, column)), shape=shape)
    # What cancels leaves a rounding error behind.
    rounding = 4 * float(np.finfo(base.weights.dtype).eps)
    weights.data = np.where(weights.data > rounding, weights.data, 0.0)
    weights.eliminate_zeros()
    cost = base.cost + added.cost + (change.cost if change is not None else 0.0)
    squares = base.squares + float(np.sum(added.affinity.data**2))
    return RegionGraph(points, np.concatenate([points, around]), weights, cost, squares)


def distinct(points: IntArray, n_points: int) -> IntArray:
    """Return points in ascending order, each once; all are below ``n_points``.

    Examples
    --------
    >>> distinct(np.array([5, 2, 5]), 6)
    array([2, 5])
    """
    if len(points) <= n_points:
        return np.unique(points)
    met = np.zeros(n_points, dtype=bool)
    met[points] = True
    return np.flatnonzero(met)


Numbering = tuple[IntArray, Callable[[IntArray], IntArray]]
"""The points around a region, and where points stand: among its own, or after them."""


def _by_search(columns: IntArray, inside: IntArray, n_region: int, _: int) -> Numbering:
    """Return them without anything that is as long as the database."""
    around = np.setdiff1d(columns, inside)

    def places(points: IntArray) -> IntArray:
        place = np.searchsorted(inside, points)
        found = inside[np.minimum(place, len(inside) - 1)] == points if len(inside) else place < 0
        return np.where(found, place, n_region + np.searchsorted(around, points))

    return around, places


def _by_table(columns: IntArray, inside: IntArray, n_region: int, n_points: int) -> Numbering:
    """Return them for a region with more edges than the database has points."""
    around = np.setdiff1d(distinct(columns, n_points), inside, assume_unique=True)
    table = np.empty(n_points, dtype=np.intp)
    table[inside] = np.arange(len(inside))
    table[around] = n_region + np.arange(len(around))
    return around, table.__getitem__
