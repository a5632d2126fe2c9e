"""The walk from the query that brings the most to a point, found without leaving its region."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from rankfold.rankers.flow import Entry, Flow

MOST_POINTS = 20_000
"""Points that a search may look at before it gives up; a second or two."""


class Found(NamedTuple):
    """What a search came to.

    Parameters
    ----------
    entry : Entry or None
        Where the strongest walk enters the graph; None where none was found.
    points : tuple of int
        Its points, from there to the one that was asked for.
    n_visited : int
        Points that were looked at.
    complete : bool
        False where the search gave up.
    """

    entry: Entry | None
    points: tuple[int, ...]
    n_visited: int
    complete: bool


def strongest_walk(flow: Flow, point: int, most_points: int = MOST_POINTS) -> Found:
    """Return the walk of the largest product from the query to a point: Dijkstra on ``-log``.

    It runs from the point towards the query and reads only the rows of points that it visits.
    Seen from there an edge multiplies by ``coupling w_ba / c_b``, which needs b's row alone; for
    another lean the products differ by ``(c_i / c_q)^lean``, which depends on the ends of a walk
    and not on its course. No factor is above 1, so no walk gains by going in circles. Ties go
    to the walk of fewer steps, then to smaller row numbers.
    """
    gains = _gains(flow)
    labels: list[tuple[int, int]] = []
    fewest: dict[int, int] = {}
    heap: list[tuple[float, int, int, int]] = [(0.0, 0, point, -1)]
    while heap:
        cost, steps, node, parent = heappop(heap)
        if node < 0:
            return Found(flow.entries[~node], _course(labels, parent), len(fewest), True)
        if node in fewest and (flow.most_steps is None or fewest[node] <= steps):
            continue
        if node not in fewest and len(fewest) >= most_points:
            return Found(None, (), len(fewest), False)
        # With a limit of steps, a weaker walk is of use where it is a shorter one.
        fewest[node] = steps
        labels.append((node, parent))
        for place, gain in gains.get(node, ()):
            heappush(heap, (cost + gain, steps, ~place, len(labels) - 1))
        if node in flow.ends or steps == flow.most_steps:
            continue
        for neighbor, length in _lengths(flow, node):
            if neighbor not in fewest or flow.most_steps is not None:
                heappush(heap, (cost + length, steps + 1, neighbor, len(labels) - 1))
    return Found(None, (), len(fewest), True)


def _gains(flow: Flow) -> dict[int, list[tuple[int, float]]]:
    """Return, for points where the query enters, its entries and what is lost beside the best."""
    amounts = np.array(
        [abs(e.amount * e.factor) / flow.at(e.point) ** flow.lean for e in flow.entries]
    )
    largest = amounts.max(initial=0.0)
    gains: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for place, (entry, amount) in enumerate(zip(flow.entries, amounts, strict=True)):
        if amount > 0:
            gains[entry.point].append((place, float(-np.log(amount / largest))))
    return gains


def _lengths(flow: Flow, point: int) -> list[tuple[int, float]]:
    neighbors, weights = flow.edges(point)
    factors = flow.coupling * weights / flow.diagonal(point, float(weights.sum()))
    kept = factors > 0
    lengths = -np.log(np.minimum(factors[kept], 1.0))
    return list(zip(neighbors[kept].tolist(), lengths.tolist(), strict=True))


def _course(labels: list[tuple[int, int]], last: int) -> tuple[int, ...]:
    points = []
    while last >= 0:
        point, last = labels[last]
        points.append(point)
    return tuple(points)
