"""Who is near whom."""

from __future__ import annotations

from rankfold.neighbors.approximate import FaissEngine
from rankfold.neighbors.change import Change
from rankfold.neighbors.choice import choose_engine
from rankfold.neighbors.contract import (
    Engine,
    Listing,
    VectorEngine,
    live_points,
)
from rankfold.neighbors.dimension import choose_n_neighbors, intrinsic_dimension
from rankfold.neighbors.exact import METRICS, ExactEngine
from rankfold.neighbors.given import GivenEngine
from rankfold.neighbors.learned import Learned, Round, changed_rows
from rankfold.neighbors.living import LivingEngine, check_state
from rankfold.neighbors.measure import (
    GIVEN_METRICS,
    mean_sq_distances,
    plain_sq_distances,
    positive_shares,
)

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
    "Learned",
    "Listing",
    "LivingEngine",
    "Round",
    "VectorEngine",
    "changed_rows",
    "check_state",
    "choose_engine",
    "choose_n_neighbors",
    "intrinsic_dimension",
    "live_points",
    "mean_sq_distances",
    "plain_sq_distances",
    "positive_shares",
]
