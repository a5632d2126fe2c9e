"""What the residuals around a point say of its error. Compiled.

The error ``e = A^-1 r`` obeys ``c_i e_i = r_i + sum_j B_ji e_j``. Put into itself, it is a known
number plus a mean of the errors of points further away, whose weights, not negative, sum to less
than one. Each time the rows of one more ring around the point are read, and this share of the
unknown becomes smaller by about ``1 - 1 / c``. Clamped points have no error.
"""

from __future__ import annotations

from numba import njit

from rankfold.solvers.push import CLAMPED, ONE, at, prefetch_row

LONG_ROW = 64
"""Entries of a row above which it is not read on the way to another point."""


@njit(nogil=True, cache=True)
def error_twice(system, work, point):  # type: ignore[no-untyped-def]
    """Return the known error from the residuals of a point and its neighbours, and the share."""
    indices, spread, plain = system.indices, system.spread, system.plain
    residual, inverse, marks = work.residual, work.inverse, work.marks
    known, unknown = 0.0, 0.0
    for edge in range(at(system.indptr[point]), at(system.indptr[point + ONE])):
        other = at(indices[edge])
        if not marks[other] & CLAMPED:
            received = spread[edge] if plain else spread[edge] * system.margin[other]
            known += received * residual[other] * inverse[other]
            unknown += received * (1.0 - inverse[other])
    inv, margin = inverse[point], 1.0 if plain else system.margin[point]
    return inv * (residual[point] + known / margin), inv * unknown / margin


@njit(nogil=True, cache=True)
def error_thrice(system, work, point):  # type: ignore[no-untyped-def]
    """Return the same, from one more ring of residuals."""
    indptr, indices, spread, plain = system.indptr, system.indices, system.spread, system.plain
    residual, inverse, marks = work.residual, work.inverse, work.marks
    known, unknown = 0.0, 0.0
    for edge in range(at(indptr[point]), at(indptr[point + ONE])):
        prefetch_row(system, at(indices[edge]))
    for edge in range(at(indptr[point]), at(indptr[point + ONE])):
        other = at(indices[edge])
        if marks[other] & CLAMPED:
            continue
        received = spread[edge] if plain else spread[edge] * system.margin[other]
        if indptr[other + ONE] - indptr[other] > LONG_ROW:
            of_known, of_unknown = residual[other] * inverse[other], 1.0 - inverse[other]
        else:
            of_known, of_unknown = error_twice(system, work, other)
        known += received * of_known
        unknown += received * of_unknown
    inv, margin = inverse[point], 1.0 if plain else system.margin[point]
    return inv * (residual[point] + known / margin), inv * unknown / margin
