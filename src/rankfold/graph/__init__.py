"""Neighbour lists become a graph."""

from rankfold.graph.adaptive import AdaptiveGraph, ClosedForm, candidate_lists, stored_width
from rankfold.graph.gaussian import GRAPHS, GaussianGraph, GraphRecipe, make_graph

__all__ = [
    "GRAPHS",
    "AdaptiveGraph",
    "ClosedForm",
    "GaussianGraph",
    "GraphRecipe",
    "candidate_lists",
    "make_graph",
    "stored_width",
]
