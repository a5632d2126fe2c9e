"""How the linear system of a graph is solved."""

from rankfold.solvers.cg import ConjugateGradients
from rankfold.solvers.contract import Solver
from rankfold.solvers.direct import DirectSolver

SOLVERS: dict[str, type[Solver]] = {"direct": DirectSolver, "cg": ConjugateGradients}

DIRECT_LIMIT = 5_000
"""Up to this many points ``solver="auto"`` factorises the graph once for all queries."""

__all__ = ["DIRECT_LIMIT", "SOLVERS", "ConjugateGradients", "DirectSolver", "Solver"]
