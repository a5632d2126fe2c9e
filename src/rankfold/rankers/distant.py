"""RAN over a database: rows are fetched where a query reaches, in a handful of exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankfold.check import InputError, check_count
from rankfold.neighbors import DistantEngine
from rankfold.rankers.asker import warn_asker
from rankfold.rankers.candidates import at_most
from rankfold.rankers.distant_query import Reach, reach, refuse_removed
from rankfold.rankers.distant_rows import FetchedRows
from rankfold.rankers.distant_whole import HeldGraph
from rankfold.rankers.flow import Edges, Scored
from rankfold.rankers.local_graph import LocalGraph
from rankfold.rankers.reached import (
    Best,
    others_wanted,
    rank_reached,
    signed_best,
    with_round_trips,
)
from rankfold.rankers.start import ran_start
from rankfold.types import NOBODY, Neighbors, Query, Ranking


class DistantGraph:
    """Answers queries of one alternation from the rows around them, or from a `HeldGraph`.

    Parameters
    ----------
    engine : DistantEngine
    n_neighbors : int
    smoothness : float
    tol : float
        Queries end once their best are certain, or no score can be off by more than this.
    """

    def __init__(
        self, engine: DistantEngine, n_neighbors: int, smoothness: float, tol: float
    ) -> None:
        self.engine, self.n_neighbors = engine, n_neighbors
        self.smoothness, self.tol = smoothness, tol
        self._held = HeldGraph(engine, n_neighbors, smoothness, tol)

    def rank(
        self, queries: Sequence[Query], unseen: Sequence[Neighbors], top: int, include_query: bool
    ) -> Iterator[Ranking]:
        """Answer each query; ``unseen`` has the lists of its vectors."""
        for query, lists in zip(queries, unseen, strict=True):
            before = self.engine.round_trips
            ranking = self._ranked(query, lists, top, include_query)
            yield with_round_trips(ranking, self.engine.round_trips - before)

    def _ranked(self, query: Query, unseen: Neighbors, top: int, include_query: bool) -> Ranking:
        wanted = others_wanted(query, top, include_query)
        found = self._reach(query, unseen, wanted, self.tol)
        if isinstance(found, LocalGraph):
            (ranking,) = found.rank([query], [unseen], top, include_query)
            return ranking
        best, own = _best(found, query, wanted), query.weights[: len(query.ids)]
        return rank_reached(self.engine, query, best, own, top, include_query)

    def edges(self, point: int) -> Edges:
        """Return the neighbours of a point in the first graph."""
        points, fetched = np.array([point]), FetchedRows(self.n_neighbors)
        fetched.add(self.engine.around(points), points)
        part = fetched.part()
        row = np.searchsorted(part.points, points)
        inside, across = part.inside[row], part.across[row]
        neighbors = np.concatenate([part.points[inside.indices], part.border[across.indices]])
        return Edges(neighbors, np.concatenate([inside.data, across.data]))

    def first_scored(self, query: Query, unseen: Neighbors, tol: float) -> Scored:
        """Return the scores of all points that a query reaches."""
        found = self._reach(query, unseen, None, tol)
        if isinstance(found, LocalGraph):
            return found.first_scored(query, unseen, tol)
        if not found.converged:
            warn_asker(
                f"the query reaches more points than are fetched for it, so its scores may be off "
                f"by {found.bound:.2g}; lower smoothness, or use an index in a folder.",
                ConvergenceWarning,
            )
        return Scored(found.points, np.maximum(found.values, _lowest(query)))

    def scored(self, query: Query, unseen: Neighbors) -> Scored:
        """Return the scores of all points that a query reaches, to the tolerance."""
        return self.first_scored(query, unseen, self.tol)

    def _reach(
        self, query: Query, unseen: Neighbors, top: int | None, tol: float
    ) -> Reach | LocalGraph:
        """Return what a query has reached; the graph where that is held or needed as a whole."""
        graph = self._held.graph()
        if graph is not None:
            refuse_removed(query.ids, graph.neighbors.indices[query.ids, 0] != NOBODY)
            return graph
        start = ran_start(query, unseen, self.n_neighbors, self.smoothness)
        limit = self._held.most_rows
        found = reach(self.engine, start, self.n_neighbors, self.smoothness, top, tol, limit)
        self._held.fetched(found.n_rows)
        return found if found.converged or limit is None else self._held.read()


def distant_neighbors(
    engine: DistantEngine, n_neighbors: int | str, max_iter: int, solver: str
) -> int:
    """Return the number of neighbours to use; refuse what cannot be done over a database."""
    if isinstance(n_neighbors, str):
        raise InputError(
            f"n_neighbors is {n_neighbors!r}, which looks at the lists of all points, but over a "
            "database it must be a number; give the one that the index was built with.",
            "n_neighbors",
        )
    if max_iter > 1:
        raise InputError(
            f"max_iter is {max_iter}, but over a database one alternation is made; leave it at 1, "
            "or use an index in a folder.",
            "max_iter",
        )
    if solver not in ("auto", "local"):
        raise InputError(
            f"solver is {solver!r}, but over a database queries are solved locally; use "
            "'auto' or 'local', or an index in a folder.",
            "solver",
        )
    n_points = engine.n_alive
    chosen = at_most(check_count(n_neighbors, "n_neighbors"), max(1, n_points - 2), n_points)
    if chosen >= engine.width:
        raise InputError(
            f"n_neighbors is {chosen}, but the database holds lists of {engine.width}, of which "
            f"one more is needed for the scale; use at most {engine.width - 1}, or build the "
            "index again with more neighbours.",
            "n_neighbors",
        )
    return chosen


def _best(found: Reach, query: Query, top: int) -> Best:
    """Return the best points, and those of negative score where an answer may come to them."""
    others = ~np.isin(found.points, query.ids)
    points = found.points[others]
    scores = np.maximum(found.values[others], _lowest(query))
    n_positive = np.count_nonzero(scores > 0)
    certain = found.bound_of_top is not None
    bound = found.bound if found.bound_of_top is None else found.bound_of_top
    best = Best(points, scores, bound, found.n_steps, certain, found.converged)
    if n_positive < top and (query.weights < 0).any():
        return signed_best(points, scores, top, best)
    order = np.lexsort((points, -scores))[: min(top, n_positive)]
    return best._replace(points=points[order], scores=scores[order])


def _lowest(query: Query) -> float:
    """Return what no exact score is below: zero, or the least seed."""
    return min(0.0, float(query.weights.min()))
