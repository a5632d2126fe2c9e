"""The S-step: the graph that is best for given scores, without ever looking at all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from rankfold.graph.adaptive import adaptive_weights, projected_weights
from rankfold.neighbors import Engine
from rankfold.parallel import check_stopped
from rankfold.types import FloatArray, IntArray, Neighbors

BLOCK_BYTES = 2**21
"""Size of the lists that are lifted at once."""


class Rows(NamedTuple):
    """Rows of a learned affinity S, what they cost, ``sum_ij d_ij s_ij``, and ``sum s_ij^2``."""

    affinity: sparse.csr_array
    cost: float

    @property
    def squares(self) -> float:
        """``sum_ij s_ij^2``."""
        return float(np.sum(self.affinity.data.astype(np.float64) ** 2))


class IncomingEdges(NamedTuple):
    """A graph at scores zero by the points that edges lead to.

    Row j of ``sources`` has the points that give a weight to j: it is S'. Beside it are
    ``sum d_ij s_ij`` and ``sum s_ij^2``.
    """

    sources: sparse.csr_array
    cost: float
    squares: float


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Neighbour lists of the database and of a query's unseen vectors, at any length.

    Row ``n_points + j`` belongs to the j-th unseen vector.
    """

    engine: Engine
    stored: Neighbors
    vectors: FloatArray
    unseen: Neighbors

    def rows(self, rows: IntArray, width: int) -> Neighbors:
        """Return sorted lists of ascending rows; longer ones than stored are searched again."""
        inside = rows[rows < self.engine.n_points]
        outside = rows[len(inside) :] - self.engine.n_points
        if width <= self.stored.width:
            found = self.stored.take(inside).head(width)
            unseen = self.unseen.take(outside).head(width)
        else:
            found = self.engine.rows(inside, width)
            unseen = self.engine.search(self.vectors[outside], width)
        return Neighbors(
            np.concatenate([found.indices, unseen.indices]),
            np.concatenate([found.sq_distances, unseen.sq_distances]),
        )


@dataclass(frozen=True)
class GraphStep:
    """The S-step, Eq. (12), in one of its readings.

    Parameters
    ----------
    n_neighbors : int
    smoothness : float
    unit : float
        Squared distances are divided by this before they meet the scores.
    shared_gamma : float
        Mean of the ``gamma_i``, Eq. (19), in that unit.
    gamma : {"own", "shared"}
        "own": the closed form again, k neighbours in every alternation. "shared": the
        projection with the mean gamma, for which the objective never increases.
    candidates : {"all", "stored", "local"}
        "all": any point may become a neighbour. "stored": only those of the stored lists.
        "local": only those that are near in x; the k nearest for the projection, and the
        k+1 that the closed form reads.
    """

    n_neighbors: int
    smoothness: float
    unit: float
    shared_gamma: float
    gamma: Literal["own", "shared"]
    candidates: Literal["all", "stored", "local"]

    def __call__(self, lists: CandidateLists, scores: FloatArray, points: IntArray) -> Rows:
        """Learn the rows of ascending points for fixed scores, without looking at all pairs.

        The lifted distance ``d_ij = d^x_ij / unit + lambda (f_i - f_j)^2`` is never below
        ``d^x_ij / unit``. A list of the nearest in x therefore holds everything the row needs as
        soon as the distance at which weights end is not beyond the end of the list. Rows
        where it is get a list of twice the length, until it holds.
        """
        width = lists.stored.width
        if self.candidates == "local":
            width = self.n_neighbors + (self.gamma == "own")
        cost, weights, rows, columns = 0.0, [], [], []
        waiting = [(np.arange(len(points)), width)]
        while waiting:
            check_stopped()
            pending, width = waiting.pop()
            most = max(1, BLOCK_BYTES // (8 * width))
            if len(pending) > most:
                waiting += [(pending[most:], width), (pending[:most], width)]
                continue
            neighbors = lists.rows(points[pending], width)
            lifted, indices, plain = self._lift(neighbors, points[pending], scores)
            found, end = self._weights(lifted)
            certain = end <= neighbors.sq_distances[:, -1] / self.unit
            if self.candidates != "all":
                certain[:] = True
            kept = (found > 0) & certain[:, None]
            weights.append(found[kept])
            rows.append(np.repeat(pending, kept.sum(axis=1)))
            columns.append(indices[:, : kept.shape[1]][kept])
            cost += float(np.sum(found[kept] * plain[:, : kept.shape[1]][kept])) / self.unit
            if not certain.all():
                # One more than there are points: the list then ends in inf, and is certain.
                waiting.append((pending[~certain], min(2 * width, lists.engine.n_points + 1)))
        entries = (np.concatenate(rows), np.concatenate(columns))
        shape = (len(points), lists.engine.n_points)
        return Rows(sparse.csr_array((np.concatenate(weights), entries), shape=shape), cost)

    def _lift(
        self, neighbors: Neighbors, rows: IntArray, scores: FloatArray
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return lifted distances in ascending order, with indices and plain distances."""
        gaps = scores[rows][:, None] - scores[neighbors.indices]
        lifted = neighbors.sq_distances.astype(np.float64) / self.unit + self.smoothness * gaps**2
        order = np.lexsort((neighbors.indices, lifted), axis=-1)
        return (
            np.take_along_axis(lifted, order, 1),
            np.take_along_axis(neighbors.indices, order, 1),
            np.take_along_axis(neighbors.sq_distances, order, 1),
        )

    def _weights(self, lifted: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.gamma == "shared":
            return projected_weights(lifted, self.shared_gamma)
        weights, _, end = adaptive_weights(lifted, self.n_neighbors)
        return weights, end
