"""Push: points take up what their row lacks, and spread it to their neighbours. Compiled.

All kernels speak of ``c_i x_i - sum_j a_ij x_j = b_i`` with ``c_i = m_i + sum_j a_ij`` and
``a = beta W``, see `System`; residuals are measured in margins, ``|r_i| / m_i``. Arrays of a tuple
are named at the top of each kernel, because taking one out of a tuple inside a loop is slow.
Indices are made unsigned by `at`, and loops write without asking: tests for negative indices and
branches that cannot be predicted took more than half of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from rankfold.solvers.arrays import PREFETCH_DISTANCE

at = np.uint64
"""Makes a number an index that cannot be negative."""

ONE = at(1)
TOUCHED, CLAMPED, LEFT_OUT, VALUED, INSIDE = (np.uint8(mark) for mark in (1, 2, 4, 8, 16))
"""Marks: reached, eliminated, not part of the answer, given a value, in the final region."""

NOT_IN_ANSWER = CLAMPED | LEFT_OUT

FAR_AHEAD, NEAR_AHEAD, LINE = at(PREFETCH_DISTANCE), at(5), 16
"""Places in the queue whose memory is prefetched, and entries of four bytes in a cache line."""


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line that holds ``array[index]``; nothing is read or checked.

    Rows of a graph lie far apart in memory, and a walk over them mostly waits for it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        insert: Any = cgutils.get_or_insert_function
        call = insert(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        for_reading, keep_near, of_data = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(call, [address, for_reading, keep_near, of_data])
        return context.get_dummy_value()

    return types.void(array, index), generate


prefetch: Any = intrinsic(_prefetch)


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
        for edge in range(system.rows[point, 0], system.rows[point, 1]):
            n = touch(work, n, system.indices[edge])
    give(system, work, query)
    return n


@njit(nogil=True, cache=True)
def give(system, work, query):  # type: ignore[no-untyped-def]
    """Add the right-hand side, to which clamped points give by their rows."""
    residual = work.residual
    for a in range(len(query.points)):
        residual[query.points[a]] += query.rhs[a]
    for a in range(len(query.clamped)):
        point = query.clamped[a]
        for edge in range(system.rows[point, 0], system.rows[point, 1]):
            residual[system.indices[edge]] += system.weights[edge] * query.values[a]


@njit(nogil=True, cache=True)
def prefetch_row(system, point):  # type: ignore[no-untyped-def]
    """Prefetch the row of a point, or the beginning of a long one."""
    row = np.int64(system.rows[point, 0])
    for line in range(0, 2 * LINE, LINE):
        prefetch(system.indices, row + line)
        prefetch(system.weights, row + line)


@njit(nogil=True, cache=True)
def gather(system, work, n, level):  # type: ignore[no-untyped-def]
    """Queue the touched points whose residual is above the level.

    Returns their number, the largest residual above zero and below, and the largest of points
    that are passed over because their row is not here. Clamped points, which were touched first,
    have none.
    """
    residual, marks, touched, queue = work.residual, work.marks, work.touched, work.queue
    margin = system.margin
    first = 0
    while first < n and marks[at(touched[first])] & CLAMPED:
        first += 1
    above = below = beyond = 0.0
    n_queued = at(0)
    if system.plain and not system.goes_on:
        for a in range(first, n):
            point = at(touched[a])
            now = residual[point]
            queue[n_queued] = point
            n_queued += at(abs(now) > level)
            above = max(above, now)
            below = min(below, now)
        return np.int64(n_queued), above, -below, beyond
    for a in range(first, n):
        point = at(touched[a])
        now = residual[point] / margin[point]
        above = max(above, now)
        below = min(below, now)
        if system.goes_on and work.inverse[point] == 0.0:
            beyond = max(beyond, abs(now))
        else:
            queue[n_queued] = point
            n_queued += at(abs(now) > level)
    return np.int64(n_queued), above, -below, beyond


@njit(nogil=True, cache=True)
def note_lacking(work, point):  # type: ignore[no-untyped-def]
    """Note that the row of a point is needed, but is not here."""
    n = work.n_lacking[0]
    if n < len(work.lacking):
        work.lacking[n] = point
        work.n_lacking[0] = n + 1


@njit(nogil=True, cache=True)
def lacks_any(work, points, n):  # type: ignore[no-untyped-def]
    """Note which of the first ``n`` of some points have no row here; return whether any has none.

    Clamped points were asked for before.
    """
    inverse, marks = work.inverse, work.marks
    for a in range(n):
        point = at(points[a])
        if inverse[point] == 0.0 and marks[point] & CLAMPED == 0:
            note_lacking(work, point)
    return work.n_lacking[0] > 0


@njit(nogil=True, cache=True)
def count_new(work, n_queued):  # type: ignore[no-untyped-def]
    """Return how many of the queued points have no value yet."""
    n_new = 0
    for a in range(n_queued):
        n_new += work.marks[at(work.queue[a])] & VALUED == 0
    return n_new


@njit(nogil=True, cache=True)
def push(system, work, n, n_queued, relaxation):  # type: ignore[no-untyped-def]
    """Give the residuals of queued points to them, one after the other, and spread the rest.

    With a relaxation above one a point is given more than its residual: successive
    over-relaxation, restricted to where there is something to do. Returns the number of touched
    points, of edges that were passed, and the largest residual that was given.
    """
    rows, indices, weights = system.rows, system.indices, system.weights
    residual, value, inverse = work.residual, work.value, work.inverse
    marks, touched, valued, queue = work.marks, work.touched, work.valued, work.queue
    plain, margin = system.plain, system.margin
    n, n_valued, n_queued = at(n), at(work.n_valued[0]), at(n_queued)
    n_edges = 0
    largest = 0.0
    for ahead in range(FAR_AHEAD):  # so that there is something to prefetch at the end, too
        queue[n_queued + at(ahead)] = queue[at(0)]
    for a in range(n_queued):
        coming = at(queue[a + FAR_AHEAD])
        prefetch(rows, 2 * np.int64(coming))
        prefetch(residual, np.int64(coming))
        prefetch(inverse, np.int64(coming))
        prefetch(value, np.int64(coming))
        prefetch_row(system, at(queue[a + NEAR_AHEAD]))
        point = at(queue[a])
        before, mark = residual[point], marks[point]
        valued[n_valued] = point
        n_valued += at(mark & VALUED == 0)
        marks[point] = mark | VALUED
        largest = max(largest, abs(before) if plain else abs(before) / margin[point])
        step = relaxation * before * inverse[point]
        value[point] += step
        residual[point] = (1 - relaxation) * before
        edge, end = at(rows[point, 0]), at(rows[point, 1])
        n_edges += int(end - edge)
        while edge < end:
            other = at(indices[edge])
            residual[other] += weights[edge] * step
            mark = marks[other]
            touched[n] = other
            n += at(mark == 0)
            marks[other] = mark | TOUCHED
            edge += ONE
    work.n_valued[0] = np.int64(n_valued)
    return np.int64(n), n_edges, largest


@njit(nogil=True, cache=True)
def measure(system, work, n, query):  # type: ignore[no-untyped-def]
    """Compute the residuals of all touched points from their values, afresh."""
    rows, indices, weights = system.rows, system.indices, system.weights
    residual, value, inverse = work.residual, work.value, work.inverse
    touched, valued = work.touched, work.valued
    for a in range(n):
        residual[at(touched[a])] = 0.0
    give(system, work, query)
    for a in range(work.n_valued[0]):
        point = at(valued[a])
        now = value[point]
        residual[point] -= now / inverse[point]
        for edge in range(at(rows[point, 0]), at(rows[point, 1])):
            residual[at(indices[edge])] += weights[edge] * now


@njit(nogil=True, cache=True)
def refine(system, work, n):  # type: ignore[no-untyped-def]
    """Add to every value its own residual, which is part of its error; residuals stay."""
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    for a in range(n):
        point = at(work.touched[a])
        if not marks[point] & CLAMPED:
            value[point] += residual[point] * inverse[point]


@njit(nogil=True, cache=True)
def clear(work, n, query, inverses):  # type: ignore[no-untyped-def]
    """Leave the workspace as it was found."""
    residual, value, marks, touched = work.residual, work.value, work.marks, work.touched
    for a in range(n):
        point = at(touched[a])
        residual[point] = 0.0
        value[point] = 0.0
        marks[point] = 0
    work.n_valued[0] = work.n_likely[0] = work.n_lacking[0] = 0
    for point in query.pulled:
        work.inverse[point] = inverses[point]
