"""A local solve: residuals fall level by level until the answer is certain. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.arrays import CERTIFIED, PAUSED, WITHIN_TOL, Stand
from rankfold.solvers.certificate import bounds, judge
from rankfold.solvers.gradients import advance, copy_rows, set_out, settle
from rankfold.solvers.push import TOUCHED, measure, push

FAR_RATIO, NEAR_RATIO = 0.25, 0.5
"""Residuals are brought below one level after the other; in smaller steps where a proof is near."""

FEW_EDGES = 5_000
"""Edges that are pushed sooner than gradients are set up."""

POLISH_DEPTH, MOST_STEPS = 0.03, 200
"""How far below the level gradients bring the residual, and in how many steps at most."""

WORK_BETWEEN_PAUSES, WHOLE_BETWEEN_PAUSES = 10**8, 10**9
"""Edges after which control returns, so that a long solve can be stopped."""

UNIT = float(np.finfo(np.float64).eps)


@njit(nogil=True, cache=True)
def solve(system, work, stand, query, top, tol, rule):  # type: ignore[no-untyped-def]
    """Lower the level until the top is certain or the bound is within tol.

    Every level is pushed; where that passes the region's edges
    too often, gradients do the bulk and push goes on at the border. A region that
    has become a good part of the graph gives way to gradients on all of it.
    """
    n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, _ = stand
    n_points = len(system.margin)
    mean_row = len(system.indices) / max(1, n_points)
    # Rounding of a push: of its sums, and of a value that enters its whole row.
    per_value = 2 * UNIT * (system.largest_diagonal + query.pull.sum()) * query.size
    fresh = (system.longest_row + len(query.pulled) + 4) * per_value
    tol = max(tol, 20 * fresh)
    level = max(level, tol)
    pause = n_edges + WORK_BETWEEN_PAUSES
    while n_edges < pause:
        if whole:
            stand = Stand(
                n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, PAUSED
            )
            return solve_whole(system, work, stand, query, top, tol, fresh)
        limit = rule.patience * (FEW_EDGES + mean_row * n)
        n, passed, steps, largest, finished = push(system, work, n, level, rule.relaxation, limit)
        n_steps += steps
        n_edges += passed
        drift += steps * (2 * UNIT * largest + per_value)
        if finished and drift <= 0.1 * level:
            last, above, below, certain, near = judge(system, work, n, top, last / 2, level, drift)
            if certain:
                return Stand(
                    n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, CERTIFIED
                )
            if level <= tol:
                above, below = bounds(work, n, drift)
                return Stand(
                    n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, WITHIN_TOL
                )
            level = max(tol, level * (NEAR_RATIO if near else FAR_RATIO))
            continue
        if not finished and n >= rule.whole_share * n_points:
            n, whole = touch_all(work, n_points), True
        elif not finished:
            n_region = n
            n = copy_rows(system, work, n, n_rows)
            n_rows = n_region
            square = set_out(system, work, n_region, n)
            ends, columns, weights = work.ends, work.columns, work.weights
            target = level * POLISH_DEPTH
            steps, _ = advance(ends, columns, weights, work, n_region, square, target, MOST_STEPS)
            settle(work, n_region)
            n_steps += steps
            n_edges += steps * ends[n_region - 1]
        measure(system, work, n, query)
        drift = fresh
    return Stand(n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, PAUSED)


@njit(nogil=True, cache=True)
def touch_all(work, n_points):  # type: ignore[no-untyped-def]
    """Take up every point, in the order of the graph; return their number."""
    for point in range(n_points):
        work.touched[point] = point
        work.marks[point] |= TOUCHED
    return n_points


@njit(nogil=True, cache=True)
def solve_whole(system, work, stand, query, top, tol, fresh):  # type: ignore[no-untyped-def]
    """Go on with gradients on the whole graph, whose residuals have just been measured.

    The course of the gradients is not broken at a level: the top is judged by the residuals that
    they carry along, and measured only for an answer.
    """
    n, n_rows, _, level, _, last, above, below, n_steps, n_edges, _ = stand
    ends, columns, weights = system.indptr[1:], system.indices, system.spread
    pause = n_edges + WHOLE_BETWEEN_PAUSES
    square = set_out(system, work, n, n)
    while n_edges < pause:
        steps, square = advance(ends, columns, weights, work, n, square, level, MOST_STEPS)
        settle(work, n)
        n_steps += steps
        n_edges += (steps + 1) * len(columns)
        last, above, below, certain, near = judge(system, work, n, top, last / 2, level, fresh)
        if certain or level <= tol or steps == MOST_STEPS:
            measure(system, work, n, query)
            last, above, below, certain, near = judge(system, work, n, top, last / 2, level, fresh)
            above, below = bounds(work, n, fresh)
            if certain:
                return Stand(
                    n, n_rows, True, level, fresh, last, above, below, n_steps, n_edges, CERTIFIED
                )
            if max(above, below) <= 2 * tol:
                return Stand(
                    n, n_rows, True, level, fresh, last, above, below, n_steps, n_edges, WITHIN_TOL
                )
            square = set_out(system, work, n, n)
        level = max(tol, level * (NEAR_RATIO if near else FAR_RATIO))
    measure(system, work, n, query)
    return Stand(n, n_rows, True, level, fresh, last, above, below, n_steps, n_edges, PAUSED)
