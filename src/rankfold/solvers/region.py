"""The region solver: grow a region around the query, solve inside it, bound it at its border."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankfold.errors import InputError
from rankfold.parallel import STOP_FLAG, StoppedError
from rankfold.solvers.arrays import (
    NEEDS_GRADIENTS,
    NEEDS_ROWS,
    NOT_BEGUN,
    OUT_OF_BUDGET,
    PAUSED,
    PROVEN,
    PUSH_PATIENCE,
    REGION_SHARE,
    UNLIMITED,
    WITHIN_TOL,
    Arrays,
    Batch,
    Found,
    Memory,
    Progress,
    Rule,
    Workspace,
)
from rankfold.solvers.system import Boundary, Effort, System, sampled
from rankfold.types import FloatArray, IntArray, Solution, Stopped

MANY = 1_000
"""Best points that are judged where it is only looked for what is missing."""

STOPPED: dict[int, Stopped] = {
    PROVEN: "proven",
    WITHIN_TOL: "tolerance",
    OUT_OF_BUDGET: "budget",
}


class MissingRowsError(Exception):
    """A query needs rows of the graph that are not here yet; with them it begins again.

    Parameters
    ----------
    needed : array of int
        Points whose row is needed.
    next_ones : array of int
        Points whose row will be needed soon, the most likely first.
    n_used : int
        Points that the query has reached whose row is here.
    all_needed : bool
        Whether it goes on over the whole graph.
    """

    def __init__(
        self, needed: IntArray, next_ones: IntArray, n_used: int, all_needed: bool = False
    ) -> None:
        super().__init__(f"{'all' if all_needed else len(needed)} rows are not here")
        self.needed, self.next_ones, self.n_used = needed, next_ones, n_used
        self.all_needed = all_needed


@dataclass
class Workspaces:
    """Workspaces for queries, which threads take and put back clean.

    One that an exception leaves in use is not put back.
    """

    _arrays: Arrays
    _idle: list[Memory] = field(default_factory=list)

    def take(self) -> Memory:
        """Return a clean `Workspace`."""
        try:
            work = self._idle.pop()
        except IndexError:
            work = Memory(Workspace.of(self._arrays))
        work.replace("stop", STOP_FLAG.get())
        return work

    def put(self, work: Memory) -> None:
        """Keep one for the next query."""
        self._idle.append(work)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": []}


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
        patience: float = PUSH_PATIENCE,
        whole_share: float = REGION_SHARE,
    ) -> None:
        rows, margin, scale = system.rows, system.margin, system.scale
        if rows is None:
            raise InputError(
                "solver='region' follows the edges of a graph, but every pair of points has one "
                "here; give the graph n_neighbors, or use solver='auto'."
            )
        n_points, diagonal, bounds = len(margin), system.diagonal, rows.bounds
        indices, weights, in_order = rows.indices, rows.weights, rows.in_order
        inverse = 1.0 / diagonal
        shares = sampled(inverse) * sampled(margin)
        share = float(np.median(shares)) if n_points else 1.0
        if not in_order:  # gradients on the whole graph need rows one after the other
            whole_share = np.inf
        self.rule = Rule.of(share, patience, whole_share)
        unit = bool(np.all(margin == 1.0) and (scale is margin or np.all(scale == 1.0)))
        relative = diagonal if unit else diagonal / margin  # most of a change is to make arrays
        arrays = Arrays.of(
            bounds,
            indices,
            weights,
            margin,
            scale,
            inverse,
            n_points,
            n_points,
            float(scale.max(initial=0.0)),
            float(relative.max(initial=1.0)),
            rows.longest,
            rows.n_edges / max(1, n_points),
            unit,
        )
        self.arrays = Memory(arrays)
        self._workspaces = Workspaces(arrays)

    @classmethod
    def over(cls, arrays: Arrays, rule: Rule, workspaces: Workspaces) -> RegionSolver:
        """Return a solver over rows of a larger graph, some of which are not here.

        Where it would need one of those it raises `MissingRowsError`.

        Parameters
        ----------
        arrays : Arrays
        rule : Rule
        workspaces : Workspaces
        """
        solver = cls.__new__(cls)
        solver.arrays, solver.rule, solver._workspaces = Memory(arrays), rule, workspaces
        return solver

    def solve(self, boundaries: Sequence[Boundary], efforts: Sequence[Effort]) -> list[Solution]:
        """Solve for each boundary.

        The best ``top`` points come first, in order, then those of the query that have a score.
        Without a ``top``, or where scores below zero may be among the best, all that were reached
        are returned.
        """
        tops = [effort.top for effort in efforts if effort.top is not None]
        if len(tops) < len(efforts):
            return [self.reach(*pair) for pair in zip(boundaries, efforts, strict=True)]
        budgets, tol = [self._budget(one) for one in efforts], self._tol(efforts)
        for boundary in boundaries:
            self._require(boundary)
        work, batch = self._workspaces.take(), Batch.of(boundaries, tops, budgets)
        found = Found.empty(len(boundaries), max(tops, default=0), batch.n_left_out)
        parts = found.counts, found.bounds, found.own  # views of what will be written there
        done, progress = 0, NOT_BEGUN
        while done < len(boundaries):
            done, progress = self._advance(self.arrays, work, batch, found, done, progress, tol)
            if progress.state == NEEDS_ROWS or work.n_lacking[0]:
                raise self._missing(work, progress, boundaries[done], efforts[done])
        self._workspaces.put(work)
        return list(self._solutions(boundaries, efforts, found, *parts))

    def _solutions(
        self,
        boundaries: Sequence[Boundary],
        efforts: Sequence[Effort],
        found: Found,
        counts: IntArray,
        all_bounds: FloatArray,
        own_scores: FloatArray,
    ) -> Iterator[Solution]:
        bounds, end = all_bounds.tolist(), 0
        for row, (count, n_steps, n_touched, state) in enumerate(counts.tolist()):
            boundary, begin, first = boundaries[row], end, row * found.top
            end += len(boundary.left_out)
            if count < (efforts[row].top or 0) and boundary.lowest < 0:
                yield self.reach(boundary, efforts[row]._replace(top=None))
                continue
            points = found.numbers[first : first + count]
            scores = found.reals[first : first + count]
            own = self._own(boundary, own_scores[begin:end])
            yield Solution(
                np.concatenate([points, own[0]]),
                np.concatenate([scores, own[1]]),
                self._bound(boundary, *bounds[row]),
                complete=False,
                **_facts(state, n_steps, n_touched),
            )

    def _own(self, boundary: Boundary, scores: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the points of a query and their scores: those that they are held at, if any."""
        held = boundary.clamped
        if len(held):  # every method holds all points of a query, or none
            return held, self.arrays.scale[held] * boundary.values
        return boundary.left_out, scores

    def reach(self, boundary: Boundary, effort: Effort) -> Solution:
        """Return the solution for one query at all points that it reaches."""
        self._require(boundary)
        work, arrays = self._workspaces.take(), self.arrays
        budget, top = self._budget(effort), len(arrays.inverse)
        progress = self._solved(arrays, work, boundary, top, effort)
        if progress.state == NEEDS_ROWS:
            raise self._missing(work, progress, boundary, effort)
        points = work.touched[: progress.n_touched].astype(np.int64)
        points = points[work.inverse[points] > 0]  # rows are known
        points = points[np.isin(points, boundary.clamped, invert=True)]
        values = work.value[points]
        if progress.state == WITHIN_TOL and budget[0] == UNLIMITED:
            values += work.residual[points] * work.inverse[points]  # part of their error
        self._clear(work, progress, boundary)
        held = boundary.clamped
        scores = arrays.scale[points] * np.maximum(values, boundary.lowest)
        return Solution(
            np.concatenate([points, held]),
            np.concatenate([scores, arrays.scale[held] * boundary.values]),
            self._bound(boundary, progress.above, progress.below),
            complete=True,
            **_facts(progress.state, progress.n_steps, progress.n_touched),
        )

    def _solved(
        self, arrays: Memory, work: Memory, boundary: Boundary, top: int, effort: Effort
    ) -> Progress:
        """Solve one query until there is an answer, or rows are missing; leave it where it is."""
        batch, tol = Batch.of([boundary], [top], [self._budget(effort)]), self._tol([effort])
        found, progress = Found.empty(1, 0, 0), NOT_BEGUN
        while progress.state in (PAUSED, NEEDS_GRADIENTS):
            _, progress = self._advance(arrays, work, batch, found, 0, progress, tol, keeps=True)
        return progress

    def _advance(
        self,
        arrays: Memory,
        work: Memory,
        batch: Batch,
        found: Found,
        done: int,
        progress: Progress,
        tol: float,
        keeps: bool = False,
    ) -> tuple[int, Progress]:
        """Call compiled code until it comes back; return the queries that are done, and progress.

        It is imported when it is first used.
        """
        from rankfold.solvers.gradients import polish, solve_whole
        from rankfold.solvers.levels import answer
        from rankfold.solvers.memory import typed

        if work._numba_type_ is None or arrays._numba_type_ is None:
            typed(arrays, work)
        if progress.state == NEEDS_GRADIENTS:
            given = arrays, work, batch, done, progress, tol
            whole = progress.whole
            progress = solve_whole(*given, 10 * self.rule.pause) if whole else polish(*given)
        done, progress = answer(arrays, work, batch, found, done, progress, tol, self.rule, keeps)
        if work.stop[0]:
            raise StoppedError
        return done, progress

    def _clear(self, work: Memory, progress: Progress, boundary: Boundary) -> None:
        """Leave a workspace as it was found, and put it back."""
        touched = work.touched[: progress.n_touched]
        work.residual[touched] = work.value[touched] = 0.0
        work.marks[touched] = 0
        work.n_valued[0] = work.n_likely[0] = work.n_lacking[0] = 0
        work.inverse[boundary.pulled] = self.arrays.inverse[boundary.pulled]
        self._workspaces.put(work)

    def _require(self, boundary: Boundary) -> None:
        """Require the rows with which a query begins."""
        if self.arrays.n_rows == len(self.arrays.margin):
            return
        first = np.union1d(boundary.clamped, boundary.pulled).astype(np.int64)
        needed = first[self.arrays.inverse[first] == 0.0]
        if len(needed):
            raise MissingRowsError(needed, needed[:0], len(first) - len(needed))

    def _missing(
        self, work: Memory, progress: Progress, boundary: Boundary, effort: Effort
    ) -> MissingRowsError:
        """Return what a query lacks, and leave the workspace clean.

        To know what it will need next, it goes on with zero at the points without a row.
        """
        all_needed = bool(work.n_lacking[0] < 0)
        needed = np.unique(work.lacking[: max(0, work.n_lacking[0])]).astype(np.int64)
        self._clear(work, progress, boundary)
        if all_needed:
            return MissingRowsError(needed[:0], needed[:0], progress.n_touched, all_needed)
        work, arrays = self._workspaces.take(), Memory(self.arrays.given._replace(goes_on=True))
        progress = self._solved(arrays, work, boundary, min(effort.top or MANY, MANY), effort)
        touched = work.touched[: progress.n_touched]
        without = touched[work.inverse[touched] == 0.0]
        order = np.argsort(-np.abs(work.residual[without]), kind="stable")
        next_ones, n_used = without[order].astype(np.int64), len(touched) - len(without)
        self._clear(work, progress, boundary)
        return MissingRowsError(needed, next_ones, n_used)

    def _bound(self, boundary: Boundary, above: float, below: float) -> float:
        """Return how far a score can be off; no exact value is outside of those of the query."""
        widest = boundary.size - boundary.lowest
        return min(max(above, below), widest) * float(self.arrays.largest_scale)

    def _tol(self, efforts: Sequence[Effort]) -> float:
        tol = min((effort.tol for effort in efforts), default=1.0)
        return tol / (self.arrays.largest_scale or 1.0)

    def _budget(self, effort: Effort) -> tuple[int, int]:
        """Return how many points to solve for, and how many where there is doubt."""
        budget, n_points = effort.budget, self.arrays.n_points
        if budget is None or budget >= n_points:
            return UNLIMITED, UNLIMITED
        return budget, min(budget + effort.reserve, n_points - 1)


def _facts(state: int, n_steps: int, n_touched: int) -> dict[str, Any]:
    """Return what a solution says of how it was found."""
    return {
        "n_iter": n_steps,
        "certified": state == PROVEN,
        "solver": "region",
        "stopped": STOPPED[state],
        "n_touched": n_touched,
    }
