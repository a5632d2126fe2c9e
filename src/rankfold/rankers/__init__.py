"""Ranking methods, one per file, under one contract."""

from rankfold.rankers.adaptive_graph import AdaptiveGraph
from rankfold.rankers.base import Ranker
from rankfold.rankers.diffusion import Diffusion
from rankfold.rankers.euclidean import Euclidean
from rankfold.rankers.gaussian_graph import GaussianGraph
from rankfold.rankers.graphs import GRAPHS
from rankfold.rankers.lcdp import LocallyConstrainedDiffusion
from rankfold.rankers.manifold import ManifoldRanking
from rankfold.rankers.pagerank import PersonalizedPageRank
from rankfold.rankers.ran import RAN
from rankfold.rankers.self_diffusion import SelfDiffusion
from rankfold.rankers.tensor import TensorProductDiffusion
from rankfold.rankers.transduction import GraphTransduction

RANKERS: dict[str, type[Ranker]] = {
    "euclidean": Euclidean,
    "self_diffusion": SelfDiffusion,
    "pagerank": PersonalizedPageRank,
    "manifold": ManifoldRanking,
    "transduction": GraphTransduction,
    "lcdp": LocallyConstrainedDiffusion,
    "tensor": TensorProductDiffusion,
    "ran": RAN,
}
"""All methods by the names that the command line, `Index.query` and the service know them by."""

__all__ = [
    "GRAPHS",
    "RAN",
    "RANKERS",
    "AdaptiveGraph",
    "Diffusion",
    "Euclidean",
    "GaussianGraph",
    "GraphTransduction",
    "LocallyConstrainedDiffusion",
    "ManifoldRanking",
    "PersonalizedPageRank",
    "Ranker",
    "SelfDiffusion",
    "TensorProductDiffusion",
]
