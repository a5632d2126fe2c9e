"""The best points by shape fused with distance, for a query of one example. Compiled.

`Fusion.fuse` and `ordered` do the same step by step, for every kind of query.
"""

from __future__ import annotations

import numpy as np

from rankfold.compilation import compiled


@compiled()
def best_blended(  # type: ignore[no-untyped-def]
    near, sq_distances, n_near, degrees, own, points, shape, bound, certified, weight,
    horizons, hubs, rounding, found, scores, shapes, unknown,
):  # fmt: skip
    """Write the best points of a solution, as `Fusion.fuse` and `ordered` find them.

    Parameters
    ----------
    near, sq_distances : arrays
        The list of the query: points and squared distances, ascending. Then others, which were
        measured.
    n_near : int
        Length of the list.
    degrees : array
        Of all points, beside their mean.
    own : int
        The query's own point; `NOBODY` where it is none.
    points, shape : arrays
        The best by shape, in order, and their scores.
    bound, certified : float, bool
        How far these can be off, and whether they are proven to be the best.
    weight : float
    horizons, hubs : tuples of float
        See `HORIZONS` and `HUBNESS`.
    rounding : float
        See `ROUNDING`.
    found, scores, shapes : arrays
        For the results, of their number: points, scores, and scores by shape alone.
    unknown : array
        For points whose distances are needed; one for every candidate.

    Returns
    -------
    n_unknown : int
        How many these are; the other values are only meant where it is zero. -1 where there are
        too few points, or no neighbours.
    bound : float
        How far scores can be off.
    proven : bool
        Whether the results are proven to be the best.
    horizon, hubness : float
    """
    listed, u = np.empty(len(near), dtype=np.int64), np.empty(len(near))
    n_listed = n_neighbors = 0
    for entry in range(len(near)):
        if near[entry] >= 0 and near[entry] != own and np.isfinite(sq_distances[entry]):
            listed[n_listed], u[n_listed] = near[entry], sq_distances[entry]
            n_listed += 1
            n_neighbors += entry < n_near
    if n_neighbors == 0:
        return -1, bound, False, 0.0, 0.0
    nearest, farthest = u[0], u[n_neighbors - 1]
    spread = farthest - nearest if farthest - nearest > rounding * farthest else 0.0
    n_finite, n_joined, hubness = 0, max(1, n_neighbors - 1), 0.0
    size = 4
    while size < 4 * n_listed:
        size *= 2
    places = np.full(size, -1, dtype=np.int32)  # of what is listed, by the last bits of a point
    for entry in range(n_listed):
        if spread > 0.0:
            u[entry] = max(u[entry] - nearest, 0.0) / spread
        else:
            u[entry] = np.inf if u[entry] > (1.0 + rounding) * nearest else 0.0
        if entry >= n_neighbors:  # what the list leaves out counts as beyond it
            u[entry] = max(u[entry], 1.0)
        elif u[entry] < np.inf:
            n_finite += 1
        if entry < n_joined:
            hubness += degrees[listed[entry]] / n_joined
        at = listed[entry] & (size - 1)
        while places[at] >= 0:
            at = (at + 1) & (size - 1)
        places[at] = entry
    share = min(max((hubness - hubs[0]) / (hubs[1] - hubs[0]), 0.0), 1.0)
    horizon = horizons[0] + share * (horizons[1] - horizons[0])

    candidates, entries = np.empty(len(points), np.int64), np.empty(len(points), np.int64)
    n, most = 0, -np.inf  # the shape of the nearest, and of a neighbour at most
    for a in range(len(points)):
        if shape[a] <= 0.0 or points[a] == own:
            continue
        at = points[a] & (size - 1)
        while places[at] >= 0 and listed[places[at]] != points[a]:
            at = (at + 1) & (size - 1)
        if places[at] >= 0 and u[places[at]] <= 0.0:
            most = max(most, shape[a])
        candidates[n], entries[n] = a, places[at]
        n += 1
    if n < len(found):
        return -1, bound, False, 0.0, 0.0
    if most == -np.inf:
        most = np.inf

    # What is no neighbour is at a distance of 1 at least, and loses the most at the horizon.
    least_loss, most_loss = np.exp(-weight), np.exp(-weight * horizon)
    count, n_reached, largest, outside = 0, 0, 0.0, -np.inf
    for c in range(n):
        value, entry = shape[candidates[c]], entries[c]
        away = u[entry] if entry >= 0 else np.inf
        if entry < 0 or (away == np.inf and entry < n_neighbors):
            low = value * most_loss
            if horizon > 1.0:  # what may be a result is measured first; others score this at most
                outside = max(outside, value * least_loss)
        else:
            counted = value
            if entry < n_neighbors:
                counted, largest = min(value, most), max(largest, value)
                n_reached += 1
            low = counted * np.exp(-weight * min(away, horizon))
        point = points[candidates[c]]
        if count == len(found):
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
            entry = entries[c]
            far = entry < 0 or (u[entry] == np.inf and entry < n_neighbors)
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
