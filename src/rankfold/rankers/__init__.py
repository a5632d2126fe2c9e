"""Ranking methods under one contract."""

from rankfold.rankers.base import Ranker
from rankfold.rankers.diffusion import (
    Diffusion,
    LocallyConstrainedDiffusion,
    SelfDiffusion,
    TensorProductDiffusion,
)
from rankfold.rankers.distance import Distance, QueryExpansion
from rankfold.rankers.hypergraph import HypergraphRanking
from rankfold.rankers.ran import RAN
from rankfold.rankers.reciprocal import KReciprocal
from rankfold.rankers.transduction import GraphTransduction
from rankfold.rankers.walks import ManifoldRanking, PersonalizedPageRank

RANKERS: dict[str, type[Ranker]] = {
    "distance": Distance,
    "self_diffusion": SelfDiffusion,
    "pagerank": PersonalizedPageRank,
    "manifold": ManifoldRanking,
    "transduction": GraphTransduction,
    "lcdp": LocallyConstrainedDiffusion,
    "tensor": TensorProductDiffusion,
    "k_reciprocal": KReciprocal,
    "lhrr": HypergraphRanking,
    "query_expansion": QueryExpansion,
    "ran": RAN,
}
"""All methods by the names that the command line, `Index.query` and the service know them by."""

__all__ = [
    "RAN",
    "RANKERS",
    "Diffusion",
    "Distance",
    "GraphTransduction",
    "HypergraphRanking",
    "KReciprocal",
    "LocallyConstrainedDiffusion",
    "ManifoldRanking",
    "PersonalizedPageRank",
    "QueryExpansion",
    "Ranker",
    "SelfDiffusion",
    "TensorProductDiffusion",
]
