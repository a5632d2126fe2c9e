"""The walks of methods that hold the scores of the query fixed: RAN and graph transduction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rankfold.rankers.closed_form import ClosedForm
from rankfold.rankers.flow import Edges, Entry, Flow
from rankfold.rankers.transition import inverse
from rankfold.types import Query, Weights


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
    ids = [int(point) for point in query.ids]
    entries = tuple(Entry(e, point, float(query.weights[e])) for e, point in enumerate(ids))
    return Flow(
        edges,
        diagonal,
        entries,
        coupling,
        ends=frozenset(ids),
        fixed=True,
        most_steps=most_steps,
    )


def _with_vectors(
    flow: Flow, query: Query, attached: list[_Attached], factors: list[float]
) -> Flow:
    """Add the entries of unseen vectors; what they would give to points of the query is lost."""
    entries = list(flow.entries)
    for edge, factor in zip(attached, factors, strict=True):
        example = len(query.ids) + edge.vector
        if edge.point not in flow.ends:
            seed = float(query.weights[example])
            entries.append(Entry(example, edge.point, seed, edge.weight, factor))
    return replace(flow, entries=tuple(entries))
