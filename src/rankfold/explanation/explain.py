"""Ask a fitted ranker why a point has its place, and for the path that brings it the most."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankfold.check import check_count, check_query, check_weights
from rankfold.errors import InputError
from rankfold.explanation.explanation import Example, Explanation, Path, PathState, Step
from rankfold.neighbors import Engine, plain_sq_distances
from rankfold.rankers import Ranker
from rankfold.rankers.distance import plain_scores
from rankfold.rankers.flow import Entry, Flow
from rankfold.types import BoolArray, FloatArray, Query, Solution

MOST_POINTS = 20_000
"""Points that a search may look at before it gives up; a second or two."""

ACCURACY = 1e-4
"""Relative error that local solves may leave in what an example adds to the score."""


class FoundPath(NamedTuple):
    """What a search came to.

    Parameters
    ----------
    entry : Entry or None
        Where the strongest walk enters the graph; None where none was found.
    points : tuple of int
        Its points, from there to the one that was asked for.
    n_visited : int
        Points that were looked at.
    complete : bool
        False where the search gave up.
    """

    entry: Entry | None
    points: tuple[int, ...]
    n_visited: int
    complete: bool


def strongest_walk(flow: Flow, point: int, most_points: int = MOST_POINTS) -> FoundPath:
    """Return the walk of the largest product from the query to a point: Dijkstra on ``-log``.

    It runs from the point towards the query and reads only the rows of points that it visits.
    Seen from there an edge multiplies by ``coupling w_ba / c_b``, which needs b's row alone; for
    another lean the products differ by ``(c_i / c_q)^lean``, which depends on the ends of a walk
    and not on its course. No factor is above 1, so no walk gains by going in circles. Ties go
    to the walk of fewer steps, then to smaller row numbers.
    """
    gains = _gains(flow)
    labels: list[tuple[int, int]] = []
    fewest: dict[int, int] = {}
    heap: list[tuple[float, int, int, int]] = [(0.0, 0, point, -1)]
    while heap:
        cost, steps, node, parent = heappop(heap)
        if node < 0:
            return FoundPath(flow.entries[~node], _course(labels, parent), len(fewest), True)
        if node in fewest and (flow.most_steps is None or fewest[node] <= steps):
            continue
        if node not in fewest and len(fewest) >= most_points:
            return FoundPath(None, (), len(fewest), False)
        # With a limit of steps, a weaker walk is of use where it is a shorter one.
        fewest[node] = steps
        labels.append((node, parent))
        for place, gain in gains.get(node, ()):
            heappush(heap, (cost + gain, steps, ~place, len(labels) - 1))
        if node in flow.ends or steps == flow.most_steps:
            continue
        for neighbor, length in _lengths(flow, node):
            if neighbor not in fewest or flow.most_steps is not None:
                heappush(heap, (cost + length, steps + 1, neighbor, len(labels) - 1))
    return FoundPath(None, (), len(fewest), True)


def _gains(flow: Flow) -> dict[int, list[tuple[int, float]]]:
    """Return, for points where the query enters, its entries and what is lost beside the best."""
    amounts = np.array(
        [abs(e.amount * e.factor) / flow.at(e.point) ** flow.lean for e in flow.entries]
    )
    largest = amounts.max(initial=0.0)
    gains: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for place, (entry, amount) in enumerate(zip(flow.entries, amounts, strict=True)):
        if amount > 0:
            gains[entry.point].append((place, float(-np.log(amount / largest))))
    return gains


def _lengths(flow: Flow, point: int) -> list[tuple[int, float]]:
    neighbors, weights = flow.edges(point)
    factors = flow.coupling * weights / flow.diagonal(point, float(weights.sum()))
    kept = factors > 0
    lengths = -np.log(np.minimum(factors[kept], 1.0))
    return list(zip(neighbors[kept].tolist(), lengths.tolist(), strict=True))


def _course(labels: list[tuple[int, int]], last: int) -> tuple[int, ...]:
    points = []
    while last >= 0:
        point, last = labels[last]
        points.append(point)
    return tuple(points)


def explain(
    ranker: Ranker,
    query: Query | int,
    point: int,
    *,
    most_points: int = MOST_POINTS,
    negative_weight: float | None = None,
) -> Explanation:
    """Explain the place of a point in the answer to a query.

    Two ranks are compared, by plain distance as `Distance` ranks, and by the method. For
    methods that are a sum over walks on a graph (RAN, PageRank, manifold ranking, graph
    transduction, self-diffusion) the strongest walk is given, with its share of the score. For the
    others a walk on their graph illustrates it. The score is split among the examples of the query.

    RAN with several alternations learns a graph for every query. Score and rank are then those
    of the last graph; path and shares are those of the first one, where scores are linear.

    The rank by plain distance measures the distance of every point. All else is local where the
    ranker is: a local solve, and the rows of the points that the search for the path visits.

    Parameters
    ----------
    ranker : Ranker
        Fitted.
    query : Query or int
    point : int
        Row number of a point that is not an example of the query.
    most_points : int
        Points that the search for the path may look at before it gives up.
    negative_weight : float, optional
        Weight of negative examples in the rank by plain distance, beside the weights of the query.
        By default the same as in the query. Methods differ in what suits them, see
        `Ranker.negative_weight`: give that of `Distance` for the place that it would find.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold import RAN
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [-2.6], [-2.7], [-2.8]])
    >>> explanation = explain(RAN(n_neighbors=2).fit(X), query=0, point=3)
    >>> [step.end for step in explanation.path.steps]
    [1, 2, 3]
    >>> explanation.distance_rank, explanation.score_rank
    (6, 3)
    """
    check_is_fitted(ranker)
    engine = ranker.engine_
    checked = check_query(query, engine.n_points, engine.n_features, engine.alive)
    point = _check_point(point, checked, engine)
    check_count(most_points, "most_points")
    measured = plain_sq_distances(engine, checked)
    by_distance = plain_scores(engine, _plain(query, checked, negative_weight), measured)
    distances = np.maximum(measured, 0.0)
    others = np.isfinite(distances)  # removed points are nowhere
    others[checked.indices] = False
    scored = ranker.scored(checked, point)
    scores = np.zeros(engine.n_points)
    scores[scored.points] = scored.scores
    shape = float(scores[point])
    ranked, fused = ranker.fused(checked, scores, others)
    flow = ranker.flow(checked)
    reached = flow is None or shape != 0
    amounts: FloatArray = np.array([shape])
    if not reached:
        amounts = np.zeros(len(checked.weights))
    elif len(checked.weights) > 1 or (flow is not None and flow.first_graph):
        amounts = ranker.amounts(checked, point, ACCURACY * abs(shape))
    path, state, n_visited = _path(flow, point, amounts, scored, reached, most_points)
    if path is not None:
        path = replace(path, steps=_with_places(ranker, checked, path))
    return Explanation(
        type(ranker).__name__,
        point,
        int(np.count_nonzero(others)),
        math.sqrt(distances[point]),
        _place(by_distance, distances, point, others),
        float(ranked[point]),
        _place(ranked, distances, point, others),
        shape,
        fused,
        _examples(checked, amounts, flow is None),
        path,
        state,
        n_visited,
        flow is not None and flow.first_graph,
    )


def _plain(query: Query | int, checked: Query, negative_weight: float | None) -> Query:
    """Return the query with other weights of its negative examples."""
    negative = checked.weights <= 0
    if negative_weight is None or not isinstance(query, Query) or not negative.any():
        return checked
    weights = np.where(negative, negative_weight, query.weights)
    return replace(checked, weights=check_weights(weights, len(weights)))


def _check_point(point: object, query: Query, engine: Engine) -> int:
    row, n_points = check_count(point, "point", least=0), engine.n_points
    if row >= n_points:
        raise InputError(f"point is {row}, but the database has rows 0 to {n_points - 1}.")
    if engine.alive is not None and not engine.alive[row]:
        raise InputError(f"point {row} was removed; ask for one that is left.")
    if row in query.indices:
        raise InputError(
            f"point {row} is an example of the query, which is not ranked; ask for another point."
        )
    return row


def _place(scores: FloatArray, distances: FloatArray, point: int, others: BoolArray) -> int:
    """Return the place of a point: scores descend, zeros by distance, then by row number."""
    tied = others & (scores == scores[point])
    before = np.arange(len(scores)) < point
    if scores[point] == 0:
        nearer = distances < distances[point]
        before = nearer | (before & (distances == distances[point]))
    ahead = np.count_nonzero(others & (scores > scores[point]))
    return 1 + int(ahead + np.count_nonzero(tied & before))


def _examples(query: Query, amounts: FloatArray, by_distance: bool) -> tuple[Example, ...]:
    total = float(amounts.sum())
    shares: list[float | None] = [float(amount) / total if total else None for amount in amounts]
    if by_distance and not total:  # a copy of all examples: each is as near as the others
        shares = [float(weight) for weight in query.weights / query.weights.sum()]
    points = [*(int(point) for point in query.indices), *[None] * len(query.vectors)]
    rows = zip(points, query.weights, amounts, shares, strict=True)
    return tuple(Example(p, float(weight), float(a), share) for p, weight, a, share in rows)


def _path(
    flow: Flow | None,
    point: int,
    amounts: FloatArray,
    scored: Solution,
    reached: bool,
    most_points: int,
) -> tuple[Path | None, PathState, int]:
    if flow is None:
        return None, "no graph", 0
    if not reached:
        return None, "unreached", 0
    found = strongest_walk(flow, point, most_points)
    if found.entry is None:
        return None, "apart" if found.complete else "gave up", found.n_visited
    total = float(amounts.sum()) if flow.exact else 0.0
    path = _measured(flow, found.entry, found.points, scored, total)
    return path, "found" if flow.exact else "illustration", found.n_visited


def _with_places(ranker: Ranker, query: Query, path: Path) -> tuple[Step, ...]:
    """Return the steps of a path, with the places that their ends have among their neighbours.

    They are those of the lists that the graph was made from; a graph with a weight for every pair
    has none.
    """
    graph = getattr(ranker, "graph_", None)
    k = getattr(ranker, "n_neighbors_", None) or getattr(graph, "n_neighbors_", None)
    if k is None:
        return path.steps
    engine, first = ranker.engine_, path.steps[0].start
    points = [step.end for step in path.steps] + ([] if first is None else [first])
    lists = engine.rows(np.array(points, dtype=np.intp), k).indices.tolist()
    near: dict[int | None, list[int]] = dict(zip(points, lists, strict=True))
    if first is None:
        vector = query.vectors[[path.example - len(query.indices)]]
        near[None] = engine.search(vector, k).indices[0].tolist()

    def place(of: int | None, among: int | None) -> int | None:
        return near[among].index(of) + 1 if of in near[among] else None

    return tuple(
        replace(
            step,
            end_place=place(step.end, step.start),
            start_place=None if step.start is None else place(step.start, step.end),
        )
        for step in path.steps
    )


def _measured(
    flow: Flow, entry: Entry, points: tuple[int, ...], scored: Solution, total: float
) -> Path:
    on_path = np.isin(scored.points, points)
    known = dict(zip(scored.points[on_path].tolist(), scored.scores[on_path], strict=True))
    steps = []
    if entry.weight is not None:
        score = float(known.get(entry.point, 0.0))
        steps.append(Step(None, entry.point, entry.weight, entry.factor, score))
    for start, end in pairwise(points):
        neighbors, weights = flow.edges(end)
        weight = float(weights[neighbors == start][0])
        factor = flow.factor(start, end, weight)
        steps.append(Step(start, end, weight, factor, float(known.get(end, 0.0))))
    carried = entry.amount * math.prod(step.factor for step in steps)
    first = known.get(entry.point) if entry.weight is None else None
    first = entry.amount if flow.fixed else first
    share = carried / total if total else None
    start_score = None if first is None else float(first)
    return Path(entry.example, start_score, tuple(steps), carried, share)
