"""The arrays that the compiled part of the region solver works on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankfold.parallel import NEVER
from rankfold.solvers.system import NO_POINTS, Boundary

PROVEN, WITHIN_TOL, OUT_OF_BUDGET, NEEDS_ROWS, NEEDS_GRADIENTS, PAUSED = range(6)
"""Why a solve returned."""

PREFETCH_DISTANCE = 12
"""How many places ahead in the queue memory is prefetched."""

UNLIMITED = 2**62
"""The budget of a query that may touch as many points as it takes."""

PUSH_PATIENCE, REGION_SHARE = 1.2, 0.25
"""When gradients take over from push, and when they leave the region: see `Rule`."""

BEYOND = 0.07
"""Part of the way from the best relaxation for all points at once to the largest that converges.

Points that are pushed one by one, where they lack something, do better with a little more.
"""

SMALLEST_RHO = 1e-3
"""Below it the terms of an error that are not known do not matter."""

Floats = NDArray[np.float64]


class Memory:
    """A named tuple of arrays and numbers, as compiled code gets it: one address.

    There is the address of every array, or the number; dozens of arrays would have to be looked
    into with every call. Attributes are those of the tuple, whose arrays it keeps alive.

    Parameters
    ----------
    given : named tuple
    """

    _numba_type_: Any = None
    """Its type, known after `typed` of the module memory."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.__dict__.update(zip(given._fields, given, strict=True))
        self._table = np.zeros(len(given), dtype=np.int64)
        self.address = self._table.ctypes.data
        for place, value in enumerate(given):
            self._write(place, value)

    def _write(self, place: int, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self._table[place] = value.ctypes.data
        elif isinstance(value, float):
            self._table.view(np.float64)[place] = value
        else:
            self._table[place] = value

    def replace(self, name: str, array: NDArray[Any]) -> None:
        """Put another array of the same type into the place of one."""
        self.given = self.given._replace(**{name: array})
        self.__dict__[name] = array
        self._write(self.given._fields.index(name), array)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return Memory, (self.given,)


class Arrays(NamedTuple):
    """A system: rows of ``beta W``, margins, and the scale of the scores.

    The row of point i has the entries from ``rows[2 i]`` to ``rows[2 i + 1]``. In a ``plain``
    system margins and scales are all one, and are not read. ``inverse`` is that of the diagonal,
    ``largest_diagonal`` the largest ``c_i / m_i``, ``mean_row`` the mean length of a row.

    Rows that lie elsewhere may not be here yet: arrays are for ``n_here`` of ``n_points`` points,
    and ``n_rows`` of them have a row; the inverse of the diagonal is zero for all other points. It
    is ``most_inverse`` at most, and usually ``usual_inverse``. A solve stops where it needs another
    row; with ``goes_on`` such points keep the value zero.
    """

    rows: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[Any]
    margin: Floats
    scale: Floats
    inverse: Floats
    n_here: int
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

    @classmethod
    def of(
        cls,
        rows: NDArray[Any],
        indices: NDArray[Any],
        weights: NDArray[Any],
        margin: NDArray[Any],
        scale: NDArray[Any],
        inverse: NDArray[Any],
        *facts: Any,
    ) -> Arrays:
        """Make one whose arrays have the types for which kernels are compiled.

        Each other type would have everything compiled once more. Only weights may be of single or
        of double precision.
        """
        return cls(
            _flat(rows, np.int64),
            _flat(indices, np.int32),
            _flat(weights, weights.dtype),
            _flat(margin, np.float64),
            _flat(scale, np.float64),
            _flat(inverse, np.float64),
            len(margin),
            *facts,
        )


def _flat(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return a flat view of an array, or a copy where it is of another type."""
    return np.ascontiguousarray(array, dtype=dtype).reshape(-1)


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

    @classmethod
    def of(
        cls, share: float, patience: float = PUSH_PATIENCE, whole_share: float = REGION_SHARE
    ) -> Rule:
        """Return how a solve proceeds where the median of ``m_i / c_i`` is this."""
        rho = 1.0 - share
        relaxation = 2.0 / (1.0 + float(np.sqrt(1.0 - rho**2)))
        relaxation += BEYOND * (2.0 - relaxation)
        return cls(relaxation, float(patience), float(whole_share), term_weights(rho))


def term_weights(rho: float) -> tuple[float, float, float]:
    """Return weights for the first three terms of ``e = (1 + J + J^2 + ...) x``.

    With weights p, ``e`` is missed by ``q(J) e`` where ``q(z) = 1 - (1 - z) p(z)``. Of all
    polynomials of its degree with ``q(1) = 1`` that of Chebyshev is the smallest on an interval:
    ``q(z) = T3((z - m) / h) / T3((1 - m) / h)`` on ``m - h <= z <= m + h``. The interval ends at
    rho and begins at ``-rho / 2``, since graphs of neighbours are far from bipartite; for a large
    rho it begins earlier, so that |q| is at most one even if they were.

    Parameters
    ----------
    rho : float
        About the largest eigenvalue of J, less than one.

    Examples
    --------
    >>> [round(weight, 3) for weight in term_weights(0.5)]
    [0.981, 1.082, 1.731]
    >>> term_weights(0.0)
    (1.0, 1.0, 1.0)
    """
    if rho < SMALLEST_RHO:
        return 1.0, 1.0, 1.0
    low = max(rho / 2, 2 * rho - 1)
    m, h = (rho - low) / 2, (rho + low) / 2
    # T3(u) = 4 u^3 - 3 u with u = (z - m) / h, by powers of z.
    powers = (
        3 * m / h - 4 * (m / h) ** 3,
        12 * m**2 / h**3 - 3 / h,
        -12 * m / h**3,
        4 / h**3,
    )
    q = [power / sum(powers) for power in powers]
    return 1 - q[0], 1 - q[0] - q[1], q[3]


class Workspace(NamedTuple):
    """Arrays that a query uses and leaves clean.

    The first five have an entry per point. The others are filled from their beginning, up
    to the number of points or edges that were touched; memory beyond is never used. ``touched``,
    ``valued`` (those with a value) and ``likely`` (those that may be among the best) have room for
    one more point, ``queue`` for `PREFETCH_DISTANCE` more. ``lacking`` are points whose row was
    needed, but is not here, ``room`` as many as there can be. ``r``, ``u``, ``q``, ``diagonal``,
    ``free`` and ``x`` are those of conjugate gradients. ``n_rows`` says how many rows the inverse
    knows of, where they grow. ``stop`` is the flag of `Stop`.
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
    room: int
    queue: NDArray[np.int32]
    ends: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[Any]
    cg_r: Floats
    cg_u: Floats
    cg_q: Floats
    cg_diagonal: Floats
    cg_free: Floats
    cg_x: Floats
    spare: Floats
    n_rows: NDArray[np.int64]
    stop: NDArray[np.uint8]

    @classmethod
    def of(cls, arrays: Arrays) -> Workspace:
        """Make one for a system."""
        n_points, n_edges = len(arrays.inverse), len(arrays.indices)
        return cls(
            np.zeros(n_points),
            np.zeros(n_points),
            arrays.inverse.copy(),
            np.zeros(n_points, dtype=np.uint8),
            np.empty(n_points, dtype=np.int32),
            np.empty(n_points + 1, dtype=np.int32),
            np.empty(n_points + 1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            np.empty(n_points + 1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            np.empty(n_points + 1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            n_points + 1,
            np.zeros(n_points + PREFETCH_DISTANCE, dtype=np.int32),
            np.empty(n_points, dtype=np.int64),
            np.empty(n_edges, dtype=np.int32),
            np.empty(n_edges, dtype=arrays.weights.dtype),
            np.empty(n_points),
            np.empty(n_points),
            np.empty(n_points),
            np.empty(n_points),
            np.empty(n_points),
            np.empty(n_points),
            np.empty(n_points),
            np.zeros(1, dtype=np.int64),
            NEVER,
        )


PLAN_ROW = 7
"""Numbers that `Batch` has for each query."""


class Batch(NamedTuple):
    """Several boundaries in three arrays, since each has to be looked into with every call.

    ``numbers`` has all points of right-hand sides, then all that are clamped, left out and pulled;
    ``reals`` has what belongs to the first, the second and the last of them, then all sizes.
    ``plan`` begins with their four totals. Rows of `PLAN_ROW` numbers follow, the first of them of
    zeros: where the four parts of each query end, the points to find, and its two budgets.
    """

    numbers: NDArray[np.int64]
    reals: Floats
    plan: NDArray[np.int64]
    n_queries: int

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
        rows = [0] * PLAN_ROW
        for one, top, budget in zip(boundaries, tops, budgets, strict=True):
            points += len(one.points)
            clamped += len(one.clamped)
            left_out += len(one.left_out)
            pulled += len(one.pulled)
            rows += [points, clamped, left_out, pulled, top, *budget]
        sizes = [one.size for one in boundaries]
        numbers = [getattr(one, part) for part in NUMBERS for one in boundaries]
        reals = [getattr(one, part) for part in REALS for one in boundaries]
        return cls(
            np.concatenate([NO_POINTS, *numbers], dtype=np.int64),
            np.concatenate([*reals, sizes], dtype=np.float64),
            np.array([points, clamped, left_out, pulled, *rows], dtype=np.int64),
            len(boundaries),
        )

    @property
    def n_left_out(self) -> int:
        """Points that are not part of an answer, of all queries."""
        return int(self.plan[2])


NUMBERS, REALS = ("points", "clamped", "left_out", "pulled"), ("rhs", "values", "pull")
"""Parts of a `Boundary`, in the order of a `Batch`."""


class QueryArrays(NamedTuple):
    """One of several boundaries, with the lengths of its arrays, as compiled code sees it.

    ``n_before`` points were left out by the queries before it.
    """

    points: NDArray[np.int64]
    rhs: Floats
    n_given: int
    clamped: NDArray[np.int64]
    values: Floats
    n_clamped: int
    left_out: NDArray[np.int64]
    n_left_out: int
    pulled: NDArray[np.int64]
    pull: Floats
    n_pulled: int
    size: float
    top: int
    budget: int
    most: int
    n_before: int


class Found(NamedTuple):
    """Answers to several queries, one after the other: each of ``top`` entries, or fewer.

    ``numbers`` has their points, then four `counts` for each; ``reals`` their scores, then two
    `bounds` for each, then the scores of the points that were left out.
    """

    numbers: NDArray[np.int64]
    reals: Floats
    n_queries: int
    top: int

    @classmethod
    def empty(cls, n_queries: int, top: int, n_left_out: int) -> Found:
        """Make room for answers."""
        return cls(
            np.empty(n_queries * (top + 4), dtype=np.int64),
            np.empty(n_queries * (top + 2) + n_left_out),
            n_queries,
            top,
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """Length of an answer, steps that were taken, points that were touched, why it ended."""
        return self.numbers[self.n_queries * self.top :].reshape(-1, 4)

    @property
    def bounds(self) -> Floats:
        """How far exact values can lie above and below."""
        first = self.n_queries * self.top
        return self.reals[first : first + 2 * self.n_queries].reshape(-1, 2)

    @property
    def own(self) -> Floats:
        """Scores of the points that were left out, one query after the other."""
        return self.reals[self.n_queries * (self.top + 2) :]


class Progress(NamedTuple):
    """How far a solve has come: it can be resumed from here.

    ``n_copied`` touched points have their rows copied, unless the ``whole`` graph is in use. A
    region that has ``grown`` uses the larger of its budgets. The top is judged when the bound has
    fallen to ``due``; ``passed`` edges were pushed since it was before.
    ``drift`` bounds by how much the residuals differ from what they would be without rounding.
    ``last`` is the score at the end of the top, as far as it is known; once the top is proven,
    a score between it and all others.
    """

    n_touched: int
    n_copied: int
    whole: bool
    grown: bool
    level: float
    due: float
    passed: int
    drift: float
    last: float
    above: float
    below: float
    n_steps: int
    n_edges: int
    state: int


NOT_BEGUN = Progress(0, 0, False, False, 0.0, np.inf, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, PAUSED)
