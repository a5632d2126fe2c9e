"""The arrays that the compiled part of the region solver works on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankfold.parallel import NEVER
from rankfold.solvers.system import Boundary

PROVEN, WITHIN_TOL, OUT_OF_BUDGET, NEEDS_ROWS, PAUSED = range(5)
"""Why a solve returned."""

PREFETCH_DISTANCE = 12
"""How many places ahead in the queue memory is prefetched."""

UNLIMITED = 2**62
"""The budget of a query that may touch as many points as it takes."""

Floats = NDArray[np.float64]


class Arrays(NamedTuple):
    """A system: rows of ``beta W``, margins, and the scale of the scores.

    The row of point i has the entries from ``rows[i, 0]`` to ``rows[i, 1]``. In a ``plain`` system
    margins and scales are all one, and are not read. ``largest_diagonal`` is the largest
    ``c_i / m_i``, ``mean_row`` the mean length of a row.

    Rows that lie elsewhere may not be here yet: ``n_rows`` of ``n_points`` are, and the inverse of
    the diagonal is zero for all other points. It is ``most_inverse`` at most, and usually
    ``usual_inverse``. A solve stops where it needs another row; with ``goes_on`` such points keep
    the value zero.
    """

    rows: NDArray[Any]
    indices: NDArray[Any]
    weights: NDArray[Any]
    margin: Floats
    scale: Floats
    n_rows: int
    n_points: int
    largest_scale: float
    largest_diagonal: float
    longest_row: int
    mean_row: float
    plain: bool
    most_inverse: float = 0.0
    usual_inverse: float = 0.0
    goes_on: bool = False


class Rule(NamedTuple):
    """How a solve proceeds.

    Parameters
    ----------
    relaxation : float
        What push adds to a value, in residuals divided by the diagonal.
    patience : float
        How often push may pass every edge of the region between two judgements of the top before
        conjugate gradients on the region take over; 0 for gradients alone, inf for push alone.
    whole_share : float
        Share of the points beyond which gradients run on the whole graph instead of a copy of
        the region; inf for never.
    terms : (float, float, float)
        Weights of the known terms of an error, see `term_weights`.
    pause : float
        Edges after which control returns to Python, so that Ctrl-C is noticed; ten times as many
        on the whole graph.
    """

    relaxation: float
    patience: float
    whole_share: float
    terms: tuple[float, float, float]
    pause: float = 1e8


class Workspace(NamedTuple):
    """Arrays that a query uses and leaves clean.

    The first five have an entry per point. The others are filled from their beginning, up
    to the number of points or edges that were touched; memory beyond is never used. ``touched``,
    ``valued`` (those with a value) and ``likely`` (those that may be among the best) have room for
    one more point, ``queue`` for `PREFETCH_DISTANCE` more. ``lacking`` are points whose row was
    needed, but is not here; ``n_rows`` says how many rows the inverse knows of, where they grow.
    ``stop`` is the flag of `Stop`.
    """

    residual: Floats
    value: Floats
    inverse: Floats
    marks: NDArray[np.uint8]
    place: NDArray[np.int32]
    touched: NDArray[np.int32]
    valued: NDArray[np.int32]
    n_valued: NDArray[np.int64]
    likely: NDArray[np.int32]
    n_likely: NDArray[np.int64]
    lacking: NDArray[np.int32]
    n_lacking: NDArray[np.int64]
    queue: NDArray[np.int32]
    ends: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[Any]
    compact: Floats
    n_rows: NDArray[np.int64]
    stop: NDArray[np.uint8]

    @classmethod
    def of(cls, arrays: Arrays, inverse: Floats) -> Workspace:
        """Make one for a system, with the inverse of its diagonal."""
        n_points, n_edges = len(inverse), len(arrays.indices)
        return cls(
            np.zeros(n_points),
            np.zeros(n_points),
            inverse.copy(),
            np.zeros(n_points, dtype=np.uint8),
            np.empty(n_points, dtype=np.int32),
            np.empty(n_points + 1, dtype=np.int32),
            np.empty(n_points + 1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            np.empty(n_points + 1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            np.empty(n_points + 1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            np.zeros(n_points + PREFETCH_DISTANCE, dtype=np.int32),
            np.empty(n_points, dtype=np.int64),
            np.empty(n_edges, dtype=np.int32),
            np.empty(n_edges, dtype=arrays.weights.dtype),
            np.empty((7, n_points)),
            np.zeros(1, dtype=np.int64),
            NEVER,
        )


class Batch(NamedTuple):
    """Several boundaries: their arrays one after the other, and where each ends."""

    points: NDArray[Any]
    rhs: NDArray[Any]
    clamped: NDArray[Any]
    values: NDArray[Any]
    left_out: NDArray[Any]
    pulled: NDArray[Any]
    pull: NDArray[Any]
    sizes: Floats
    ends: NDArray[np.int64]
    tops: NDArray[np.int64]
    budgets: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        boundaries: Sequence[Boundary],
        tops: Sequence[int],
        budgets: Sequence[tuple[int, int]],
    ) -> Batch:
        """Join boundaries, each with the number of points to find and its budget.

        The latter is how many points are solved for, and how many where there is doubt.
        """
        points = clamped = left_out = pulled = 0
        ends = [(0, 0, 0, 0)]
        for one in boundaries:
            points += len(one.points)
            clamped += len(one.clamped)
            left_out += len(one.left_out)
            pulled += len(one.pulled)
            ends.append((points, clamped, left_out, pulled))
        ready = prepared(boundaries[0] if len(boundaries) == 1 else _joined(boundaries))
        return cls(
            ready.points,
            ready.rhs,
            ready.clamped,
            ready.values,
            ready.left_out,
            ready.pulled,
            ready.pull,
            np.array([one.size for one in boundaries], dtype=np.float64),
            np.array(ends, dtype=np.int64),
            np.array(tops, dtype=np.int64),
            np.array(budgets, dtype=np.int64).reshape(-1, 2),
        )


def prepared(boundary: Boundary) -> Boundary:
    """Return a boundary with arrays as compiled code takes them."""
    whole, real = np.int64, np.float64
    return Boundary(
        np.ascontiguousarray(boundary.points, dtype=whole),
        np.ascontiguousarray(boundary.rhs, dtype=real),
        np.ascontiguousarray(boundary.clamped, dtype=whole),
        np.ascontiguousarray(boundary.values, dtype=real),
        np.ascontiguousarray(boundary.left_out, dtype=whole),
        np.ascontiguousarray(boundary.pulled, dtype=whole),
        np.ascontiguousarray(boundary.pull, dtype=real),
        float(boundary.size),
        float(boundary.lowest),
    )


def _joined(boundaries: Sequence[Boundary]) -> Boundary:
    """Put the arrays of boundaries one after the other."""
    if not boundaries:
        return Boundary()
    *parts, _, _ = zip(*boundaries, strict=True)
    points, rhs, clamped, values, left_out, pulled, pull = (np.concatenate(some) for some in parts)
    return Boundary(points, rhs, clamped, values, left_out, pulled, pull)


class Found(NamedTuple):
    """Answers to several queries, a row for each; rows that are too short end at their count.

    ``counts`` has the length of an answer, the steps that were taken, the points that were
    touched and why it ended; ``bounds`` how far exact values can lie above and below. ``own`` has
    the scores of the points that were left out, one query after the other.
    """

    points: NDArray[np.int64]
    scores: Floats
    counts: NDArray[np.int64]
    bounds: Floats
    own: Floats

    @classmethod
    def empty(cls, n_queries: int, top: int, n_left_out: int) -> Found:
        """Make room for answers."""
        return cls(
            np.empty((n_queries, top), dtype=np.int64),
            np.empty((n_queries, top)),
            np.empty((n_queries, 4), dtype=np.int64),
            np.empty((n_queries, 2)),
            np.empty(n_left_out),
        )


class Progress(NamedTuple):
    """How far a solve has come: it can be resumed from here.

    ``n_copied`` touched points have their rows copied, unless the ``whole`` graph is in use.
    ``drift`` bounds by how much the residuals differ from what they would be without rounding.
    ``last`` is the score at the end of the top, as far as it is known; once the top is proven,
    a score between it and all others.
    """

    n_touched: int
    n_copied: int
    whole: bool
    level: float
    drift: float
    last: float
    above: float
    below: float
    n_steps: int
    n_edges: int
    state: int


NOT_BEGUN = Progress(0, 0, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
