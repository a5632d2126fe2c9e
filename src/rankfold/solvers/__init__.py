"""How the linear system of a graph is solved."""

from rankfold.solvers.cg import ConjugateGradients
from rankfold.solvers.contract import Solver
from rankfold.solvers.direct import DirectSolver

SOLVERS: dict[str, type[Solver]] = {"direct": DirectSolver, "cg": ConjugateGradients}

__all__ = ["SOLVERS", "ConjugateGradients", "DirectSolver", "Solver"]
