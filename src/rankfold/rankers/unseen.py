"""Neighbours of vectors that are not in the database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from rankfold.neighbors import Engine
from rankfold.types import Neighbors, Query


def search_unseen(
    engine: Engine, queries: Sequence[Query], width: int, unit: float
) -> list[Neighbors]:
    """Search the unseen vectors of all queries at once, and measure them in a unit."""
    if not any(len(query.vectors) for query in queries):
        return [_nobody(width)] * len(queries)
    found = engine.search(np.concatenate([query.vectors for query in queries]), width)
    found = Neighbors(found.indices, found.sq_distances / unit)
    ends = np.cumsum([len(query.vectors) for query in queries])
    return [
        found.take(np.arange(end - len(query.vectors), end))
        for query, end in zip(queries, ends, strict=True)
    ]


@cache
def _nobody(width: int) -> Neighbors:
    return Neighbors(np.empty((0, width), dtype=np.intp), np.empty((0, width)))
