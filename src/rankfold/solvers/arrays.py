"""The arrays that local solves work on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CERTIFIED, WITHIN_TOL, PAUSED = 0, 1, 2
"""Why a solve returned."""

AHEAD = 12
"""Places in the queue whose memory is asked for in advance."""

Floats = NDArray[np.float64]


class System(NamedTuple):
    """The system: B by rows of the spreading point, margins and the scale of the scores.

    In a ``plain`` one margins and scales are all one, and are not read. Elsewhere rows of the
    receiving point are those of B with a relative error, three of which are within ``roundoff``.
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    spread: NDArray[Any]
    margin: Floats
    scale: Floats
    largest_scale: float
    largest_diagonal: float
    longest_row: int
    plain: bool
    roundoff: float


class Rule(NamedTuple):
    """How a solve goes on.

    Parameters
    ----------
    relaxation : float
        What push gives, in residuals.
    patience : float
        How often push may pass every edge of the region between two judgements of the top before
        conjugate gradients on the region take over; 0 for gradients alone, inf for push alone.
    whole_share : float
        Share of the points beyond which gradients leave the region for the whole graph as it
        lies; inf for never.
    terms : (float, float, float)
        Weights of the known terms of an error, see `term_weights`.
    pause : float
        Edges after which control returns, so that a long solve can be stopped; ten times as many
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
    to the number of points or edges that were touched; memory beyond is never used. ``touched``
    and ``valued``, those of them that were given a value, have room for one more, as has
    ``likely``, those that may be among the best; ``queue`` has room for `AHEAD` more.
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
    queue: NDArray[np.int32]
    ends: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[Any]
    compact: Floats


class Start(NamedTuple):
    """A query in the terms of a system.

    Parameters
    ----------
    points, given : arrays
        Entries of the right-hand side, each divided by its margin; all others are zero.
    size : float
        No exact value is larger, whatever its sign.
    clamped, seeds : arrays
        Points whose rows are eliminated, and their values, which they spread by their rows.
    left_out : array of int
        Points that are not part of the answer.
    pulled, pull : arrays
        What the query adds to diagonals, each divided by its margin.
    """

    points: NDArray[Any] = np.empty(0, dtype=np.int64)
    given: Floats = np.empty(0)
    size: float = 1.0
    clamped: NDArray[Any] = np.empty(0, dtype=np.int64)
    seeds: Floats = np.empty(0)
    left_out: NDArray[Any] = np.empty(0, dtype=np.int64)
    pulled: NDArray[Any] = np.empty(0, dtype=np.int64)
    pull: Floats = np.empty(0)

    def prepared(self) -> Start:
        """Return it with arrays as compiled code takes them."""
        return Start(
            np.ascontiguousarray(self.points, dtype=np.int64),
            np.ascontiguousarray(self.given, dtype=np.float64),
            float(self.size),
            np.ascontiguousarray(self.clamped, dtype=np.int64),
            np.ascontiguousarray(self.seeds, dtype=np.float64),
            np.ascontiguousarray(self.left_out, dtype=np.int64),
            np.ascontiguousarray(self.pulled, dtype=np.int64),
            np.ascontiguousarray(self.pull, dtype=np.float64),
        )


class Batch(NamedTuple):
    """Several queries: the arrays of `Start` one after the other, and where each ends."""

    points: NDArray[np.int64]
    given: Floats
    sizes: Floats
    clamped: NDArray[np.int64]
    seeds: Floats
    left_out: NDArray[np.int64]
    pulled: NDArray[np.int64]
    pull: Floats
    ends: NDArray[np.int64]
    tops: NDArray[np.int64]

    @classmethod
    def of(cls, starts: Sequence[Start], tops: Sequence[int]) -> Batch:
        """Join queries, each with the number of points to find."""
        points = clamped = left_out = pulled = 0
        ends = [(0, 0, 0, 0)]
        for one in starts:
            points += len(one.points)
            clamped += len(one.clamped)
            left_out += len(one.left_out)
            pulled += len(one.pulled)
            ends.append((points, clamped, left_out, pulled))
        ready = (starts[0] if len(starts) == 1 else _joined(starts)).prepared()
        return cls(
            ready.points,
            ready.given,
            np.array([one.size for one in starts], dtype=np.float64),
            ready.clamped,
            ready.seeds,
            ready.left_out,
            ready.pulled,
            ready.pull,
            np.array(ends, dtype=np.int64),
            np.array(tops, dtype=np.int64),
        )


def _joined(starts: Sequence[Start]) -> Start:
    """Put the arrays of queries one after the other."""
    if not starts:
        return Start()
    points, given, _, *others = zip(*starts, strict=True)
    clamped, seeds, left_out, pulled, pull = (np.concatenate(arrays) for arrays in others)
    return Start(
        np.concatenate(points), np.concatenate(given), 1.0, clamped, seeds, left_out, pulled, pull
    )


class Found(NamedTuple):
    """Answers to several queries, a row for each; rows that are too short end at their count.

    ``counts`` has the length of an answer, the steps that were taken and the points that were
    touched; ``bounds`` how far exact values can lie above and below. ``own`` has the scores of
    the points that were left out, one query after the other.
    """

    points: NDArray[np.int64]
    scores: Floats
    counts: NDArray[np.int64]
    bounds: Floats
    certified: NDArray[np.bool_]
    own: Floats

    @classmethod
    def empty(cls, n_queries: int, top: int, n_left_out: int) -> Found:
        """Make room for answers."""
        return cls(
            np.empty((n_queries, top), dtype=np.int64),
            np.empty((n_queries, top)),
            np.empty((n_queries, 3), dtype=np.int64),
            np.empty((n_queries, 2)),
            np.empty(n_queries, dtype=np.bool_),
            np.empty(n_left_out),
        )


class Stand(NamedTuple):
    """Where a solve stands: it can be resumed from here.

    ``n_rows`` touched points have their rows copied, unless the ``whole`` graph is in use.
    ``drift`` bounds by how much the residuals differ from what they would be without rounding.
    ``last`` is the score at the end of the top, as far as it is known; once the top is certified,
    a score between it and all others.
    """

    n_touched: int
    n_rows: int
    whole: bool
    level: float
    drift: float
    last: float
    above: float
    below: float
    n_steps: int
    n_edges: int
    state: int


NOT_BEGUN = Stand(0, 0, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
