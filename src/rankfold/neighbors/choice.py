"""Which engine suits the points."""

from __future__ import annotations

from typing import Any

from rankfold.neighbors.approximate import FaissEngine
from rankfold.neighbors.exact import ExactEngine
from rankfold.neighbors.given import GivenEngine

EXACT_LIMIT = 20_000
"""Up to so many points the exact engine is quick enough."""


def choose_engine(
    X: Any, metric: str, recall: float = 0.99, progress: bool = False
) -> ExactEngine | FaissEngine | GivenEngine:
    """Return the engine of a sparse graph, or the exact one for few points, or FAISS for many."""
    if hasattr(X, "tocsr"):
        return GivenEngine(X, metric)
    if metric.startswith("precomputed") or len(X) <= EXACT_LIMIT:
        return ExactEngine(X, metric)
    return FaissEngine(X, metric, recall, progress=progress)
