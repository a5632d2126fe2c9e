"""How the linear system of a graph is solved."""

from rankfold.solvers.arrays import Found, Start
from rankfold.solvers.cg import ConjugateGradients
from rankfold.solvers.contract import Solver
from rankfold.solvers.direct import DirectSolver
from rankfold.solvers.local import LocalSystem, Reached
from rankfold.solvers.local_solver import LocalSolver

SOLVERS: dict[str, type[Solver]] = {
    "direct": DirectSolver,
    "cg": ConjugateGradients,
    "local": LocalSolver,
}

DIRECT_LIMIT = 5_000
"""Up to this many points ``solver="auto"`` factorises the graph once for all queries."""

__all__ = [
    "DIRECT_LIMIT",
    "SOLVERS",
    "ConjugateGradients",
    "DirectSolver",
    "Found",
    "LocalSolver",
    "LocalSystem",
    "Reached",
    "Solver",
    "Start",
]
