"""Neighbour lists of the database, and how many neighbours to use."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rankfold.check import InputError, check_count
from rankfold.neighbors import Engine, GivenEngine, Listing, choose_n_neighbors, live_points
from rankfold.neighbors.dimension import DIFFUSE_NEIGHBORS, DIMENSION_NEIGHBORS
from rankfold.rankers.asker import warn_asker
from rankfold.types import Neighbors

SAMPLE = 2000
"""Points whose lists are looked at where the number of neighbours is chosen without all lists."""


def candidate_lists(
    engine: Engine,
    n_neighbors: int | Literal["auto"],
    n_left_out: int,
    least_width: int = 0,
) -> tuple[Neighbors, int]:
    """Return neighbour lists of the database and the number of neighbours to use.

    The lists are about twice as long as that number, so that "auto" can measure the dimension
    and graphs that change find candidates; ``least_width`` asks for more. At least ``n_left_out``
    points are not neighbours of a point: the point itself, and one more where the graph needs it
    for the scale.

    Given lists are as long as they are. "auto" keeps to what half of them have; another number
    must be reached by some, and where others are shorter, which is said, points use what they have.
    """
    automatic = isinstance(n_neighbors, str) and n_neighbors == "auto"
    asked = DIFFUSE_NEIGHBORS if automatic else check_count(n_neighbors, "n_neighbors")
    n_points = engine.n_alive
    most = max(1, n_points - n_left_out)
    width = max(stored_width(asked, n_points), min(least_width, n_points - 1))
    lists = engine.rows(np.arange(engine.n_points), width)
    if automatic:
        asked = min(choose_n_neighbors(lists), most)
    chosen = at_most(asked, most, n_points)
    if isinstance(engine, GivenEngine):
        chosen = _given_neighbors(engine, chosen, n_left_out - 1, automatic)
    return lists.head(max(stored_width(chosen, n_points), least_width)), chosen


def _given_neighbors(engine: GivenEngine, asked: int, n_more: int, automatic: bool) -> int:
    """Return a number of neighbours that given lists have, with ``n_more`` beyond for the scale."""
    lengths = engine.lengths
    if automatic:
        return max(1, min(asked, int(np.median(lengths)) - n_more))
    needed, longest, short = asked + n_more, int(lengths.max()), lengths < asked + n_more
    beyond = f" ({n_more} more for the scale)" if n_more else ""
    if longest < needed:
        raise InputError(
            f"n_neighbors={asked} needs lists of {needed} neighbours{beyond}, but the longest list "
            f"of the graph has {longest}, the point itself not counted; give a graph with more "
            f"neighbours, or n_neighbors={max(1, longest - n_more)} or less.",
            "n_neighbors",
        )
    if short.any():
        warn_asker(
            f"n_neighbors={asked} needs lists of {needed} neighbours{beyond}, but "
            f"{np.count_nonzero(short)} of {len(lengths)} lists of the graph are shorter, that of "
            f"point {int(np.argmin(lengths))} with {int(lengths.min())} the shortest; these points "
            "use what they have.",
        )
    return asked


def at_most(n_neighbors: int, most: int, n_points: int) -> int:
    """Return a number of neighbours that there are points for; warn where it is a smaller one."""
    if n_neighbors > most:
        warn_asker(
            f"n_neighbors={n_neighbors} is too large for {n_points} points, of which a point is "
            "not its own neighbour, and an adaptive graph needs one more for the scale; "
            f"using {most}.",
        )
    return min(n_neighbors, most)


def choose_from_sample(engine: Listing, n_neighbors: int | Literal["auto"], seed: int = 0) -> int:
    """Return the number of neighbours to use; "auto" looks at the lists of some points only."""
    if not (isinstance(n_neighbors, str) and n_neighbors == "auto"):
        return check_count(n_neighbors, "n_neighbors")
    live = live_points(engine)
    sample = np.random.default_rng(seed).permutation(live)[:SAMPLE]
    return choose_n_neighbors(engine.rows(np.sort(sample), DIMENSION_NEIGHBORS))


def stored_width(n_neighbors: int, n_points: int) -> int:
    """Return how many candidates to keep: twice what the closed form reads, k+1 at least."""
    return min(max(DIMENSION_NEIGHBORS, 2 * (n_neighbors + 1)), max(1, n_points - 1))
