"""k-reciprocal re-ranking: points are alike whose nearest neighbours are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse

from rankfold.check import check_count, check_share
from rankfold.neighbors import live_points
from rankfold.neighbors.given import runs
from rankfold.parallel import check_stopped
from rankfold.rankers.base import Ranker, Unseen
from rankfold.rankers.distance import signed_shares
from rankfold.solvers.system import EPS, Wanted, longest_row
from rankfold.types import FloatArray, IntArray, Query, Solution, Trace

REACH = 4.0
"""The largest distance of a point, in distances of its last neighbour: what stands for it here."""


class KReciprocal(Ranker):
    """k-reciprocal re-ranking (Zhong, Zheng, Cao and Li, CVPR 2017).

    A point is encoded by its k-reciprocal neighbours: those among its k1 nearest, itself counted,
    which have it among theirs,

        R(i) = { j in N(i, k1) : i in N(j, k1) }.

    The set ``R*(i)`` also has the neighbours ``R_half(j)``, found with half of k1, of each j of
    ``R(i)`` of which at least two thirds are in ``R(i)``. The encoding is

        v_ij = exp(-d_ij) for j in R*(i),   0 elsewhere,

    divided by its sum, and then averaged over the point and its k2 - 1 nearest neighbours. The
    score is minus the final distance, of the Jaccard distance of encodings and the plain one:

        (1 - w) (1 - sum_x min(v_qx, v_ix) / sum_x max(v_qx, v_ix)) + w d_qi.

    Points that share nothing with the query are in the order of plain distance. For several
    examples it is the mean of their distances by weight, negative examples push away, as for
    `Distance`. An unseen vector has the mean encoding of its k2 nearest points, so that a copy of
    a point answers like the point; no other encoding changes.

    Distances ``d`` are squared, as in the authors' code, which divides them by the largest that
    each point has. So does the final distance here. For encodings, where that would take all
    pairs of points, four times the distance of the last of the k1 neighbours stands for the
    largest; the order hardly depends on it. Answers are the same in every unit of distance.

    Parameters
    ----------
    k1 : int
        Neighbours of which the reciprocal ones are taken.
    k2 : int
        Encodings that are averaged; 1 for none but the point's own.
    distance_weight : float
        w above, the paper's lambda: share of the plain distance in the final one, from 0 to 1.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.1], [3.8], [4.4], [4.9], [5.5]])
    >>> ranking = KReciprocal(k1=3, k2=2).fit(X).rank(2)  # 3 is nearer than 0
    >>> ranking.indices, ranking.scores.round(2)
    (array([1, 0, 3, 4, 5, 6]), array([-0.18, -0.26, -0.69, -0.79, -0.86, -0.96]))
    """

    def __init__(
        self,
        k1: int = 20,
        k2: int = 6,
        distance_weight: float = 0.3,
        *,
        metric: str = "euclidean",
    ) -> None:
        self.k1 = k1
        self.k2 = k2
        self.distance_weight = distance_weight
        self.metric = metric

    def _fit(self) -> None:
        check_count(self.k1, "k1")
        check_count(self.k2, "k2")
        check_share(self.distance_weight, "distance_weight", zero=True, one=True)
        engine, n_points = self.engine_, self.engine_.n_points
        live = live_points(engine)
        lists = engine.rows(np.arange(n_points), max(self.k1, self.k2 - 1))

        def nearest(k: int) -> sparse.csr_array:
            return _listed(lists.indices[:, :k], n_points, live)

        scale = REACH * _last(lists.sq_distances[:, : self.k1])
        sets = _expanded(_mutual(nearest(self.k1)), _mutual(nearest((self.k1 + 1) // 2)))
        weights = np.empty(sets.nnz)
        for point in live:
            check_stopped()
            members = slice(*sets.indptr[point : point + 2])
            together = np.append(point, sets.indices[members])
            distances = engine.pairs(together)[0, 1:]
            weights[members] = _encoded(distances, scale[point])
        self._first = sparse.csr_array((weights, sets.indices, sets.indptr), shape=sets.shape)
        self._encodings = sparse.csr_array(_rows_to_one(nearest(self.k2 - 1)) @ self._first)
        self._columns = sparse.csc_array(self._encodings)
        self._mass = self._encodings.sum(axis=1)

    def amounts(self, query: Query, point: int, tol: float) -> FloatArray:
        """Return what each example adds to the score."""
        distances = [row[point] for row in self._distances(query.indices, query.vectors)]
        amounts: FloatArray = signed_shares(query) * np.array(distances)
        return amounts

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        points = np.arange(self.engine_.n_points)
        terms = longest_row(self._encodings) + 8
        for query in queries:
            shares, n_indices = signed_shares(query), len(query.indices)
            used = shares != 0
            rows = self._distances(query.indices[used[:n_indices]], query.vectors[used[n_indices:]])
            scores = np.zeros(len(points))
            for share, row in zip(shares[used], rows, strict=True):
                scores += share * row
            # Every distance is at most 1, and a sum of positive terms.
            bound = terms * EPS * float(np.abs(shares).sum())
            yield Solution(points, scores, bound, solver="distance", n_touched=len(points)), None

    def _distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Return the final distances of every point to each example."""
        plain = self.engine_.sq_distances(indices, vectors)
        for point, row in zip(indices, plain, strict=False):  # the rows of vectors are left
            members = slice(*self._encodings.indptr[point : point + 2])
            own = self._encodings.indices[members], self._encodings.data[members]
            yield self._final(*own, row)
        if len(vectors):
            yield from self._unseen(vectors, plain)

    def _unseen(self, vectors: FloatArray, plain: Iterator[FloatArray]) -> Iterator[FloatArray]:
        lists = self.engine_.search(vectors, self.k2).indices
        averaged = _rows_to_one(_listed(lists, self.engine_.n_points)) @ self._first
        for place, row in enumerate(plain):
            members = slice(*averaged.indptr[place : place + 2])
            yield self._final(averaged.indices[members], averaged.data[members], row)

    def _final(
        self, members: IntArray, weights: FloatArray, sq_distances: FloatArray
    ) -> FloatArray:
        starts = self._columns.indptr[members]
        counts = self._columns.indptr[members + 1] - starts
        places = runs(starts, counts)
        least = np.minimum(np.repeat(weights, counts), self._columns.data[places])
        shared = np.bincount(self._columns.indices[places], least, minlength=len(self._mass))
        most = weights.sum() + self._mass - shared
        jaccard = 1 - np.divide(shared, most, out=np.zeros_like(most), where=most > 0)
        known = np.isfinite(sq_distances)
        largest = sq_distances[known].max(initial=0.0)
        plain = np.where(known, sq_distances / (largest or 1.0), 1.0)
        final: FloatArray = (1 - self.distance_weight) * np.maximum(jaccard, 0.0)
        return final + self.distance_weight * plain


def _listed(indices: IntArray, n_points: int, own: IntArray | None = None) -> sparse.csr_array:
    """Return lists as rows of ones; points that are given are in their own."""
    rows, columns = np.nonzero(indices >= 0)
    members = indices[rows, columns].astype(np.intp)
    if own is not None:
        rows, members = np.concatenate([rows, own]), np.concatenate([members, own])
    shape = len(indices), n_points
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, members)), shape=shape)


def _mutual(listed: sparse.csr_array) -> sparse.csr_array:
    """Return the lists without those who do not list back."""
    return sparse.csr_array(listed.multiply(listed.T))


def _expanded(sets: sparse.csr_array, half: sparse.csr_array) -> sparse.csr_array:
    """Add the smaller sets of members, where two thirds of them are members already."""
    shared = sparse.csr_array(sets.multiply(sets @ half.T)).tocoo()
    joins = 3 * shared.data >= 2 * half.sum(axis=1)[shared.col]
    joining = sparse.csr_array(
        (shared.data[joins], (shared.row[joins], shared.col[joins])), shape=sets.shape
    )
    expanded = sparse.csr_array(sets + joining @ half)
    expanded.sort_indices()
    return expanded


def _rows_to_one(listed: sparse.csr_array) -> sparse.csr_array:
    counts = np.maximum(listed.sum(axis=1), 1)
    return sparse.csr_array(sparse.diags_array(1.0 / counts) @ listed)


def _last(sq_distances: FloatArray) -> FloatArray:
    """Return the distance of the last neighbour in every list; 0 for an empty one."""
    known = np.where(np.isfinite(sq_distances), sq_distances, 0.0)
    last: FloatArray = known.max(axis=1, initial=0.0)
    return last


def _encoded(sq_distances: FloatArray, scale: float) -> FloatArray:
    """Return weights that sum to one; without any scale, those of copies."""
    if scale > 0:
        weights = np.exp(-sq_distances.astype(np.float64) / scale)
    else:
        weights = (sq_distances == 0).astype(np.float64)
    encoded: FloatArray = weights / weights.sum()
    return encoded
