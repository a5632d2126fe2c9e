"""The contract of all rankers: fit, rank, rank_many, search."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from rankfold.check import (
    check_budget,
    check_choice,
    check_count,
    check_examples,
    check_finite,
    check_flag,
    check_fusion,
    check_list,
    check_query,
    check_rows,
    check_top,
    warn_caller,
)
from rankfold.errors import InputError
from rankfold.neighbors import (
    GIVEN_METRICS,
    METRICS,
    Engine,
    GivenEngine,
    choose_engine,
    live_points,
)
from rankfold.parallel import in_order
from rankfold.rankers.flow import Edges, Flow
from rankfold.rankers.ordering import (
    FUSION_NEIGHBORS,
    NO_FUSION,
    Fusion,
    FusionLike,
    Neighborhood,
    ordered,
)
from rankfold.solvers import Budget, Solvers, Wanted
from rankfold.types import (
    NOBODY,
    BoolArray,
    FloatArray,
    Fused,
    IntArray,
    Neighbors,
    Query,
    Ranking,
    Solution,
    Trace,
)

BLOCK_BYTES = 2**24
"""Size of the scores that are held at once while many queries are answered."""

MOST_QUERIES = 256
"""Most queries that are answered at once, so that threads can share them."""


Unseen = Sequence[Neighbors | None] | None
"""Neighbours of the unseen vectors of each query, where there are some and they are known."""


class Ranker(BaseEstimator, metaclass=ABCMeta):
    """Base of all rankers: checks the input and turns scores into rankings.

    A method says how it prepares itself (``_fit``) and how it scores queries (``_solve``).
    """

    metric: str
    negative_weight: ClassVar[float] = -0.5
    """Weight for negative examples that was best where scores are not held at weights."""

    needs_vectors: ClassVar[bool] = False
    """Whether distances alone are too little for it."""

    when_unsolved: ClassVar[str] = "A smaller smoothness is easier to solve."
    max_iter: int
    tol: float
    budget: Budget
    fusion: FusionLike = "none"
    _solvers: Solvers
    _unit_neighbors: int = FUSION_NEIGHBORS
    _list_width: int = FUSION_NEIGHBORS + 1
    _lists: Neighbors | None = None
    _relative_degrees: FloatArray | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the shape of the data.

        Parameters
        ----------
        X : array, shape (n_points, n_features) or (n_points, n_points), or Engine
            Vectors, or distances between all points for a precomputed metric. Not copied
            where it can be helped: do not change it while the ranker is in use. A sparse
            array of distances is a graph that was made elsewhere, see `GivenEngine`. Or an
            engine that holds the points already, such as `FaissEngine`.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        self
        """
        self.engine_ = self._engine(X)
        check_fusion(self.fusion)
        self._fit()
        return self

    def _engine(self, X: Any) -> Engine:
        if hasattr(type(X), "nearest"):  # an engine; `isinstance` would read what is far away
            if X.metric != self.metric:
                raise InputError(
                    f"the engine measures metric={X.metric!r}, but the ranker has "
                    f"metric={self.metric!r}; give both the same."
                )
            self.n_features_in_ = X.n_features
            engine: Engine = X
            return engine
        if issparse(X) and self.metric in METRICS and self.metric not in GIVEN_METRICS:
            raise InputError(
                f"X is sparse, but metric={self.metric!r} takes dense vectors: give "
                "X.toarray(). A sparse graph of distances takes metric='precomputed'.",
                "X",
            )
        try:
            X = validate_data(self, X, dtype=[np.float64, np.float32], accept_sparse="csr")
        except ValueError:
            if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
                check_finite(X, "X")  # says where
            raise
        check_choice(self.metric, "metric", METRICS)
        return GivenEngine(X, self.metric) if issparse(X) else choose_engine(X, self.metric)

    def with_budget(self, budget: Budget) -> Self:
        """Return this fitted ranker with another budget; what was fitted is shared.

        Only for methods that have one.
        """
        check_budget(budget)
        check_is_fitted(self)
        twin = copy(self)
        twin.budget, twin._solvers = budget, self._solvers.with_budget(budget)
        return twin

    def budget_for(self, top: int) -> Budget:
        """Return how many points the budget of this fitted ranker allows for so many results."""
        return self._solvers.effort(top).budget

    def with_fusion(self, fusion: FusionLike) -> Self:
        """Return this fitted ranker with another fusion; what was fitted is shared.

        Only for methods that have one.
        """
        check_fusion(fusion)
        check_is_fitted(self)
        twin = copy(self)
        twin.fusion = fusion
        return twin

    def follow(self, rows: IntArray, width: int) -> bool:
        """Take up changes of the engine at some rows, if that is quicker than to fit again.

        Parameters
        ----------
        rows : array of int
            Points whose neighbour lists have changed, removed and new points among them.
        width : int
            Length up to which all other lists are as they were.

        Returns
        -------
        followed : bool
            If not, nothing has happened, and `fit` is to be called.
        """
        return False

    def rank(
        self,
        indices: Any = None,
        vectors: Any = None,
        weights: Any = None,
        *,
        top: int | None = None,
        include_query: bool = False,
    ) -> Ranking:
        """Rank the database for one query.

        Parameters
        ----------
        indices : int or sequence of int, optional
            Points of the database that serve as examples.
        vectors : array, shape (n_features,), or list of such arrays, optional
            Examples that are not in the database. With a precomputed metric, their distances
            to every point of the database, in the same form as the matrix that was fitted.
            `search` takes an array of many queries.
        weights : sequence of float, optional
            How much each example counts, points first, then vectors; the largest is the score 1.
            Examples of zero or less are negative ones, see `Query`.
        top : int, optional
            Length of the answer; everything by default.
        include_query : bool
            Whether the query's own points are part of the answer; they then come first, and
            negative examples last.

        Returns
        -------
        ranking : Ranking
            Best first.

        Raises
        ------
        InputError
            For points that are not there, vectors of another length, or weights of which none
            is positive.

        Examples
        --------
        >>> from rankfold import RAN, datasets
        >>> ranker = RAN(n_neighbors=10).fit(datasets.load("moons").X)
        >>> ranker.rank([0, 5], top=3).indices
        array([120, 330, 238])
        """
        if vectors is not None:
            check_examples(vectors, "search")
        a_row = isinstance(indices, Integral) and not isinstance(indices, bool)
        alone = a_row and vectors is None and weights is None
        query = indices if alone else Query(indices, vectors, weights)
        return self.rank_query(query, top=top, include_query=include_query)

    def rank_query(
        self, query: Query | int, *, top: int | None = None, include_query: bool = False
    ) -> Ranking:
        """Rank the database for a query of any kind, or for a point of the database.

        Parameters
        ----------
        query : int or Query
        top, include_query
            As for `rank`.
        """
        (checked,), length = self._checked_queries([query], top, include_query)
        (ranking,) = self._answers([checked], length, include_query)
        return ranking

    def rank_many(
        self,
        queries: Iterable[Query | int],
        *,
        top: int | None = None,
        include_query: bool = False,
        n_jobs: int = 1,
        progress: bool = False,
    ) -> list[Ranking]:
        """Rank the database for many queries.

        Parameters
        ----------
        queries : iterable of int or Query
            Row numbers of the database, or queries of any kind.
        top, include_query
            As for `rank`, for every query.
        n_jobs : int
            Threads that share the queries.
        progress : bool
            Whether to show a bar on stderr.

        Returns
        -------
        rankings : list of Ranking
            In the order of the queries.
        """
        return list(self._rankings(queries, top, include_query, n_jobs, progress))

    def search(
        self,
        X: Any = None,
        k: int = 10,
        *,
        include_query: bool = False,
        n_jobs: int = 1,
        progress: bool = False,
    ) -> tuple[IntArray, FloatArray]:
        """Rank the database for many unseen vectors, or for each of its own points.

        Parameters
        ----------
        X : array, shape (n_queries, n_features), optional
            One query in each row. With a precomputed metric, their distances to every point of the
            database. Without it, every point of the database is a query.
        k : int
            Length of each answer, at most.
        include_query : bool
            Whether a point of the database comes first in its own answer, or is not in it.
        n_jobs, progress
            As for `rank_many`.

        Returns
        -------
        indices : array of int, shape (n_queries, k)
            Row numbers of the database, best first.
        scores : array of float, shape (n_queries, k)
            The rows of points that were removed hold -1 and nan.

        Examples
        --------
        >>> from rankfold import RAN, datasets
        >>> X = datasets.load("moons").X
        >>> indices, scores = RAN(n_neighbors=10).fit(X[5:]).search(X[:5], k=3)
        >>> indices.shape
        (5, 3)
        """
        check_is_fitted(self)
        n_alive, n_own = self.engine_.n_alive, 0
        queries: list[Any]
        if X is None:
            asked = live_points(self.engine_)
            queries, n_queries = asked.tolist(), self.engine_.n_points
            n_own = 0 if check_flag(include_query, "include_query") else 1
        else:
            rows = X if issparse(X) else check_rows(X)
            n_queries = rows.shape[0]
            asked = np.arange(n_queries)
            queries = [Query(vectors=rows[i : i + 1]) for i in range(n_queries)]
        shape = (n_queries, min(check_count(k, "k"), n_alive - n_own))
        indices, scores = np.full(shape, NOBODY, dtype=np.intp), np.full(shape, np.nan)
        rankings = self._rankings(queries, k, include_query, n_jobs, progress)
        for row, ranking in zip(asked, rankings, strict=True):
            indices[row], scores[row] = ranking.indices, ranking.scores
        return indices, scores

    def edges(self, point: int) -> Edges:
        """Return the neighbours of a point in the graph; nobody where there is no graph."""
        return Edges(np.empty(0, dtype=np.intp), np.empty(0))

    def flow(self, query: Query) -> Flow | None:
        """Return how a checked query flows along the graph; None where there is no graph."""
        return None

    def scored(self, query: Query, point: int | None = None) -> Solution:
        """Score the points that a checked query reaches, or all of them.

        Where a budget ends a query early, it is solved further if a ``point`` has no score yet.
        """
        n_alive = self.engine_.n_alive
        ((solution, _),) = self._solve([query], [Wanted(n_alive, n_alive)], None)
        return solution

    def fused(
        self, query: Query, shape: FloatArray, others: BoolArray
    ) -> tuple[FloatArray, Fused | None]:
        """Fuse the shape scores of all points with their distances to a checked query.

        ``others`` are the points that are ranked.
        """
        if self.fusion in NO_FUSION:
            return shape, None
        hood = self.hood(query)
        return Fusion.of(self.fusion).everywhere(self.engine_, query, hood, shape, others)

    def amounts(self, query: Query, point: int, tol: float) -> FloatArray:
        """Return what each example of a checked query adds to the shape score of a point.

        Scores are linear in the weights of the query, so they are added up from those of
        each example alone, the others kept at zero. Solutions are off by at most ``tol``.
        """
        units = np.eye(len(query.weights))
        alone = [self._score_alone(replace(query, weights=unit), point, tol) for unit in units]
        amounts: FloatArray = query.weights * np.array(alone)
        return amounts

    def _score_alone(self, query: Query, point: int, tol: float) -> float:
        solution = self.scored(query)
        return float(solution.scores[solution.points == point].sum())

    @abstractmethod
    def _fit(self) -> None:
        """Prepare for queries; ``engine_`` is there."""

    @abstractmethod
    def _solve(
        self,
        queries: Sequence[Query],
        wanted: Sequence[Wanted],
        unseen: Unseen,
    ) -> Iterable[tuple[Solution, Trace | None]]:
        """Score the points of the database for each of the checked queries.

        At least so many of the best are needed, the query's own points not counted. Where distance
        will be fused, the neighbours of each query's vectors are known already.
        """

    def _allowed(self, query: Query, solution: Solution) -> Solution:
        """Return a solution without the points that may not be results; here all may be.

        Where some are left out, the others are in order, the query's own points last.
        """
        return solution

    def _searched(self, queries: Sequence[Query]) -> list[Neighbors | None]:
        """Return the neighbours of each query's unseen vectors, in one search."""
        vectors = np.concatenate([query.vectors for query in queries])
        if not len(vectors):
            return [None] * len(queries)
        found = self.engine_.search(vectors, self._list_width)
        ends = np.cumsum([len(query.vectors) for query in queries]).tolist()
        return [
            found.take(np.arange(end - len(query.vectors), end))
            for query, end in zip(queries, ends, strict=True)
        ]

    def hood(self, query: Query, near: tuple[IntArray, FloatArray] | None = None) -> Neighborhood:
        """Return the neighbourhood of a checked query, in which distance is fused with shape.

        What is near to it may be known already.
        """
        known = self._relative_degrees
        degrees_of = self._degrees_of if known is None else known.take
        return Neighborhood.of(query, *(near or self._near(query, None)), degrees_of)

    def _near(self, query: Query, unseen: Neighbors | None) -> tuple[IntArray, FloatArray]:
        """Return the points near a checked query, and their squared distances."""
        engine, width, n_indices = self.engine_, self._unit_neighbors + 1, len(query.indices)
        (positive,) = np.nonzero(query.weights > 0)
        row = int(positive[0])
        if len(positive) > 1:
            lists, row = engine.nearest(query, width), 0
        elif row >= n_indices:
            lists = engine.search(query.vectors, width) if unseen is None else unseen
            row -= n_indices
        elif self._lists is not None:
            lists, row = self._lists, int(query.indices[row])
        else:
            lists, row = engine.rows(query.indices[row : row + 1], width), 0
        return lists.indices[row, :width], lists.sq_distances[row, :width]

    def _degrees_of(self, points: IntArray) -> FloatArray:
        """Return the degrees of points beside the mean of all, where they were not kept."""
        return np.ones(len(points))

    def _rankings(
        self,
        queries: Iterable[Query | int],
        top: int | None,
        include_query: bool,
        n_jobs: int,
        progress: bool,
    ) -> Iterator[Ranking]:
        check_count(n_jobs, "n_jobs")
        check_flag(progress, "progress")
        checked, length = self._checked_queries(check_list(queries), top, include_query)
        share = max(1, -(-len(checked) // n_jobs))
        step = min(MOST_QUERIES, share, max(1, BLOCK_BYTES // (8 * self._n_scores(length))))
        blocks = [checked[start : start + step] for start in range(0, len(checked), step)]

        def answer(block: Sequence[Query]) -> list[Ranking]:
            return self._answers(block, length, include_query)

        for rankings in in_order(answer, blocks, n_jobs, progress):
            yield from rankings

    def _answers(self, queries: Sequence[Query], top: int, include_query: bool) -> list[Ranking]:
        """Answer checked queries: boundary, solution, order."""
        engine, fuses, unsolved, unfinished = self.engine_, self.fusion not in NO_FUSION, 0, 0
        unseen = self._searched(queries) if fuses else None
        fusion = Fusion.of(self.fusion)
        wanted = fusion.wanted(queries, top, include_query)
        solutions = self._solve(queries, wanted, unseen)
        solved = zip(queries, unseen or [None] * len(queries), solutions, strict=True)
        rankings = []
        for query, near, (solution, trace) in solved:
            unsolved += not solution.converged
            unfinished += trace is not None and trace.stopped == "max_iter"
            allowed = self._allowed(query, solution)
            if not fuses:
                answer = ordered(engine, query, allowed, top, include_query)
            else:
                listed, degrees = self._near(query, near), self._relative_degrees
                known = None
                if not (include_query or allowed.complete or degrees is None):
                    known = fusion.best(engine, query, *listed, degrees, allowed, top)
                answer = known or self._fused_in_steps(
                    fusion, query, solution, allowed, listed, top, include_query
                )
            rankings.append(Ranking(answer, trace))
        if unfinished:
            warn_caller(
                f"{unfinished} of {len(queries)} queries ended at max_iter={self.max_iter} before "
                f"their scores and objective settled to tol={self.tol}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        if unsolved:
            warn_caller(
                f"for {unsolved} of {len(queries)} queries the solver ended before it reached "
                "its tolerance; ranking.solution.bound says how far scores can be off. "
                f"{self.when_unsolved}",
                ConvergenceWarning,
            )
        return rankings

    def _fused_in_steps(
        self,
        fusion: Fusion,
        query: Query,
        solution: Solution,
        allowed: Solution,
        near: tuple[IntArray, FloatArray],
        top: int,
        include_query: bool,
    ) -> Solution:
        """Fuse the points that may be results with their distances, and put them in order."""
        engine, hood, up = self.engine_, self.hood(query, near), solution.scores > 0
        most = hood.most_shape(query, solution.points[up], solution.scores[up])
        candidates = fusion.fuse(engine, query, hood, allowed, top, most)
        return ordered(engine, query, allowed, top, include_query, candidates)

    def _checked_queries(
        self, queries: Iterable[Query | int], top: int | None, include_query: bool
    ) -> tuple[list[Query], int]:
        """Check what is asked of a fitted ranker; return queries, and the length of answers."""
        if not hasattr(self, "engine_"):  # scikit-learn's own check takes as long as a query
            check_is_fitted(self)
        engine = self.engine_
        check_flag(include_query, "include_query")
        length = check_top(top, engine.n_alive)
        check = partial(
            check_query,
            n_points=engine.n_points,
            n_features=engine.n_features,
            alive=engine.alive,
            partial=isinstance(engine, GivenEngine),
        )
        return list(map(check, queries)), length

    def _n_scores(self, top: int) -> int:
        """Return how many scores a query needs at once."""
        return self.engine_.n_points

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.sparse = str(self.metric) in GIVEN_METRICS
        return tags
