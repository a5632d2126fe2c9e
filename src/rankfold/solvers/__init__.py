"""How the linear system of a graph is solved."""

from rankfold.solvers.cg import GradientSolver
from rankfold.solvers.choice import (
    DIRECT_LIMIT,
    LEAST_BUDGET,
    SOLVERS,
    Budget,
    Solver,
    Solvers,
)
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

__all__ = [
    "DIRECT_LIMIT",
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
