"""Conjugate gradients on the points that a query has touched, compiled."""

from __future__ import annotations

from numba import njit

from rankfold.solvers.push import CLAMPED, TOUCHED

POLISH_DEPTH, POLISH_STEPS = 0.1, 200
"""How far below the level gradients bring the residual, and in how many steps at most."""


@njit(nogil=True, cache=True)
def copy_rows(system, work, n, n_rows):  # type: ignore[no-untyped-def]
    """Copy the rows of touched points, in the order of touching; their neighbours are touched."""
    indptr, indices, spread = system.indptr, system.indices, system.spread
    place, touched, marks = work.place, work.touched, work.marks
    ends, columns, weights = work.ends, work.columns, work.weights
    end = ends[n_rows - 1] if n_rows else 0
    for a in range(n_rows, n):
        place[touched[a]] = a
    for a in range(n_rows, n):
        point = touched[a]
        for edge in range(indptr[point], indptr[point + 1]):
            other = indices[edge]
            if not marks[other] & TOUCHED:
                marks[other] |= TOUCHED
                place[other] = n
                touched[n] = other
                n += 1
            columns[end] = place[other]
            weights[end] = spread[edge]
            end += 1
        ends[a] = end
    return n


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def spread_direction(work, n):  # type: ignore[no-untyped-def]
    """Multiply the direction by the matrix; return the curvature along it.

    Sums may be taken in any order here, since residuals are measured afresh afterwards.
    """
    ends, columns, weights = work.ends, work.columns, work.weights
    u, q, diagonal, share = work.compact[1], work.compact[2], work.compact[3], work.compact[4]
    curvature = 0.0
    first = 0
    for a in range(n):
        total = diagonal[a] * u[a]
        for edge in range(first, ends[a]):
            total -= weights[edge] * u[columns[edge]]
        first = ends[a]
        q[a] = total * share[a]
        curvature += u[a] * q[a]
    return curvature


@njit(nogil=True, cache=True)
def polish(system, work, n, n_touched, target):  # type: ignore[no-untyped-def]
    """Bring the residual of the first ``n`` touched points below the target.

    Conjugate gradients with the diagonal as preconditioner, for the symmetric system that
    multiplying every row by its margin gives. Points beyond, which only border on the first n,
    keep their values; so do clamped ones, whose share of every step is zero.
    """
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    touched, margin = work.touched, system.margin
    r, u, q = work.compact[0], work.compact[1], work.compact[2]
    diagonal, share, x = work.compact[3], work.compact[4], work.compact[5]
    square = 0.0
    for a in range(n):
        point = touched[a]
        diagonal[a] = 1.0 / inverse[point]
        share[a] = 0.0 if marks[point] & CLAMPED else 1.0 / margin[point]
        r[a] = 0.0 if marks[point] & CLAMPED else residual[point]
        x[a] = value[point]
        u[a] = margin[point] * r[a] / diagonal[a]
        square += u[a] * r[a]
    u[n:n_touched] = 0.0
    steps = 0
    while steps < POLISH_STEPS and square > 0.0:
        length = square / spread_direction(work, n)
        following = worst = 0.0
        for a in range(n):
            x[a] += length * u[a] * share[a]
            r[a] -= length * q[a]
            worst = max(worst, abs(r[a]))
            if share[a] > 0.0:
                following += r[a] * r[a] / (diagonal[a] * share[a])
        steps += 1
        if worst <= target:
            break
        ratio = following / square
        square = following
        for a in range(n):
            if share[a] > 0.0:
                u[a] = r[a] / (diagonal[a] * share[a]) + ratio * u[a]
    for a in range(n):
        value[touched[a]] = x[a]
    return steps
