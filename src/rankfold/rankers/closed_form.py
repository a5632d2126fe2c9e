"""The first graph: the closed form of every neighbour list, at scores zero."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from rankfold.graph import adaptive_weights, affinity_matrix, symmetrize
from rankfold.types import FloatArray, IntArray, Neighbors

BLOCK_ROWS = 2**14
"""Rows whose weights are computed at once."""

SMALL = 20_000
"""Up to so many points SciPy symmetrises sooner than compiled code is read."""


class ClosedForm(NamedTuple):
    """Weights of lists, and what all queries need to know of them.

    Parameters
    ----------
    indices : array of int, shape (n_rows, n_neighbors)
    weights : array of float, shape (n_rows, n_neighbors)
        Rows of S, in the precision of the distances.
    gamma : float
        Mean of the ``gamma_i``.
    end : float
        Mean squared distance at which weights end, ``d_{i,k+1}``.
    cost : float
        ``sum_ij d_ij s_ij``.
    """

    indices: IntArray
    weights: FloatArray
    gamma: float
    end: float
    cost: float

    @classmethod
    def of(cls, neighbors: Neighbors, n_neighbors: int, n_points: int | None = None) -> ClosedForm:
        """Apply the closed form to every list, block by block.

        Means are over ``n_points``, as many as there are lists by default: lists of points that
        were removed are empty and do not count.
        """
        nearest = neighbors.head(n_neighbors + 1)
        indices = nearest.indices[:, :n_neighbors]
        weights = np.empty(indices.shape, dtype=nearest.sq_distances.dtype)
        gamma = end = cost = 0.0
        for start in range(0, len(indices), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            distances = nearest.sq_distances[rows].astype(np.float64)
            found, gammas, ends = adaptive_weights(distances, n_neighbors)
            found = found[:, : indices.shape[1]]
            weights[rows] = found
            used = np.where(found > 0, distances[:, : indices.shape[1]], 0.0)
            gamma += float(gammas.sum())
            end += float(ends.sum())
            cost += float(np.sum(found * used))
        n_rows = max(1, len(indices) if n_points is None else n_points)
        return cls(indices, weights, gamma / n_rows, end / n_rows, cost)

    def changed(
        self, before: Neighbors, after: Neighbors, rows: IntArray, n_before: int, n_after: int
    ) -> ClosedForm:
        """Return the closed form of lists of which some rows have changed.

        Parameters
        ----------
        before, after : Neighbors
        rows : array of int
            Lists that differ, new ones among them.
        n_before, n_after : int
            Numbers of points, removed ones left out.
        """
        n_neighbors, n_old = self.indices.shape[1], len(self.indices)
        old = ClosedForm.of(before.take(rows[rows < n_old]), n_neighbors, 1)
        new = ClosedForm.of(after.take(rows), n_neighbors, 1)
        weights = np.empty((len(after.indices), n_neighbors), dtype=self.weights.dtype)
        weights[:n_old] = self.weights
        weights[rows] = new.weights
        return ClosedForm(
            after.indices[:, :n_neighbors],
            weights,
            (self.gamma * n_before - old.gamma + new.gamma) / n_after,
            (self.end * n_before - old.end + new.end) / n_after,
            self.cost - old.cost + new.cost,
        )

    def affinity(self, n_points: int) -> sparse.csr_array:
        """Return S, one row per list."""
        return affinity_matrix(self.indices, self.weights, n_points)

    def symmetric(self) -> sparse.csr_array:
        """Return ``W = (S + S') / 2`` for the lists of a whole database.

        In double precision, or where memory matters, in that of the lists.
        """
        n_points = len(self.indices)
        if n_points <= SMALL:
            return symmetrize(self.affinity(n_points))
        from rankfold.linking import link  # compiled code, read when it is used

        return link(self.indices, self.weights)
