"""Rankings in which only some points may appear."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankfold.rankers import Ranker
from rankfold.types import IntArray, Query, Ranking, Solution

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

    More and more points are ranked until enough of them match, or all that do are found. The
    answer is certified where all matching points of a certified ranking are in it.

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
    enough = min(top, n_allowed)
    length = int(FIRST_SURPLUS * enough * engine.n_alive / max(1, n_allowed))
    while True:
        length = max(1, min(length, engine.n_alive))
        ranking = ranked(ranker, query, length, include_query)
        places = np.flatnonzero(allowed[ranking.ids])
        if len(places) >= enough or length == engine.n_alive:
            break
        length *= GROWTH
    certified = ranking.solution.certified and len(places) <= top
    places = places[:top]
    solution = replace(ranking.solution, scores=ranking.scores[places], certified=certified)
    return replace(ranking, ids=ranking.ids[places], solution=solution)
