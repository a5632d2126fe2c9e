"""The best points by shape fused with distance, for a query of one example. Compiled.

`Fusion.fuse` and `ordered` do the same step by step, for every kind of query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankfold.solvers.memory import after, entry, handle, small
from rankfold.types import FloatArray, IntArray


class BlendArrays(NamedTuple):
    """What `best_blended` reads, and room for what it writes: few arrays are quick to compile.

    Parameters
    ----------
    points : array of int64
        The points whose distances are known: the list of the query, then others that were measured.
        After them the best by shape, in order.
    values : array of float64
        Squared distances of the former, ascending in the list, and scores of the latter.
    degrees : array of float64
        Of all points of the database, beside their mean.
    found : array of int64
        Room for the results, and for as many points as are the best by shape: those whose distance
        is needed.
    scores : array of float64
        Room for the scores of the results, and for their scores by shape alone.
    places, distances : arrays of int64 and float64
        Room to work in, made by `of`.
    """

    points: IntArray
    values: FloatArray
    degrees: FloatArray
    found: IntArray
    scores: FloatArray
    places: IntArray
    distances: FloatArray

    @classmethod
    def of(
        cls,
        known: IntArray,
        sq_distances: FloatArray,
        best: IntArray,
        shape: FloatArray,
        degrees: FloatArray,
        top: int,
    ) -> BlendArrays:
        """Put the arrays together, for so many results."""
        size = 1 << (4 * len(known)).bit_length()
        return cls(
            np.concatenate([known, best], dtype=np.int64),
            np.concatenate([sq_distances, shape], dtype=np.float64),
            degrees,
            np.empty(top + len(best), dtype=np.int64),
            np.empty(2 * top),
            np.empty(size + len(known) + 2 * len(best), dtype=np.int64),
            np.empty(len(known)),
        )


@entry
def best_blended(  # type: ignore[no-untyped-def]
    arrays, n_near, n_known, n_points, top, own, bound, certified, weight, horizons, hubs, rounding
):
    """Write the best points of a solution, as `Fusion.fuse` and `ordered` find them.

    Parameters
    ----------
    arrays : BlendArrays
    n_near, n_known, n_points, top : int
        Length of the query's list, how many distances are known, how many points are the best by
        shape, and how many results there are.
    own : int
        The query's own point; `NOBODY` where it is none.
    bound, certified : float, bool
        How far scores by shape can be off, and whether these points are proven to be the best.
    weight : float
    horizons, hubs : tuples of float
        See `HORIZONS` and `HUBNESS`.
    rounding : float
        See `ROUNDING`.

    Returns
    -------
    n_unknown : int
        How many distances are needed; the other values are only meant where it is zero. -1 where
        there are too few points, or no neighbours.
    bound : float
        How far scores can be off.
    proven : bool
        Whether the results are proven to be the best.
    horizon, hubness : float
    """
    small()
    given = handle(arrays)
    near, sq_distances, degrees = given.points, given.values, given.degrees
    points, shape = after(given.points, n_known), after(given.values, n_known)
    found, unknown = given.found, after(given.found, top)
    scores, shapes = given.scores, after(given.scores, top)
    size = 1
    while size <= 4 * n_known:
        size *= 2
    for at in range(size):
        given.places[at] = -1
    places, u = given.places, given.distances  # places by the last bits of a point
    listed = after(given.places, size)
    candidates = after(given.places, size + n_known)
    entries = after(given.places, size + n_known + n_points)
    n_listed = n_neighbors = 0
    for item in range(n_known):
        if near[item] >= 0 and near[item] != own and sq_distances[item] < np.inf:
            listed[n_listed], u[n_listed] = near[item], sq_distances[item]
            n_listed += 1
            n_neighbors += item < n_near
    if n_neighbors == 0:
        return -1, bound, False, 0.0, 0.0
    nearest, farthest = u[0], u[n_neighbors - 1]
    spread = farthest - nearest if farthest - nearest > rounding * farthest else 0.0
    n_finite, n_joined, hubness = 0, max(1, n_neighbors - 1), 0.0
    for item in range(n_listed):
        if spread > 0.0:
            u[item] = max(u[item] - nearest, 0.0) / spread
        else:
            u[item] = np.inf if u[item] > (1.0 + rounding) * nearest else 0.0
        if item >= n_neighbors:  # what the list leaves out counts as beyond it
            u[item] = max(u[item], 1.0)
        elif u[item] < np.inf:
            n_finite += 1
        if item < n_joined:
            hubness += degrees[listed[item]] / n_joined
        at = listed[item] & (size - 1)
        while places[at] >= 0:
            at = (at + 1) & (size - 1)
        places[at] = item
    share = min(max((hubness - hubs[0]) / (hubs[1] - hubs[0]), 0.0), 1.0)
    horizon = horizons[0] + share * (horizons[1] - horizons[0])

    n, most = 0, -np.inf  # the shape of the nearest, and of a neighbour at most
    for a in range(n_points):
        if shape[a] <= 0.0 or points[a] == own:
            continue
        at = points[a] & (size - 1)
        while places[at] >= 0 and listed[places[at]] != points[a]:
            at = (at + 1) & (size - 1)
        if places[at] >= 0 and u[places[at]] <= 0.0:
            most = max(most, shape[a])
        candidates[n], entries[n] = a, places[at]
        n += 1
    if n < top:
        return -1, bound, False, 0.0, 0.0
    if most == -np.inf:
        most = np.inf

    # What is no neighbour is at a distance of 1 at least, and loses the most at the horizon.
    least_loss, most_loss = np.exp(-weight), np.exp(-weight * horizon)
    count, n_reached, largest, outside = 0, 0, 0.0, -np.inf
    for c in range(n):
        value, item = shape[candidates[c]], entries[c]
        away = u[item] if item >= 0 else np.inf
        if item < 0 or (away == np.inf and item < n_neighbors):
            low = value * most_loss
            if horizon > 1.0:  # what may be a result is measured first; others score this at most
                outside = max(outside, value * least_loss)
        else:
            counted = value
            if item < n_neighbors:
                counted, largest = min(value, most), max(largest, value)
                n_reached += 1
            low = counted * np.exp(-weight * min(away, horizon))
        point = points[candidates[c]]
        if count == top:
            last = scores[count - 1]
            if low < last or (low == last and point > found[count - 1]):
                outside = max(outside, low)
                continue
            outside = max(outside, last)
            count -= 1
        at = count
        while at > 0 and (
            scores[at - 1] < low or (scores[at - 1] == low and found[at - 1] > point)
        ):
            scores[at], found[at], shapes[at] = scores[at - 1], found[at - 1], shapes[at - 1]
            at -= 1
        scores[at], found[at], shapes[at] = low, point, value
        count += 1
    least = scores[count - 1]
    n_unknown = 0
    if horizon > 1.0:
        for c in range(n):
            item = entries[c]
            far = item < 0 or (u[item] == np.inf and item < n_neighbors)
            if far and shape[candidates[c]] * least_loss >= least:
                unknown[n_unknown] = points[candidates[c]]
                n_unknown += 1
    if n_unknown:
        return n_unknown, bound, False, 0.0, 0.0
    beyond = np.inf  # what a point that is no candidate can score at most
    if certified:
        beyond = shape[candidates[n - 1]] * (least_loss if n_reached >= n_finite else 1.0)
    if most == np.inf:  # the nearest may have any score
        bound = max(bound, largest)
    proven = least > max(outside, beyond) + 2.0 * bound
    return 0, bound, proven, horizon, hubness
