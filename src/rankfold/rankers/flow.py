"""How a query's weight flows along the edges of a graph, in the same terms for all methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankfold.graph import ClosedForm
from rankfold.graph.symmetric import inverse
from rankfold.types import FloatArray, IntArray, Query, Weights


class Edges(NamedTuple):
    """The neighbours of a point in a graph, and the weights of the edges to them."""

    points: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, weights: Weights, point: int) -> Edges:
        """Read one row of weights, sparse or dense."""
        if not hasattr(weights, "indptr"):
            row = np.asarray(weights[point])
            points = np.flatnonzero(row)
            return cls(points, row[points])
        entries = slice(weights.indptr[point], weights.indptr[point + 1])
        return cls(weights.indices[entries], weights.data[entries].astype(np.float64))


class Entry(NamedTuple):
    """Where an example of the query comes into the graph.

    Parameters
    ----------
    example : int
        Its place in the query, points first, then vectors.
    point : int
        The point of the database that receives it.
    amount : float
        How much flows out of the example in all.
    weight : float, optional
        Weight of the edge from an unseen vector to the point; None for a point of the query.
    factor : float
        Share of the amount that takes this edge.
    """

    example: int
    point: int
    amount: float
    weight: float | None = None
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Flow:
    """A score as the sum over all walks from the query.

    Each walk enters at an `Entry` and is multiplied at every edge, from a to b, by

        coupling w_ab / (c_a^lean c_b^(1 - lean)),

    with ``c`` of `diagonal`. The score of a point is the sum over all walks that end there.

    * RAN: ``(2 lambda L + I) f = 0`` off the query is ``f_b = sum_a p_ba f_a`` with
      ``p_ba = 2 lambda w_ab / (1 + 2 lambda d_b)``; walks start at the query and never
      come back to it. Coupling ``2 lambda``, ``c = 1 + 2 lambda d``, lean 0.
    * PageRank, ``f = (1 - alpha) sum_t alpha^t P'^t y``: coupling alpha, ``c = d``, lean 1,
      and ``(1 - alpha) y`` flows out of the query. Manifold ranking: the same, lean 1/2.
    * Graph transduction: ``p_ba = w_ab / d_b``, lean 0, a limited number of steps.
    * Self-diffusion, ``f = sum_t P'^t y / d``: coupling 1, lean 0, and ``y / d`` flows out.

    Parameters
    ----------
    edges : callable
        From a point to its `Edges`.
    diagonal : callable
        From a point and the sum of its weights to c.
    entries : tuple of Entry
    coupling, lean : float
    ends : frozenset of int
        Points of the query that no walk comes back to.
    fixed : bool
        Whether the scores of the query's examples are fixed at their weights.
    most_steps : int, optional
        The longest walk between points of the database.
    exact : bool
        Whether the score is this sum. Where it is not, walks illustrate a method that
        compares walks from both ends.
    first_graph : bool
        Whether this is the first of several graphs, and scores come from the last one.
    """

    edges: Callable[[int], Edges]
    diagonal: Callable[[int, float], float]
    entries: tuple[Entry, ...]
    coupling: float = 1.0
    lean: float = 0.0
    ends: frozenset[int] = frozenset()
    fixed: bool = False
    most_steps: int | None = None
    exact: bool = True
    first_graph: bool = False

    def at(self, point: int) -> float:
        """Return c of a point."""
        return self.diagonal(point, float(self.edges(point).weights.sum()))

    def factor(self, start: int, end: int, weight: float) -> float:
        """Return what an edge multiplies a walk by."""
        divisor: float = self.at(start) ** self.lean * self.at(end) ** (1 - self.lean)
        return self.coupling * weight / divisor


def degree_or_one(point: int, degree: float) -> float:
    """Return the degree, and 1 for a point without neighbours, which has its own row."""
    return degree or 1.0


class _Attached(NamedTuple):
    """An edge from an unseen vector: its weight, and the share it has in the vector's row."""

    vector: int
    point: int
    weight: float
    share: float


def ran_flow(
    edges: Callable[[int], Edges], smoothness: float, query: Query, unseen: ClosedForm
) -> Flow:
    """Return RAN's walks on the first graph, where ``p_ba = 2 lambda w_ab / (1 + 2 lambda d_b)``.

    An unseen vector is a fixed vertex with edges of weight ``s / 2``, which are part of the
    degrees of its neighbours.
    """
    coupling, pulled = 2 * smoothness, dict[int, float]()
    attached = []
    for vector, place in np.argwhere(unseen.weights > 0):
        point, share = int(unseen.indices[vector, place]), float(unseen.weights[vector, place])
        pulled[point] = pulled.get(point, 0.0) + share / 2
        attached.append(_Attached(int(vector), point, share / 2, share))

    def diagonal(point: int, degree: float) -> float:
        return 1 + coupling * (degree + pulled.get(point, 0.0))

    flow = _of_ids(edges, diagonal, query, coupling, None)
    factors = [coupling * edge.weight / flow.at(edge.point) for edge in attached]
    return _with_vectors(flow, query, attached, factors)


def transduction_flow(
    edges: Callable[[int], Edges], n_steps: int | None, query: Query, rows: Weights
) -> Flow:
    """Return the walks of graph transduction, where ``p_ba = w_ab / d_b``.

    At a neighbour of unseen vectors a walk misses all of them with the product of the chances to
    miss each; otherwise it meets one of them, each by its share.
    """
    attached, met, missed = [], dict[int, float](), dict[int, float]()
    for vector in range(len(query.vectors)):
        points, weights = Edges.of(rows, vector)
        parts = weights * inverse(weights.sum(keepdims=True))
        for point, weight, share in zip(points.tolist(), weights, parts, strict=True):
            met[point] = met.get(point, 0.0) + float(share)
            missed[point] = missed.get(point, 1.0) * (1 - float(share))
            attached.append(_Attached(vector, point, float(weight), float(share)))

    def diagonal(point: int, degree: float) -> float:
        onward = missed.get(point, 1.0)
        return degree / onward if onward and degree else np.inf

    flow = _of_ids(edges, diagonal, query, 1.0, n_steps)
    factors = [(1 - missed[edge.point]) * edge.share / met[edge.point] for edge in attached]
    return _with_vectors(flow, query, attached, factors)


def _of_ids(
    edges: Callable[[int], Edges],
    diagonal: Callable[[int, float], float],
    query: Query,
    coupling: float,
    most_steps: int | None,
) -> Flow:
    indices = [int(point) for point in query.indices]
    entries = tuple(Entry(e, point, float(query.weights[e])) for e, point in enumerate(indices))
    return Flow(
        edges,
        diagonal,
        entries,
        coupling,
        ends=frozenset(indices),
        fixed=True,
        most_steps=most_steps,
    )


def _with_vectors(
    flow: Flow, query: Query, attached: list[_Attached], factors: list[float]
) -> Flow:
    """Add the entries of unseen vectors; what they would give to points of the query is lost."""
    entries = list(flow.entries)
    for edge, factor in zip(attached, factors, strict=True):
        example = len(query.indices) + edge.vector
        if edge.point not in flow.ends:
            seed = float(query.weights[example])
            entries.append(Entry(example, edge.point, seed, edge.weight, factor))
    return replace(flow, entries=tuple(entries))
