"""Push: points give away what their row lacks, and spread it to their neighbours. Compiled.

All kernels speak of the system ``c_i x_i - sum_j B_ji x_j = b_i`` whose rows sum to one or more
(see ``local.py``), with B stored by the point that spreads. Arrays of a tuple are named at the
top of each kernel, because taking one out of a tuple inside a loop is slow.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.prefetch import prefetch

TOUCHED, QUEUED, CLAMPED, LEFT_OUT = 1, 2, 4, 8
"""Marks of a point: reached, waiting to be pushed, eliminated, not part of the answer."""

FAR_AHEAD, NEAR_AHEAD, LINE = 8, 4, 16
"""Places in the queue whose memory is asked for in advance, and entries of four bytes in a line."""


@njit(nogil=True, cache=True)
def touch(work, n, point):  # type: ignore[no-untyped-def]
    """Take a point up unless it has been before."""
    if not work.marks[point] & TOUCHED:
        work.marks[point] |= TOUCHED
        work.touched[n] = point
        n += 1
    return n


@njit(nogil=True, cache=True)
def begin(system, work, query):  # type: ignore[no-untyped-def]
    """Set up a query in a clean workspace; return the number of touched points."""
    n = 0
    for point in query.clamped:
        n = touch(work, n, point)
        work.marks[point] |= CLAMPED
    for point in query.left_out:
        n = touch(work, n, point)
        work.marks[point] |= LEFT_OUT
    for a in range(len(query.pulled)):
        point = query.pulled[a]
        work.inverse[point] = 1.0 / (1.0 / work.inverse[point] + query.pull[a])
    for point in query.points:
        n = touch(work, n, point)
    for point in query.clamped:
        for edge in range(system.indptr[point], system.indptr[point + 1]):
            n = touch(work, n, system.indices[edge])
    give(system, work, query)
    return n


@njit(nogil=True, cache=True)
def give(system, work, query):  # type: ignore[no-untyped-def]
    """Add the right-hand side, to which clamped points give by their rows."""
    residual = work.residual
    for a in range(len(query.points)):
        residual[query.points[a]] += query.given[a]
    for a in range(len(query.clamped)):
        point = query.clamped[a]
        for edge in range(system.indptr[point], system.indptr[point + 1]):
            residual[system.indices[edge]] += system.spread[edge] * query.seeds[a]


@njit(nogil=True, cache=True)
def push(system, work, n, level, relaxation, limit):  # type: ignore[no-untyped-def]
    """Give every residual above the level to its point, which spreads it to its neighbours.

    With a relaxation above one it gives more than the residual: successive over-relaxation,
    restricted to where there is something to do. Stops early after ``limit`` edges.
    """
    indptr, indices, spread = system.indptr, system.indices, system.spread
    residual, value, inverse = work.residual, work.value, work.inverse
    marks, touched, queue = work.marks, work.touched, work.queue
    capacity = len(queue)
    head = size = n_edges = n_steps = 0
    largest = 0.0
    for a in range(n):
        point = touched[a]
        if not marks[point] & CLAMPED and abs(residual[point]) > level:
            queue[size] = point
            size += 1
            marks[point] |= QUEUED
    while size and n_edges < limit:
        if size > FAR_AHEAD:
            ahead = head + FAR_AHEAD
            coming = queue[ahead if ahead < capacity else ahead - capacity]
            prefetch(indptr, np.int64(coming))
            ahead = head + NEAR_AHEAD
            coming = queue[ahead if ahead < capacity else ahead - capacity]
            row = np.int64(indptr[coming])
            prefetch(inverse, np.int64(coming))
            prefetch(value, np.int64(coming))
            for line in range(0, 2 * LINE, LINE):
                prefetch(indices, row + line)
                prefetch(spread, row + line)
        point = queue[head]
        head += 1
        if head == capacity:
            head = 0
        size -= 1
        marks[point] ^= QUEUED
        before = residual[point]
        if abs(before) <= level:
            continue
        largest = max(largest, abs(before))
        step = relaxation * before * inverse[point]
        value[point] += step
        residual[point] = (1 - relaxation) * before
        n_steps += 1
        for edge in range(indptr[point], indptr[point + 1]):
            other = indices[edge]
            now = residual[other] + spread[edge] * step
            residual[other] = now
            mark = marks[other]
            if mark == 0:
                touched[n] = other
                n += 1
                mark = TOUCHED
                marks[other] = mark
            if abs(now) > level and not mark & (QUEUED | CLAMPED):
                tail = head + size
                if tail >= capacity:
                    tail -= capacity
                queue[tail] = other
                size += 1
                marks[other] = mark | QUEUED
        if abs(residual[point]) > level and not marks[point] & QUEUED:
            tail = head + size
            if tail >= capacity:
                tail -= capacity
            queue[tail] = point
            size += 1
            marks[point] |= QUEUED
        n_edges += indptr[point + 1] - indptr[point]
    finished = size == 0
    while size:
        marks[queue[head]] ^= QUEUED
        head += 1
        if head == capacity:
            head = 0
        size -= 1
    return n, n_edges, n_steps, largest, finished


@njit(nogil=True, cache=True)
def measure(system, work, n, query):  # type: ignore[no-untyped-def]
    """Compute the residuals of all touched points from their values, afresh."""
    indptr, indices, spread = system.indptr, system.indices, system.spread
    residual, value, inverse, touched = work.residual, work.value, work.inverse, work.touched
    for a in range(n):
        residual[touched[a]] = 0.0
    give(system, work, query)
    for a in range(n):
        point = touched[a]
        now = value[point]
        if now != 0.0:
            residual[point] -= now / inverse[point]
            for edge in range(indptr[point], indptr[point + 1]):
                residual[indices[edge]] += spread[edge] * now


@njit(nogil=True, cache=True)
def refine(work, n):  # type: ignore[no-untyped-def]
    """Give every point its own residual, which is part of its error; the others stay."""
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    for a in range(n):
        point = work.touched[a]
        if not marks[point] & CLAMPED:
            value[point] += residual[point] * inverse[point]


@njit(nogil=True, cache=True)
def clear(work, n, query, inverses):  # type: ignore[no-untyped-def]
    """Leave the workspace as it was found."""
    for a in range(n):
        point = work.touched[a]
        work.residual[point] = 0.0
        work.value[point] = 0.0
        work.marks[point] = 0
    for point in query.pulled:
        work.inverse[point] = inverses[point]
