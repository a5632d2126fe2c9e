"""One query of the region solver: grow by push, solve inside, judge what is proven. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from rankfold.solvers.arrays import (
    NEEDS_ROWS,
    OUT_OF_BUDGET,
    PAUSED,
    PREFETCH_DISTANCE,
    PROVEN,
    UNLIMITED,
    WITHIN_TOL,
    Progress,
)
from rankfold.solvers.certificate import (
    bounds,
    error_thrice,
    error_twice,
    judge,
    plain_side,
    put_largest_first,
    scale_of,
    side,
    sort_by_score,
)
from rankfold.solvers.push import (
    CLAMPED,
    INSIDE,
    NOT_IN_ANSWER,
    TOUCHED,
    VALUED,
    at,
    begin,
    clear,
    count_new,
    gather,
    lacks_any,
    measure,
    note_lacking,
    prefetch,
    prefetch_row,
    push,
)
from rankfold.solvers.system import Boundary

FIRST_LEVEL = 0.1
"""Share of the largest value below which residuals are brought first."""

FAR_RATIO, NEAR_RATIO = 0.25, 0.5
"""What residuals fall to before the top is judged again; sooner where a proof is near."""

LAG = 2.0
"""How far residuals may stay behind the level, which is halved with every sweep otherwise."""

FEW_EDGES = 5_000
"""Edges that are pushed sooner than gradients are set up."""

POLISH_DEPTH, MOST_STEPS = 0.03, 200
"""How far below the level gradients bring the residual, and in how many steps at most."""

BORDER_DEPTH = 0.03
"""How far below the residuals of missing rows those of known rows are brought."""

FINAL_DEPTH = 0.03
"""How far gradients reduce the residual of a region that has used up its budget."""

NEAR, MOST_DOUBT = 0.06, 2.6
"""Scores that count as near the end of the top, in proportion to it; and how many times as many
as the top has may lie within a mean error of its end before the region grows on. One in six
queries of MNIST has more, among them all that would miss more than three of their best 100."""

LIKELY, DOUBTFUL = 0.2, 0.05
"""Distances from the end of an uncertain top, in levels, within which guesses are made better."""

FEW = 8
"""Most points on either side for which the most expensive guess is made."""

ALL_ROWS = -1
"""In place of a number of missing rows: all are needed."""

NOT_INSIDE = np.uint8(255 - INSIDE)

UNIT = float(np.finfo(np.float64).eps)


@njit(nogil=True, cache=True)
def solve(system, work, progress, query, top, tol, budgets, rule):  # type: ignore[no-untyped-def]
    """Lower the level until the top is proven, the bound is within tol, or the budget is used up.

    A sweep pushes every point whose residual is above the level, which then is halved. Where
    sweeps pass the region's edges too often before residuals have fallen far enough to judge the
    top again, gradients do the bulk and push goes on at the border. A region that has become
    a good part of the graph gives way to gradients on all of it. A region of as many points as
    the budget allows is solved once by gradients, with zero around it; where the end of the top
    is in doubt then, and there is a larger budget for that, push grows it on to that size. Where
    a row is needed that is not here, it stops before anything else is decided.
    """
    n, n_copied, whole, level, drift, last, above, below, n_steps, n_edges, _ = progress
    n_points = len(system.margin)
    budget, most = budgets
    if work.n_valued[0] >= budget:  # it grew on before it paused
        budget = most
    strict = system.most_inverse > 0.0 and not system.goes_on  # rows may be missing
    # Rounding of a push: of its sums, and of a value that enters its whole row.
    per_value = 2 * UNIT * (system.largest_diagonal + query.pull.sum()) * query.size
    fresh = (system.longest_row + len(query.pulled) + 4) * per_value
    tol = max(tol, 20 * fresh)
    level = max(level, tol)
    if n_steps == 0:  # the right-hand side was added up
        drift = fresh
    pause, passed, due = n_edges + rule.pause, 0, np.inf
    while n_edges < pause and not work.stop[0]:
        if whole:
            progress = Progress(
                n, n_copied, whole, level, drift, last, above, below, n_steps, n_edges, PAUSED
            )
            return solve_whole(system, work, progress, query, top, tol, fresh, 10 * rule.pause)
        n_queued, above, below, beyond = gather(system, work, n, level)
        above, below = above + drift, below + drift
        bound, precise = max(above, below), drift <= 0.1 * level
        ended = n_queued == 0 and (level <= tol or level <= BORDER_DEPTH * beyond)
        if precise and (bound <= due or ended):
            last, certain, near = judge(system, work, top, last, above, below, drift)
            lacks = strict and work.n_lacking[0] > 0
            if certain or ended or lacks:
                state = NEEDS_ROWS if lacks else PROVEN if certain else WITHIN_TOL
                return Progress(
                    n, n_copied, whole, level, drift, last, above, below, n_steps, n_edges, state
                )
            due, passed = bound * (NEAR_RATIO if near else FAR_RATIO), 0
        impatient = passed >= rule.patience * (FEW_EDGES + system.mean_row * n)
        if budget < UNLIMITED and (
            (n > budget and work.n_valued[0] + count_new(work, n_queued) > budget)
            or (impatient and n > budget)
        ):
            if strict and region_lacks(system, work, n, budget):
                break
            n, steps, edges = solve_inside(system, work, n, budget)
            measure(system, work, n, query)
            above, below = bounds(system, work, n, fresh)
            last, certain, _ = judge(system, work, top, 0.0, above, below, fresh)
            n_steps, n_edges = n_steps + steps, n_edges + edges
            if strict and work.n_lacking[0] > 0:
                break
            in_doubt = not certain and budget < most
            if in_doubt and doubt(system, work, n, last) > MOST_DOUBT * top:
                budget, drift, passed, due = most, fresh, 0, np.inf
                n_copied = 0  # the rows of the region lie where copies did
                pause = n_edges + rule.pause
                continue
            state = PROVEN if certain else OUT_OF_BUDGET
            return Progress(
                n, n_copied, whole, level, fresh, last, above, below, n_steps, n_edges, state
            )
        if precise and not impatient:
            if strict and lacks_any(work, work.queue, n_queued):
                break
            n, edges, largest = push(system, work, n, n_queued, rule.relaxation)
            n_steps += n_queued
            n_edges += edges
            passed += edges
            drift += n_queued * (2 * UNIT * largest + per_value)
            if bound <= LAG * level or n_queued == 0:
                level = max(tol, level / 2)
            continue
        if precise and n >= rule.whole_share * system.n_points and budget == UNLIMITED:
            if strict:
                work.n_lacking[0] = ALL_ROWS
                break
            if system.goes_on:  # there is no whole graph here; it has looked far enough ahead
                return Progress(
                    n, n_copied, whole, level, drift, last, above, below, n_steps, n_edges,
                    NEEDS_ROWS,
                )  # fmt: skip
            n, whole = touch_all(work, n_points), True
        elif precise:
            if strict and lacks_any(work, work.touched, n):
                break
            level, n_region = max(tol, min(level, due)), n
            n = copy_rows(system, work, n, n_copied)
            n_copied = n_region
            square = set_out(system, work, n_region, n)
            ends, columns, weights = work.ends, work.columns, work.weights
            target = level * POLISH_DEPTH
            steps = advance(
                ends, columns, weights, system, work, n_region, square, target, MOST_STEPS
            )[0]
            settle(work, n_region)
            n_steps += steps
            n_edges += steps * ends[n_region - 1] if n_region else 0
            passed = 0
        measure(system, work, n, query)
        drift = fresh
    state = NEEDS_ROWS if strict and work.n_lacking[0] != 0 else PAUSED
    return Progress(n, n_copied, whole, level, drift, last, above, below, n_steps, n_edges, state)


@njit(nogil=True, cache=True)
def doubt(system, work, n, last):  # type: ignore[no-untyped-def]
    """Return how many scores lie within a mean error of ``last``, that of the last of the top.

    ``1'A = m'`` and ``A e = r``, so that the sum of all errors, in margins, is that of the
    residuals: what the border lacks. Spread evenly over the region it gives the mean error. Most
    of it is common to the points around the end of the top, and leaves their order as it is.
    """
    residual, value, marks, margin = work.residual, work.value, work.marks, system.margin
    lacking = weight = near = 0.0
    if last <= 0.0:  # the top has no end yet
        return 0.0
    for a in range(n):
        point = at(work.touched[a])
        if marks[point] & (CLAMPED | VALUED) == 0:
            lacking += abs(residual[point])
    for a in range(work.n_valued[0]):
        point = at(work.valued[a])
        scale = scale_of(system, point)
        weight += margin[point] / scale
        near += max(0.0, 1.0 - abs(scale * value[point] - last) / (NEAR * last))
    return lacking / weight * near / (NEAR * last)


@njit(nogil=True, cache=True)
def touch_all(work, n_points):  # type: ignore[no-untyped-def]
    """Take up every point, in the order of the graph; return their number."""
    for point in range(n_points):
        work.touched[point] = point
        work.marks[point] |= TOUCHED
    return n_points


@njit(nogil=True, cache=True)
def solve_whole(system, work, progress, query, top, tol, fresh, most_edges):  # type: ignore[no-untyped-def]
    """Go on with gradients on the whole graph, whose residuals have just been measured.

    The course of the gradients is not broken at a level: the top is judged by the residuals that
    they carry along, and measured only for an answer.
    """
    n, n_copied, _, level, _, last, above, below, n_steps, n_edges, _ = progress
    ends, columns, weights = system.rows[:, 1], system.indices, system.weights
    pause = n_edges + most_edges
    square = set_out(system, work, n, n)
    while n_edges < pause and not work.stop[0]:
        steps, square = advance(ends, columns, weights, system, work, n, square, level, MOST_STEPS)
        settle(work, n)
        n_steps += steps
        n_edges += (steps + 1) * len(columns)
        above, below = bounds(system, work, n, fresh)
        last, certain, near = judge(system, work, top, last, above, below, fresh)
        if certain or level <= tol or steps == MOST_STEPS:
            measure(system, work, n, query)
            above, below = bounds(system, work, n, fresh)
            last, certain, near = judge(system, work, top, last, above, below, fresh)
            if certain or max(above, below) <= 2 * tol:
                state = PROVEN if certain else WITHIN_TOL
                return Progress(
                    n, n_copied, True, level, fresh, last, above, below, n_steps, n_edges, state
                )
            square = set_out(system, work, n, n)
        level = max(tol, level * (NEAR_RATIO if near else FAR_RATIO))
    measure(system, work, n, query)
    return Progress(n, n_copied, True, level, fresh, last, above, below, n_steps, n_edges, PAUSED)


@njit(nogil=True, cache=True)
def copy_rows(system, work, n, n_copied):  # type: ignore[no-untyped-def]
    """Copy the rows of touched points, in the order of touching; their neighbours are touched."""
    rows, indices, weights = system.rows, system.indices, system.weights
    place, touched, marks = work.place, work.touched, work.marks
    ends, columns, copied = work.ends, work.columns, work.weights
    end = ends[n_copied - 1] if n_copied else 0
    for a in range(n_copied, n):
        place[at(touched[a])] = a
    for a in range(n_copied, n):
        point = at(touched[a])
        for edge in range(at(rows[point, 0]), at(rows[point, 1])):
            other = at(indices[edge])
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


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def multiply(ends, columns, weights, work, n):  # type: ignore[no-untyped-def]
    """Multiply the direction by the matrix; return the curvature along it.

    Sums may be taken in any order here, since residuals are measured afresh afterwards.
    """
    u, q, diagonal, free = work.compact[1], work.compact[2], work.compact[3], work.compact[4]
    curvature = 0.0
    first = at(0)
    for a in range(n):
        total = diagonal[a] * u[a]
        end = at(ends[a])
        for edge in range(first, end):
            total -= weights[edge] * u[at(columns[edge])]
        first = end
        q[a] = total * free[a]
        curvature += u[a] * q[a]
    return curvature


@njit(nogil=True, cache=True)
def set_out(system, work, n, n_touched):  # type: ignore[no-untyped-def]
    """Lay the first ``n`` touched points side by side; return the square of the residual.

    Conjugate gradients with the diagonal as preconditioner. Points beyond, which only border on
    the first n, keep their values; so do clamped ones and those whose row is not here.
    """
    residual, value, inverse, marks = work.residual, work.value, work.inverse, work.marks
    touched = work.touched
    r, u = work.compact[0], work.compact[1]
    diagonal, free, x = work.compact[3], work.compact[4], work.compact[5]
    square = 0.0
    for a in range(n):
        point = at(touched[a])
        fixed = marks[point] & CLAMPED != 0 or inverse[point] == 0.0
        diagonal[a] = 1.0 if fixed else 1.0 / inverse[point]
        free[a] = 0.0 if fixed else 1.0
        r[a] = 0.0 if fixed else residual[point]
        x[a] = value[point]
        u[a] = r[a] / diagonal[a]
        square += u[a] * r[a]
    u[n:n_touched] = 0.0
    return square


@njit(nogil=True, cache=True)
def advance(ends, columns, weights, system, work, n, square, target, most):  # type: ignore[no-untyped-def]
    """Take steps until the residual is below the target; return their number and the square.

    Rows of the first ``n`` touched points are in ``columns`` and ``weights``, each up to its end.
    """
    r, u, q = work.compact[0], work.compact[1], work.compact[2]
    diagonal, x = work.compact[3], work.compact[5]
    plain, margin, touched = system.plain, system.margin, work.touched
    steps = 0
    worst = np.inf
    while steps < most and square > 0.0 and worst > target and not work.stop[0]:
        curvature = multiply(ends, columns, weights, work, n)
        if curvature <= 0.0:  # what is left is too small for its square
            break
        length = square / curvature
        following = worst = 0.0
        for a in range(n):
            x[a] += length * u[a]
            r[a] -= length * q[a]
            size = abs(r[a]) if plain else abs(r[a]) / margin[at(touched[a])]
            worst = max(worst, size)
            following += r[a] * r[a] / diagonal[a]
        steps += 1
        ratio = following / square
        square = following
        for a in range(n):
            u[a] = r[a] / diagonal[a] + ratio * u[a]
    return steps, square


@njit(nogil=True, cache=True)
def settle(work, n):  # type: ignore[no-untyped-def]
    """Give the touched points what gradients have found."""
    residual, value, marks, touched = work.residual, work.value, work.marks, work.touched
    r, x, free = work.compact[0], work.compact[5], work.compact[4]
    n_valued = at(work.n_valued[0])
    for a in range(n):
        if free[a] == 0.0:
            continue
        point = at(touched[a])
        value[point], residual[point] = x[a], r[a]
        work.valued[n_valued] = point
        n_valued += at(marks[point] & VALUED == 0)
        marks[point] |= VALUED
    work.n_valued[0] = np.int64(n_valued)


@njit(nogil=True, cache=True)
def region_lacks(system, work, n, size):  # type: ignore[no-untyped-def]
    """Note the points without a row that may belong to the last region; return whether any may.

    `choose_region` takes the points whose residual would give them the largest value, for which
    their diagonal is needed. How small that can be is known of all points, so that most of them
    cannot be chosen. Those are noted that may be if the others have a usual diagonal.
    """
    residual, inverse, marks, touched = work.residual, work.inverse, work.marks, work.touched
    known, guessed = work.compact[5], work.compact[6]
    missing = size - work.n_valued[0]
    n_known = n_guessed = 0
    largest = 0.0
    for a in range(n):
        point = at(touched[a])
        if marks[point] & (VALUED | CLAMPED) == 0:
            size_of = abs(residual[point])
            if inverse[point] > 0.0:
                known[n_known] = guessed[n_guessed] = size_of * inverse[point]
                n_known += 1
            else:
                guessed[n_guessed] = size_of * system.usual_inverse
                largest = max(largest, size_of * system.most_inverse)
            n_guessed += 1
    if n_known == n_guessed or missing <= 0:
        return False
    if n_known > missing:
        put_largest_first(known, n_known, missing)
        if largest < known[missing - 1]:
            return False
    least = 0.0
    if n_guessed > missing:
        put_largest_first(guessed, n_guessed, missing)
        least = guessed[missing - 1]
    for a in range(n):
        point = at(touched[a])
        without = inverse[point] == 0.0 and marks[point] & (VALUED | CLAMPED) == 0
        if without and abs(residual[point]) * system.most_inverse >= least:
            note_lacking(work, point)
    return work.n_lacking[0] > 0


@njit(nogil=True, cache=True)
def choose_region(system, work, n, size):  # type: ignore[no-untyped-def]
    """Write the points of the last region into the queue: all with a value, and the best others.

    The best are those whose residual would give them the largest value. Returns their number.
    """
    residual, inverse, marks, touched = work.residual, work.inverse, work.marks, work.touched
    queue, estimates, ordered = work.queue, work.compact[5], work.compact[6]
    n_region = 0
    for a in range(work.n_valued[0]):
        queue[n_region] = work.valued[a]
        n_region += 1
    missing, found = size - n_region, 0
    for a in range(n):
        point = at(touched[a])
        if marks[point] & (VALUED | CLAMPED) == 0 and inverse[point] > 0.0:
            estimates[found] = ordered[found] = abs(residual[point]) * inverse[point]
            work.likely[found] = point
            found += 1
    least = 0.0
    if found > missing:
        put_largest_first(ordered, found, missing)
        least = ordered[missing - 1]
    for a in range(found):
        if estimates[a] >= least and n_region < size:
            queue[n_region] = work.likely[a]
            n_region += 1
    for a in range(n_region):
        point = at(queue[a])
        marks[point] |= INSIDE
        work.place[point] = a
    return n_region


@njit(nogil=True, cache=True)
def copy_region(system, work, n, n_region):  # type: ignore[no-untyped-def]
    """Copy the edges within the region; touch all that its edges lead to."""
    rows, indices, weights = system.rows, system.indices, system.weights
    place, touched, marks, queue = work.place, work.touched, work.marks, work.queue
    ends, columns, copied = work.ends, work.columns, work.weights
    end, n = at(0), at(n)
    for ahead in range(PREFETCH_DISTANCE):  # so that there is something to prefetch at the end
        queue[n_region + ahead] = queue[0]
    for a in range(n_region):
        prefetch(rows, 2 * np.int64(queue[a + PREFETCH_DISTANCE]))
        prefetch_row(system, at(queue[a + PREFETCH_DISTANCE // 2]))
        point = at(queue[a])
        for edge in range(at(rows[point, 0]), at(rows[point, 1])):
            other = at(indices[edge])
            mark = marks[other]
            touched[n] = other
            n += at(mark == 0)
            marks[other] = mark | TOUCHED
            columns[end] = place[other]
            copied[end] = weights[edge]
            end += at(mark & INSIDE != 0)
        ends[a] = end
    return np.int64(n), np.int64(end)


@njit(nogil=True, cache=True)
def solve_inside(system, work, n, size):  # type: ignore[no-untyped-def]
    """Solve a region of so many points, with zero around it.

    Returns the number of touched points, of steps, and of edges that were passed.
    """
    residual, value, inverse, marks, queue = (
        work.residual, work.value, work.inverse, work.marks, work.queue
    )  # fmt: skip
    n_region = choose_region(system, work, n, size)
    n, n_edges = copy_region(system, work, n, n_region)
    r, u, q, diagonal, free, x = (
        work.compact[0], work.compact[1], work.compact[2], work.compact[3], work.compact[4],
        work.compact[5],
    )  # fmt: skip
    square = 0.0
    for a in range(n_region):
        point = at(queue[a])
        diagonal[a], free[a] = 1.0 / inverse[point], 1.0
        r[a], x[a] = residual[point], value[point]
        u[a] = r[a] * inverse[point]
        square += u[a] * r[a]
    target, steps = FINAL_DEPTH * FINAL_DEPTH * square, 0
    while square > target and steps < MOST_STEPS and not work.stop[0]:
        curvature = multiply(work.ends, work.columns, work.weights, work, n_region)
        if curvature <= 0.0:
            break
        length = square / curvature
        following = 0.0
        for a in range(n_region):
            x[a] += length * u[a]
            r[a] -= length * q[a]
            following += r[a] * r[a] / diagonal[a]
        ratio, square = following / square, following
        for a in range(n_region):
            u[a] = r[a] / diagonal[a] + ratio * u[a]
        steps += 1
    n_valued = 0
    for a in range(n_region):
        point = at(queue[a])
        value[point] = x[a]
        work.valued[n_valued] = point
        n_valued += 1
        marks[point] = (marks[point] | VALUED) & NOT_INSIDE
    work.n_valued[0] = n_valued
    return n, steps, (steps + 2) * n_edges


@njit(nogil=True, cache=True)
def answer(system, work, inverses, batch, found, first, progress, tol, rule):  # type: ignore[no-untyped-def]
    """Answer queries from the first on, in one call that releases the GIL.

    After much work it returns early, so that it can be stopped: the query that is next, or the one
    that is not finished, and how far that one is. So it does where a row is not here.
    """
    n_edges = 0
    for i in range(first, len(batch.sizes)):
        query = query_of(batch, i)
        top = batch.tops[i]
        if progress.n_touched == 0:
            progress = started(system, work, query, tol)
        before = progress.n_edges
        budgets = batch.budgets[i, 0], batch.budgets[i, 1]
        progress = solve(system, work, progress, query, top, tol, budgets, rule)
        if progress.state == PAUSED or progress.state == NEEDS_ROWS:
            return i, progress
        count = extract(system, work, progress, top, rule.terms, found.points[i], found.scores[i])
        found.counts[i] = count, progress.n_steps, progress.n_touched, progress.state
        found.bounds[i] = progress.above, progress.below
        for place in range(batch.ends[i, 2], batch.ends[i + 1, 2]):
            found.own[place] = best_guess(system, work, at(batch.left_out[place]))
        if work.n_lacking[0] > 0:
            return i, needing_rows(progress)
        clear(work, progress.n_touched, query, inverses)
        n_edges += progress.n_edges - before
        progress = Progress(0, 0, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
        if n_edges > rule.pause:
            return i + 1, progress
    return len(batch.sizes), progress


@njit(nogil=True, cache=True)
def started(system, work, query, tol):  # type: ignore[no-untyped-def]
    """Return the progress of a query that has just been set up."""
    level = max(tol, FIRST_LEVEL * query.size)
    n = begin(system, work, query)
    return Progress(n, 0, False, level, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)


@njit(nogil=True, cache=True)
def needing_rows(progress):  # type: ignore[no-untyped-def]
    """Return the progress of a query that has met rows which are not here."""
    n, n_copied, whole, level, drift, last, above, below, n_steps, n_edges, _ = progress
    return Progress(
        n, n_copied, whole, level, drift, last, above, below, n_steps, n_edges, NEEDS_ROWS
    )


@njit(nogil=True, cache=True)
def query_of(batch, i):  # type: ignore[no-untyped-def]
    """Return one query of several."""
    points, clamped, left_out, pulled = batch.ends[i]
    next_points, next_clamped, next_left_out, next_pulled = batch.ends[i + 1]
    return Boundary(
        batch.points[points:next_points],
        batch.rhs[points:next_points],
        batch.clamped[clamped:next_clamped],
        batch.values[clamped:next_clamped],
        batch.left_out[left_out:next_left_out],
        batch.pulled[pulled:next_pulled],
        batch.pull[pulled:next_pulled],
        batch.sizes[i],
        0.0,
    )


@njit(nogil=True, cache=True)
def best_guess(system, work, point):  # type: ignore[no-untyped-def]
    """Return a score without the part of its error that is known from its neighbours."""
    value = work.value[point]
    if not work.marks[point] & CLAMPED:
        value += error_twice(system, work, point)[0]
    return scale_of(system, point) * value


@njit(nogil=True, cache=True)
def better_guess(system, work, point, progress, terms):  # type: ignore[no-untyped-def]
    """Return a score without what its error is likely to be, within what is proven of it.

    The error lies between ``thrice - share below`` and ``thrice + share above``. The guess is
    nowhere further than the larger bound from any of that, so that it is a bound for it, too.
    """
    once = work.residual[point] * work.inverse[point]
    twice, _ = error_twice(system, work, point)
    thrice, share = error_thrice(system, work, point)
    error = terms[0] * once + terms[1] * (twice - once) + terms[2] * (thrice - twice)
    low, high = share * progress.below, share * progress.above
    bound = max(progress.above, progress.below)
    error = max(error, thrice - low, thrice + high - bound)
    error = min(error, thrice + high, thrice - low + bound)
    return scale_of(system, point) * (work.value[point] + error)


@njit(nogil=True, cache=True)
def extract(system, work, progress, top, terms, points, scores):  # type: ignore[no-untyped-def]
    """Write the best points and their scores, ties by index; return how many there are.

    Once the top is proven these are its members. Until then they are chosen by guesses that
    become better, and more expensive, the nearer a point is to the end of the top. A region that
    was solved by gradients needs no guesses.
    """
    candidates, guesses = work.queue, work.compact[6]
    if progress.state == PROVEN:
        kept = take_members(system, work, progress, candidates, guesses)
    elif progress.state == OUT_OF_BUDGET:
        kept = take_best(system, work, top, candidates, guesses)
    else:
        kept = take_likely(system, work, progress, top, candidates, guesses)
    sort_by_score(candidates, guesses, kept)
    if kept > top and progress.state != OUT_OF_BUDGET:
        cut = (guesses[top - 1] + guesses[top]) / 2
        window = DOUBTFUL * system.largest_scale * progress.level
        for a in range(max(0, top - FEW), min(kept, top + FEW)):
            if abs(guesses[a] - cut) <= window:
                guesses[a] = better_guess(system, work, at(candidates[a]), progress, terms)
        sort_by_score(candidates, guesses, kept)
    count = min(top, kept)
    while count > 0 and guesses[count - 1] <= 0.0:
        count -= 1
    for a in range(count):
        points[a], scores[a] = candidates[a], guesses[a]
    return count


@njit(nogil=True, cache=True)
def take_best(system, work, top, candidates, scores):  # type: ignore[no-untyped-def]
    """Write the points with the largest scores; return how many they are."""
    value, ordered = work.value, work.compact[5]
    n = 0
    for a in range(work.n_valued[0]):
        point = at(work.valued[a])
        if not work.marks[point] & NOT_IN_ANSWER:
            candidates[n] = point
            ordered[n] = scores[n] = scale_of(system, point) * value[point]
            n += 1
    if n <= top:
        return n
    put_largest_first(ordered, n, top)
    kept, least = 0, ordered[top - 1]
    for a in range(n):
        if scores[a] >= least:
            candidates[kept], scores[kept] = candidates[a], scores[a]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def take_members(system, work, progress, members, guesses):  # type: ignore[no-untyped-def]
    """Write the points that are proven to be above the cut; return how many they are."""
    value, likely = work.value, work.likely
    cut, above, below, drift = progress.last, progress.above, progress.below, progress.drift
    n = 0
    for a in range(work.n_likely[0]):
        point = at(likely[a])
        proven = plain_side(scale_of(system, point), value[point], cut, above, below)
        if proven == 0:
            proven = side(system, work, point, cut, above, below, drift)
        if proven > 0:
            members[n], guesses[n] = point, max(cut, best_guess(system, work, point))
            n += 1
    return n


@njit(nogil=True, cache=True)
def take_likely(system, work, progress, top, likely, guesses):  # type: ignore[no-untyped-def]
    """Write points that may be among the best, and guesses; return how many they are."""
    residual, value, inverse = work.residual, work.value, work.inverse
    ordered = work.compact[5]
    level = system.largest_scale * progress.level
    reached, n_reached = work.valued, work.n_valued[0]
    if progress.last <= level:  # then points without a value may be among the best
        reached, n_reached = work.touched, progress.n_touched
    n, least = 0, max(0.0, progress.last - 2 * level)
    for a in range(n_reached):
        point = at(reached[a])
        scale = scale_of(system, point)
        if scale * value[point] >= least and not work.marks[point] & NOT_IN_ANSWER:
            if inverse[point] == 0.0:
                note_lacking(work, point)
            likely[n] = point
            ordered[n] = guesses[n] = scale * (value[point] + residual[point] * inverse[point])
            n += guesses[n] > 0.0
    if n <= top:
        return n
    put_largest_first(ordered, n, top)
    high, low = ordered[top - 1] + LIKELY * level, ordered[top - 1] - LIKELY * level
    kept = 0
    for a in range(n):
        if guesses[a] >= low:
            point = likely[kept] = likely[a]
            near = guesses[a] <= high
            guesses[kept] = best_guess(system, work, at(point)) if near else guesses[a]
            kept += 1
    return kept
