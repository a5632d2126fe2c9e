"""A local solve: residuals fall level by level until the answer is certain. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.arrays import CERTIFIED, PAUSED, WITHIN_TOL, Stand
from rankfold.solvers.certificate import bounds, judge
from rankfold.solvers.gradients import advance, copy_rows, set_out, settle
from rankfold.solvers.push import TOUCHED, gather, measure, push

FAR_RATIO, NEAR_RATIO = 0.25, 0.5
"""What residuals fall to before the top is judged again; sooner where a proof is near."""

LAG = 2.0
"""How far residuals may stay behind the level, which is halved with every sweep otherwise."""

FEW_EDGES = 5_000
"""Edges that are pushed sooner than gradients are set up."""

POLISH_DEPTH, MOST_STEPS = 0.03, 200
"""How far below the level gradients bring the residual, and in how many steps at most."""

UNIT = float(np.finfo(np.float64).eps)


@njit(nogil=True, cache=True)
def solve(system, work, stand, query, top, tol, rule):  # type: ignore[no-untyped-def]
    """Lower the level until the top is certain or the bound is within tol.

    A sweep pushes every point whose residual is above the level, which then is halved. Where
    sweeps pass the region's edges too often before residuals have fallen far enough to judge the
    top again, gradients do the bulk and push goes on at the border. A region that has become
    a good part of the graph gives way to gradients on all of it.
    """
    n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, _ = stand
    n_points = len(system.margin)
    mean_row = len(system.indices) / max(1, n_points)
    # Rounding of a push: of its sums, and of a value that enters its whole row.
    per_value = 2 * UNIT * (system.largest_diagonal + query.pull.sum()) * query.size
    fresh = (system.longest_row + len(query.pulled) + 4) * per_value
    tol = max(tol, 20 * fresh)
    level = max(level, tol)
    if n_steps == 0:  # the right-hand side was added up
        drift = fresh
    pause, passed, due = n_edges + rule.pause, 0, np.inf
    while n_edges < pause:
        if whole:
            stand = Stand(
                n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, PAUSED
            )
            return solve_whole(system, work, stand, query, top, tol, fresh, 10 * rule.pause)
        n_queued, above, below = gather(work, n, level)
        above, below = above + drift, below + drift
        bound, ended = max(above, below), level <= tol and n_queued == 0
        precise = drift <= 0.1 * level
        if precise and (bound <= due or ended):
            last, certain, near = judge(system, work, top, last, above, below, drift)
            if certain or ended:
                state = CERTIFIED if certain else WITHIN_TOL
                return Stand(
                    n, n_rows, whole, level, drift, last, above, below, n_steps, n_edges, state
                )
            due, passed = bound * (NEAR_RATIO if near else FAR_RATIO), 0
        if precise and passed < rule.patience * (FEW_EDGES + mean_row * n):
            n, edges, largest = push(system, work, n, n_queued, rule.relaxation)
            n_steps += n_queued
            n_edges += edges
            passed += edges
            drift += n_queued * (2 * UNIT * largest + per_value)
            if bound <= LAG * level:
                level = max(tol, level / 2)
            continue
        if precise and n >= rule.whole_share * n_points:
            n, whole = touch_all(work, n_points), True
        elif precise:
            level, n_region = max(tol, min(level, due)), n
            n = copy_rows(system, work, n, n_rows)
            n_rows = n_region
            square = set_out(system, work, n_region, n)
            ends, columns, weights = work.ends, work.columns, work.weights
            target = level * POLISH_DEPTH
            steps, _ = advance(ends, columns, weights, work, n_region, square, target, MOST_STEPS)
            settle(work, n_region)
            n_steps += steps
            n_edges += steps * ends[n_region - 1] if n_region else 0
            passed = 0
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
def solve_whole(system, work, stand, query, top, tol, fresh, most_edges):  # type: ignore[no-untyped-def]
    """Go on with gradients on the whole graph, whose residuals have just been measured.

    The course of the gradients is not broken at a level: the top is judged by the residuals that
    they carry along, and measured only for an answer.
    """
    n, n_rows, _, level, _, last, above, below, n_steps, n_edges, _ = stand
    ends, columns, weights = system.indptr[1:], system.indices, system.spread
    pause = n_edges + most_edges
    square = set_out(system, work, n, n)
    while n_edges < pause:
        steps, square = advance(ends, columns, weights, work, n, square, level, MOST_STEPS)
        settle(work, n)
        n_steps += steps
        n_edges += (steps + 1) * len(columns)
        above, below = bounds(work, n, fresh)
        last, certain, near = judge(system, work, top, last, above, below, fresh)
        if certain or level <= tol or steps == MOST_STEPS:
            measure(system, work, n, query)
            above, below = bounds(work, n, fresh)
            last, certain, near = judge(system, work, top, last, above, below, fresh)
            if certain or max(above, below) <= 2 * tol:
                state = CERTIFIED if certain else WITHIN_TOL
                return Stand(
                    n, n_rows, True, level, fresh, last, above, below, n_steps, n_edges, state
                )
            square = set_out(system, work, n, n)
        level = max(tol, level * (NEAR_RATIO if near else FAR_RATIO))
    measure(system, work, n, query)
    return Stand(n, n_rows, True, level, fresh, last, above, below, n_steps, n_edges, PAUSED)
