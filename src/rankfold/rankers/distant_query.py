"""One query over a database: fetch rows and solve by turns, until the answer is certain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankfold.check import InputError
from rankfold.neighbors import DistantEngine
from rankfold.rankers.distant_part import PartSystem, Stand
from rankfold.rankers.distant_rows import FetchedRows
from rankfold.solvers import DIRECT_LIMIT, Start
from rankfold.types import BoolArray, FloatArray, IntArray

MOST_ROWS = 200_000
"""Rows that are fetched for a query, where no other number is given."""

GROWING_SHARE = 0.2
"""Border points with more than this share of the largest estimate are fetched."""

FEW_AT_ONCE, MANY_AT_ONCE = 128, 512
"""Points that are fetched at once even if they matter less, and how many may be if they do."""

INSIDE_SHARE = 0.03
"""What the solver may leave inside, in largest estimates at the border."""

LIMIT_OF_ROUNDING = 20
"""No tolerance is below so many times the rounding errors."""


class Reach(NamedTuple):
    """What a query has reached.

    Parameters
    ----------
    points : array of int
        Points with a value, ascending, the query's own among them.
    values : array of float
        All others are zero.
    bound : float
        No exact value, of any point, is further off than this where no top is certain.
    bound_of_top : float, optional
        How far the best can be off, where it is certain that they are; else None.
    n_steps : int
    n_rows : int
        Rows that were needed.
    converged : bool
    """

    points: IntArray
    values: FloatArray
    bound: float
    bound_of_top: float | None
    n_steps: int
    n_rows: int
    converged: bool


def reach(
    engine: DistantEngine,
    start: Start,
    n_neighbors: int,
    smoothness: float,
    top: int | None,
    tol: float,
    most_rows: int | None = None,
) -> Reach:
    """Go as far as is needed to be certain of the best ``top``, or of all values to ``tol``.

    Every exchange fetches the border points with the largest estimates, and all that list them:
    their rows are complete then. The part at most doubles with each, so that all of them together
    cost about as much as the last. As in memory, up to `DIRECT_LIMIT` points all values are found
    to ``tol`` in any case. After about ``most_rows`` rows it ends with the bound that it has.
    """
    is_small = engine.n_alive <= DIRECT_LIMIT
    most_rows = MOST_ROWS if most_rows is None else most_rows
    asked = np.union1d(start.clamped, start.pulled).astype(np.int64)
    fetched = FetchedRows(n_neighbors)
    fetched.add(engine.around(asked), asked)
    refuse_removed(asked, fetched.has(asked))
    n_steps, level = 0, INSIDE_SHARE * start.size
    while True:
        part = fetched.part()
        system = PartSystem(part, start, smoothness)
        enough = max(tol, LIMIT_OF_ROUNDING * system.rounding)
        stand = system.solve(level)
        n_steps += stand.n_steps
        while stand.inside > _tolerated(stand, enough) and level > system.rounding:
            level *= 0.5 * _tolerated(stand, enough) / stand.inside
            stand = system.solve(level)
            n_steps += stand.n_steps
        finished = stand.bound <= enough
        best = None
        if top is not None and (finished or not is_small):
            best = system.certain_top(stand, top)
        if best is not None:
            end = n_steps, len(fetched), True
            return Reach(part.points, best.values, stand.bound, best.bound, *end)
        room = (most_rows - len(fetched)) * len(asked) // len(fetched)
        places = _growing(stand, max(MANY_AT_ONCE, len(part.points)), enough)[: max(1, room)]
        growing = np.setdiff1d(part.border[places], asked)
        if finished or len(fetched) >= most_rows or not len(growing):
            end = n_steps, len(fetched), finished
            return Reach(part.points, stand.values, stand.bound, None, *end)
        fetched.add(engine.around(growing), growing)
        asked = np.union1d(asked, growing)


def _tolerated(stand: Stand, enough: float) -> float:
    """Return the residual that the solver may leave inside."""
    return INSIDE_SHARE * max(float(np.abs(stand.border).max(initial=0.0)), enough)


def _growing(stand: Stand, most: int, enough: float) -> IntArray:
    """Return the places in the border at which the part is to grow, the largest first."""
    sizes = np.abs(stand.border)
    order = np.argsort(-sizes, kind="stable")
    least = max(GROWING_SHARE * sizes.max(initial=0.0), enough / 2)
    n_large = int(np.count_nonzero(sizes > least))
    n_some = int(np.count_nonzero(sizes > enough / 10))
    return order[: min(max(n_large, min(n_some, FEW_AT_ONCE)), most)]


def refuse_removed(points: IntArray, present: BoolArray) -> None:
    """Require that all points of a query are there."""
    if not present.all():
        raise InputError(
            f"ids holds {points[~present][0]}, which was removed from the database; give row "
            "numbers of points that are still there."
        )
