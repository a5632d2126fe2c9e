"""How the linear system of a graph is solved: which solver answers, and how far it goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Literal, Protocol

import numpy as np

from rankfold.solvers.cg import GradientSolver
from rankfold.solvers.direct import DirectSolver
from rankfold.solvers.fetched import (
    Adjacency,
    FetchedGraph,
    FetchedRows,
    FetchingSolver,
    GraphFacts,
    key_order,
)
from rankfold.solvers.region import MissingRowsError, RegionSolver
from rankfold.solvers.system import Boundary, Effort, GraphRows, System, Wanted
from rankfold.types import Solution

__all__ = [
    "DIRECT_LIMIT",
    "BUDGET_PER_RESULT",
    "LEAST_BUDGET",
    "SOLVERS",
    "Adjacency",
    "Boundary",
    "Budget",
    "DirectSolver",
    "Effort",
    "FetchedGraph",
    "FetchedRows",
    "FetchingSolver",
    "GradientSolver",
    "GraphFacts",
    "GraphRows",
    "MissingRowsError",
    "RegionSolver",
    "Solver",
    "Solvers",
    "System",
    "Wanted",
    "key_order",
]

Budget = int | Literal["auto"] | None
"""How many points a query may give a score; None for as many as it takes."""

DIRECT_LIMIT = 5_000
"""Up to this many points ``solver="auto"`` factorises the graph once for all queries."""

WHOLE_SHARE = 0.25
"""Share of the points that is asked for beyond which "auto" solves the whole graph."""

LEAST_BUDGET, BUDGET_PER_RESULT = 1_000, 20
"""What ``budget="auto"`` stands for: so many points at least, and so many for every result."""

RESERVE = 2
"""How many times as many points more "auto" solves for where the end of the top is in doubt."""

SOLVERS: dict[str, type[DirectSolver] | type[GradientSolver] | type[RegionSolver]] = {
    "direct": DirectSolver,
    "cg": GradientSolver,
    "region": RegionSolver,
}
"""Solvers by the names that ``solver=`` takes."""


class Solver(Protocol):
    """Solves one system for many queries."""

    def solve(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]
    ) -> Iterable[Solution]:
        """Solve for each boundary, as far as its effort says."""


class Solvers:
    """Solves a system by whichever solver suits what is asked; each is made when first needed.

    Parameters
    ----------
    system : System
    solver : str
        A name of SOLVERS; or "auto": "direct" for up to 5,000 points; beyond that "region", and
        "cg" where every pair of points has a weight or more than a quarter of them is asked for.
    budget : int, "auto" or None
        How many points the region solver may give a score: about 1,000 by default, or 20
        for every result where that is more, and three times as many where the end of the
        top is in doubt.
    tol : float
    n_alive : int, optional
        Points that were not removed; all by default.
    """

    def __init__(
        self, system: System, solver: str, budget: Budget, tol: float, n_alive: int | None = None
    ) -> None:
        self.system, self.budget, self.tol = system, budget, tol
        self._asked = solver
        self._n_alive = system.n_points if n_alive is None else n_alive
        self._made: dict[str, Solver] = {}

    def with_budget(self, budget: Budget) -> Solvers:
        """Return the same solvers with another budget; what was made is shared."""
        twin = copy(self)
        twin.budget = budget
        return twin

    def use(self, solver: Solver) -> None:
        """Let another solver answer everything."""
        self._made, self._asked = {"given": solver}, "given"

    def name(self, top: int = 0) -> str:
        """Return the name of the solver for an answer of ``top`` points."""
        if self._asked != "auto":
            return self._asked
        if self._n_alive <= DIRECT_LIMIT:
            return "direct"
        few = top <= WHOLE_SHARE * self._n_alive and self.system.rows is not None
        return "region" if few else "cg"

    def solver(self, name: str) -> Solver:
        """Return a solver; threads that need it first at the same time may make it twice."""
        if name not in self._made:
            self._made[name] = SOLVERS[name](self.system)
        return self._made[name]

    def effort(self, top: int) -> Effort:
        """Return how far to go for an answer of ``top`` points.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy import sparse
        >>> system = System.ran(sparse.csr_array((100_000, 100_000)), 1.0)
        >>> solvers = Solvers(system, "auto", budget="auto", tol=1e-6)
        >>> solvers.effort(10).budget, solvers.effort(1000).budget
        (1000, 20000)
        >>> solvers.effort(10).reserve
        2000
        """
        budget, reserve = self.budget, 0
        if isinstance(budget, str):
            budget = max(LEAST_BUDGET, BUDGET_PER_RESULT * top)
            reserve = RESERVE * budget
        if budget is None or budget >= self._n_alive:
            return Effort(self.tol, top)
        return Effort(self.tol, top, budget, reserve)

    def solve(self, boundaries: Sequence[Boundary], wanted: Sequence[Wanted]) -> Iterable[Solution]:
        """Solve for each boundary, to find what is wanted."""
        efforts = [self.effort(one.top)._replace(top=one.candidates) for one in wanted]
        # Where results are chosen among more candidates, the end of these is of no account.
        efforts = [
            effort if one.candidates == one.top else effort._replace(reserve=0)
            for one, effort in zip(wanted, efforts, strict=True)
        ]
        longest = max((one.top for one in wanted), default=0)
        return self.solver(self.name(longest)).solve(boundaries, efforts)

    def reach(self, boundary: Boundary, budget: int | None = None, tol: float = np.inf) -> Solution:
        """Return the scores of all points that a query reaches, or of all points."""
        effort = Effort(min(self.tol, tol), None, budget)
        (solution,) = self.solver(self.name()).solve([boundary], [effort])
        return solution
