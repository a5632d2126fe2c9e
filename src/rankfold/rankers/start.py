"""What a query gives to its neighbours in RAN's graph."""

from __future__ import annotations

import numpy as np

from rankfold.rankers.closed_form import ClosedForm
from rankfold.solvers import Start
from rankfold.types import NOBODY, FloatArray, IntArray, Neighbors, Query


def ran_start(query: Query, unseen: Neighbors, n_neighbors: int, smoothness: float) -> Start:
    """Return a query in the terms of RAN's system; ``unseen`` has the lists of its vectors.

    A point of the query is eliminated, with its seed as its score. So is an unseen vector,
    whose edges of weight ``s / 2`` also hold their other ends back: they add to the diagonal.
    """
    n_ids = len(query.ids)
    size = max(1.0, -min(query.weights.tolist()))
    own = Start(size=size, clamped=query.ids, seeds=query.weights[:n_ids], left_out=query.ids)
    if not len(query.vectors):
        return own
    pulled, pull = _attach(unseen, n_neighbors, smoothness)
    seeds = zip(pull, query.weights[n_ids:], strict=True)
    given = np.concatenate([seed * edges for edges, seed in seeds])
    points = np.concatenate(pulled)
    return own._replace(points=points, given=given, pulled=points, pull=np.concatenate(pull))


def _attach(
    unseen: Neighbors, n_neighbors: int, smoothness: float
) -> tuple[list[IntArray], list[FloatArray]]:
    """Return each vector's neighbours and ``2 lambda w``, with ``w = s / 2``."""
    form = ClosedForm.of(unseen, n_neighbors)
    kept = [row != NOBODY for row in form.indices]
    pulled = [row[use] for row, use in zip(form.indices, kept, strict=True)]
    strengths = [
        smoothness * row[use].astype(np.float64)
        for row, use in zip(form.weights, kept, strict=True)
    ]
    return pulled, strengths
