"""Filters: the best of the points that meet a condition (``where``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankfold.check import check_query
from rankfold.errors import InputError
from rankfold.neighbors import Engine, plain_sq_distances
from rankfold.rankers import Ranker
from rankfold.rankers.ordering import Fusion, reordered, with_unreached
from rankfold.storage import Store
from rankfold.types import IntArray, Query, Ranking, Solution

FIRST_SURPLUS, GROWTH = 2.0, 4
"""How many more points are ranked at first than should do, and how many more after that."""


def no_ranking() -> Ranking:
    """Return the answer of an index without points, which no method can be fitted to."""
    solution = Solution(np.empty(0, dtype=np.intp), np.empty(0), 0.0, certified=True)
    return Ranking(solution)


class Filter:
    """Finds the best of the points that meet a condition; the graph has all points.

    More and more points are ranked until enough of them match, all that do are found, or points
    come that the query does not reach; these are ordered by plain distance. The answer is
    certified where the ranking is, and no matching point that was left out can be better.
    Reciprocal ranks are counted among the points that match, as lists by words are.

    Parameters
    ----------
    matching : array of int
        Slots of all points that meet the condition.
    """

    def __init__(self, matching: IntArray) -> None:
        self._matching = matching

    @classmethod
    def of(cls, store: Store, where: Any) -> Filter:
        """Return what finds the points of a store that meet a condition."""
        if not isinstance(where, str):
            raise InputError(f"where is {where!r}, but must be a text such as 'price < 10'.")
        return cls(store.matching(where))

    def best(self, ranker: Ranker, query: Query, top: int, include_query: bool) -> Ranking:
        """Return the best matching points."""
        if ranker.fusion == "reciprocal_rank":
            return self._by_ranks(ranker, query, top, include_query)
        engine: Any = ranker.engine_
        no_score_is_negative = min(query.weights) > 0
        length, enough = self._expected(engine, query, top, include_query)
        while True:
            length = max(1, min(length, engine.n_alive))
            ranking = ranker.rank_query(query, top=length, include_query=include_query)
            places = self._places(ranking.indices)
            if len(places) >= enough or length == engine.n_alive:
                return _shortened(ranking, places, top)
            if no_score_is_negative and ranking.scores[-1] == 0:
                return self._filled_up(ranker, query, ranking, places, enough)
            length *= GROWTH

    def _by_ranks(self, ranker: Ranker, query: Query, top: int, include_query: bool) -> Ranking:
        """Fuse the orders of the best matching points by shape and by distance."""
        engine, fusion = ranker.engine_, Fusion.of(ranker.fusion)
        length, _ = self._expected(engine, query, top, include_query)
        by_shape = ranker.with_fusion("none").with_budget(ranker.budget_for(length))
        found = self.best(by_shape, query, fusion.n_candidates(top), include_query)
        checked = check_query(query, engine.n_points, engine.n_features)
        hood = ranker.hood(checked)
        return replace(found, solution=reordered(engine, checked, hood, found.solution, top))

    def _filled_up(
        self, ranker: Ranker, query: Query, ranking: Ranking, places: IntArray, enough: int
    ) -> Ranking:
        """Let matching points that the query does not reach follow by plain distance."""
        engine = ranker.engine_
        checked = check_query(query, engine.n_points, engine.n_features)
        shown = places[ranking.scores[places] > 0]
        reached = ranking.indices[shown]
        nearest = self._nearest(engine, checked, reached, enough - len(reached))
        answer = ranking.solution.take(shown, certified=False)
        return replace(ranking, solution=with_unreached(engine, checked, answer, nearest))

    def _expected(
        self, engine: Engine, query: Query, top: int, include_query: bool
    ) -> tuple[int, int]:
        """Return how many points to rank at first, and how many are to match."""
        self._allowed = np.zeros(engine.n_points, dtype=bool)
        self._allowed[self._matching] = True
        if not include_query:
            self._allowed[query.indices] = False
        n_allowed = int(np.count_nonzero(self._allowed))
        enough = min(top, n_allowed)
        length = int(FIRST_SURPLUS * enough * engine.n_alive / max(1, n_allowed))
        return length, enough

    def _places(self, indices: IntArray) -> IntArray:
        return np.flatnonzero(self._allowed[indices])

    def _nearest(self, engine: Engine, query: Query, reached: IntArray, count: int) -> IntArray:
        others = self._allowed.copy()
        others[reached] = False
        (rest,) = np.nonzero(others)
        near = plain_sq_distances(engine, query)[rest]
        return rest[np.argsort(near, kind="stable")][:count]


def _shortened(ranking: Ranking, places: IntArray, top: int) -> Ranking:
    """Return the first of some results; certified if none that is left out can be better."""
    solution = ranking.solution
    kept, left_out = ranking.scores[places[:top]], ranking.scores[places[top:]]
    by_rank = solution.fused is not None and solution.fused.kind == "reciprocal_rank"
    # The bound is that of shape scores, and says nothing of ranks.
    clear = not len(left_out) or (not by_rank and kept.min() - left_out.max() > 2 * solution.bound)
    certified = solution.certified and bool(clear)
    return replace(ranking, solution=solution.take(places[:top], certified=certified))
