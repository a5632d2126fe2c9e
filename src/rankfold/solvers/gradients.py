"""Conjugate gradients on the points that a query has touched. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.push import CLAMPED, ONE, TOUCHED, VALUED, at


@njit(nogil=True, cache=True)
def copy_rows(system, work, n, n_rows):  # type: ignore[no-untyped-def]
    """Copy the rows of touched points, in the order of touching; their neighbours are touched."""
    indptr, indices, spread = system.indptr, system.indices, system.spread
    place, touched, marks = work.place, work.touched, work.marks
    ends, columns, weights = work.ends, work.columns, work.weights
    end = ends[n_rows - 1] if n_rows else 0
    for a in range(n_rows, n):
        place[at(touched[a])] = a
    for a in range(n_rows, n):
        point = at(touched[a])
        for edge in range(at(indptr[point]), at(indptr[point + ONE])):
            other = at(indices[edge])
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
def spread_direction(ends, columns, weights, work, n):  # type: ignore[no-untyped-def]
    """Multiply the direction by the matrix; return the curvature along it.

    Sums may be taken in any order here, since residuals are measured afresh afterwards.
    """
    u, q, diagonal, share = work.compact[1], work.compact[2], work.compact[3], work.compact[4]
    curvature = 0.0
    first = at(0)
    for a in range(n):
        total = diagonal[a] * u[a]
        end = at(ends[a])
        for edge in range(first, end):
            total -= weights[edge] * u[at(columns[edge])]
        first = end
        q[a] = total * share[a]
        curvature += u[a] * q[a]
    return curvature


@njit(nogil=True, cache=True)
def set_out(system, work, n, n_touched):  # type: ignore[no-untyped-def]
    """Lay the first ``n`` touched points side by side; return the square of the residual.

    Conjugate gradients with the diagonal as preconditioner, for the symmetric system that
    multiplying every row by its margin gives. Points beyond, which only border on the first n,
    keep their values; so do clamped ones, whose share of every step is zero.
    """
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    touched, margin = work.touched, system.margin
    r, u = work.compact[0], work.compact[1]
    diagonal, share, x = work.compact[3], work.compact[4], work.compact[5]
    square = 0.0
    for a in range(n):
        point = at(touched[a])
        diagonal[a] = 1.0 / inverse[point]
        share[a] = 0.0 if marks[point] & CLAMPED else 1.0 / margin[point]
        r[a] = 0.0 if marks[point] & CLAMPED else residual[point]
        x[a] = value[point]
        u[a] = margin[point] * r[a] / diagonal[a]
        square += u[a] * r[a]
    u[n:n_touched] = 0.0
    return square


@njit(nogil=True, cache=True)
def advance(ends, columns, weights, work, n, square, target, most):  # type: ignore[no-untyped-def]
    """Take steps until the residual is below the target; return their number and the square.

    Rows of the first ``n`` touched points are in ``columns`` and ``weights``, each up to its end.
    """
    r, u, q = work.compact[0], work.compact[1], work.compact[2]
    diagonal, share, x = work.compact[3], work.compact[4], work.compact[5]
    steps = 0
    worst = np.inf
    while steps < most and square > 0.0 and worst > target:
        length = square / spread_direction(ends, columns, weights, work, n)
        following = worst = 0.0
        for a in range(n):
            x[a] += length * u[a] * share[a]
            r[a] -= length * q[a]
            worst = max(worst, abs(r[a]))
            if share[a] > 0.0:
                following += r[a] * r[a] / (diagonal[a] * share[a])
        steps += 1
        ratio = following / square
        square = following
        for a in range(n):
            if share[a] > 0.0:
                u[a] = r[a] / (diagonal[a] * share[a]) + ratio * u[a]
    return steps, square


@njit(nogil=True, cache=True)
def settle(work, n):  # type: ignore[no-untyped-def]
    """Give the touched points what gradients have found."""
    residual, value, marks, touched = work.residual, work.value, work.marks, work.touched
    r, x = work.compact[0], work.compact[5]
    n_valued = at(work.n_valued[0])
    for a in range(n):
        point = at(touched[a])
        value[point] = x[a]
        if not marks[point] & CLAMPED:
            residual[point] = r[a]
        work.valued[n_valued] = point
        n_valued += at(marks[point] & VALUED == 0)
        marks[point] |= VALUED
    work.n_valued[0] = np.int64(n_valued)
