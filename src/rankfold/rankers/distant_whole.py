"""The graph of a whole database, held in memory where queries need a good part of it anyway."""

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
"""Points of a database whose graph may be held."""

HELD_SHARE = 0.25
"""Share of the points beyond which a query has the graph read as a whole."""


class HeldGraph:
    """RAN's graph of one state of a database; read when a query is found to need it.

    Where smoothness spreads a query over most of the points, fetching them row by row costs
    more than reading all lists once, after which every query is answered as in memory. After a
    change it is made again, from rows that the engine has in its cache.

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
        self._wanted = False
        self._held: tuple[int, LocalGraph] | None = None
        self._turn = Lock()

    @property
    def most_rows(self) -> int | None:
        """Rows after which a query should ask for the whole; None where that is never so."""
        n_points = self._engine.n_alive
        return int(HELD_SHARE * n_points) if DIRECT_LIMIT < n_points <= MOST_HELD else None

    def graph(self) -> LocalGraph | None:
        """Return the graph in the state that this thread reads, if a query has asked for it."""
        if not self._wanted or self.most_rows is None:
            return None
        return self.read()

    def read(self) -> LocalGraph:
        """Return the graph, and read it first where this state is not held."""
        with self._turn:
            version = self._engine.version
            if self._held is None or self._held[0] != version:
                self._held = version, self._made()
                self._wanted = True
            return self._held[1]

    def _made(self) -> LocalGraph:
        engine, n_neighbors = self._engine, self._alternation.step.n_neighbors
        lists = engine.rows(np.arange(engine.n_points), n_neighbors + 1)
        form = ClosedForm.of(lists, n_neighbors, engine.n_alive)
        return LocalGraph(engine, lists, form, self._alternation)
