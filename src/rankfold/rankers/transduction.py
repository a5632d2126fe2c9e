"""Graph transduction: the query's label spreads while the query keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg

from rankfold.check import check_count
from rankfold.graph import GraphRecipe
from rankfold.graph.symmetric import degrees, inverse, random_walk, scale_rows
from rankfold.parallel import check_stopped
from rankfold.rankers.base import Unseen
from rankfold.rankers.flow import Flow, transduction_flow
from rankfold.rankers.ordering import FusionLike, joined, one_sided
from rankfold.rankers.walks import GraphRanker
from rankfold.solvers.system import EPS, Wanted, longest_row, without_noise
from rankfold.types import (
    NEGATIVE_WEIGHT,
    FloatArray,
    Query,
    Solution,
    Trace,
    Weights,
)

LIMIT_TOL, MOST_STEPS = 1e-12, 10_000
"""Residual at which the harmonic limit is reached, and steps after which it is given up."""


class GraphTransduction(GraphRanker):
    """Learning context-sensitive similarity by graph transduction (Bai et al., PAMI 2010).

    Label propagation with the query clamped: from f zero outside the query and with
    ``P = D^-1 W``,

        f <- P f,    f_q <- y_q,

    so that after t steps f is the chance that a walk from a point meets the query within t
    steps. An unseen vector is one more, clamped vertex: at its neighbour i a walk meets it with
    the share ``p_i`` that i has in its row of the graph, ``f_i <- p_i y + (1 - p_i) (P f)_i``.
    A copy of a point has the share 1 there, and stands for it. Negative examples are pinned to
    their weights too; f is linear in them, so what pulls up and what pulls down is found apart.

    In the limit f is harmonic: ``f_i = sum_j P_ij f_j`` outside the query (Zhu, Ghahramani and
    Lafferty, 2003). With a single example the limit is 1 at every point that the graph connects
    to it, so only a limited number of steps tells those points apart.

    Parameters
    ----------
    n_steps : int or None
        None for the harmonic limit, which is meant for queries with different weights. Its
        largest error is at most the largest residual of ``(I - P) f = 0`` times the longest
        expected walk to the query, since ``(I - P)^-1 1`` is that expectation.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        How distances are measured, see `ExactEngine`.
    graph : {"adaptive", "gaussian"} or a graph
        What is diffused on: a name of `GRAPHS`, or a graph with settings of its own.
    fusion : float, "auto", "reciprocal_rank" or "none"
        How plain distance shares in the order; not at all by default, see `RAN`.

    Examples
    --------
    >>> from rankfold import GraphTransduction, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = GraphTransduction().fit(moons.X).rank(0, top=150)
    >>> (moons.labels[ranking.indices] == moons.labels[0]).all()
    np.True_
    """

    negative_weight = NEGATIVE_WEIGHT
    when_unsolved = (
        "The harmonic limit is out of reach where the graph is almost disconnected; give a number "
        "of steps instead."
    )

    def __init__(
        self,
        n_steps: int | None = 300,
        *,
        metric: str = "euclidean",
        graph: str | GraphRecipe = "adaptive",
        fusion: FusionLike = "none",
    ) -> None:
        self.n_steps = n_steps
        self.metric = metric
        self.graph = graph
        self.fusion = fusion

    def _check_parameters(self) -> None:
        if self.n_steps is not None:
            check_count(self.n_steps, "n_steps")

    def _prepare(self) -> None:
        self._degrees = degrees(self.weights_)
        self._walk = random_walk(self.weights_)
        _, self._components = connected_components(sparse.csr_array(self.weights_), directed=False)

    def flow(self, query: Query) -> Flow:
        """Return the walks whose sum the scores are; they start at the query for good."""
        (rows,) = self._attached([query])
        return transduction_flow(self.edges, self.n_steps, query, rows)

    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterator[tuple[Solution, Trace | None]]:
        for solution in joined(queries, self._solutions(one_sided(queries))):
            yield solution, None

    def _solutions(self, queries: Sequence[Query]) -> Iterator[Solution]:
        missed = np.ones((self.engine_.n_points, len(queries)))
        gained = np.zeros_like(missed)
        for column, (query, rows) in enumerate(zip(queries, self._attached(queries), strict=True)):
            met = _toarray(scale_rows(rows, inverse(degrees(rows)))).T
            missed[:, column] = np.prod(1 - met, axis=1)
            mean = met @ query.weights[len(query.indices) :] * inverse(met.sum(axis=1))
            gained[:, column] = (1 - missed[:, column]) * mean
        if self.n_steps is not None:
            return self._steps(queries, missed, gained, self.n_steps)
        return self._limits(queries, missed, gained)

    def _steps(
        self, queries: Sequence[Query], missed: FloatArray, gained: FloatArray, n_steps: int
    ) -> Iterator[Solution]:
        """Take all queries a number of steps.

        At every point a walk misses the query's unseen vectors with a chance, and otherwise
        gains their mean weight.
        """
        points = np.concatenate([query.indices for query in queries])
        columns = np.repeat(np.arange(len(queries)), [len(query.indices) for query in queries])
        seeds = np.concatenate([query.weights[: len(query.indices)] for query in queries])
        scores = gained.copy()
        scores[points, columns] = seeds
        for _ in range(n_steps):
            check_stopped()
            scores = self._walk @ scores
            scores *= missed
            scores += gained
            scores[points, columns] = seeds
        # All terms are positive, so rounding is relative: a few units per step and neighbour.
        terms = longest_row(self._walk) + 8
        bound, every_point = n_steps * terms * EPS, np.arange(len(scores))
        for column, query in enumerate(queries):
            largest = float(query.weights.max())
            found = scores[:, column]
            yield Solution(every_point, found, largest * bound, n_steps, n_touched=len(found))

    def _limits(
        self, queries: Sequence[Query], missed: FloatArray, gained: FloatArray
    ) -> Iterator[Solution]:
        for column, query in enumerate(queries):
            yield self._limit(query, missed[:, column], gained[:, column])

    def _limit(self, query: Query, missed: FloatArray, gained: FloatArray) -> Solution:
        """Solve ``f = M P f + gained``, M = diag(missed), for the points that the query reaches.

        ``f = (M / D)^1/2 h`` makes it symmetric. Where ``(I - M P) g >= t > 0`` for some g, the
        largest entry of ``(I - M P)^-1 1`` is at most ``max(g) / t``.
        """
        scores = gained.copy()
        scores[query.indices] = query.weights[: len(query.indices)]
        touched = np.flatnonzero(scores)
        reached = np.isin(self._components, self._components[touched]) & (missed > 0)
        reached[query.indices] = False
        free = np.flatnonzero(reached & (self._degrees > 0))
        every_point = np.arange(len(scores))
        if not len(free):
            return Solution(every_point, scores, 0.0, n_touched=len(scores))
        given = scores.copy()
        given[free] = 0.0
        rows = scale_rows(self._walk[free], missed[free])
        given = rows @ given + gained[free]
        among = sparse.csr_array(rows[:, free])
        # Weights can be tiny, and the solver's tolerance is absolute.
        largest = self._degrees[free].max()
        roots = np.sqrt(missed[free] / (self._degrees[free] / largest))
        within = sparse.csr_array(self.weights_[free][:, free]) / largest
        system = sparse.eye_array(len(free), format="csr") - (
            sparse.diags_array(roots) @ within @ sparse.diags_array(roots)
        )
        found, steps = _gradients(system.tocsr(), given / roots)
        scores[free] = np.maximum(roots * found, 0.0)
        walks = roots * _gradients(system.tocsr(), 1 / roots)[0]
        least = float(np.min(walks - among @ walks))
        longest = float(walks.max()) / least if least > 0 else np.inf
        residual = float(np.abs(scores[free] - among @ scores[free] - given).max())
        slack = (longest_row(self._walk) + 8) * EPS * 2 * float(query.weights.max())
        bound = (residual + slack) * longest
        converged = bool(np.isfinite(bound) and residual <= max(LIMIT_TOL, slack))
        if np.isfinite(bound):
            scores, bound = without_noise(scores, bound)
        return Solution(
            every_point,
            scores,
            bound,
            steps,
            converged,
            stopped="exact" if converged else "max_iter",
            n_touched=len(scores),
        )


def _gradients(matrix: sparse.csr_array, b: FloatArray) -> tuple[FloatArray, int]:
    """Solve by conjugate gradients, as far as rounding allows; return the steps taken as well."""
    steps = 0

    def count(_: FloatArray) -> None:
        nonlocal steps
        steps += 1
        check_stopped()

    jacobi = sparse.diags_array(1 / matrix.diagonal())
    x, _ = cg(matrix, b, rtol=0.0, atol=LIMIT_TOL, maxiter=MOST_STEPS, M=jacobi, callback=count)
    return x, steps


def _toarray(rows: Weights) -> FloatArray:
    dense: FloatArray = rows.toarray() if sparse.issparse(rows) else rows
    return dense
