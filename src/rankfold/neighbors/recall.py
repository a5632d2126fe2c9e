"""How much effort a search has to make, found by measuring what it misses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankfold.neighbors.index import Index, threads
from rankfold.neighbors.indexes import DIFFERENCES, FlatIndex
from rankfold.types import BoolArray, FloatArray

RECALL_POINTS, RECALL_NEIGHBORS = 200, 50
"""Recall is measured over the lists of so many points, and of this length at least."""

MOST_ADDED, LEAST_LEFT = 1.25, 0.8
"""Recall is measured again once there are so many times the points, or fewer are left."""


@dataclass(frozen=True)
class Plan:
    """The index and the effort with which lists of up to ``width`` reach a measured recall.

    ``n_points`` and ``n_alive`` are how many points there were when it was measured.
    """

    width: int
    kind: str
    effort: int
    recall: float
    n_points: int
    n_alive: int

    def holds(self, n_points: int, n_alive: int) -> bool:
        """Say whether the points are still about those for which it was measured."""
        return n_points <= MOST_ADDED * self.n_points and n_alive >= LEAST_LEFT * self.n_alive


def reach_recall(
    points: FloatArray,
    alive: BoolArray | None,
    index: Index,
    width: int,
    recall: float,
    seed: int,
    n_threads: int | None,
) -> tuple[Plan, Index]:
    """Make more efforts until lists of this length reach the asked recall.

    The truth is a search through all points, to which the index gives way in the end. Returns
    the plan, and the index that it is for.
    """
    live = np.arange(len(points)) if alive is None else np.flatnonzero(alive)
    rng = np.random.default_rng(seed)
    sample = live[rng.choice(len(live), min(RECALL_POINTS, len(live)), replace=False)]
    flat: Index = FlatIndex(points, seed)

    def found(kind: Index, effort: int) -> FloatArray:
        from rankfold.neighbors.refine import refine

        with threads(n_threads):
            candidates = kind.candidates(points[sample], width + 1, effort, alive)
        return refine(points, points[sample], candidates, sample, width)[0].sq_distances

    true = found(flat, DIFFERENCES)
    share_known = width > 0 and len(sample) > 0
    attempts = [(kind, effort) for kind in (index, flat) for effort in kind.efforts]
    for kind, effort in attempts:  # the last one is how the truth was found
        share = float((found(kind, effort) <= true[:, -1:]).mean()) if share_known else 1.0
        if share >= recall:
            break
    return Plan(width, kind.kind, effort, share, len(points), len(live)), kind
