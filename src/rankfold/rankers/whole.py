"""RAN on the whole graph: every point is scored for every query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from rankfold.graph import symmetrize
from rankfold.neighbors import Engine
from rankfold.rankers.alternation import Alternation
from rankfold.rankers.closed_form import ClosedForm
from rankfold.rankers.graph_step import CandidateLists, Graph
from rankfold.rankers.ordering import certain_scores
from rankfold.rankers.shared import SharedFactorization
from rankfold.rankers.whole_turns import WholeTurns, score_step
from rankfold.types import Neighbors, Query, Solution, Trace


class WholeGraph:
    """Scores all points: from one factorisation where that pays, else query by query.

    Parameters
    ----------
    engine : Engine
    neighbors : Neighbors
    first : ClosedForm
        The first graph.
    alternation : Alternation
        How graph and scores are learned from there.
    factorize : bool
        Whether to factorise the first graph once for all queries.
    """

    def __init__(
        self,
        engine: Engine,
        neighbors: Neighbors,
        first: ClosedForm,
        alternation: Alternation,
        factorize: bool,
    ) -> None:
        self.engine, self.neighbors, self.alternation = engine, neighbors, alternation
        self.graph = self._graph(first)
        self.weights = symmetrize(self.graph.affinity)
        smoothness = alternation.step.smoothness
        self.shared = SharedFactorization(self.weights, smoothness) if factorize else None

    def scores(
        self, queries: Sequence[Query], unseen: Sequence[Neighbors], traced: bool
    ) -> Iterator[tuple[Solution, Trace | None]]:
        """Score each query; ``unseen`` has the lists of its vectors."""
        k, n_points = self.alternation.step.n_neighbors, self.engine.n_points
        graphs = [self._graph(ClosedForm.of(lists, k)) for lists in unseen]
        firsts = self._first_scores(queries, graphs)
        for query, lists, rows, first in zip(queries, unseen, graphs, firsts, strict=True):
            solution, trace = first, None
            if traced or self.alternation.max_iter > 1:
                turns = self._turns(query, lists)
                solution, trace = self.alternation.run(turns, self.graph.extended(rows), first)
            yield certain_scores(replace(solution, scores=solution.scores[:n_points])), trace

    def first_scores(self, query: Query, unseen: Neighbors) -> Solution:
        """Return the scores of all points after one alternation."""
        form = ClosedForm.of(unseen, self.alternation.step.n_neighbors)
        (solution,) = self._first_scores([query], [self._graph(form)])
        scores = solution.scores[: self.engine.n_points]
        return certain_scores(replace(solution, scores=scores))

    def alternations(self, query: Query, unseen: Neighbors) -> Iterator[Solution]:
        """Yield the scores after one alternation, two, three, ... without end."""
        form = ClosedForm.of(unseen, self.alternation.step.n_neighbors)
        (solution,) = self._first_scores([query], [self._graph(form)])
        turns = self._turns(query, unseen)
        while True:
            scores = solution.scores[: self.engine.n_points]
            yield certain_scores(replace(solution, scores=scores))
            solution = turns.learn_scores(turns.learn_graph(solution), solution)

    def _turns(self, query: Query, unseen: Neighbors) -> WholeTurns:
        lists = CandidateLists(self.engine, self.neighbors, query.vectors, unseen)
        return WholeTurns(lists, query, self.alternation.step, self.alternation.solver)

    def _graph(self, form: ClosedForm) -> Graph:
        affinity = form.affinity(self.engine.n_points)
        return Graph(affinity, form.cost / self.alternation.step.unit)

    def _first_scores(
        self, queries: Sequence[Query], unseen: Sequence[Graph]
    ) -> Iterator[Solution]:
        """Score each query on the first graph: from the shared factorisation where it pays."""
        rows = [graph.affinity for graph in unseen]
        pays = [False] * len(queries)
        answers: Iterator[Solution] = iter(())
        if self.shared is not None:
            pays = [self.shared.pays(*pair) for pair in zip(queries, rows, strict=True)]
            answers = self.shared.scores(list(compress(queries, pays)), list(compress(rows, pays)))
        for query, graph, shared in zip(queries, unseen, pays, strict=True):
            yield next(answers) if shared else self._single_score(query, graph)

    def _single_score(self, query: Query, unseen: Graph) -> Solution:
        weights = self.weights
        if unseen.affinity.shape[0]:
            weights = symmetrize(self.graph.extended(unseen).affinity)
        points = np.concatenate([query.ids, np.arange(self.engine.n_points, weights.shape[0])])
        step, solver = self.alternation.step, self.alternation.solver
        return score_step(weights, step.smoothness, points, query.weights, solver)
