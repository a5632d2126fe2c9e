"""Which engine suits the points."""

from __future__ import annotations

from rankfold.neighbors.approximate import FaissEngine
from rankfold.neighbors.exact import ExactEngine
from rankfold.neighbors.measure import GIVEN_METRICS
from rankfold.types import FloatArray

EXACT_LIMIT = 20_000
"""Up to so many points the exact engine is quick enough."""


def choose_engine(
    X: FloatArray, metric: str, recall: float = 0.99, progress: bool = False
) -> ExactEngine | FaissEngine:
    """Return the exact engine for distances and for few points, else the one with FAISS."""
    if metric in GIVEN_METRICS or len(X) <= EXACT_LIMIT:
        return ExactEngine(X, metric)
    return FaissEngine(X, metric, recall, progress=progress)
