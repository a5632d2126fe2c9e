"""Manifold ranking on a hypergraph of ranked lists, which reads ranks only and no distances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy import sparse

from rankfold.check import check_count
from rankfold.graph import AdaptiveGraph, candidate_lists
from rankfold.graph.symmetric import random_walk, strongest
from rankfold.neighbors import live_points
from rankfold.parallel import check_stopped
from rankfold.rankers.base import Unseen
from rankfold.rankers.walks import SeededRanker
from rankfold.solvers.system import EPS, Wanted, longest_row
from rankfold.types import FloatArray, IntArray, Query, Solution, Trace

KEPT = 0.5
"""Share of its weight that an example has as a score itself: more than any other point can get."""

MOST_KEPT = 1000
"""Affinities of a point that are kept, the strongest; as many again may keep the point."""

COMPARED_BITS = 40
"""Binary digits by which affinities are compared: what rounding alone tells apart is tied."""

BLOCK_ROWS = 1024
"""Points whose affinities are computed at once."""


class HypergraphRanking(SeededRanker):
    """Log-based hypergraph of ranking references, LHRR (Pedronette and others, TIP 2019).

    Of distances only ranks are read: ``t_i(j)`` is the place of j in the list of i, in which i
    itself is first. Each step begins by sorting the first ``L = 2 k`` of every list by

        r_ij = 2 L - t_i(j) - t_j(i),

    so that neighbours that are near from both sides come first. Every point is then the centre
    of a hyperedge, which has its k nearest and theirs,

        h_ij = sum_{x in N(i), j in N(x)} p_ix p_xj,    p_ij = 1 - log_k t_i(j),

    and whose weight ``w_i`` is the sum of its k largest ``h_ij``: large where neighbours have the
    same neighbours. Two points are alike whose hyperedges are alike, which are in the same
    hyperedges, and which occur together in hyperedges of large weight:

        A = (H H') o (H' H) o (H' diag(w) H).

    Lists are sorted by A, every point first in its own, and the next step begins; ties, up to
    rounding, stay in the order that they had. Row q of the
    last A, divided by twice its sum, holds the scores for the query q, which keeps the other half;
    several examples add up. Points without a score follow by plain distance. A new vector is not
    in the hypergraph: its neighbours share its weight, the more the nearer they are, as for
    `ManifoldRanking`.

    It was made for many classes of few points each: k is best near the size of a class.

    Parameters
    ----------
    n_neighbors : int
        k above, the point itself counted; at least 2.
    n_steps : int
        How often the hypergraph is made, of lists that are better each time.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.1], [3.8], [4.4], [4.9], [5.5]])
    >>> ranking = HypergraphRanking(n_neighbors=4).fit(X).rank(2)  # 3 is nearer than 0
    >>> ranking.indices, ranking.scores.round(3)
    (array([1, 0, 3, 4, 5, 6]), array([0.316, 0.184, 0.   , 0.   , 0.   , 0.   ]))
    """

    def __init__(
        self, n_neighbors: int = 20, n_steps: int = 2, *, metric: str = "euclidean"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_steps = n_steps
        self.metric = metric

    def _check_parameters(self) -> None:
        check_count(self.n_neighbors, "n_neighbors", least=2)
        check_count(self.n_steps, "n_steps")

    def _fit(self) -> None:
        self._check_parameters()
        engine, length = self.engine_, 2 * self.n_neighbors
        found, n_joined = candidate_lists(engine, "auto", 2, length - 1)
        self.graph_ = AdaptiveGraph(n_joined)  # by which new vectors are joined; never built
        self.graph_.n_neighbors_ = n_joined
        lists = _first_lists(found.indices[:, : length - 1], live_points(engine), length)
        for _ in range(self.n_steps):
            lists = _sorted(_reciprocal(lists), lists, length)
            affinity = _affinity(lists, length, self.n_neighbors)
            lists = _sorted(affinity, lists, length)
        # Both halves are equal but for rounding, and for what is not kept.
        affinity = affinity.maximum(affinity.T)
        self.weights_ = sparse.csr_array(affinity - sparse.diags_array(affinity.diagonal()))
        self._prepare()

    def _prepare(self) -> None:
        self._walk = random_walk(self.weights_, KEPT)

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        terms = longest_row(self._walk) + 8
        points = np.arange(self.engine_.n_points)
        for seeded, values in self._seeds(queries):
            scores = values @ self._walk[seeded]
            rounding = terms * EPS * float((np.abs(values) @ self._walk[seeded]).max(initial=0.0))
            yield Solution(points, scores, rounding, self.n_steps, n_touched=len(points)), None


def _first_lists(indices: IntArray, live: IntArray, length: int) -> sparse.csr_array:
    """Return lists as a matrix of ``L + 1 - t_i(j)``, zero beyond them; points are first."""
    rows, columns = np.nonzero(indices >= 0)
    others = indices[rows, columns].astype(np.intp)
    closeness = np.concatenate([length - 1.0 - columns, np.full(len(live), float(length))])
    pairs = np.concatenate([rows, live]), np.concatenate([others, live])
    return sparse.csr_array((closeness, pairs), shape=(len(indices), len(indices)))


def _reciprocal(lists: sparse.csr_array) -> sparse.csr_array:
    """Return ``2 L + 2 - t_i(j) - t_j(i)`` for the pairs of which i lists j."""
    return sparse.csr_array(lists + lists.T.multiply(lists.sign()))


def _sorted(similarity: sparse.csr_array, lists: sparse.csr_array, length: int) -> sparse.csr_array:
    """Return lists of the most similar; ties, and those without similarity, as they were.

    Every point is first in its own list.
    """
    n_points = lists.shape[0]
    new, old = _largest(similarity, length).tocoo(), lists.tocoo()
    pairs, places = np.unique(
        np.concatenate([part.row.astype(np.int64) * n_points + part.col for part in (new, old)]),
        return_inverse=True,
    )
    similar = np.bincount(places[: new.nnz], new.data, minlength=len(pairs))
    before = np.bincount(places[new.nnz :], old.data, minlength=len(pairs))
    rows, columns = np.divmod(pairs, n_points)
    similar[rows == columns] = np.inf
    order = np.lexsort((columns, -before, -similar, rows))
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = order[place < length]
    closeness = (length - place[place < length]).astype(np.float64)
    return sparse.csr_array((closeness, (rows[kept], columns[kept])), shape=lists.shape)


def _affinity(lists: sparse.csr_array, length: int, n_neighbors: int) -> sparse.csr_array:
    """Return the strongest affinities of every point."""
    nearest = lists.copy()
    places = length + 1 - nearest.data
    nearest.data = np.maximum(1 - np.log(places) / np.log(n_neighbors), 0.0)
    nearest.eliminate_zeros()
    incidence = sparse.csr_array(nearest @ nearest)
    weights = strongest(incidence, n_neighbors).sum(axis=1)
    columns = sparse.csr_array(incidence.T)
    weighted = sparse.csr_array(sparse.diags_array(weights) @ incidence)
    blocks = []
    for start in range(0, len(weights), BLOCK_ROWS):
        check_stopped()
        block = slice(start, start + BLOCK_ROWS)
        alike = (incidence[block] @ columns).multiply(columns[block] @ incidence)
        affinity = sparse.csr_array(alike.multiply(columns[block] @ weighted))
        affinity.data = _without_rounding(affinity.data)
        blocks.append(_largest(affinity, MOST_KEPT))
    return sparse.csr_array(sparse.vstack(blocks))


def _without_rounding(values: FloatArray) -> FloatArray:
    """Return values to so many binary digits that sums in another order give the same."""
    mantissa, exponent = np.frexp(values)
    shortened: FloatArray = np.ldexp(
        np.round(np.ldexp(mantissa, COMPARED_BITS)), exponent - COMPARED_BITS
    )
    return shortened


def _largest(matrix: sparse.sparray, count: int) -> sparse.csr_array:
    """Return the largest of every row, with all that are tied with the last of them."""
    rows = sparse.csr_array(matrix, copy=True)
    kept = np.ones(rows.nnz, dtype=bool)
    for start, end in pairwise(rows.indptr):
        if end - start > count:
            values = rows.data[start:end]
            kept[start:end] = values >= np.partition(values, -count)[-count]
    rows.data = np.where(kept, rows.data, 0.0)
    rows.eliminate_zeros()
    return rows
