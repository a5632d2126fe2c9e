"""The region solver: grow a region around the query, solve inside it, bound it at its border."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from rankfold.check import InputError
from rankfold.parallel import check_stopped, stop_flag
from rankfold.solvers.arrays import (
    NEEDS_ROWS,
    NOT_BEGUN,
    OUT_OF_BUDGET,
    PAUSED,
    PROVEN,
    UNLIMITED,
    WITHIN_TOL,
    Arrays,
    Batch,
    Found,
    Rule,
    Workspace,
    prepared,
)
from rankfold.solvers.system import Boundary, Effort, System
from rankfold.types import FloatArray, IntArray, Solution, Stopped

PATIENCE, WHOLE_SHARE = 1.2, 0.25
"""When gradients take over from push, and when they leave the region: see `Rule`."""

BEYOND = 0.07
"""Part of the way from the best relaxation for all points at once to the largest that converges.

Points that are pushed one by one, where they lack something, do better with a little more.
"""

SMALLEST_RHO = 1e-3
"""Below it the terms of an error that are not known do not matter."""

GROWING_SHARE = 0.2
"""Points whose residual is above this share of the largest one have their row fetched next."""

FEW_AT_ONCE = 128
"""Rows that are fetched at once even if they matter less."""

MOST_ROWS = 200_000
"""Rows that are fetched for a query without a budget."""

STOPPED: dict[int, Stopped] = {
    PROVEN: "proven",
    WITHIN_TOL: "tolerance",
    OUT_OF_BUDGET: "budget",
    NEEDS_ROWS: "budget",
}


class RegionSolver:
    """Solves a system where a query reaches, and as far as it is asked to.

    Push spreads the query over more and more points, until the best are proven, no score can be
    off by more than the tolerance, or as many points as the budget allows have a value. The region
    of these points is then solved by conjugate gradients, with zero around it. In any case
    the largest residual, in margins, bounds the error of every point, touched or not.

    Parameters
    ----------
    system : System
        Sparse.
    n_rows : int, optional
        How many points have a row; the values of those after them stay zero. All by default.
    patience, whole_share : float
        When conjugate gradients take over from push, and when they leave the region: see `Rule`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> path = sparse.diags_array([np.ones(9), np.ones(9)], offsets=[-1, 1]).tocsr()
    >>> solver = RegionSolver(System.ran(path, 0.5))
    >>> query = Boundary(clamped=np.array([0]), values=np.ones(1), left_out=np.array([0]))
    >>> (solution,) = solver.solve([query], [Effort(tol=1e-6, top=2)])
    >>> solution.points.tolist(), solution.stopped
    ([1, 2, 0], 'proven')
    """

    def __init__(
        self,
        system: System,
        *,
        n_rows: int | None = None,
        patience: float = PATIENCE,
        whole_share: float = WHOLE_SHARE,
    ) -> None:
        if not sparse.issparse(system.couplings):
            raise InputError(
                "solver='region' follows the edges of a graph, but every pair of points has one "
                "here; give the graph n_neighbors, or use solver='auto'."
            )
        couplings, margin, scale = system.couplings, system.margin, system.scale
        n_rows = len(margin) if n_rows is None else n_rows
        diagonal = system.diagonal
        self.couplings = couplings
        self.inverse = np.asarray(1.0 / diagonal, dtype=np.float64)
        self.inverse[n_rows:] = 0.0
        self.arrays = Arrays(
            couplings.indptr,
            couplings.indices,
            couplings.data,
            np.ascontiguousarray(margin, dtype=np.float64),
            np.ascontiguousarray(scale, dtype=np.float64),
            n_rows,
            float(scale.max(initial=0.0)),
            float((diagonal / margin).max(initial=1.0)),
            int(np.diff(couplings.indptr).max(initial=0)),
            bool(np.all(margin == 1.0) and np.all(scale == 1.0)),
        )
        inside = self.inverse[:n_rows] * margin[:n_rows]
        rho = 1.0 - float(np.median(inside)) if n_rows else 0.0
        relaxation = 2.0 / (1.0 + float(np.sqrt(1.0 - rho**2)))
        relaxation += BEYOND * (2.0 - relaxation)
        if n_rows < len(margin):
            whole_share = np.inf  # there is no whole graph to solve
        self.rule = Rule(relaxation, float(patience), float(whole_share), term_weights(rho))
        self._idle: list[Workspace] = []

    def solve(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]
    ) -> Iterator[Solution]:
        """Solve for each boundary.

        The best ``top`` points come first, in order, then those of the query that have a score.
        Without a ``top``, or where scores below zero may be among the best, all that were reached
        are returned.
        """
        tops = [effort.top for effort in efforts if effort.top is not None]
        if len(tops) < len(efforts):
            for pair in zip(boundaries, efforts, strict=True):
                yield self.reach(*pair)[0]
            return
        from rankfold.solvers import levels  # compiled code, read when it is used

        budgets, tol = [self._budget(one) for one in efforts], self._tol(efforts)
        work, batch = self._workspace(), Batch.of(boundaries, tops, budgets)
        found = Found.empty(len(boundaries), max(tops, default=0), len(batch.left_out))
        done, progress = 0, NOT_BEGUN
        while done < len(boundaries):
            check_stopped()
            done, progress = levels.answer(
                self.arrays, work, self.inverse, batch, found, done, progress, tol, self.rule
            )
        check_stopped()
        self._idle.append(work)  # one that an exception left in use is not taken back
        yield from self._solutions(boundaries, efforts, found)

    def _solutions(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort], found: Found
    ) -> Iterator[Solution]:
        rows, end = zip(found.counts.tolist(), found.bounds.tolist(), strict=True), 0
        for row, ((count, n_steps, n_touched, state), bounds) in enumerate(rows):
            boundary, begin = boundaries[row], end
            end += len(boundary.left_out)
            if count < (efforts[row].top or 0) and boundary.lowest < 0:
                yield self.reach(boundary, efforts[row]._replace(top=None))[0]
                continue
            points, scores = found.points[row, :count], found.scores[row, :count]
            own = self._own(boundary, found.own[begin:end])
            yield Solution(
                np.concatenate([points, own[0]]),
                np.concatenate([scores, own[1]]),
                self._bound(boundary, *bounds),
                complete=False,
                **_facts(state, n_steps, n_touched),
            )

    def _own(self, boundary: Boundary, scores: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the points of a query and their scores: those that they are held at, if any."""
        held = boundary.clamped
        if len(held):  # every method holds all points of a query, or none
            return held, self.arrays.scale[held] * boundary.values
        return boundary.left_out, scores

    def reach(self, boundary: Boundary, effort: Effort) -> tuple[Solution, FloatArray]:
        """Return the solution for one query, and the residuals of points without a row.

        Without a ``top`` it has all points that the query reaches.
        """
        from rankfold.solvers import levels, push

        work, query, arrays = self._workspace(), prepared(boundary), self.arrays
        tol, budget = self._tol([effort]), self._budget(effort)
        top = len(self.inverse) if effort.top is None else effort.top
        progress = levels.started(arrays, work, query, tol)
        while progress.state == PAUSED:
            check_stopped()
            progress = levels.solve(arrays, work, progress, query, top, tol, budget, self.rule)
        check_stopped()
        points: IntArray = np.empty(top, dtype=np.int64)
        scores: FloatArray = np.empty(top)
        count = 0
        if effort.top is not None:
            terms = self.rule.terms
            count = levels.extract(arrays, work, progress, top, terms, points, scores)
        complete = effort.top is None or (count < top and boundary.lowest < 0)
        if complete:
            if progress.state == WITHIN_TOL and budget[0] == UNLIMITED:
                push.refine(arrays, work, progress.n_touched)
            points = work.touched[: progress.n_touched].astype(np.int64)
            points = points[self.inverse[points] > 0]  # rows are known
            points = points[np.isin(points, boundary.clamped, invert=True)]
            scores = arrays.scale[points] * np.maximum(work.value[points], boundary.lowest)
            own: tuple[IntArray, FloatArray] = (
                boundary.clamped,
                arrays.scale[boundary.clamped] * boundary.values,
            )
        else:
            guess = levels.best_guess
            left_out = [guess(arrays, work, np.uint64(point)) for point in boundary.left_out]
            points, scores = points[:count], scores[:count]
            own = self._own(boundary, np.array(left_out, dtype=np.float64))
        lacking = work.residual[arrays.n_rows :].copy()
        push.clear(work, progress.n_touched, query, self.inverse)
        self._idle.append(work)
        solution = Solution(
            np.concatenate([points, own[0]]),
            np.concatenate([scores, own[1]]),
            self._bound(boundary, progress.above, progress.below),
            complete=complete,
            **_facts(progress.state, progress.n_steps, progress.n_touched),
        )
        return solution, lacking

    def _bound(self, boundary: Boundary, above: float, below: float) -> float:
        """Return how far a score can be off; no exact value is outside of those of the query."""
        widest = boundary.size - boundary.lowest
        return min(max(above, below), widest) * self.arrays.largest_scale

    def _tol(self, efforts: Sequence[Effort]) -> float:
        tol = min((effort.tol for effort in efforts), default=1.0)
        return tol / (self.arrays.largest_scale or 1.0)

    def _budget(self, effort: Effort) -> tuple[int, int]:
        """Return how many points to solve for, and how many where there is doubt."""
        budget, n_rows = effort.budget, self.arrays.n_rows
        if budget is None or budget >= n_rows:
            return UNLIMITED, UNLIMITED
        return budget, min(budget + effort.reserve, n_rows - 1)

    def _workspace(self) -> Workspace:
        try:
            work = self._idle.pop()
        except IndexError:
            work = Workspace.of(self.arrays, self.inverse)
        return work._replace(stop=stop_flag())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}


def _facts(state: int, n_steps: int, n_touched: int) -> dict[str, Any]:
    """Return what a solution says of how it was found."""
    return {
        "n_iter": n_steps,
        "certified": state == PROVEN,
        "solver": "region",
        "stopped": STOPPED[state],
        "n_touched": n_touched,
    }


class Part(NamedTuple):
    """Rows of a graph that are complete, and what borders on them.

    Parameters
    ----------
    points : array of int
        Points whose row is complete, then those that they have an edge to.
    n_rows : int
        How many of them have a complete row.
    weights : sparse array, shape (n_points, n_points)
        Their rows; those of the others have what is known from these.
    """

    points: IntArray
    n_rows: int
    weights: sparse.csr_array


class FetchedRows(Protocol):
    """Rows of a graph that were fetched for one query."""

    def fetch(self, points: IntArray) -> Part:
        """Fetch more rows; return all that are complete."""


class RowSource(Protocol):
    """A graph whose rows lie elsewhere, and are cheapest to fetch in batches."""

    @property
    def n_alive(self) -> int:
        """The number of points."""

    def begin(self) -> FetchedRows:
        """Return what a query fetches into."""


class FetchingSolver:
    """The region solver over rows that are fetched where a query reaches.

    Every exchange fetches the border points with the largest residuals. The region at most doubles
    with each, so that all solves together cost about as much as the last.

    Parameters
    ----------
    source : RowSource
    coupling : float
        beta: values obey ``x_i + beta sum_j w_ij (x_i - x_j) = 0`` off the query.
    exact_limit : int
        Up to this many points all scores are found to the tolerance, whatever the effort.
    """

    def __init__(self, source: RowSource, coupling: float, exact_limit: int = 0) -> None:
        self.source, self.coupling, self.exact_limit = source, coupling, exact_limit

    def solve(
        self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]
    ) -> Iterator[Solution]:
        """Solve for each boundary; points that were fetched last are known best."""
        for pair in zip(boundaries, efforts, strict=True):
            yield self._solve(*pair)

    def _solve(self, boundary: Boundary, effort: Effort) -> Solution:
        if self.source.n_alive <= self.exact_limit:
            effort = Effort(effort.tol)
        most = MOST_ROWS if effort.budget is None else effort.budget
        rows, n_steps = self.source.begin(), 0
        part = rows.fetch(np.union1d(boundary.clamped, boundary.pulled).astype(np.int64))
        while True:
            solver = RegionSolver(System.coupled(self.coupling * part.weights), n_rows=part.n_rows)
            local = _renumbered(boundary, part.points)
            solution, lacking = solver.reach(local, effort._replace(budget=None))
            n_steps += solution.n_iter
            room = min(max(part.n_rows, FEW_AT_ONCE), most - part.n_rows)
            if solution.stopped != "budget" or room <= 0:
                break
            before = part.n_rows
            growing = _growing(lacking, room, effort)
            part = rows.fetch(part.points[part.n_rows + growing])
            if part.n_rows == before:
                break
        points = part.points[solution.points]
        if solution.stopped == "budget" and (effort.budget is None or part.n_rows < most):
            solution = replace(solution, converged=False, stopped="max_iter")
        return replace(solution, points=points, n_iter=n_steps)


def _renumbered(boundary: Boundary, points: IntArray) -> Boundary:
    """Return a boundary whose points are places among others."""
    order = np.argsort(points, kind="stable")

    def places(some: IntArray) -> IntArray:
        found: IntArray = order[np.searchsorted(points, some, sorter=order)]
        return found

    return boundary._replace(
        points=places(boundary.points),
        clamped=places(boundary.clamped),
        left_out=places(boundary.left_out),
        pulled=places(boundary.pulled),
    )


def _growing(residuals: FloatArray, room: int, effort: Effort) -> IntArray:
    """Return the places at which a region is to grow, the largest residuals first.

    A budget will be used up in any case, so that the region doubles with every exchange.
    """
    sizes, tol = np.abs(residuals), effort.tol
    order = np.argsort(-sizes, kind="stable")
    wanted = int(np.count_nonzero(sizes > tol / 10))
    if effort.budget is None:
        large = sizes > max(GROWING_SHARE * sizes.max(initial=0.0), tol / 2)
        wanted = max(int(np.count_nonzero(large)), min(wanted, FEW_AT_ONCE))
    return order[: max(1, min(wanted, room))]


def term_weights(rho: float) -> tuple[float, float, float]:
    """Return weights for the first three terms of ``e = (1 + J + J^2 + ...) x``.

    With weights p, ``e`` is missed by ``q(J) e`` where ``q(z) = 1 - (1 - z) p(z)``. Of all
    polynomials of its degree with ``q(1) = 1`` that of Chebyshev is the smallest on an interval:
    ``q(z) = T3((z - m) / h) / T3((1 - m) / h)`` on ``m - h <= z <= m + h``. The interval ends at
    rho and begins at ``-rho / 2``, since graphs of neighbours are far from bipartite; for a large
    rho it begins earlier, so that |q| is at most one even if they were.

    Parameters
    ----------
    rho : float
        About the largest eigenvalue of J, less than one.

    Examples
    --------
    >>> [round(weight, 3) for weight in term_weights(0.5)]
    [0.981, 1.082, 1.731]
    >>> term_weights(0.0)
    (1.0, 1.0, 1.0)
    """
    if rho < SMALLEST_RHO:
        return 1.0, 1.0, 1.0
    low = max(rho / 2, 2 * rho - 1)
    m, h = (rho - low) / 2, (rho + low) / 2
    # T3(u) = 4 u^3 - 3 u with u = (z - m) / h, by powers of z.
    powers = (
        3 * m / h - 4 * (m / h) ** 3,
        12 * m**2 / h**3 - 3 / h,
        -12 * m / h**3,
        4 / h**3,
    )
    q = [power / sum(powers) for power in powers]
    return 1 - q[0], 1 - q[0] - q[1], q[3]
