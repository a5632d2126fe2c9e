"""Conjugate gradients for the region solver: on a region, and on the whole graph. Compiled.

Few queries come here; what they need is compiled when the first does. Both functions that Python
calls go on with a query where push would take long, and return how far it is then.
"""

from __future__ import annotations

import numpy as np

from rankfold.solvers.arrays import PAUSED, PROVEN, WITHIN_TOL, Progress
from rankfold.solvers.certificate import FAR_RATIO, NEAR_RATIO, bounds, judge
from rankfold.solvers.memory import after, entry, handle, kernel, small, summing
from rankfold.solvers.push import CLAMPED, TOUCHED, VALUED, measure, query_of, rounding

POLISH_DEPTH, MOST_STEPS = 0.03, 200
"""How far below the level gradients bring the residual, and in how many steps at most."""


@entry
def polish(system, work, queries, i, progress, tol):  # type: ignore[no-untyped-def]
    """Bring the residuals of all points that were touched below the level."""
    small()
    (
        n_region, n_copied, whole, grown, level, due, _, _, last, above, below, n_steps, n_edges, _,
    ) = progress  # fmt: skip
    query = handle(query_of(handle(queries), i))
    _, fresh = rounding(system, query)
    level = max(tol, max(20 * fresh, min(level, due)))
    n = copy_rows(system, work, n_region, n_copied)
    square = set_out(system, work, n_region, n)
    ends, columns, weights = work.ends, work.columns, work.weights
    target = level * POLISH_DEPTH
    steps, _ = advance(ends, 1, columns, weights, system, work, n_region, square, target)
    settle(work, n_region)
    measure(system, work, n, query)
    n_steps += steps
    n_edges += steps * ends[n_region - 1] if n_region else 0
    return Progress(
        n, n_region, whole, grown, level, due, 0, fresh, last, above, below, n_steps, n_edges,
        PAUSED,
    )  # fmt: skip


@kernel
def touch_all(work, n_points):  # type: ignore[no-untyped-def]
    """Take up every point, in the order of the graph; return their number."""
    small()
    for point in range(n_points):
        work.touched[point] = point
        work.marks[point] |= TOUCHED
    return n_points


@entry
def solve_whole(system, work, queries, i, progress, tol, most_edges):  # type: ignore[no-untyped-def]
    """Go on with gradients on the whole graph.

    The course of the gradients is not broken at a level: the top is judged by the residuals that
    they carry along, and measured only for an answer.
    """
    small()
    (
        _, n_copied, whole, grown, level, due, passed, _, last, above, below, n_steps, n_edges, _
    ) = progress  # fmt: skip
    query = handle(query_of(handle(queries), i))
    top, (_, fresh) = query.top, rounding(system, query)
    tol = max(tol, 20 * fresh)
    n = touch_all(work, system.n_here)
    measure(system, work, n, query)
    ends, columns, weights = after(system.rows, 1), system.indices, system.weights
    n_all, pause, state = system.rows[2 * n - 1], n_edges + most_edges, PAUSED
    square = set_out(system, work, n, n)
    while n_edges < pause and not work.stop[0]:
        steps, square = advance(ends, 2, columns, weights, system, work, n, square, level)
        settle(work, n)
        n_steps += steps
        n_edges += (steps + 1) * n_all
        above, below = bounds(system, work, n, fresh)
        last, certain, near = judge(system, work, top, last, above, below, fresh)
        if certain or level <= tol or steps == MOST_STEPS:
            measure(system, work, n, query)
            above, below = bounds(system, work, n, fresh)
            last, certain, near = judge(system, work, top, last, above, below, fresh)
            if certain or max(above, below) <= 2 * tol:
                state = PROVEN if certain else WITHIN_TOL
                break
            square = set_out(system, work, n, n)
        level = max(tol, level * (NEAR_RATIO if near else FAR_RATIO))
    return Progress(
        n, n_copied, whole, grown, level, due, passed, fresh, last, above, below, n_steps, n_edges,
        state,
    )  # fmt: skip


@kernel
def copy_rows(system, work, n, n_copied):  # type: ignore[no-untyped-def]
    """Copy the rows of touched points, in the order of touching; their neighbours are touched."""
    small()
    rows, indices, weights = system.rows, system.indices, system.weights
    place, touched, marks = work.place, work.touched, work.marks
    ends, columns, copied = work.ends, work.columns, work.weights
    end = ends[n_copied - 1] if n_copied else 0
    for a in range(n_copied, n):
        place[touched[a]] = a
    for a in range(n_copied, n):
        point = touched[a]
        for edge in range(rows[2 * point], rows[2 * point + 1]):
            other = indices[edge]
            if not marks[other] & TOUCHED:
                marks[other] |= TOUCHED
                place[other] = n
                touched[n] = other
                n += 1
            columns[end] = place[other]
            copied[end] = weights[edge]
            end += 1
        ends[a] = end
    return n


@summing
def multiply(ends, stride, columns, weights, work, n):  # type: ignore[no-untyped-def]
    """Multiply the direction by the matrix; return the curvature along it.

    Sums may be taken in any order here, since residuals are measured again afterwards.
    """
    u, q, diagonal, free = work.cg_u, work.cg_q, work.cg_diagonal, work.cg_free
    curvature = 0.0
    first = 0
    for a in range(n):
        total = diagonal[a] * u[a]
        end = ends[a * stride]
        for edge in range(first, end):
            total -= weights[edge] * u[columns[edge]]
        first = end
        q[a] = total * free[a]
        curvature += u[a] * q[a]
    return curvature


@kernel
def set_out(system, work, n, n_touched):  # type: ignore[no-untyped-def]
    """Lay the first ``n`` touched points side by side; return the square of the residual.

    Conjugate gradients with the diagonal as preconditioner. Points beyond, which only border on
    the first n, keep their values; so do clamped ones and those whose row is not here.
    """
    small()
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    touched = work.touched
    r, u = work.cg_r, work.cg_u
    diagonal, free, x = work.cg_diagonal, work.cg_free, work.cg_x
    square = 0.0
    for a in range(n):
        point = touched[a]
        fixed = marks[point] & CLAMPED != 0 or inverse[point] == 0.0
        diagonal[a] = 1.0 if fixed else 1.0 / inverse[point]
        free[a] = 0.0 if fixed else 1.0
        r[a] = 0.0 if fixed else residual[point]
        x[a] = value[point]
        u[a] = r[a] / diagonal[a]
        square += u[a] * r[a]
    for a in range(n, n_touched):
        u[a] = 0.0
    return square


@kernel
def advance(ends, stride, columns, weights, system, work, n, square, target):  # type: ignore[no-untyped-def]
    """Take steps until the residual is below the target; return their number and the square.

    Rows of the first ``n`` touched points are in ``columns`` and ``weights``, each up to its end,
    which are ``stride`` entries apart.
    """
    r, u, q = work.cg_r, work.cg_u, work.cg_q
    diagonal, x = work.cg_diagonal, work.cg_x
    plain, margin, touched = system.plain, system.margin, work.touched
    steps = 0
    worst = np.inf
    while steps < MOST_STEPS and square > 0.0 and worst > target and not work.stop[0]:
        curvature = multiply(ends, stride, columns, weights, work, n)
        if curvature <= 0.0:  # what is left is too small for its square
            break
        length = square / curvature
        following = worst = 0.0
        for a in range(n):
            x[a] += length * u[a]
            r[a] -= length * q[a]
            size = abs(r[a]) if plain else abs(r[a]) / margin[touched[a]]
            worst = max(worst, size)
            following += r[a] * r[a] / diagonal[a]
        steps += 1
        ratio = following / square
        square = following
        for a in range(n):
            u[a] = r[a] / diagonal[a] + ratio * u[a]
    return steps, square


@kernel
def settle(work, n):  # type: ignore[no-untyped-def]
    """Give the touched points what gradients have found."""
    small()
    residual, value, marks, touched = work.residual, work.value, work.marks, work.touched
    r, x, free = work.cg_r, work.cg_x, work.cg_free
    n_valued = work.n_valued[0]
    for a in range(n):
        if free[a] == 0.0:
            continue
        point = touched[a]
        value[point], residual[point] = x[a], r[a]
        work.valued[n_valued] = point
        n_valued += marks[point] & VALUED == 0
        marks[point] |= VALUED
    work.n_valued[0] = n_valued
