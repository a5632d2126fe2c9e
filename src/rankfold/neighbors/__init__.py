"""Who is near whom."""

from rankfold.neighbors.dimension import choose_n_neighbors, intrinsic_dimension
from rankfold.neighbors.exact import METRICS, ExactEngine

__all__ = ["METRICS", "ExactEngine", "choose_n_neighbors", "intrinsic_dimension"]
