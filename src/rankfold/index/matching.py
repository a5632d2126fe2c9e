"""Rankings in which only some points may appear."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankfold.check import check_query
from rankfold.neighbors import plain_sq_distances
from rankfold.rankers import Ranker
from rankfold.types import BoolArray, IntArray, Query, Ranking, Solution

FIRST_SURPLUS, GROWTH = 2.0, 4
"""How many more points are ranked at first than should do, and how many more after that."""


def ranked(ranker: Ranker, query: Query, top: int, include_query: bool) -> Ranking:
    """Rank for one query."""
    return ranker.rank_many([query], top=top, include_query=include_query)[0]


def no_ranking() -> Ranking:
    """Return the answer of an index without points, which no method can be fitted to."""
    solution = Solution(np.empty(0), 0.0, 0.0, n_iter=0, converged=True, certified=True)
    return Ranking(np.empty(0, dtype=np.intp), solution)


def matching_only(
    ranker: Ranker, query: Query, top: int, include_query: bool, matching: IntArray
) -> Ranking:
    """Return the best of the matching points; the graph has all points.

    More and more points are ranked until enough of them match, all that do are found, or points
    come that the query does not reach; these are ordered by plain distance. The answer is
    certified where the ranking is, and no matching point that was left out can be better.

    Parameters
    ----------
    ranker : Ranker
    query : Query
    top : int
    include_query : bool
    matching : array of int
        Slots.
    """
    engine: Any = ranker.engine_
    allowed = np.zeros(engine.n_points, dtype=bool)
    allowed[matching] = True
    if not include_query:
        allowed[query.ids] = False
    n_allowed = int(np.count_nonzero(allowed))
    no_score_is_negative = min(query.weights) > 0
    enough = min(top, n_allowed)
    length = int(FIRST_SURPLUS * enough * engine.n_alive / max(1, n_allowed))
    while True:
        length = max(1, min(length, engine.n_alive))
        ranking = ranked(ranker, query, length, include_query)
        places = np.flatnonzero(allowed[ranking.ids])
        if len(places) >= enough or length == engine.n_alive:
            break
        if no_score_is_negative and ranking.scores[-1] == 0:
            return _filled_up(ranker, query, ranking, allowed, enough)
        length *= GROWTH
    solution = ranking.solution
    kept, left_out = ranking.scores[places[:top]], ranking.scores[places[top:]]
    clear = not len(left_out) or kept.min() - left_out.max() > 2 * solution.bound
    return replace(
        ranking,
        ids=ranking.ids[places[:top]],
        solution=replace(solution, scores=kept, certified=solution.certified and bool(clear)),
    )


def _filled_up(
    ranker: Ranker, query: Query, ranking: Ranking, allowed: BoolArray, enough: int
) -> Ranking:
    """Let matching points that the query does not reach follow by plain distance."""
    engine = ranker.engine_
    shown = (ranking.scores > 0) & allowed[ranking.ids]
    reached, others = ranking.ids[shown], allowed.copy()
    others[reached] = False
    (rest,) = np.nonzero(others)
    checked = check_query(query, engine.n_points, engine.n_features, engine.alive)
    nearest = rest[np.argsort(plain_sq_distances(engine, checked)[rest], kind="stable")]
    ids = np.concatenate([reached, nearest])[:enough]
    scores = np.concatenate([ranking.scores[shown], np.zeros(len(nearest))])[:enough]
    solution = replace(ranking.solution, scores=scores, certified=False)
    return replace(ranking, ids=ids, solution=solution)
