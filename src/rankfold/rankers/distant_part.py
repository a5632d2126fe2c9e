"""RAN's system on a part of the graph, and what it proves about all of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankfold.rankers.distant_rows import Part
from rankfold.solvers import LocalSystem, Start
from rankfold.solvers.contract import EPS
from rankfold.types import FloatArray

HOPELESS = 0.01
"""Gap behind the top, in bounds, below which a proof is not even tried."""

SHARE_TOL, SHARE_OF_GAP = 0.01, 0.1
"""How exactly the share of the border is found: at first, and for a proof in gaps per bound."""

LIKELY_SHARE = 0.5
"""Errors at the border, in the estimates that they would have if all around were as large."""


class Top(NamedTuple):
    """Values of a part of which it is certain who the best are, and how far theirs can be off."""

    values: FloatArray
    bound: float


class Stand(NamedTuple):
    """Values of a part, zero elsewhere, and how far they can be off.

    Exact values in the part are above by no more than ``above_inside (1 - h) + above h``, where h
    is the share of the border, and those of all other points by no more than ``above``. The same
    below. ``border`` has an estimate for each point of the border.
    """

    values: FloatArray
    border: FloatArray
    above_inside: float
    below_inside: float
    above: float
    below: float
    n_steps: int

    @property
    def bound(self) -> float:
        """The largest error that any value can have."""
        return max(self.above, self.below)

    @property
    def inside(self) -> float:
        """The largest residual in the part."""
        return max(self.above_inside, self.below_inside)


class PartSystem:
    """Solves ``A x = b`` on a part P, with zero around it, for one query.

    As in `LocalSystem`, ``A = C - B`` has rows that sum to one or more, and ``A^-1 >= 0``. The
    error ``e = A^-1 r`` is known from residuals of the whole system: rows of the part are complete,
    and a point b of the border, at zero, has ``r_b = sum_j B_bj x_j``, which they know as well.
    Everywhere else r is zero.

    Let ``h = A_PP^-1 B_PB 1`` be the share that the border has in a point, a the largest residual
    in the part and M the largest error outside, neither below zero. ``A_PP e = r_P + B_PB e_B``
    and ``A_PP 1 >= 1 + B_PB 1`` give ``e_j <= (1 - h_j) a + h_j M`` in the part. M itself is at a
    point b of the border, or zero, for elsewhere an error is less than a mean of others. Its row,
    ``c_b = 1 + sum_j B_bj`` with j in the part and outside, whoever those outside are, gives

        M (1 + t_b) <= r_b + t_b a    with    t_b = sum_(j in P) B_bj (1 - h_j),

    so M is at most the largest weighted mean of ``r_b`` and a. The same holds below.

    Parameters
    ----------
    part : Part
        All points of the query and all neighbours of its unseen vectors are in it.
    start : Start
        The query; its points are those of the database.
    smoothness : float
    """

    def __init__(self, part: Part, start: Start, smoothness: float) -> None:
        self.part, self._coupling = part, 2 * smoothness
        n_points = len(part.points)
        self._margin = 1.0 + self._coupling * part.across.sum(axis=1)
        self._system = LocalSystem(part.inside, self._coupling, self._margin, np.ones(n_points))
        own, pulled, points = (
            np.searchsorted(part.points, some)
            for some in (start.clamped, start.pulled, start.points)
        )
        self._start = start._replace(
            clamped=own,
            left_out=own,
            points=points,
            given=start.given / self._margin[points],
            pulled=pulled,
            pull=start.pull / self._margin[pulled],
        )
        self._given, self._diagonal = np.zeros(n_points), self._margin.copy()
        self._diagonal += self._coupling * part.inside.sum(axis=1)
        np.add.at(self._given, points, start.given)
        np.add.at(self._diagonal, pulled, start.pull)
        self.free = np.ones(n_points, dtype=bool)
        self.free[own] = False
        n_terms = np.diff(part.inside.indptr) + np.diff(part.across.indptr)
        largest = 2 * EPS * float(self._diagonal.max()) * start.size
        self.rounding = (int(n_terms.max()) + len(pulled) + 4) * largest
        self._shares = self.shares(SHARE_TOL)

    def solve(self, tol: float) -> Stand:
        """Solve until no residual in the part is above ``tol``, or about that."""
        reached = self._system.solve(self._start, tol)
        values = np.zeros(len(self.part.points))
        values[reached.points] = reached.values
        values[self._start.clamped] = self._start.seeds
        received = self._given + self._coupling * (self.part.inside @ values)
        inside = (received - self._diagonal * values)[self.free]
        above = float(inside.max(initial=0.0)) + self.rounding
        below = float(-inside.min(initial=0.0)) + self.rounding
        across = self._coupling * self.part.across.T
        received, held = across @ values, across @ (1.0 - self._shares)
        border, room = received / (1.0 + held), held / (1.0 + held)
        outside = float((border + room * above).max(initial=0.0)) + self.rounding
        opposite = float((room * below - border).max(initial=0.0)) + self.rounding
        return Stand(
            values,
            border,
            above,
            below,
            max(above, outside),
            max(below, opposite),
            reached.n_steps,
        )

    def shares(self, tol: float) -> FloatArray:
        """Return the share of the border in every point, up to about twice ``tol`` too large."""
        found, above = self._from_border(np.ones(len(self.part.border)), tol)
        shares: FloatArray = np.clip(found + above, 0.0, 1.0)
        shares[self._start.clamped] = 0.0
        return shares

    def certain_top(self, stand: Stand, top: int) -> Top | None:
        """Return the best ``top``; None if others may be better."""
        if top == 0:
            return Top(stand.values, 0.0)
        free = np.flatnonzero(self.free)
        values = stand.values[free]
        if len(free) <= top:
            return None
        order = free[np.argpartition(-values, (top - 1, top))]
        members, others = order[:top], order[top:]
        last, following = stand.values[order[top - 1]], stand.values[order[top]]
        gap = (last - following) / (stand.above + stand.below)
        if last <= stand.above or gap <= HOPELESS:
            return None
        shares = self.shares(min(SHARE_TOL, SHARE_OF_GAP * gap))
        high = stand.above_inside + shares * (stand.above - stand.above_inside)
        low = stand.below_inside + shares * (stand.below - stand.below_inside)
        lowest = np.min((stand.values - low)[members])
        if lowest <= max(stand.above, np.max((stand.values + high)[others])):
            return None
        guess, _ = self._from_border(LIKELY_SHARE * stand.border, SHARE_TOL * stand.bound)
        guess = np.clip(guess, -low, high)  # so that no other gets ahead of a member
        bound = np.maximum(high - guess, low + guess)[members].max()
        return Top(stand.values + guess, float(bound))

    def _from_border(self, values: FloatArray, tol: float) -> tuple[FloatArray, float]:
        """Return ``A_PP^-1 B_PB`` times values of the border, and how far it may be too small."""
        start = self._start._replace(
            points=np.arange(len(self._margin)),
            given=self._coupling * (self.part.across @ values) / self._margin,
            seeds=np.zeros(len(self._start.clamped)),
            size=max(EPS, float(np.abs(values).max(initial=0.0))),
        )
        reached = self._system.solve(start, tol)
        found = np.zeros(len(self._margin))
        found[reached.points] = reached.values
        return found, reached.above
