"""Push: points take up what their row lacks, and spread it to their neighbours. Compiled.

All kernels speak of ``c_i x_i - sum_j a_ij x_j = b_i`` with ``c_i = m_i + sum_j a_ij`` and
``a = beta W``, see `System`; residuals are measured in margins, ``|r_i| / m_i``. Kernels get a
`Handle` of all arrays, which are named at the top of each, because reading one from there inside
a loop is slow. Nothing checks an index, and loops write without asking: branches that cannot be
predicted took more than half of the time.
"""

from __future__ import annotations

import numpy as np

from rankfold.solvers.arrays import PLAN_ROW, PREFETCH_DISTANCE, QueryArrays
from rankfold.solvers.memory import ZERO, after, kernel, prefetch, small

TOUCHED, CLAMPED, LEFT_OUT, VALUED, INSIDE = (np.uint8(mark) for mark in (1, 2, 4, 8, 16))
"""Marks: reached, eliminated, not part of the answer, given a value, in the final region."""

NOT_IN_ANSWER = CLAMPED | LEFT_OUT

FAR_AHEAD, NEAR_AHEAD, LINE = PREFETCH_DISTANCE, 5, 16
"""Places in the queue whose memory is prefetched, and entries of four bytes in a cache line."""

UNIT = float(np.finfo(np.float64).eps)


@kernel
def query_of(batch, i):  # type: ignore[no-untyped-def]
    """Return one query of several."""
    small()
    plan, numbers, reals = batch.plan, batch.numbers, batch.reals
    given, clamped, left_out, pulled = plan[0], plan[1], plan[2], plan[3]
    here = after(plan, 4 + PLAN_ROW * i)
    then = after(here, PLAN_ROW)
    return QueryArrays(
        after(numbers, here[0]),
        after(reals, here[0]),
        then[0] - here[0],
        after(numbers, given + here[1]),
        after(reals, given + here[1]),
        then[1] - here[1],
        after(numbers, given + clamped + here[2]),
        then[2] - here[2],
        after(numbers, given + clamped + left_out + here[3]),
        after(reals, given + clamped + here[3]),
        then[3] - here[3],
        reals[given + clamped + pulled + i],
        then[4],
        then[5],
        then[6],
        here[2],
    )


@kernel
def rounding(system, query):  # type: ignore[no-untyped-def]
    """Return what a value adds to the rounding of a residual, and what a fresh one has of it.

    The former enters whole rows, the latter is that of sums.
    """
    small()
    pull = 0.0
    for a in range(query.n_pulled):
        pull += query.pull[a]
    per_value = 2 * UNIT * (system.largest_diagonal + pull) * query.size
    return per_value, (system.longest_row + query.n_pulled + 4) * per_value


@kernel
def touch(work, n, point):  # type: ignore[no-untyped-def]
    """Take a point up unless it has been before."""
    small()
    if not work.marks[point] & TOUCHED:
        work.marks[point] |= TOUCHED
        work.touched[n] = point
        n += 1
    return n


@kernel
def begin(system, work, query):  # type: ignore[no-untyped-def]
    """Set up a query in a clean workspace; return the number of touched points."""
    small()
    n = ZERO
    for a in range(query.n_clamped):
        point = np.int32(query.clamped[a])
        n = touch(work, n, point)
        work.marks[point] |= CLAMPED
    for a in range(query.n_left_out):
        point = np.int32(query.left_out[a])
        n = touch(work, n, point)
        work.marks[point] |= LEFT_OUT
    for a in range(query.n_pulled):
        point = query.pulled[a]
        work.inverse[point] = 1.0 / (1.0 / work.inverse[point] + query.pull[a])
    for a in range(query.n_given):
        n = touch(work, n, np.int32(query.points[a]))
    for a in range(query.n_clamped):
        point = query.clamped[a]
        for edge in range(system.rows[2 * point], system.rows[2 * point + 1]):
            n = touch(work, n, system.indices[edge])
    give(system, work, query)
    return n


@kernel
def give(system, work, query):  # type: ignore[no-untyped-def]
    """Add the right-hand side, to which clamped points give by their rows."""
    small()
    rows, indices, weights, residual = system.rows, system.indices, system.weights, work.residual
    for a in range(query.n_given):
        residual[query.points[a]] += query.rhs[a]
    for a in range(query.n_clamped):
        point = query.clamped[a]
        for edge in range(rows[2 * point], rows[2 * point + 1]):
            residual[indices[edge]] += weights[edge] * query.values[a]


@kernel
def prefetch_row(system, point):  # type: ignore[no-untyped-def]
    """Prefetch the row of a point, or the beginning of a long one."""
    small()
    row = system.rows[2 * point]
    for line in range(0, 2 * LINE, LINE):
        prefetch(system.indices, row + line)
        prefetch(system.weights, row + line)


@kernel
def gather(system, work, n, level):  # type: ignore[no-untyped-def]
    """Queue the touched points whose residual is above the level.

    Returns their number, the largest residual above zero and below, and the largest of points
    that are passed over because their row is not here. Clamped points, which were touched first,
    have none.
    """
    residual, marks, touched, queue = work.residual, work.marks, work.touched, work.queue
    margin = system.margin
    first = 0
    while first < n and marks[touched[first]] & CLAMPED:
        first += 1
    above = below = beyond = 0.0
    n_queued = 0
    if system.plain and not system.goes_on:
        for a in range(first, n):
            point = touched[a]
            now = residual[point]
            queue[n_queued] = point
            n_queued += abs(now) > level
            above = max(above, now)
            below = min(below, now)
        return n_queued, above, -below, beyond
    for a in range(first, n):
        point = touched[a]
        now = residual[point] / margin[point]
        above = max(above, now)
        below = min(below, now)
        if system.goes_on and work.inverse[point] == 0.0:
            beyond = max(beyond, abs(now))
        else:
            queue[n_queued] = point
            n_queued += abs(now) > level
    return n_queued, above, -below, beyond


@kernel
def note_lacking(work, point):  # type: ignore[no-untyped-def]
    """Note that the row of a point is needed, but is not here."""
    small()
    n = work.n_lacking[0]
    if n < work.room:
        work.lacking[n] = point
        work.n_lacking[0] = n + 1


@kernel
def lacks_any(work, points, n):  # type: ignore[no-untyped-def]
    """Note which of the first ``n`` of some points have no row here; return whether any has none.

    Clamped points were asked for before.
    """
    small()
    inverse, marks = work.inverse, work.marks
    for a in range(n):
        point = points[a]
        if inverse[point] == 0.0 and marks[point] & CLAMPED == 0:
            note_lacking(work, point)
    return work.n_lacking[0] > 0


@kernel
def count_new(work, n_queued):  # type: ignore[no-untyped-def]
    """Return how many of the queued points have no value yet."""
    small()
    n_new = 0
    for a in range(n_queued):
        n_new += work.marks[work.queue[a]] & VALUED == 0
    return n_new


@kernel
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
    n_valued = work.n_valued[0]
    n_edges = 0
    largest = 0.0
    for ahead in range(FAR_AHEAD):  # so that there is something to prefetch at the end, too
        queue[n_queued + ahead] = queue[0]
    for a in range(n_queued):
        coming = queue[a + FAR_AHEAD]
        prefetch(rows, 2 * coming)
        prefetch(residual, coming)
        prefetch(inverse, coming)
        prefetch(value, coming)
        prefetch_row(system, queue[a + NEAR_AHEAD])
        point = queue[a]
        before, mark = residual[point], marks[point]
        valued[n_valued] = point
        n_valued += mark & VALUED == 0
        marks[point] = mark | VALUED
        largest = max(largest, abs(before) if plain else abs(before) / margin[point])
        step = relaxation * before * inverse[point]
        value[point] += step
        residual[point] = (1 - relaxation) * before
        edge, end = rows[2 * point], rows[2 * point + 1]
        n_edges += end - edge
        while edge < end:
            other = indices[edge]
            residual[other] += weights[edge] * step
            mark = marks[other]
            touched[n] = other
            n += mark == 0
            marks[other] = mark | TOUCHED
            edge += 1
    work.n_valued[0] = n_valued
    return n, n_edges, largest


@kernel
def measure(system, work, n, query):  # type: ignore[no-untyped-def]
    """Compute the residuals of all touched points from their values."""
    small()
    rows, indices, weights = system.rows, system.indices, system.weights
    residual, value, inverse = work.residual, work.value, work.inverse
    touched, valued = work.touched, work.valued
    for a in range(n):
        residual[touched[a]] = 0.0
    give(system, work, query)
    for a in range(work.n_valued[0]):
        point = valued[a]
        now = value[point]
        residual[point] -= now / inverse[point]
        for edge in range(rows[2 * point], rows[2 * point + 1]):
            residual[indices[edge]] += weights[edge] * now


@kernel
def clear(system, work, n, query):  # type: ignore[no-untyped-def]
    """Leave the workspace as it was found."""
    small()
    residual, value, marks, touched = work.residual, work.value, work.marks, work.touched
    for a in range(n):
        point = touched[a]
        residual[point] = 0.0
        value[point] = 0.0
        marks[point] = 0
    work.n_valued[0] = work.n_likely[0] = work.n_lacking[0] = 0
    for a in range(query.n_pulled):
        point = query.pulled[a]
        work.inverse[point] = system.inverse[point]
