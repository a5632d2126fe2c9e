"""Ranking with Adaptive Neighbors: Algorithm 1 of Li, Li and Nie as an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, compress
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankfold.check import check_choice, check_count, check_flag, check_positive, check_query
from rankfold.graph import adaptive_weights, symmetrize
from rankfold.rankers.alternation import Alternation, score_step
from rankfold.rankers.base import Ranker
from rankfold.rankers.candidates import candidate_lists
from rankfold.rankers.graph_step import CandidateLists, Graph, GraphStep, closed_form_graph
from rankfold.rankers.ordering import certain_scores
from rankfold.rankers.shared import SharedFactorization
from rankfold.solvers import DIRECT_LIMIT, SOLVERS
from rankfold.types import Neighbors, Query, Ranking, Solution, Trace


class RAN(Ranker):
    """Ranking with Adaptive Neighbors: learn the neighbour graph and the scores together.

    Minimises Eq. (5) of the paper over the row-stochastic affinity S and the scores f,

        sum_ij (d_ij s_ij + gamma s_ij^2) + 2 lambda f' L_S f + (f - y)' U (f - y),

    by turns. One alternation is a graph followed by its scores; the first graph is the closed
    form at scores zero.

    Parameters
    ----------
    n_neighbors : int or "auto"
        Neighbours of every point, k in the paper. "auto" chooses 5 on clean manifolds and 20
        in diffuse data, by the intrinsic dimension; ``n_neighbors_`` says which.
    smoothness : float
        How much alike the scores of neighbours should be, lambda in the paper.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        For the last two, ``fit`` takes a matrix of distances between all points, which are
        squared, or used as they are.
    gamma : {"own", "shared"}
        How the graph is learned again after the first alternation: with exactly k neighbours
        ("own"), or with the mean gamma for all points ("shared"), for which the
        objective never increases.
    candidates : {"all", "local"}
        Whether any point may become a neighbour, or only those nearest in the data.
    scale : {"natural", None}
        The unit of squared distance where scores and distances are compared. "natural": the
        mean squared distance to the (k+1)-th neighbour counts as much as a difference of
        one in scores. None: as given, as in the paper.
    max_iter : int
        Most alternations of graph and scores. Ending there before they settle warns, unless
        it is 1, which asks for no iteration.
    tol : float
        Ends the alternations once neither scores nor objective change by more.
    guard : bool
        Return the last healthy alternation when the query starts to cut itself off from
        its neighbours; ``ranking.collapsed`` says so.
    solver : {"auto", "direct", "cg"}
        How linear systems are solved. "auto": one factorisation for the first graph of up to
        5,000 points, conjugate gradients for everything else.

    Attributes
    ----------
    n_neighbors_ : int
    gamma_ : float
        Mean of the ``gamma_i`` of the first graph, in the unit of the data.
    unit_ : float
        The unit of squared distance.
    neighbors_ : Neighbors
        Stored candidates of every point.
    affinity_ : sparse array, shape (n_points, n_points)
        The first graph, S.

    Examples
    --------
    >>> from rankfold import RAN, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = RAN(n_neighbors=10).fit(moons.X).rank(ids=0, top=199)
    >>> (moons.labels[ranking.ids] == moons.labels[0]).all()
    np.True_
    """

    def __init__(
        self,
        n_neighbors: int | Literal["auto"] = "auto",
        smoothness: float = 30.0,
        *,
        metric: str = "euclidean",
        gamma: Literal["own", "shared"] = "own",
        candidates: Literal["all", "local"] = "all",
        scale: Literal["natural"] | None = "natural",
        max_iter: int = 1,
        tol: float = 1e-6,
        guard: bool = True,
        solver: Literal["auto", "direct", "cg"] = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothness = smoothness
        self.metric = metric
        self.gamma = gamma
        self.candidates = candidates
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.guard = guard
        self.solver = solver

    def alternations(
        self, ids: Any, *, top: int | None = None, include_query: bool = False
    ) -> Iterator[Ranking]:
        """Yield the rankings after one, two, three ... alternations: no guard, and no end.

        Examples
        --------
        >>> from itertools import islice
        >>> from rankfold import RAN, datasets
        >>> ranker = RAN(n_neighbors=10).fit(datasets.load("moons").X)
        >>> [len(ranking) for ranking in islice(ranker.alternations(0, top=5), 3)]
        [5, 5, 5]
        """
        check_is_fitted(self)
        n_points, n_features = self.engine_.n_points, self.engine_.n_features
        query = check_query(Query(ids), n_points, n_features)
        (unseen,) = self._search_unseen([query])
        lists = CandidateLists(self.engine_, self.neighbors_, query.vectors, unseen)
        (first,) = self._first_scores([query], [self._closed_form(unseen)])
        later = (solution for _, solution in self._alternation.walk(lists, query, first))
        for solution in chain([first], later):
            yield self._ranking(query, certain_scores(solution), None, top, include_query)

    def _check_parameters(self) -> None:
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "auto"):
            check_count(self.n_neighbors, "n_neighbors")
        check_positive(self.smoothness, "smoothness", most=1e9)
        check_choice(self.gamma, "gamma", ("own", "shared"))
        check_choice(self.candidates, "candidates", ("all", "local"))
        check_choice(self.scale, "scale", ("natural", None))
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol")
        check_flag(self.guard, "guard")
        check_choice(self.solver, "solver", ("auto", *SOLVERS))

    def _fit(self) -> None:
        self._check_parameters()
        n_points = self.engine_.n_points
        self.neighbors_, self.n_neighbors_ = candidate_lists(
            self.engine_, self.n_neighbors, n_points - 2
        )
        _, gammas, ends = adaptive_weights(self.neighbors_.sq_distances, self.n_neighbors_)
        self.gamma_ = float(gammas.mean())
        self.unit_ = 1.0
        if self.scale == "natural":
            self.unit_ = float(ends.mean()) / self.smoothness or 1.0
        self._graph = self._closed_form(self.neighbors_)
        self.affinity_ = self._graph.affinity
        self._weights = symmetrize(self.affinity_)
        later = SOLVERS["cg" if self.solver == "auto" else self.solver]()
        step = GraphStep(
            self.n_neighbors_,
            self.smoothness,
            self.unit_,
            self.gamma_ / self.unit_,
            self.gamma,
            self.candidates,
        )
        self._alternation = Alternation(step, later, self.max_iter, self.tol, self.guard)
        direct = self.solver == "direct" or (self.solver == "auto" and n_points <= DIRECT_LIMIT)
        self._shared = SharedFactorization(self._weights, self.smoothness) if direct else None

    def _closed_form(self, neighbors: Neighbors) -> Graph:
        return closed_form_graph(neighbors, self.n_neighbors_, self.engine_.n_points, self.unit_)

    def _score(
        self, queries: Sequence[Query], traced: bool
    ) -> Iterator[tuple[Solution, Trace | None]]:
        searched = self._search_unseen(queries)
        unseen = [self._closed_form(neighbors) for neighbors in searched]
        n_points, iterating = self.engine_.n_points, self._alternation.max_iter > 1
        unfinished = unsolved = 0
        firsts = self._first_scores(queries, unseen)
        for query, neighbors, rows, first in zip(queries, searched, unseen, firsts, strict=True):
            solution, trace = first, None
            if traced or iterating:
                lists = CandidateLists(self.engine_, self.neighbors_, query.vectors, neighbors)
                graph = self._graph.extended(rows)
                solution, trace = self._alternation.run(lists, query, graph, first)
                unfinished += iterating and trace.stopped == "max_iter"
            unsolved += not solution.converged
            yield certain_scores(replace(solution, scores=solution.scores[:n_points])), trace
        self._warn_of_early_ends(len(queries), unfinished, unsolved)

    def _search_unseen(self, queries: Sequence[Query]) -> list[Neighbors]:
        """Search the unseen vectors of all queries at once."""
        vectors = np.concatenate([query.vectors for query in queries])
        found = self.engine_.search(vectors, self.neighbors_.width)
        ends = np.cumsum([len(query.vectors) for query in queries])
        return [
            found.take(np.arange(end - len(query.vectors), end))
            for query, end in zip(queries, ends, strict=True)
        ]

    def _first_scores(
        self, queries: Sequence[Query], unseen: Sequence[Graph]
    ) -> Iterator[Solution]:
        """Score each query on the first graph: from the shared factorisation where it pays."""
        rows = [graph.affinity for graph in unseen]
        pays = [False] * len(queries)
        answers: Iterator[Solution] = iter(())
        if self._shared is not None:
            pays = [self._shared.pays(*pair) for pair in zip(queries, rows, strict=True)]
            answers = self._shared.scores(list(compress(queries, pays)), list(compress(rows, pays)))
        for query, graph, shared in zip(queries, unseen, pays, strict=True):
            yield next(answers) if shared else self._single_score(query, graph)

    def _single_score(self, query: Query, unseen: Graph) -> Solution:
        weights = self._weights
        if unseen.affinity.shape[0]:
            weights = symmetrize(self._graph.extended(unseen).affinity)
        points = np.concatenate([query.ids, np.arange(self.engine_.n_points, weights.shape[0])])
        step, solver = self._alternation.step, self._alternation.solver
        return score_step(weights, step.smoothness, points, query.weights, solver)

    def _warn_of_early_ends(self, n_queries: int, unfinished: int, unsolved: int) -> None:
        settings = self._alternation
        if unfinished:
            warnings.warn(
                f"{unfinished} of {n_queries} queries ended at max_iter={settings.max_iter} before "
                f"their scores and objective settled to tol={settings.tol}; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if unsolved:
            warnings.warn(
                f"for {unsolved} of {n_queries} queries the linear solver ended before it "
                "reached its tolerance; ranking.solution.bound says how far scores can be off. "
                "A smaller smoothness is easier to solve.",
                ConvergenceWarning,
                stacklevel=5,
            )
