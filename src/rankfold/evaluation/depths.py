"""From which result on a method is better than plain distance, and where it is worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankfold.evaluation.measures import Measure
from rankfold.evaluation.statistics import ROUNDING, bootstrap_interval
from rankfold.types import BoolArray, FloatArray

DEPTHS = (1, 2, 5, 10, 20, 50, 100)
"""How many of the first results are looked at."""

FEWEST_QUERIES = 10
"""With fewer, intervals say nothing."""


@dataclass(frozen=True)
class DepthGain:
    """The precision of a method among its first results, beside that of plain distance.

    Parameters
    ----------
    method : str
    depth : int
        How many results are looked at.
    plain, mean : float
        Share of relevant results by plain distance and by the method.
    low, high : float
        Bounds of the 95 % bootstrap interval of the mean difference, query by query.
    """

    method: str
    depth: int
    plain: float
    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 where the method is better, -1 where it is worse, 0 where that is not clear."""
        return int(self.low > ROUNDING) - int(self.high < -ROUNDING)


def depth_measures(n_results: int) -> tuple[Measure, ...]:
    """Return the precision at every depth that answers of such a length have."""
    return tuple(Measure("precision", depth) for depth in DEPTHS if depth <= max(1, n_results))


def depth_gains(
    values: Mapping[str, Mapping[str, FloatArray]],
    plain: Mapping[str, FloatArray],
    answered: BoolArray,
    seed: int,
) -> tuple[DepthGain, ...]:
    """Return how each method compares at each depth, over queries that all have answered.

    Methods that rank like plain distance everywhere are left out.
    """
    measures = [measure for measure in depth_measures(DEPTHS[-1]) if measure.name in plain]
    found: list[DepthGain] = []
    if not measures or not answered.any():
        return ()
    before = np.column_stack([plain[measure.name][answered] for measure in measures])
    for method, reached in values.items():
        after = np.column_stack([reached[measure.name][answered] for measure in measures])
        if np.abs(after - before).max(initial=0.0) <= ROUNDING and _same(reached, plain):
            continue
        low, high = bootstrap_interval(after - before, seed)
        rows = zip(measures, before.mean(axis=0), after.mean(axis=0), low, high, strict=True)
        found += [
            DepthGain(method, measure.cutoff or 0, *map(float, numbers))
            for measure, *numbers in rows
        ]
    return tuple(found)


def verdict(gains: Sequence[DepthGain]) -> str:
    """Return in words where a method is better than plain distance, and where it is worse.

    Examples
    --------
    >>> signs = {1: -0.1, 2: 0.0, 5: 0.1, 10: 0.2}
    >>> verdict([DepthGain("RAN", depth, 0.5, 0.5, by, by) for depth, by in signs.items()])
    'RAN is better than plain distance from the first 5 results on; worse at 1.'
    """
    method, depths = gains[0].method, [gain.depth for gain in gains]
    better, worse = (
        _at([gain.depth for gain in gains if gain.sign == sign], depths) for sign in (1, -1)
    )
    if not (better or worse):
        return f"{method} is neither better nor worse than plain distance at any depth."
    if not better:
        return f"{method} is worse than plain distance {worse}, and better nowhere."
    end = f"; worse {worse}" if worse else ""
    return f"{method} is better than plain distance {better}{end}."


def _at(some: Sequence[int], depths: Sequence[int]) -> str:
    """Return depths in words: all, those from one on, or a list."""
    if not some:
        return ""
    if len(some) == len(depths):
        return "at every depth"
    if len(some) > 1 and list(some) == list(depths[-len(some) :]):
        return f"from the first {some[0]} results on"
    *others, last = map(str, some)
    return f"at {', '.join(others)} and {last}" if others else f"at {last}"


def _same(values: Mapping[str, FloatArray], plain: Mapping[str, FloatArray]) -> bool:
    """Tell whether a method has reached exactly what plain distance has."""
    return all(
        np.abs(np.nan_to_num(values[name] - plain[name])).max(initial=0.0) <= ROUNDING
        for name in plain
    )
