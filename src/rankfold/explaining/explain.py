"""Ask a fitted ranker why a point has its place."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankfold.check import InputError, check_count, check_query, check_weights
from rankfold.explaining.explanation import Example, Explanation, Path, PathState, Step
from rankfold.explaining.paths import MOST_POINTS, strongest_walk
from rankfold.neighbors import Engine, plain_sq_distances
from rankfold.rankers import Ranker
from rankfold.rankers.distance import plain_scores
from rankfold.rankers.flow import Entry, Flow
from rankfold.types import BoolArray, FloatArray, Query, Solution

ACCURACY = 1e-4
"""Relative error that local solves may leave in what an example adds to the score."""


def explain(
    ranker: Ranker,
    query: Query | int,
    point: int,
    *,
    most_points: int = MOST_POINTS,
    negative_weight: float | None = None,
) -> Explanation:
    """Explain the place of a point in the answer to a query.

    Two ranks are compared, by plain distance as `Euclidean` ranks, and by the method. For
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
        `Ranker.negative_weight`: give that of `Euclidean` for the place that it would find.

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
    others[checked.ids] = False
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
    if row in query.ids:
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
    points = [*(int(point) for point in query.ids), *[None] * len(query.vectors)]
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
