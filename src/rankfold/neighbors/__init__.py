"""Nearest-neighbour search."""

from __future__ import annotations

from rankfold.neighbors.distances import (
    GIVEN_METRICS,
    mean_sq_distances,
    merge_lists,
    plain_sq_distances,
    positive_shares,
)
from rankfold.neighbors.dynamic import Change, DynamicEngine, check_state
from rankfold.neighbors.engine import Engine, Listing, VectorEngine, live_points
from rankfold.neighbors.exact import (
    METRICS,
    ExactEngine,
    choose_engine,
    choose_n_neighbors,
    intrinsic_dimension,
)
from rankfold.neighbors.faiss_engine import FaissEngine
from rankfold.neighbors.given import GivenEngine, KeptGraph, Learned, Round, changed_rows

ENGINES: dict[str, type[Engine]] = {"exact": ExactEngine, "faiss": FaissEngine}
"""Engines of vectors by name; ``fit`` takes FAISS for more than 20,000 points."""

__all__ = [
    "ENGINES",
    "GIVEN_METRICS",
    "METRICS",
    "Change",
    "Engine",
    "ExactEngine",
    "FaissEngine",
    "GivenEngine",
    "KeptGraph",
    "Learned",
    "Listing",
    "DynamicEngine",
    "Round",
    "VectorEngine",
    "changed_rows",
    "check_state",
    "choose_engine",
    "choose_n_neighbors",
    "intrinsic_dimension",
    "live_points",
    "mean_sq_distances",
    "merge_lists",
    "plain_sq_distances",
    "positive_shares",
]
