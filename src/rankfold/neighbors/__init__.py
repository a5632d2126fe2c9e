"""Who is near whom."""

from __future__ import annotations

from rankfold.neighbors.approximate import FaissEngine
from rankfold.neighbors.contract import Engine
from rankfold.neighbors.dimension import choose_n_neighbors, intrinsic_dimension
from rankfold.neighbors.exact import METRICS, ExactEngine
from rankfold.neighbors.measure import mean_sq_distances, plain_sq_distances, positive_shares
from rankfold.types import FloatArray

ENGINES: dict[str, type[Engine]] = {"exact": ExactEngine, "faiss": FaissEngine}

EXACT_LIMIT = 20_000
"""Up to so many points the exact engine is quick enough."""


def choose_engine(X: FloatArray, metric: str) -> Engine:
    """Return the exact engine for distances and for few points, else the one with FAISS."""
    if metric.startswith("precomputed") or len(X) <= EXACT_LIMIT:
        return ExactEngine(X, metric)
    return FaissEngine(X, metric)


__all__ = [
    "ENGINES",
    "METRICS",
    "Engine",
    "ExactEngine",
    "FaissEngine",
    "choose_engine",
    "choose_n_neighbors",
    "intrinsic_dimension",
    "mean_sq_distances",
    "plain_sq_distances",
    "positive_shares",
]
