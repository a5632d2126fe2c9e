"""A local solve: residuals fall level by level until the answer is certain. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.arrays import CERTIFIED, PAUSED, WITHIN_TOL, Stand
from rankfold.solvers.certificate import bounds, judge
from rankfold.solvers.gradients import POLISH_DEPTH, copy_rows, polish
from rankfold.solvers.push import measure, push

LEVEL_RATIO = 0.4
"""Residuals are brought below one level after the other."""

FEW_EDGES = 5_000
"""Edges that are pushed sooner than gradients are set up."""

WORK_BETWEEN_PAUSES = 10**8
"""Edges after which control returns, so that a long solve can be stopped."""

UNIT = float(np.finfo(np.float64).eps)


@njit(nogil=True, cache=True)
def solve(system, work, stand, query, top, tol, relaxation, patience):  # type: ignore[no-untyped-def]
    """Lower the level until the top is certain or the bound is within tol.

    Every level is pushed; where that passes the region's edges
    too often, gradients do the bulk and push goes on at the border.
    """
    n, n_rows, level, drift, last, above, below, n_steps, n_edges, _ = stand
    mean_row = len(system.indices) / max(1, len(system.margin))
    # Rounding of a push: of its sums, and of a value that enters its whole row.
    per_value = 2 * UNIT * (system.largest_diagonal + query.pull.sum()) * query.size
    fresh = (system.longest_row + len(query.pulled) + 4) * per_value
    tol = max(tol, 20 * fresh)
    level = max(level, tol)
    pause = n_edges + WORK_BETWEEN_PAUSES
    while n_edges < pause:
        limit = patience * (FEW_EDGES + mean_row * n)
        n, passed, steps, largest, finished = push(system, work, n, level, relaxation, limit)
        n_steps += steps
        n_edges += passed
        drift += steps * (2 * UNIT * largest + per_value)
        if finished and drift <= 0.1 * level:
            last, above, below, certain = judge(system, work, n, top, last / 2, level, drift)
            if certain:
                return Stand(
                    n, n_rows, level, drift, last, above, below, n_steps, n_edges, CERTIFIED
                )
            if level <= tol:
                above, below = bounds(work, n, drift)
                return Stand(
                    n, n_rows, level, drift, last, above, below, n_steps, n_edges, WITHIN_TOL
                )
            level = max(tol, level * LEVEL_RATIO)
            continue
        if not finished:
            n_region = n
            n = copy_rows(system, work, n, n_rows)
            n_rows = n_region
            steps = polish(system, work, n_region, n, level * POLISH_DEPTH)
            n_steps += steps
            n_edges += steps * work.ends[n_region - 1]
        measure(system, work, n, query)
        drift = fresh
    return Stand(n, n_rows, level, drift, last, above, below, n_steps, n_edges, PAUSED)
