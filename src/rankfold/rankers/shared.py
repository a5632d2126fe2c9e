"""The first f-step of all queries from one factorisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rankfold.graph import system_matrix
from rankfold.solvers import DirectSolver
from rankfold.solvers.contract import EPS, rounding
from rankfold.types import BoolArray, FloatArray, IntArray, Query, Solution

BLOCK_BYTES = 2**24
"""Size of the columns of G that are held at once."""

SINGLE_STEPS = 100
"""Products with the matrix that conjugate gradients take for a single query, or thereabouts."""


class _Attachment(NamedTuple):
    """How a query touches the database, for the points it touches.

    ``pull`` is what the edges to unseen vectors add to the diagonal, ``push`` what they
    add to the right-hand side; ``clamped`` marks points of the query itself.
    """

    touched: IntArray
    pull: FloatArray
    push: FloatArray
    clamped: BoolArray
    seeds: FloatArray


class SharedFactorization:
    """Answers every query by a small system on the few points that it touches.

    With ``A = 2 lambda L + I`` and ``G = A^-1``, any query changes A only at the points it
    touches: rows of points of the query are replaced by ``f = y``, and each edge of weight w from
    an unseen vector adds ``2 lambda w`` to the diagonal. So ``f = G[:, T] z`` for the
    touched points T, where ``z`` solves, with ``M = G[T, T]``,

        (M z)_t = y_t                    for points of the query,
        z_t + pull_t (M z)_t = push_t    for neighbours of unseen vectors.

    For a single point q this is ``f = G[:, q] / G[q, q]``.
    """

    def __init__(self, weights: sparse.csr_array, smoothness: float) -> None:
        self.smoothness = smoothness
        self.solver = DirectSolver()
        self.matrix = system_matrix(weights, smoothness)
        self.state = self.solver.prepare(self.matrix)
        n_points = self.matrix.shape[0]
        self.most_columns = max(1, BLOCK_BYTES // (8 * n_points))
        # For seeds of at most one, and hence such scores.
        self.rounding = rounding(self.matrix, np.ones(n_points), np.ones(n_points))

    def pays(self, query: Query, unseen: sparse.csr_array) -> bool:
        """Say whether the columns of G cost less than solving for the query alone."""
        n_touched = len(query.ids) + int(unseen.nnz)
        alone = SINGLE_STEPS * int(self.matrix.nnz)
        return n_touched == 1 or (
            n_touched <= self.most_columns and n_touched * self.state.n_entries <= alone
        )

    def scores(
        self, queries: Sequence[Query], unseen: Sequence[sparse.csr_array]
    ) -> Iterator[Solution]:
        """Solve the first f-step for queries whose unseen vectors have these rows of S.

        The scores of unseen vectors, their seeds, follow those of the database.
        """
        block: list[tuple[Query, _Attachment]] = []
        n_columns = 0
        for query, rows in zip(queries, unseen, strict=True):
            attachment = self._attach(query, rows)
            n_columns += len(attachment.touched)
            if block and n_columns > self.most_columns:
                yield from self._solve_block(block)
                block, n_columns = [], len(attachment.touched)
            block.append((query, attachment))
        if block:
            yield from self._solve_block(block)

    def _solve_block(self, block: Sequence[tuple[Query, _Attachment]]) -> Iterator[Solution]:
        touched = np.concatenate([attachment.touched for _, attachment in block])
        wanted, places = np.unique(touched, return_inverse=True)
        unit = np.zeros((self.matrix.shape[0], len(wanted)))
        unit[wanted, np.arange(len(wanted))] = 1.0
        columns = self.solver.solve(self.state, unit).scores
        start = 0
        for query, attachment in block:
            end = start + len(attachment.touched)
            yield self._solve(query, attachment, columns[:, places[start:end]])
            start = end

    def _attach(self, query: Query, rows: sparse.csr_array) -> _Attachment:
        edges = rows.tocoo()
        touched = np.union1d(query.ids, edges.col).astype(np.intp)
        place = np.searchsorted(touched, edges.col)
        strength = self.smoothness * edges.data  # 2 lambda w with w = s / 2
        pull = np.zeros(len(touched))
        np.add.at(pull, place, strength)
        unseen_seeds = query.weights[len(query.ids) :]
        push = np.zeros(len(touched))
        np.add.at(push, place, strength * unseen_seeds[edges.row])
        clamped = np.zeros(len(touched), dtype=bool)
        seeds = np.zeros(len(touched))
        own = np.searchsorted(touched, query.ids)
        clamped[own] = True
        seeds[own] = query.weights[: len(query.ids)]
        return _Attachment(touched, pull, push, clamped, seeds)

    def _solve(self, query: Query, attachment: _Attachment, columns: FloatArray) -> Solution:
        touched, pull, push, clamped, seeds = attachment
        block = columns[touched]
        system = np.where(clamped[:, None], block, np.eye(len(touched)) + pull[:, None] * block)
        scores = columns @ np.linalg.solve(system, np.where(clamped, seeds, push))
        # No exact score is below zero and all seeds, so this can only bring them closer.
        scores = np.maximum(scores, min(0.0, query.weights.min()))
        scores[touched[clamped]] = seeds[clamped]
        residuals = self.matrix @ scores
        residuals[touched] += np.where(clamped, 0.0, pull * scores[touched] - push)
        residuals[touched[clamped]] = 0.0
        residual = float(np.abs(residuals).max(initial=0.0))
        everything = np.concatenate([scores, query.weights[len(query.ids) :]])
        size = float(np.abs(query.weights).max())
        slack = size * (self.rounding + 8 * EPS * float(pull.max(initial=0.0)))
        return Solution(everything, residual, residual + slack, 0, True)
