"""One query of the region solver: grow by push, solve inside, judge what is proven. Compiled."""

from __future__ import annotations

import numpy as np

from rankfold.solvers.arrays import (
    NEEDS_GRADIENTS,
    NEEDS_ROWS,
    NOT_BEGUN,
    OUT_OF_BUDGET,
    PAUSED,
    PREFETCH_DISTANCE,
    PROVEN,
    UNLIMITED,
    WITHIN_TOL,
    Progress,
)
from rankfold.solvers.certificate import (
    FAR_RATIO,
    NEAR_RATIO,
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
from rankfold.solvers.gradients import MOST_STEPS, multiply
from rankfold.solvers.memory import ZERO, after, entry, handle, kernel, prefetch, small
from rankfold.solvers.push import (
    CLAMPED,
    INSIDE,
    NOT_IN_ANSWER,
    TOUCHED,
    UNIT,
    VALUED,
    begin,
    clear,
    count_new,
    gather,
    lacks_any,
    measure,
    note_lacking,
    prefetch_row,
    push,
    query_of,
    rounding,
)

FIRST_LEVEL = 0.1
"""Share of the largest value below which residuals are brought first."""

LAG = 2.0
"""How far residuals may stay behind the level, which is halved with every sweep otherwise."""

FEW_EDGES = 5_000
"""Edges that are pushed sooner than gradients are set up."""

BORDER_DEPTH = 0.03
"""How far below the residuals of missing rows those of known rows are brought."""

FINAL_DEPTH = 0.03
"""How far gradients reduce the residual of a region that has used up its budget."""

NEAR, MOST_DOUBT = 0.06, 2.3
"""Scores that count as near the end of the top, in proportion to it; and how many times as many
as the top has may lie within a mean error of its end before the region grows on. Nearly half of
the queries of MNIST have more, among them all that would miss more than three of their best 100.
It was lowered for one query of 983, and holds for another draw of 1,476."""

LIKELY, DOUBTFUL = 0.2, 0.05
"""Distances from the end of an uncertain top, in levels, within which guesses are made better."""

FEW = 8
"""Most points on either side for which the most expensive guess is made."""

ALL_ROWS = -1
"""In place of a number of missing rows: all are needed."""

NOT_INSIDE = np.uint8(255 - INSIDE)


@kernel
def solve(system, work, progress, query, tol, rule):  # type: ignore[no-untyped-def]
    """Lower the level until the top is proven, the bound is within tol, or the budget is used up.

    A sweep pushes every point whose residual is above the level, which then is halved. Where
    sweeps pass the region's edges too often before residuals have fallen far enough to judge the
    top again, gradients do the bulk and push goes on at the border. A region that has become
    a good part of the graph gives way to gradients on all of it. A region of as many points as
    the budget allows is solved once by gradients, with zero around it; where the end of the top
    is in doubt then, and there is a larger budget for that, push grows it on to that size. Where
    a row is needed that is not here, it stops before anything else is decided.
    """
    small()
    (
        n, n_copied, whole, grown, level, due, passed, drift, last, above, below, n_steps, n_edges,
        state,
    ) = progress  # fmt: skip
    top = query.top
    strict = system.most_inverse > 0.0 and not system.goes_on  # rows may be missing
    per_value, fresh = rounding(system, query)
    tol = max(tol, 20 * fresh)
    level = max(level, tol)
    if n_steps == 0:  # the right-hand side was added up
        drift = fresh
    pause = n_edges + rule.pause
    while n_edges < pause and not work.stop[0]:
        if whole:
            state = NEEDS_GRADIENTS
            break
        budget = query.most if grown else query.budget
        n_queued, above, below, beyond = gather(system, work, n, level)
        above, below = above + drift, below + drift
        bound, precise = max(above, below), drift <= 0.1 * level
        ended = n_queued == 0 and (level <= tol or level <= BORDER_DEPTH * beyond)
        if precise and (bound <= due or ended):
            last, certain, near = judge(system, work, top, last, above, below, drift)
            if strict and work.n_lacking[0] > 0:
                break
            if certain or ended:
                state = PROVEN if certain else WITHIN_TOL
                break
            due, passed = bound * (NEAR_RATIO if near else FAR_RATIO), 0
        impatient = passed >= rule.patience * (FEW_EDGES + system.mean_row * n)
        if budget < UNLIMITED and n > budget and (
            impatient or work.n_valued[0] + count_new(work, n_queued) > budget
        ):  # fmt: skip
            if strict and region_lacks(system, work, n, budget):
                break
            n, steps, edges = solve_inside(system, work, n, budget)
            measure(system, work, n, query)
            above, below = bounds(system, work, n, fresh)
            last, certain, _ = judge(system, work, top, 0.0, above, below, fresh)
            n_steps, n_edges, drift = n_steps + steps, n_edges + edges, fresh
            if strict and work.n_lacking[0] > 0:
                break
            in_doubt = not certain and budget < query.most
            if in_doubt and doubt(system, work, n, last) > MOST_DOUBT * top:
                grown, passed, due = True, 0, np.inf
                n_copied = 0  # the rows of the region lie where copies did
                pause = n_edges + rule.pause
                continue
            state = PROVEN if certain else OUT_OF_BUDGET
            break
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
        if precise:
            whole = budget == UNLIMITED and n >= rule.whole_share * system.n_points
            if strict and whole:
                work.n_lacking[0] = ALL_ROWS
                break
            if strict and lacks_any(work, work.touched, n):
                break
            # Where there is no whole graph, it has looked far enough ahead.
            state = NEEDS_ROWS if whole and system.goes_on else NEEDS_GRADIENTS
            break
        measure(system, work, n, query)
        drift = fresh
    if strict and work.n_lacking[0] != 0:
        state = NEEDS_ROWS
    return Progress(
        n, n_copied, whole, grown, level, due, passed, drift, last, above, below, n_steps, n_edges,
        state,
    )  # fmt: skip


@kernel
def doubt(system, work, n, last):  # type: ignore[no-untyped-def]
    """Return how many scores lie within a mean error of ``last``, that of the last of the top.

    ``1'A = m'`` and ``A e = r``, so that the sum of all errors, in margins, is that of the
    residuals: what the border lacks. Spread evenly over the region it gives the mean error. Most
    of it is common to the points around the end of the top, and leaves their order as it is.
    """
    small()
    residual, value, marks, margin = work.residual, work.value, work.marks, system.margin
    lacking = weight = near = 0.0
    if last <= 0.0:  # the top has no end yet
        return 0.0
    for a in range(n):
        point = work.touched[a]
        if marks[point] & (CLAMPED | VALUED) == 0:
            lacking += abs(residual[point])
    for a in range(work.n_valued[0]):
        point = work.valued[a]
        scale = scale_of(system, point)
        weight += margin[point] / scale
        near += max(0.0, 1.0 - abs(scale * value[point] - last) / (NEAR * last))
    return lacking / weight * near / (NEAR * last)


@kernel
def region_lacks(system, work, n, size):  # type: ignore[no-untyped-def]
    """Note the points without a row that may belong to the last region; return whether any may.

    `choose_region` takes the points whose residual would give them the largest value, for which
    their diagonal is needed. How small that can be is known of all points, so that most of them
    cannot be chosen. Those are noted that may be if the others have a usual diagonal.
    """
    small()
    residual, inverse, marks, touched = work.residual, work.inverse, work.marks, work.touched
    known, guessed = work.cg_x, work.spare
    missing = size - work.n_valued[0]
    n_known = n_guessed = ZERO
    largest = 0.0
    for a in range(n):
        point = touched[a]
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
        point = touched[a]
        without = inverse[point] == 0.0 and marks[point] & (VALUED | CLAMPED) == 0
        if without and abs(residual[point]) * system.most_inverse >= least:
            note_lacking(work, point)
    return work.n_lacking[0] > 0


@kernel
def choose_region(system, work, n, size):  # type: ignore[no-untyped-def]
    """Write the points of the last region into the queue: all with a value, and the best others.

    The best are those whose residual would give them the largest value. Returns their number.
    """
    small()
    residual, inverse, marks, touched = work.residual, work.inverse, work.marks, work.touched
    queue, estimates, ordered = work.queue, work.cg_x, work.spare
    n_region = 0
    for a in range(work.n_valued[0]):
        queue[n_region] = work.valued[a]
        n_region += 1
    missing, found = size - n_region, ZERO
    for a in range(n):
        point = touched[a]
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
        point = queue[a]
        marks[point] |= INSIDE
        work.place[point] = a
    return n_region


@kernel
def copy_region(system, work, n, n_region):  # type: ignore[no-untyped-def]
    """Copy the edges within the region; touch all that its edges lead to."""
    small()
    rows, indices, weights = system.rows, system.indices, system.weights
    place, touched, marks, queue = work.place, work.touched, work.marks, work.queue
    ends, columns, copied = work.ends, work.columns, work.weights
    end = 0
    for ahead in range(PREFETCH_DISTANCE):  # so that there is something to prefetch at the end
        queue[n_region + ahead] = queue[0]
    for a in range(n_region):
        prefetch(rows, 2 * queue[a + PREFETCH_DISTANCE])
        prefetch_row(system, queue[a + PREFETCH_DISTANCE // 2])
        point = queue[a]
        for edge in range(rows[2 * point], rows[2 * point + 1]):
            other = indices[edge]
            mark = marks[other]
            touched[n] = other
            n += mark == 0
            marks[other] = mark | TOUCHED
            columns[end] = place[other]
            copied[end] = weights[edge]
            end += mark & INSIDE != 0
        ends[a] = end
    return n, end


@kernel
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
        work.cg_r, work.cg_u, work.cg_q, work.cg_diagonal, work.cg_free,
        work.cg_x,
    )  # fmt: skip
    square = 0.0
    for a in range(n_region):
        point = queue[a]
        diagonal[a], free[a] = 1.0 / inverse[point], 1.0
        r[a], x[a] = residual[point], value[point]
        u[a] = r[a] * inverse[point]
        square += u[a] * r[a]
    target, steps = FINAL_DEPTH * FINAL_DEPTH * square, 0
    while square > target and steps < MOST_STEPS and not work.stop[0]:
        curvature = multiply(work.ends, 1, work.columns, work.weights, work, n_region)
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
        point = queue[a]
        value[point] = x[a]
        work.valued[n_valued] = point
        n_valued += 1
        marks[point] = (marks[point] | VALUED) & NOT_INSIDE
    work.n_valued[0] = n_valued
    return n, steps, (steps + 2) * n_edges


@entry
def answer(system, work, queries, room, first, progress, tol, rule, keeps):  # type: ignore[no-untyped-def]
    """Answer queries from the first on, in one call that releases the GIL.

    After much work it returns early, so that it can be stopped: the query that is next, or the one
    that is not finished, and how far that one is. So it does where a row is not here, and where
    `gradients` are to go on; and, with ``keeps``, after a query is solved, which leaves all that
    was reached in the workspace.
    """
    small()
    batch, found = handle(queries), handle(room)
    n_places = found.n_queries * found.top
    counts, bounds = after(found.numbers, n_places), after(found.reals, n_places)
    n_edges = 0
    for i in range(first, batch.n_queries):
        query = handle(query_of(batch, i))
        if progress.n_touched == 0:
            progress = started(system, work, query, tol)
        before = progress.n_edges
        if progress.state == PAUSED:
            progress = solve(system, work, progress, query, tol, rule)
        if keeps or progress.state > OUT_OF_BUDGET:
            return i, progress
        points, scores = after(found.numbers, i * found.top), after(found.reals, i * found.top)
        counts[4 * i] = extract(system, work, progress, query.top, rule.terms, points, scores)
        counts[4 * i + 1] = progress.n_steps
        counts[4 * i + 2] = progress.n_touched
        counts[4 * i + 3] = progress.state
        bounds[2 * i], bounds[2 * i + 1] = progress.above, progress.below
        own = after(bounds, 2 * found.n_queries + query.n_before)
        for a in range(query.n_left_out):
            own[a] = best_guess(system, work, np.int32(query.left_out[a]))
        if work.n_lacking[0] > 0:
            return i, progress
        clear(system, work, progress.n_touched, query)
        n_edges += progress.n_edges - before
        progress = NOT_BEGUN
        if n_edges > rule.pause:
            return i + 1, progress
    return batch.n_queries, progress


@kernel
def started(system, work, query, tol):  # type: ignore[no-untyped-def]
    """Return the progress of a query that has just been set up."""
    small()
    level = max(tol, FIRST_LEVEL * query.size)
    n = begin(system, work, query)
    return Progress(n, 0, False, False, level, np.inf, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)


@kernel
def best_guess(system, work, point):  # type: ignore[no-untyped-def]
    """Return a score without the part of its error that is known from its neighbours."""
    small()
    value = work.value[point]
    if not work.marks[point] & CLAMPED:
        value += error_twice(system, work, point)[0]
    return scale_of(system, point) * value


@kernel
def better_guess(system, work, point, progress, terms):  # type: ignore[no-untyped-def]
    """Return a score without what its error is likely to be, within what is proven of it.

    The error lies between ``thrice - share below`` and ``thrice + share above``. The guess is
    nowhere further than the larger bound from any of that, so that it is a bound for it, too.
    """
    small()
    once = work.residual[point] * work.inverse[point]
    twice, _ = error_twice(system, work, point)
    thrice, share = error_thrice(system, work, point)
    error = terms[0] * once + terms[1] * (twice - once) + terms[2] * (thrice - twice)
    low, high = share * progress.below, share * progress.above
    bound = max(progress.above, progress.below)
    error = max(error, max(thrice - low, thrice + high - bound))
    error = min(error, min(thrice + high, thrice - low + bound))
    return scale_of(system, point) * (work.value[point] + error)


@kernel
def extract(system, work, progress, top, terms, points, scores):  # type: ignore[no-untyped-def]
    """Write the best points and their scores, ties by index; return how many there are.

    Once the top is proven these are its members. Until then they are chosen by guesses that
    become better, and more expensive, the nearer a point is to the end of the top. A region that
    was solved by gradients needs no guesses.
    """
    small()
    candidates, guesses = work.queue, work.spare
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
        for a in range(top - FEW if top > FEW else 0, top + FEW if kept > top + FEW else kept):
            if abs(guesses[a] - cut) <= window:
                guesses[a] = better_guess(system, work, candidates[a], progress, terms)
        sort_by_score(candidates, guesses, kept)
    count = kept if kept < top else top
    while count > 0 and guesses[count - 1] <= 0.0:
        count -= 1
    for a in range(count):
        points[a], scores[a] = candidates[a], guesses[a]
    return count


@kernel
def take_best(system, work, top, candidates, scores):  # type: ignore[no-untyped-def]
    """Write the points with the largest scores; return how many they are."""
    small()
    value, ordered = work.value, work.cg_x
    n = ZERO
    for a in range(work.n_valued[0]):
        point = work.valued[a]
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


@kernel
def take_members(system, work, progress, members, guesses):  # type: ignore[no-untyped-def]
    """Write the points that are proven to be above the cut; return how many they are."""
    small()
    value, likely = work.value, work.likely
    cut, above, below, drift = progress.last, progress.above, progress.below, progress.drift
    n = 0
    for a in range(work.n_likely[0]):
        point = likely[a]
        proven = plain_side(scale_of(system, point), value[point], cut, above, below)
        if proven == 0:
            proven = side(system, work, point, cut, above, below, drift)
        if proven > 0:
            members[n], guesses[n] = point, max(cut, best_guess(system, work, point))
            n += 1
    return n


@kernel
def take_likely(system, work, progress, top, likely, guesses):  # type: ignore[no-untyped-def]
    """Write points that may be among the best, and guesses; return how many they are."""
    small()
    residual, value, inverse = work.residual, work.value, work.inverse
    ordered = work.cg_x
    level = system.largest_scale * progress.level
    reached, n_reached = work.valued, work.n_valued[0]
    if progress.last <= level:  # then points without a value may be among the best
        reached, n_reached = work.touched, progress.n_touched
    n, least = ZERO, max(0.0, progress.last - 2 * level)
    for a in range(n_reached):
        point = reached[a]
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
            guesses[kept] = best_guess(system, work, point) if near else guesses[a]
            kept += 1
    return kept
