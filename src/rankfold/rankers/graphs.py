"""The graphs that every method can run on, by name."""

from __future__ import annotations

from typing import Protocol

from sklearn.base import clone

from rankfold.check import InputError
from rankfold.neighbors import Engine
from rankfold.rankers.adaptive_graph import AdaptiveGraph
from rankfold.rankers.gaussian_graph import GaussianGraph
from rankfold.types import FloatArray, Weights


class GraphRecipe(Protocol):
    """Says which points are joined, and how strongly."""

    def build(self, engine: Engine) -> Weights:
        """Return the symmetric weights W of the points of the database."""

    def attach(self, engine: Engine, vectors: FloatArray) -> Weights:
        """Return weights of unseen vectors to the points, one row for each.

        They are those of a row of its own in W, divided by the relative squared distance, so
        that a copy of a point stands for that point.
        """


GRAPHS: dict[str, type[AdaptiveGraph] | type[GaussianGraph]] = {
    "adaptive": AdaptiveGraph,
    "gaussian": GaussianGraph,
}
"""Graphs by the names that ``graph=`` takes."""


def make_graph(graph: object) -> GraphRecipe:
    """Return a fresh graph for a name of GRAPHS or an instance, which stays as it is."""
    if isinstance(graph, str) and graph in GRAPHS:
        return GRAPHS[graph]()
    if isinstance(graph, type) or not (hasattr(graph, "build") and hasattr(graph, "attach")):
        choices = ", ".join(repr(name) for name in GRAPHS)
        raise InputError(
            f"graph is {graph!r}, but must be one of {choices}, or a graph such as "
            "GaussianGraph(n_neighbors=10)."
        )
    fresh: GraphRecipe = clone(graph, safe=False)
    return fresh
