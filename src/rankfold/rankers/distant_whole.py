"""The graph of a whole database, held in memory once that is cheaper than fetching rows."""

from __future__ import annotations

from threading import Lock

import numpy as np

from rankfold.neighbors import DistantEngine
from rankfold.rankers.alternation import Alternation
from rankfold.rankers.closed_form import ClosedForm
from rankfold.rankers.graph_step import GraphStep
from rankfold.rankers.local_graph import LocalGraph
from rankfold.solvers import DIRECT_LIMIT, SOLVERS

MOST_HELD = 200_000
"""Points of a database whose graph may be held, those that were removed among them."""

HELD_SHARE = 0.25
"""Share of the points beyond which a query has the graph read as a whole."""


class HeldGraph:
    """RAN's graph of one state of a database; read when fetching rows has cost as much.

    Where smoothness spreads a query over a good part of the points, or many queries have
    fetched as many rows as there are points, reading all lists once is cheaper than going on. Every
    query is then answered as in memory, until the database changes and it begins anew.

    Parameters
    ----------
    engine : DistantEngine
    n_neighbors : int
    smoothness : float
    tol : float
    """

    def __init__(
        self, engine: DistantEngine, n_neighbors: int, smoothness: float, tol: float
    ) -> None:
        self._engine = engine
        step = GraphStep(n_neighbors, smoothness, 1.0, 0.0, "own", "all")
        self._alternation = Alternation(step, SOLVERS["cg"](), max_iter=1, tol=tol, guard=True)
        self._held: tuple[int, LocalGraph] | None = None
        self._fetched = 0, 0
        self._turn = Lock()

    @property
    def most_rows(self) -> int | None:
        """Rows after which a query should ask for the whole; None where that is never so."""
        n_alive = self._engine.n_alive
        can_hold = n_alive > DIRECT_LIMIT and self._engine.n_points <= MOST_HELD
        return int(HELD_SHARE * n_alive) if can_hold else None

    def graph(self) -> LocalGraph | None:
        """Return the graph in the state that this thread reads, if it is held or worth it."""
        with self._turn:
            version, (since, n_rows) = self._engine.version, self._fetched
            if self._held is not None and self._held[0] == version:
                return self._held[1]
            worth = since == version and n_rows >= self._engine.n_alive
        return self.read() if worth and self.most_rows is not None else None

    def fetched(self, n_rows: int) -> None:
        """Note that a query has fetched rows."""
        with self._turn:
            version, (since, before) = self._engine.version, self._fetched
            self._fetched = version, n_rows + (before if since == version else 0)

    def read(self) -> LocalGraph:
        """Return the graph, and read it first where this state is not held."""
        with self._turn:
            version = self._engine.version
            if self._held is None or self._held[0] != version:
                self._held = version, self._made()
            return self._held[1]

    def _made(self) -> LocalGraph:
        engine, n_neighbors = self._engine, self._alternation.step.n_neighbors
        lists = engine.rows(np.arange(engine.n_points), n_neighbors + 1)
        form = ClosedForm.of(lists, n_neighbors, engine.n_alive)
        return LocalGraph(engine, lists, form, self._alternation)
