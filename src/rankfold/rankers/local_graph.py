"""RAN where a query reaches: the points it touches do not grow in number with the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rankfold.graph import symmetrize
from rankfold.neighbors import Engine
from rankfold.rankers.alternation import Alternation
from rankfold.rankers.closed_form import ClosedForm
from rankfold.rankers.flow import Edges, Scored
from rankfold.rankers.graph_step import CandidateLists
from rankfold.rankers.local_turns import LocalTurns
from rankfold.rankers.reached import (
    Best,
    best_found,
    others_wanted,
    rank_reached,
    with_those_below,
)
from rankfold.rankers.region import Base, LocalScores, ending_at
from rankfold.rankers.start import ran_start
from rankfold.solvers import LocalSystem, Reached, Start
from rankfold.types import FloatArray, IntArray, Neighbors, Query, Ranking, Trace


class LocalGraph:
    """Answers queries by local solves.

    Parameters
    ----------
    engine : Engine
    neighbors : Neighbors
    first : ClosedForm
        The first graph.
    alternation : Alternation
        How graph and scores are learned from there.
    followed : sparse array, optional
        The first graph as `followed` gives it; made from the lists by default.
    """

    def __init__(
        self,
        engine: Engine,
        neighbors: Neighbors,
        first: ClosedForm,
        alternation: Alternation,
        followed: sparse.csr_array | None = None,
    ) -> None:
        self.engine, self.neighbors, self.alternation = engine, neighbors, alternation
        step, n_points = alternation.step, engine.n_points
        ones = np.ones(n_points)
        weights, coupling = followed, 1.0
        if weights is None:
            weights, coupling = first.symmetric(), 2 * step.smoothness
            if alternation.max_iter == 1:  # nothing else needs the weights as they are
                weights.data *= coupling
                coupling = 1.0
        self.system = LocalSystem(weights, coupling, margin=ones, scale=ones)
        if alternation.max_iter > 1:
            squares = float(np.sum(first.weights.astype(np.float64) ** 2))
            ending = ending_at(neighbors, step.n_neighbors)
            self.first = self.later = Base(weights, first.cost / step.unit, squares, ending)
            if step.gamma == "shared":
                self.later = self._at_scores_zero()
            self._idle: list[FloatArray] = []

    def followed(self, before: ClosedForm, after: ClosedForm, rows: IntArray) -> sparse.csr_array:
        """Return ``2 lambda W`` after some rows of the lists have changed; for one alternation."""
        from rankfold.relinking import relink  # compiled code, read when it is used

        system, factor = self.system.system, 2 * self.alternation.step.smoothness
        graph = sparse.csr_array(
            (system.spread, system.indices, system.indptr), shape=2 * (self.system.n_points,)
        )
        lists = (before.indices, before.weights), (after.indices, after.weights)
        return relink(graph, *lists, rows, factor)

    def rank(
        self, queries: Sequence[Query], unseen: Sequence[Neighbors], top: int, include_query: bool
    ) -> Iterator[Ranking]:
        """Answer each query; ``unseen`` has the lists of its vectors."""
        starts = [self._start(*pair) for pair in zip(queries, unseen, strict=True)]
        tops = [others_wanted(query, top, include_query) for query in queries]
        answers = self._once(queries, starts, tops)
        if self.alternation.max_iter > 1:
            answers = self._several(queries, unseen, starts, tops)
        for query, (best, trace) in zip(queries, answers, strict=True):
            own = query.weights[: len(query.ids)]
            yield rank_reached(self.engine, query, best, own, top, include_query, trace)

    def edges(self, point: int) -> Edges:
        """Return the neighbours of a point in the first graph."""
        system = self.system.system
        entries = slice(system.indptr[point], system.indptr[point + 1])
        weights = system.spread[entries].astype(np.float64)
        return Edges(system.indices[entries], weights / (2 * self.alternation.step.smoothness))

    def first_scored(self, query: Query, unseen: Neighbors, tol: float) -> Scored:
        """Return the scores of all points that a query reaches after one alternation."""
        reached = self.system.solve(self._start(query, unseen), tol)
        # No exact score is below zero and all seeds.
        lowest = min(0.0, float(query.weights.min()))
        return Scored(reached.points, np.maximum(reached.values, lowest))

    def scored(self, query: Query, unseen: Neighbors) -> Scored:
        """Return the scores of all points that a query reaches."""
        tol = self.alternation.tol
        if self.alternation.max_iter == 1:
            return self.first_scored(query, unseen, tol)
        reached = self.system.solve(self._start(query, unseen), tol)
        best, _ = self._alternate(query, unseen, reached, self.engine.n_points)
        return Scored(
            np.concatenate([best.points, best.below]),
            np.concatenate([best.scores, best.below_scores]),
        )

    def _once(
        self, queries: Sequence[Query], starts: Sequence[Start], tops: Sequence[int]
    ) -> Iterator[tuple[Best, Trace | None]]:
        tol = self.alternation.tol
        found = best_found(self.system.best(starts, tops, tol))
        for query, best, start, top in zip(queries, found, starts, tops, strict=True):
            yield with_those_below(best, query, top, self.system, start, tol), None

    def _several(
        self,
        queries: Sequence[Query],
        unseen: Sequence[Neighbors],
        starts: Sequence[Start],
        tops: Sequence[int],
    ) -> Iterator[tuple[Best, Trace | None]]:
        for query, lists, start, top in zip(queries, unseen, starts, tops, strict=True):
            reached = self.system.solve(start, self.alternation.tol)
            yield self._alternate(query, lists, reached, top)

    def _at_scores_zero(self) -> Base:
        """Return the graph that the S-step learns where no score reaches."""
        nobody = self.neighbors.take(np.empty(0, dtype=np.intp))
        no_vectors = np.empty((0, self.engine.n_features))
        lists = CandidateLists(self.engine, self.neighbors, no_vectors, nobody)
        n_points = self.engine.n_points
        graph = self.alternation.step(lists, np.zeros(n_points), np.arange(n_points))
        squares = float(np.sum(graph.affinity.data**2))
        return Base(symmetrize(graph.affinity), graph.cost, squares, self.first.ending)

    def _alternate(
        self, query: Query, unseen: Neighbors, reached: Reached, top: int
    ) -> tuple[Best, Trace]:
        n_rows = self.engine.n_points + len(query.vectors)
        try:
            dense = self._idle.pop()
        except IndexError:
            dense = np.zeros(n_rows)
        if len(dense) < n_rows:
            dense = np.zeros(n_rows)
        lists = CandidateLists(self.engine, self.neighbors, query.vectors, unseen)
        step, tol = self.alternation.step, self.alternation.tol
        turns = LocalTurns(lists, query, step, self.first, self.later, dense, tol)
        order = np.argsort(reached.points)
        values = np.maximum(reached.values, turns.lowest)
        bound = max(reached.above, reached.below)
        scored = LocalScores(reached.points[order], values[order], bound, reached.n_steps)
        first = turns.with_query(scored)
        scores, trace = self.alternation.run(turns, turns.first_graph(first), first)
        self._idle.append(dense)
        return turns.best(scores, top), trace

    def _start(self, query: Query, unseen: Neighbors) -> Start:
        step = self.alternation.step
        return ran_start(query, unseen, step.n_neighbors, step.smoothness)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}
