"""Ranking with Adaptive Neighbors: Algorithm 1 of Li, Li and Nie as an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from rankfold.check import (
    InputError,
    check_choice,
    check_count,
    check_flag,
    check_positive,
    check_top,
)
from rankfold.neighbors import Learned, changed_rows, is_distant
from rankfold.rankers.alternation import Alternation
from rankfold.rankers.base import Ranker
from rankfold.rankers.candidates import candidate_lists
from rankfold.rankers.closed_form import ClosedForm
from rankfold.rankers.collective import CANDIDATES, can_stay, graph_for_all, kept_by
from rankfold.rankers.distant import DistantGraph, distant_neighbors
from rankfold.rankers.early_ends import warn_of_early_ends
from rankfold.rankers.flow import Edges, Flow, Scored
from rankfold.rankers.graph_step import GraphStep
from rankfold.rankers.local_graph import LocalGraph
from rankfold.rankers.pinned_flow import ran_flow
from rankfold.rankers.reached import with_round_trips
from rankfold.rankers.unseen import search_unseen
from rankfold.rankers.whole import WholeGraph
from rankfold.solvers import DIRECT_LIMIT, SOLVERS
from rankfold.types import NEGATIVE_WEIGHT, IntArray, Neighbors, Query, Ranking, Solution, Trace


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
        How much alike the scores of neighbours should be, lambda in the paper. Above zero, up to
        1e9. The larger, the further scores carry along the graph.
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}
        For the last two, ``fit`` takes a matrix of distances between all points, which are
        squared, or used as they are; a sparse one where only those to neighbours are known.
    gamma : {"own", "shared"}
        How the graph is learned again after the first alternation: with exactly k neighbours
        ("own"), or with the mean gamma for all points ("shared"), for which the
        objective never increases.
    candidates : {"all", "local"}
        Whether any point may become a neighbour, or only those nearest in the data.
    scale : {"natural", None}
        The unit of squared distance where scores and distances are compared. "natural": the
        mean squared distance to the (k+1)-th neighbour counts as much as a difference of
        one in scores. None: as given, as in the paper; learned distances are in natural units.
    adapt : {"query", "collective"}
        For whom the graph is learned. "query": for each query on its own, as in the paper.
        "collective": once for all queries, when it is fitted; queries start from that graph, and
        with ``max_iter`` above 1 it is learned further for each, among the candidates of the
        learned lists. Where learning would do harm at this smoothness the plain graph is kept,
        and ``collective_`` says so. An index that keeps a learned graph hands it over as it is,
        judged at the smoothness that it was learned for, whatever that of the ranker.
    max_iter : int
        Most alternations of graph and scores. Ending there before they settle warns, unless
        it is 1, which asks for no iteration.
    tol : float
        Ends the alternations once neither scores nor objective change by more, and local solves
        once no score can be further than this from the exact one.
    guard : bool
        Return the last healthy alternation when the query starts to cut itself off from
        its neighbours; ``ranking.collapsed`` says so.
    solver : {"auto", "direct", "cg", "local"}
        How linear systems are solved. "direct": one factorisation of the first graph for all
        queries. "cg": conjugate gradients. "local": only where a query reaches, until
        the answer is certain or no score can be off by more than ``tol``. "auto": "direct"
        for up to 5,000 points; beyond that "local", and "cg" where more than a quarter of
        the points is asked for. Over a database it is always "local", for one alternation.

    Attributes
    ----------
    n_neighbors_ : int
        The k that is used: as given, as chosen by "auto", or as learned. The only one of these
        over a database, whose lists are not read as a whole.
    gamma_ : float
        Mean of the ``gamma_i`` of the first graph, in the unit of ``neighbors_``.
    unit_ : float
        The unit of squared distance, in that of ``neighbors_``.
    neighbors_ : Neighbors
        Stored candidates of every point, in the unit of the data; where a graph was learned, in
        the learned distance.
    collective_ : Learned
        With ``adapt="collective"``: the rounds that were made, and how far queries reached.
    affinity_ : sparse array, shape (n_points, n_points)
        The first graph, S; made when it is asked for.

    Examples
    --------
    >>> from rankfold import RAN, datasets
    >>> moons = datasets.load("moons")
    >>> ranking = RAN(n_neighbors=10).fit(moons.X).rank(ids=0, top=199)
    >>> (moons.labels[ranking.ids] == moons.labels[0]).all()
    np.True_
    """

    negative_weight = NEGATIVE_WEIGHT
    collective_: Learned
    _local: LocalGraph | DistantGraph | None
    _whole: WholeGraph | None

    def __init__(
        self,
        n_neighbors: int | Literal["auto"] = "auto",
        smoothness: float = 30.0,
        *,
        metric: str = "euclidean",
        gamma: Literal["own", "shared"] = "own",
        candidates: Literal["all", "local"] = "all",
        scale: Literal["natural"] | None = "natural",
        adapt: Literal["query", "collective"] = "query",
        max_iter: int = 1,
        tol: float = 1e-6,
        guard: bool = True,
        solver: Literal["auto", "direct", "cg", "local"] = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.smoothness = smoothness
        self.metric = metric
        self.gamma = gamma
        self.candidates = candidates
        self.scale = scale
        self.adapt = adapt
        self.max_iter = max_iter
        self.tol = tol
        self.guard = guard
        self.solver = solver

    def alternations(
        self, ids: Any, *, top: int | None = None, include_query: bool = False
    ) -> Iterator[Ranking]:
        """Yield the rankings after one, two, three ... alternations: no guard, and no end.

        Parameters
        ----------
        ids : int or sequence of int
            Points of the database that serve as examples.
        top, include_query
            As for `rank`.

        Examples
        --------
        >>> from itertools import islice
        >>> from rankfold import RAN, datasets
        >>> ranker = RAN(n_neighbors=10).fit(datasets.load("moons").X)
        >>> [len(ranking) for ranking in islice(ranker.alternations(0, top=5), 3)]
        [5, 5, 5]
        """
        check_is_fitted(self)
        query, length = self._checked(Query(ids)), check_top(top, self.engine_.n_alive)
        (unseen,) = self._search_unseen([query])
        for solution in self._whole_graph().alternations(query, unseen):
            yield self._ranking(query, solution, None, length, include_query)

    def _check_parameters(self) -> None:
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "auto"):
            check_count(self.n_neighbors, "n_neighbors")
        check_positive(self.smoothness, "smoothness", most=1e9)
        check_choice(self.gamma, "gamma", ("own", "shared"))
        check_choice(self.candidates, "candidates", ("all", "local"))
        check_choice(self.scale, "scale", ("natural", None))
        check_choice(self.adapt, "adapt", ("query", "collective"))
        check_count(self.max_iter, "max_iter")
        check_positive(self.tol, "tol")
        check_flag(self.guard, "guard")
        check_choice(self.solver, "solver", ("auto", *SOLVERS))

    def _fit(self) -> None:
        self._check_parameters()
        if hasattr(self, "collective_"):  # of an earlier fit
            del self.collective_
        engine, self._list_unit = self.engine_, 1.0
        if is_distant(engine):
            if self._learned:
                raise InputError(
                    "adapt='collective' learns from the lists of all points, but they are in a "
                    "database; copy the index into a folder for it, or use adapt='query'.",
                    "adapt",
                )
            k = distant_neighbors(engine, self.n_neighbors, self.max_iter, self.solver)
            self.n_neighbors_, self._n_asked, self._list_width = k, k, k + 1
            self._local = DistantGraph(engine, k, self.smoothness, self.tol)
            return
        learns = self._learned and kept_by(engine) is None
        lists, k = candidate_lists(engine, self.n_neighbors, 2, CANDIDATES if learns else 0)
        self.neighbors_, self.n_neighbors_, self._n_asked = lists, k, k
        if self._learned:
            learned = graph_for_all(engine, k, self.smoothness, lists if learns else None)
            self.collective_, self.n_neighbors_ = learned, learned.n_neighbors
            self.neighbors_, _ = learned.current(engine)
            self._list_unit = learned.unit
        self._list_width = self.neighbors_.width
        self._first = ClosedForm.of(self.neighbors_, self.n_neighbors_, self.engine_.n_alive)
        self._prepare()

    def follow(self, rows: IntArray, width: int) -> bool:
        """Take up changes of the engine; possible for one alternation that is solved locally."""
        most = max(1, self.engine_.n_alive - 2)
        if self.n_neighbors != "auto" and min(self.n_neighbors, most) != self._n_asked:
            return False  # there were or are too few points for so many neighbours
        if isinstance(self._local, DistantGraph):
            return True
        if self._learned and not can_stay(self.collective_, self.engine_, self._n_asked):
            return False
        if self._local is None or self.max_iter > 1 or self._solver != "local":
            return False
        if self.neighbors_.width > width and not self._learned:
            return False  # lists that were searched for this ranker may have changed anywhere
        engine, before, first = self.engine_, self.neighbors_, self._first
        if self._learned:
            after, plain = self.collective_.current(engine)
            rows = np.union1d(rows, changed_rows(before, after, plain))
        else:
            after = engine.rows(np.arange(engine.n_points), before.width)
        form = first.changed(before, after, rows, self._n_alive, engine.n_alive)
        graph = self._local.followed(first, form, rows)
        self.neighbors_, self._first = after, form
        self._prepare(graph)
        return True

    def _prepare(self, followed: sparse.csr_array | None = None) -> None:
        """Do what all queries share; the first graph is there."""
        self._n_alive = self.engine_.n_alive
        self.gamma_ = self._first.gamma
        self.unit_ = 1.0
        if self.scale == "natural":
            self.unit_ = self._first.end / self.smoothness or 1.0
        step = GraphStep(
            self.n_neighbors_,
            self.smoothness,
            self.unit_,
            self.gamma_ / self.unit_,
            self.gamma,
            self._step_candidates,
        )
        later = SOLVERS["direct" if self.solver == "direct" else "cg"]()
        self._alternation = Alternation(step, later, self.max_iter, self.tol, self.guard)
        self._local, self._whole = None, None
        if self._solver == "local":
            self._local = LocalGraph(
                self.engine_, self.neighbors_, self._first, self._alternation, followed
            )
        else:
            self._whole_graph()

    @property
    def _learned(self) -> bool:
        return self.adapt == "collective"

    @property
    def _step_candidates(self) -> Literal["all", "stored", "local"]:
        """Which neighbours further alternations choose from; learned distances end with lists."""
        if self._learned and self.collective_.n_rounds and self.candidates == "all":
            return "stored"
        return self.candidates

    def edges(self, point: int) -> Edges:
        """Return the neighbours of a point in the first graph, W."""
        if self._local is not None:
            return self._local.edges(point)
        return Edges.of(self._whole_graph().weights, point)

    def flow(self, query: Query) -> Flow:
        """Return the walks on the first graph whose sum the scores on it are."""
        (unseen,) = self._search_unseen([query])
        form = ClosedForm.of(unseen, self.n_neighbors_)
        flow = ran_flow(self.edges, float(self.smoothness), query, form)
        return replace(flow, first_graph=self.max_iter > 1)

    def scored(self, query: Query) -> Scored:
        """Score the points that a query reaches, or all of them."""
        if self._local is None:
            return super().scored(query)
        (unseen,) = self._search_unseen([query])
        return self._local.scored(query, unseen)

    def _score_alone(self, query: Query, point: int, tol: float) -> float:
        """Score on the first graph, where scores are linear."""
        (unseen,) = self._search_unseen([query])
        if self._local is None:
            return float(self._whole_graph().first_scores(query, unseen).scores[point])
        found = self._local.first_scored(query, unseen, min(self.tol, tol))
        return float(found.scores[found.points == point].sum())

    @property
    def affinity_(self) -> sparse.csr_array:
        """The first graph, S."""
        check_is_fitted(self)
        self._refuse_distant("affinity_")
        return self._first.affinity(self.engine_.n_points)

    @property
    def _solver(self) -> str:
        if self.solver != "auto":
            return self.solver
        return "direct" if self.engine_.n_alive <= DIRECT_LIMIT else "local"

    def _whole_graph(self) -> WholeGraph:
        """Return what scores all points; made when it is first needed, by any thread."""
        self._refuse_distant("a ranking of all points after several alternations")
        whole = self._whole
        if whole is None:
            factorize = self._solver == "direct"
            whole = self._whole = WholeGraph(
                self.engine_, self.neighbors_, self._first, self._alternation, factorize
            )
        return whole

    def _refuse_distant(self, what: str) -> None:
        if isinstance(self._local, DistantGraph):
            raise InputError(
                f"{what} needs the graph of all points, but over a database rows are read only "
                "where a query reaches; fit vectors or an index in a folder for it."
            )

    def _answers_locally(self, top: int) -> bool:
        return isinstance(self._local, DistantGraph) or super()._answers_locally(top)

    def _answers(
        self, queries: Sequence[Query], top: int, include_query: bool, traced: bool
    ) -> Iterator[Ranking]:
        if self._local is None or not self._answers_locally(top):
            yield from super()._answers(queries, top, include_query, traced)
            return
        unfinished = unsolved = 0
        before = self._round_trips
        unseen = self._search_unseen(queries)
        shared = self._round_trips - before
        for ranking in self._local.rank(queries, unseen, top, include_query):
            counted, shared = with_round_trips(ranking, shared) if shared else ranking, 0
            unfinished += ranking.trace is not None and ranking.trace.stopped == "max_iter"
            unsolved += not ranking.solution.converged
            yield counted
        warn_of_early_ends(len(queries), unfinished, unsolved, self.max_iter, self.tol)

    def _score(
        self, queries: Sequence[Query], traced: bool
    ) -> Iterator[tuple[Solution, Trace | None]]:
        unfinished = unsolved = 0
        unseen = self._search_unseen(queries)
        for solution, trace in self._whole_graph().scores(queries, unseen, traced):
            if trace is not None and self._alternation.max_iter > 1:
                unfinished += trace.stopped == "max_iter"
            unsolved += not solution.converged
            yield solution, trace
        warn_of_early_ends(len(queries), unfinished, unsolved, self.max_iter, self.tol)

    def _search_unseen(self, queries: Sequence[Query]) -> list[Neighbors]:
        return search_unseen(self.engine_, queries, self._list_width, self._list_unit)

    @property
    def _round_trips(self) -> int:
        return self.engine_.round_trips if is_distant(self.engine_) else 0
