"""Rankings in which only some points may appear."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from rankfold.check import check_query
from rankfold.databases.engine import TableEngine
from rankfold.index.keeping import Described
from rankfold.neighbors import Engine, VectorEngine, plain_sq_distances
from rankfold.rankers import Ranker
from rankfold.rankers.ordering import with_unreached
from rankfold.types import NOBODY, IntArray, Query, Ranking, Solution

FIRST_SURPLUS, GROWTH = 2.0, 4
"""How many more points are ranked at first than should do, and how many more after that."""

MOST_RANKED = 50_000
"""Points of a database that are ranked to find some that match."""


def ranked(ranker: Ranker, query: Query, top: int, include_query: bool) -> Ranking:
    """Rank for one query."""
    return ranker.rank_many([query], top=top, include_query=include_query)[0]


def no_ranking() -> Ranking:
    """Return the answer of an index without points, which no method can be fitted to."""
    solution = Solution(np.empty(0, dtype=np.intp), np.empty(0), 0.0, certified=True)
    return Ranking(solution)


def matching_of(store: Described, engine: VectorEngine, where: str) -> Matching:
    """Return what finds points that meet a condition."""
    if isinstance(engine, TableEngine):
        return AskedMatching(engine, where)
    return ListedMatching(store.matching(where))


class Matching(ABC):
    """Finds the best of the points that meet a condition; the graph has all points.

    More and more points are ranked until enough of them match, all that do are found, or points
    come that the query does not reach; these are ordered by plain distance. The answer is
    certified where the ranking is, and no matching point that was left out can be better.
    """

    def best(self, ranker: Ranker, query: Query, top: int, include_query: bool) -> Ranking:
        """Return the best matching points."""
        engine: Any = ranker.engine_
        no_score_is_negative = min(query.weights) > 0
        length, enough, most = self._expected(engine, query, top, include_query)
        while True:
            length = max(1, min(length, most))
            ranking = ranked(ranker, query, length, include_query)
            places = self._places(ranking.ids)
            if len(places) >= enough or length == engine.n_alive:
                return _shortened(ranking, places, top)
            if length == most or (no_score_is_negative and ranking.scores[-1] == 0):
                return self._filled_up(ranker, query, ranking, places, enough)
            length *= GROWTH

    def _filled_up(
        self, ranker: Ranker, query: Query, ranking: Ranking, places: IntArray, enough: int
    ) -> Ranking:
        """Let matching points that the query does not reach follow by plain distance."""
        engine = ranker.engine_
        checked = check_query(query, engine.n_points, engine.n_features)
        shown = places[ranking.scores[places] > 0]
        reached = ranking.ids[shown]
        nearest = self._nearest(engine, checked, reached, enough - len(reached))
        answer = ranking.solution.take(shown, certified=False)
        return replace(ranking, solution=with_unreached(engine, checked, answer, nearest))

    @abstractmethod
    def _expected(
        self, engine: Engine, query: Query, top: int, include_query: bool
    ) -> tuple[int, int, int]:
        """Return how many points to rank at first, how many are to match, and how many at most."""

    @abstractmethod
    def _places(self, ids: IntArray) -> IntArray:
        """Return the places of those that match among ranked points."""

    @abstractmethod
    def _nearest(self, engine: Engine, query: Query, reached: IntArray, count: int) -> IntArray:
        """Return so many matching points besides those that were reached, by plain distance."""


class ListedMatching(Matching):
    """All points that match are known.

    Parameters
    ----------
    matching : array of int
        Slots.
    """

    def __init__(self, matching: IntArray) -> None:
        self._matching = matching

    def _expected(
        self, engine: Engine, query: Query, top: int, include_query: bool
    ) -> tuple[int, int, int]:
        self._allowed = np.zeros(engine.n_points, dtype=bool)
        self._allowed[self._matching] = True
        if not include_query:
            self._allowed[query.ids] = False
        n_allowed = int(np.count_nonzero(self._allowed))
        enough = min(top, n_allowed)
        length = int(FIRST_SURPLUS * enough * engine.n_alive / max(1, n_allowed))
        return length, enough, engine.n_alive

    def _places(self, ids: IntArray) -> IntArray:
        return np.flatnonzero(self._allowed[ids])

    def _nearest(self, engine: Engine, query: Query, reached: IntArray, count: int) -> IntArray:
        others = self._allowed.copy()
        others[reached] = False
        (rest,) = np.nonzero(others)
        near = plain_sq_distances(engine, query)[rest]
        return rest[np.argsort(near, kind="stable")][:count]


class AskedMatching(Matching):
    """A database is asked which of the ranked points match, as nobody knows all that do.

    At most ``MOST_RANKED`` points are ranked; others that match then follow by plain distance.

    Parameters
    ----------
    engine : TableEngine
    where : str
        The condition.
    """

    def __init__(self, engine: TableEngine, where: str) -> None:
        self._engine, self._where = engine, where
        engine.check_condition(where)

    def _expected(
        self, engine: Engine, query: Query, top: int, include_query: bool
    ) -> tuple[int, int, int]:
        return int(FIRST_SURPLUS * GROWTH * top), top, min(MOST_RANKED, engine.n_alive)

    def _places(self, ids: IntArray) -> IntArray:
        return np.flatnonzero(np.isin(ids, self._engine.matching(self._where, ids)))

    def _nearest(self, engine: Engine, query: Query, reached: IntArray, count: int) -> IntArray:
        found = self._engine.nearest(query, count + len(reached), self._where).indices[0]
        others: IntArray = found[(found != NOBODY) & ~np.isin(found, reached)]
        return others[:count]


def _shortened(ranking: Ranking, places: IntArray, top: int) -> Ranking:
    """Return the first of some results; certified if none that is left out can be better."""
    solution = ranking.solution
    kept, left_out = ranking.scores[places[:top]], ranking.scores[places[top:]]
    by_rank = solution.fused is not None and solution.fused.kind == "reciprocal_rank"
    # The bound is that of shape scores, and says nothing of ranks.
    clear = not len(left_out) or (not by_rank and kept.min() - left_out.max() > 2 * solution.bound)
    certified = solution.certified and bool(clear)
    return replace(ranking, solution=solution.take(places[:top], certified=certified))
