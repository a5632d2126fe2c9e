"""rankfold: ranking by the shape of the data.

The names below are imported when they are first used, so that importing the package
itself costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankfold.databases import Collection
    from rankfold.errors import InputError
    from rankfold.evaluation import evaluate, tune
    from rankfold.graph import AdaptiveGraph, GaussianGraph
    from rankfold.index import Index
    from rankfold.neighbors import ExactEngine, FaissEngine
    from rankfold.rankers import (
        RAN,
        RANKERS,
        Distance,
        GraphTransduction,
        HypergraphRanking,
        KReciprocal,
        LocallyConstrainedDiffusion,
        ManifoldRanking,
        PersonalizedPageRank,
        QueryExpansion,
        SelfDiffusion,
        TensorProductDiffusion,
    )
    from rankfold.types import Dataset, Neighbors, Query, Ranking, Solution, Trace

_HOMES = {
    "InputError": "rankfold.errors",
    "ExactEngine": "rankfold.neighbors",
    "FaissEngine": "rankfold.neighbors",
    "Collection": "rankfold.databases",
    "Index": "rankfold.index",
    "evaluate": "rankfold.evaluation",
    "tune": "rankfold.evaluation",
    "RAN": "rankfold.rankers",
    "RANKERS": "rankfold.rankers",
    "Distance": "rankfold.rankers",
    "AdaptiveGraph": "rankfold.graph",
    "GaussianGraph": "rankfold.graph",
    "GraphTransduction": "rankfold.rankers",
    "HypergraphRanking": "rankfold.rankers",
    "KReciprocal": "rankfold.rankers",
    "LocallyConstrainedDiffusion": "rankfold.rankers",
    "ManifoldRanking": "rankfold.rankers",
    "PersonalizedPageRank": "rankfold.rankers",
    "QueryExpansion": "rankfold.rankers",
    "SelfDiffusion": "rankfold.rankers",
    "TensorProductDiffusion": "rankfold.rankers",
    "Dataset": "rankfold.types",
    "Neighbors": "rankfold.types",
    "Query": "rankfold.types",
    "Ranking": "rankfold.types",
    "Solution": "rankfold.types",
    "Trace": "rankfold.types",
}

__all__ = [
    "RAN",
    "RANKERS",
    "AdaptiveGraph",
    "Collection",
    "Dataset",
    "Distance",
    "ExactEngine",
    "FaissEngine",
    "GaussianGraph",
    "GraphTransduction",
    "HypergraphRanking",
    "Index",
    "InputError",
    "KReciprocal",
    "LocallyConstrainedDiffusion",
    "ManifoldRanking",
    "Neighbors",
    "PersonalizedPageRank",
    "Query",
    "QueryExpansion",
    "Ranking",
    "SelfDiffusion",
    "Solution",
    "TensorProductDiffusion",
    "Trace",
    "datasets",
    "evaluate",
    "metrics",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("rankfold")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"rankfold.{name}")
    raise AttributeError(f"module 'rankfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
