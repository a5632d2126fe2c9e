"""Factorisation, sparse or dense: one for all queries, exact to rounding."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from threading import Event, Thread
from typing import Any
from weakref import WeakSet

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from rankfold.solvers.cg import GradientSolver
from rankfold.solvers.system import (
    NO_POINTS,
    NO_VALUES,
    Boundary,
    Effort,
    System,
    solution_of,
)
from rankfold.types import FloatArray, IntArray, Solution

BLOCK_BYTES = 2**24
"""Size of the columns of ``A^-1`` that are held at once."""

BYTES_PER_ENTRY = 12
"""A number and its row: what an entry of sparse factors takes."""

SINGLE_STEPS = 100
"""Products with the matrix that conjugate gradients take for a single query, or thereabouts."""


class DirectSolver:
    """Factorises a system once, and answers every query by a small system on what it touches.

    With ``G = A^-1``, a query changes A only at the points T that it touches: rows of clamped
    points are replaced by ``x = y``, and unseen vectors add a pull to the diagonal of their
    neighbours. So ``x = G b + G[:, T] z``, where ``z`` solves, with ``g = G b``,

        (G[T, T] z)_t = y_t - g_t                     for clamped points,
        z_t + pull_t (G[T, T] z)_t = - pull_t g_t     for pulled ones.

    For a single clamped point q without a right-hand side this is ``G[:, q] / G[q, q]``. Where a
    query touches so many points that their columns cost more than conjugate gradients, these solve.

    The factors are SuperLU's, ordered for symmetric matrices, or Cholesky's where A is dense. A is
    symmetric and positive definite, so no pivoting is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> query = Boundary(clamped=np.array([0]), values=np.ones(1))
    >>> (solution,) = DirectSolver(System.ran(pair, 0.5)).solve([query], [Effort(1e-6)])
    >>> solution.scores
    array([1. , 0.5])
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self._prepare()

    def _prepare(self) -> None:
        self.matrix = self.system.matrix
        # Scaled by the margins, so that degrees of any size do no harm.
        self._roots = np.sqrt(self.system.margin)
        self._factors = _factorised(self.matrix, self._roots)
        self._gradients: GradientSolver | None = None
        self.most_columns = max(1, BLOCK_BYTES // (8 * max(1, len(self._roots))))

    def solve(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]
    ) -> Iterator[Solution]:
        """Solve for each boundary, as exactly as rounding allows."""
        block: list[Boundary] = []
        n_columns = 0
        for boundary, effort in zip(boundaries, efforts, strict=True):
            n_touched = len(boundary.clamped) + len(boundary.pulled)
            if not self._pays(n_touched):
                yield from self._solve_block(block)
                block, n_columns = [], 0
                yield from self._alone(boundary, effort)
                continue
            n_columns += n_touched + 1
            if block and n_columns > self.most_columns:
                yield from self._solve_block(block)
                block, n_columns = [], n_touched + 1
            block.append(boundary)
        yield from self._solve_block(block)

    def _pays(self, n_touched: int) -> bool:
        """Return whether the columns of G cost less than gradients for the query alone."""
        if n_touched <= 1 or not sparse.issparse(self.matrix):
            return True
        cost = n_touched * self._factors.nnz
        return n_touched <= self.most_columns and cost <= SINGLE_STEPS * int(self.matrix.nnz)

    def _alone(self, boundary: Boundary, effort: Effort) -> Iterator[Solution]:
        if self._gradients is None:
            self._gradients = GradientSolver(self.system)
        return self._gradients.solve([boundary], [effort])

    def _solve_block(self, block: Sequence[Boundary]) -> Iterator[Solution]:
        if not block:
            return
        if not len(self._roots):
            yield from (Solution(NO_POINTS, NO_VALUES, 0.0, solver="direct") for _ in block)
            return
        touched = [np.union1d(one.clamped, one.pulled).astype(np.intp) for one in block]
        wanted, places = np.unique(np.concatenate(touched), return_inverse=True)
        given = [one for one in block if len(one.points)]
        columns: FloatArray = np.zeros((len(self._roots), len(wanted) + len(given)))
        columns[wanted, np.arange(len(wanted))] = 1.0
        for place, one in enumerate(given, start=len(wanted)):
            np.add.at(columns[:, place], one.points, one.rhs)
        columns = self._inverse(columns)
        start, following = 0, len(wanted)
        for boundary, points in zip(block, touched, strict=True):
            end = start + len(points)
            base: FloatArray = np.zeros(len(self._roots))
            if len(boundary.points):
                base, following = columns[:, following], following + 1
            x = _corrected(boundary, points, columns[:, places[start:end]], base)
            start = end
            yield solution_of(self.system, self.matrix, boundary, x, solver="direct")

    def _inverse(self, columns: FloatArray) -> FloatArray:
        """Return ``G`` times columns."""
        roots = self._roots[:, None]
        solved: FloatArray = self._factors.solve(columns / roots) / roots
        return solved

    def __getstate__(self) -> dict[str, Any]:
        return {"system": self.system}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Factorise again, since SuperLU's factors have no copy."""
        self.system = state["system"]
        self._prepare()


class _Cholesky:
    def __init__(self, matrix: FloatArray) -> None:
        self.factors = cho_factor(matrix)
        self.nbytes = int(matrix.nbytes)

    def solve(self, b: FloatArray) -> FloatArray:
        solution: FloatArray = cho_solve(self.factors, b)
        return solution


class _SuperLU:
    """SuperLU's factors, which are made and freed in the same thread.

    SciPy counts the memory of SuperLU for every thread, and what one thread has made another
    does not free: it stays until the process ends. A service makes factors in whichever thread
    needs them, and drops them in another. So all factors have a thread of their own, which makes
    them, waits until nobody holds this object any more, and frees them.
    """

    def __init__(self, matrix: sparse.csc_array) -> None:
        self._factors: Any = None
        self.solve: Any = None
        self._released, made = Event(), Future[Any]()
        arguments = ([matrix], made, self._released)
        holder = Thread(target=_hold, args=arguments, name="rankfold-factors", daemon=True)
        holder.start()
        self._factors = made.result()
        self.solve = self._factors.solve
        _LIVE.add(self)
        _HOLDERS.add(holder)
        self.nnz = int(self._factors.nnz)
        self.nbytes = BYTES_PER_ENTRY * self.nnz

    def release(self) -> None:
        """Let the thread free the factors."""
        # Before the thread is told, so that its reference is the last.
        self._factors = self.solve = None
        self._released.set()

    def __del__(self) -> None:
        self.release()


_LIVE: WeakSet[_SuperLU] = WeakSet()
_HOLDERS: WeakSet[Thread] = WeakSet()


@atexit.register
def _release_all() -> None:
    """Free all factors before the interpreter ends, after which their threads no longer run.

    Threads whose factors were released a moment ago are waited for as well.
    """
    for one in list(_LIVE):
        one.release()
    for holder in list(_HOLDERS):
        holder.join(1.0)


def _hold(matrices: list[sparse.csc_array], made: Future[Any], released: Event) -> None:
    """Make the factors of a matrix, and free them once they are released."""
    try:
        factors = splu(
            matrices.pop(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except BaseException as error:
        made.set_exception(error)
        return
    made.set_result(factors)
    released.wait()


def _factorised(matrix: Any, roots: FloatArray) -> Any:
    if not len(roots):
        return None
    if not sparse.issparse(matrix):
        return _Cholesky(matrix / roots / roots[:, None])
    scaling = sparse.diags_array(1 / roots)
    return _SuperLU((scaling @ matrix @ scaling).tocsc())


def _corrected(
    boundary: Boundary, touched: IntArray, columns: FloatArray, base: FloatArray
) -> FloatArray:
    """Return the values with clamped points and pulls, from columns of G and ``g = G b``."""
    if not len(touched):
        return base.copy()
    pull, values = np.zeros(len(touched)), np.zeros(len(touched))
    clamped = np.zeros(len(touched), dtype=bool)
    np.add.at(pull, np.searchsorted(touched, boundary.pulled), boundary.pull)
    own = np.searchsorted(touched, boundary.clamped)
    clamped[own], values[own] = True, boundary.values
    block = columns[touched]
    system = np.where(clamped[:, None], block, np.eye(len(touched)) + pull[:, None] * block)
    missing = np.where(clamped, values - base[touched], -pull * base[touched])
    x: FloatArray = base + columns @ np.linalg.solve(system, missing)
    return x
