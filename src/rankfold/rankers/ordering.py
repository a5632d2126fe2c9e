"""Scores become an order: shape is fused with distance, best first, nothing left to chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from rankfold.neighbors import GIVEN_METRICS, Engine, live_points
from rankfold.solvers.system import EPS, Wanted, without_noise
from rankfold.types import (
    NOBODY,
    BoolArray,
    FloatArray,
    Fused,
    FusionKind,
    IntArray,
    Query,
    Solution,
    changed,
)

FusionLike = float | Literal["auto", "none", "reciprocal_rank"]
"""What ``fusion=`` takes; a number is the weight of distance."""

NO_FUSION = "none", 0
"""Values of ``fusion=`` by which shape alone ranks."""

WEIGHT = 4.0
"""The weight of distance where nothing else is asked for."""

HORIZONS, HUBNESS = (1.0, 2.0), (1.15, 1.30)
"""Horizons of distance at the ends of this range of hubness, linear in between: see `Fusion`."""

LEAST_CANDIDATES, CANDIDATES_PER_RESULT = 500, 5
"""Points, best by shape, among which results are chosen."""

FUSION_NEIGHBORS = 10
"""Neighbours whose spread is the unit of distance, for graphs without such a number."""

ROUNDING = 1e-5
"""Squared distances that differ by no more than this share may be the same."""

FEW_RESULTS = 200
"""Most results for which compiled code, which puts them in order by insertion, is used."""

RANK_OFFSET = 60
"""What reciprocal rank fusion adds to every rank (Cormack, Clarke and Buettcher, SIGIR 2009)."""


class Neighborhood(NamedTuple):
    """The neighbourhood of a query, whose spread is its own unit of distance.

    Parameters
    ----------
    indices, u : arrays of length k + 1
        The nearest neighbours in plain distance, and how far each is, in that unit.
    nearest, spread : float
        Squared distance of the nearest neighbour, and what the (k+1)-th is beyond that: the unit.
    hubness : float
        Mean degree of the k nearest neighbours, beside that of all points.
    """

    indices: IntArray
    u: FloatArray
    nearest: float
    spread: float
    hubness: float

    @classmethod
    def of(
        cls,
        query: Query,
        indices: IntArray,
        sq_distances: FloatArray,
        degrees_of: Callable[[IntArray], FloatArray],
    ) -> Neighborhood:
        """Return the neighbourhood, from a sorted list of the points near a query.

        ``degrees_of`` gives the degrees of points, beside the mean of all.
        """
        others = (indices >= 0) & np.isfinite(sq_distances) & ~_among(indices, query.indices)
        indices, known = indices[others], sq_distances[others].astype(np.float64)
        nearest, farthest = (known[0], known[-1]) if len(known) else (-np.inf, np.inf)
        # Lists in single precision may tell copies apart by rounding alone.
        spread = farthest - nearest if np.isfinite(farthest) else 0.0
        spread = spread if spread > ROUNDING * farthest else 0.0
        near = indices[: max(1, len(indices) - 1)]
        hubness = float(np.mean(degrees_of(near))) if len(near) else 1.0
        hood = cls(indices, known, float(nearest), float(spread), hubness)
        return hood._replace(u=hood.units(known))

    def units(self, sq_distances: FloatArray) -> FloatArray:
        """Return squared distances to the query in its unit: 0 up to the nearest neighbour's."""
        if not self.spread > 0:
            return np.where(sq_distances > (1 + ROUNDING) * self.nearest, np.inf, 0.0)
        u: FloatArray = np.maximum(sq_distances - self.nearest, 0.0) / self.spread
        return u

    def of_listed(self, points: IntArray) -> FloatArray:
        """Return how far points are from the query; inf for those that are not in its list."""
        if not len(self.indices):
            return np.full(len(points), np.inf)
        order = np.argsort(self.indices)
        places = np.searchsorted(self.indices, points, sorter=order)
        places = order[places.clip(max=len(order) - 1)]
        u: FloatArray = np.where(self.indices[places] == points, self.u[places], np.inf)
        return u

    def most_shape(self, query: Query, points: IntArray, shape: FloatArray) -> float:
        """Return what the shape of a neighbour counts at most: the score of the nearest.

        Several examples have no nearest neighbour that is like all of them: there all count as they
        are, as they do where the nearest has no score.
        """
        if len(query.weights) > 1:
            return np.inf
        nearest = shape[_among(points, self.indices[self.u <= 0])]
        return float(nearest.max()) if len(nearest) else np.inf


class Candidates(NamedTuple):
    """The points of a solution among which results are chosen, in any order.

    Parameters
    ----------
    points : array of int
    scores : array of float
        Of shape fused with distance.
    bound : float
        How far these can be off.
    shape, distances : array of float
        Of shape alone; and plain distances, nan where they were not needed yet.
    fused : Fused
        How they were fused.
    complete : bool
        Whether no other point has a score.
    beyond : float
        No point that is not here scores higher; inf where that is not known.
    """

    points: IntArray
    scores: FloatArray
    bound: float
    shape: FloatArray
    distances: FloatArray
    fused: Fused
    complete: bool
    beyond: float

    def take(self, places: IntArray) -> Candidates:
        """Return some of them, by their places."""
        arrays = {"points", "scores", "shape", "distances"}
        return self._replace(**{name: getattr(self, name)[places] for name in arrays})

    def scoring(self, points: IntArray, scores: FloatArray) -> Candidates:
        """Return these points instead, also others, which have no shape score."""
        shape, distances = np.zeros(len(points)), np.full(len(points), np.nan)
        if len(self.points):
            order = np.argsort(self.points)
            places = np.searchsorted(self.points, points, sorter=order)
            places = order[places.clip(max=len(order) - 1)]
            there = self.points[places] == points
            shape[there] = self.shape[places[there]]
            distances[there] = self.distances[places[there]]
        return self._replace(points=points, scores=scores, shape=shape, distances=distances)


class Fusion(NamedTuple):
    """How scores by shape are fused with plain distance.

    Shape is strong where distances say little more: beyond the nearest neighbours. At the head of
    the list distance is hard to beat. A blend lets both speak where they know best:

        score_i = f_i exp(-weight min(u_i, horizon)),    u_i = (d_i - d_1) / (d_{k+1} - d_1),

    where f is the score by shape, d_i the squared distance to the query, d_1 that of its nearest
    neighbour, d_{k+1} that of the neighbour after the k that the graph joins it to: distance in the
    query's own unit. Beyond the horizon every point loses the same factor, and shape alone decides.
    For a single example the nearest stays first: f_i of a neighbour counts as f_1 where it is more.
    The horizon is 1 where the query's neighbours are points like others. Where they are hubs, as
    among texts, shape is least certain, and the horizon grows up to 2. No score gets larger, so the
    error bound of f holds for the blend. The distance to several examples is the mean of those to
    the positive ones, by weight, as in `Distance`; what is nearer to a negative example counts as
    beyond the horizon.

    Reciprocal rank fusion adds ``1 / (60 + rank)`` over both orders of the candidates.

    Parameters
    ----------
    kind : {"none", "blend", "reciprocal_rank"}
    weight : float
    """

    kind: FusionKind = "none"
    weight: float = 0.0

    @classmethod
    def of(cls, fusion: FusionLike) -> Fusion:
        """Return what a checked ``fusion=`` stands for.

        Examples
        --------
        >>> Fusion.of("auto"), Fusion.of(0)
        (Fusion(kind='blend', weight=4.0), Fusion(kind='none', weight=0.0))
        """
        if fusion == "reciprocal_rank":
            return cls("reciprocal_rank")
        weight = WEIGHT if fusion == "auto" else 0.0 if fusion == "none" else float(fusion)
        return cls("blend", weight) if weight else cls()

    def n_candidates(self, top: int) -> int:
        """Return how many points, best by shape, results are chosen among.

        Examples
        --------
        >>> Fusion.of("auto").n_candidates(10), Fusion.of("none").n_candidates(10)
        (500, 10)
        """
        if self.kind == "none":
            return top
        return max(LEAST_CANDIDATES, CANDIDATES_PER_RESULT * top)

    def wanted(self, queries: Sequence[Query], top: int, include_query: bool) -> list[Wanted]:
        """Return what the answers to queries need of their solutions."""
        tops = [others_wanted(query, top, include_query) for query in queries]
        return [Wanted(count, self.n_candidates(count)) for count in tops]

    def mixture(self, hubness: float) -> Fused:
        """Return what is mixed for a query whose neighbours have this degree beside the mean."""
        horizon = float(np.interp(hubness, HUBNESS, HORIZONS))
        return Fused(self.kind, self.weight, horizon, hubness)

    def best(
        self,
        engine: Engine,
        query: Query,
        near: IntArray,
        sq_distances: FloatArray,
        degrees: FloatArray,
        solution: Solution,
        top: int,
    ) -> Solution | None:
        """Return what `fuse` and `ordered` do, in compiled code; None where it does not apply.

        It is for the best points of a solution, in order, and applies where a query has one example
        and at most `FEW_RESULTS` are wanted. Distances of points that are no neighbours are
        measured where they matter. ``near`` and ``sq_distances`` are the list of the query, and
        degrees those of all points. tests/rankers/test_blend.py holds both ways together.
        """
        others = engine.n_alive - len(query.indices)
        usual = self.kind == "blend" and len(query.weights) == 1 and engine.tie_order is None
        if (
            not usual
            or len(solution.points) > engine.n_alive
            or not 0 < top <= min(FEW_RESULTS, others - 1)
        ):
            return None
        from rankfold.rankers.blend import BlendArrays, best_blended  # compiled, for large data

        own = int(query.indices[0]) if len(query.indices) else NOBODY
        best, shape, n_near = solution.points, solution.scores, len(near)
        for _ in range(2):  # once more where others than neighbours had to be measured
            arrays = BlendArrays.of(near, sq_distances, best, shape, degrees, top)
            n_unknown, bound, proven, horizon, hubness = best_blended(
                arrays, n_near, len(near), len(best), top, own, solution.bound, solution.certified,
                self.weight, HORIZONS, HUBNESS, ROUNDING,
            )  # fmt: skip
            if n_unknown <= 0:
                break
            more = arrays.found[top : top + n_unknown]
            near = np.concatenate([near, more])
            sq_distances = np.concatenate([sq_distances, engine.between(query, more)[0]])
        if n_unknown:
            return None
        points = arrays.found[:top]
        distances = np.sqrt(engine.between(query, points)[0])
        return Solution(
            points=points,
            scores=arrays.scores[:top],
            bound=bound,
            certified=proven,
            complete=False,
            shape=arrays.scores[top:],
            distances=distances,
            fused=Fused(self.kind, self.weight, horizon, hubness),
            n_iter=solution.n_iter,
            converged=solution.converged,
            solver=solution.solver,
            stopped=solution.stopped,
            n_touched=solution.n_touched,
            round_trips=solution.round_trips,
            n_gone=solution.n_gone,
        )

    def fuse(
        self,
        engine: Engine,
        query: Query,
        hood: Neighborhood,
        solution: Solution,
        top: int,
        most_shape: float,
    ) -> Candidates:
        """Fuse the best points of a solution with their distances.

        Points that score zero or less are left to shape. ``most_shape`` is what the shape of a
        neighbour counts at most, see `Neighborhood.most_shape`.
        """
        mixture, by_rank = self.mixture(hood.hubness), self.kind == "reciprocal_rank"
        usable, cut = (solution.scores > 0) & ~_among(solution.points, query.indices), False
        best = np.flatnonzero(usable)  # in order, where the solution is not complete
        if by_rank:
            most = self.n_candidates(top)
            if solution.complete:
                best = _best(engine, solution.points, solution.scores, usable, most)
            cut, best = len(best) > most, best[:most]
        points, shape, beyond = solution.points[best], solution.scores[best], np.inf
        bound = solution.bound
        if by_rank:
            sq_distances = _mean_sq_distances(engine, query, points)
            fused = reciprocal_ranks(_ties(engine, points), sq_distances)
        else:
            u = hood.of_listed(points)
            beyond = self._beyond(solution, hood, u, shape)
            counted = capped(shape, u, most_shape)
            if len(query.weights) == 1 and most_shape == np.inf:  # the nearest may have any score
                bound = max(bound, float(shape[u <= 1].max(initial=0.0)))
            farthest = np.full(len(u), np.inf) if (query.weights <= 0).any() else u
            likely, missed = _likely(counted, np.minimum(u, 1.0), farthest, mixture, top)
            cut, beyond = cut or len(likely) < len(best), max(beyond, missed)
            best, points, shape, u = best[likely], points[likely], shape[likely], u[likely]
            counted = counted[likely]
            sq_distances = np.full(len(points), np.nan)
            if mixture.horizon > 1 or (query.weights <= 0).any():
                u, sq_distances = self._distances(engine, query, hood, points, u)
            fused = blended(counted, u, mixture)
        rest = np.flatnonzero(~usable)
        return Candidates(
            np.concatenate([points, solution.points[rest]]),
            np.concatenate([fused, solution.scores[rest]]),
            bound,
            np.concatenate([shape, solution.scores[rest]]),
            np.concatenate([np.sqrt(sq_distances), np.full(len(rest), np.nan)]),
            mixture,
            solution.complete and not cut,
            beyond,
        )

    def _distances(
        self, engine: Engine, query: Query, hood: Neighborhood, points: IntArray, listed: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return how far points are from the query, in its unit, and in squared distance.

        ``listed`` is the former for its neighbours, and inf for all others. Only these are
        measured, unless there are negative examples; squared distances that were not are nan.
        """
        negative = query.weights <= 0
        unknown = np.isinf(listed) | bool(negative.any())
        u, sq_distances = listed.copy(), np.full(len(listed), np.nan)
        if unknown.any():
            rows = engine.between(query, points[unknown])
            mean = np.maximum(_shares(query) @ rows[~negative], 0.0)
            # What the list leaves out counts as beyond it, also where a search has missed it.
            far = np.where(np.isfinite(listed[unknown]), listed[unknown], hood.units(mean).clip(1))
            if negative.any():
                far = np.where(rows[negative].min(axis=0) < mean, np.inf, far)
            u[unknown], sq_distances[unknown] = far, mean
        return u, sq_distances

    def everywhere(
        self, engine: Engine, query: Query, hood: Neighborhood, shape: FloatArray, others: BoolArray
    ) -> tuple[FloatArray, Fused]:
        """Fuse the shape scores of all points, of which ``others`` are ranked."""
        mixture, scores = self.mixture(hood.hubness), shape.copy()
        used = np.flatnonzero(others & (shape > 0))
        used = used[np.lexsort((_ties(engine, used), -shape[used]))]
        if self.kind == "reciprocal_rank":
            used, ties = used[:LEAST_CANDIDATES], _ties(engine, used[:LEAST_CANDIDATES])
            scores[used] = reciprocal_ranks(ties, _mean_sq_distances(engine, query, used))
        else:
            u = hood.of_listed(used)
            most_shape = hood.most_shape(query, used, shape[used])
            counted = capped(shape[used], u, most_shape)
            if mixture.horizon > 1 or (query.weights <= 0).any():
                u, _ = self._distances(engine, query, hood, used, u)
            scores[used] = blended(counted, u, mixture)
        return scores, mixture

    def _beyond(
        self, solution: Solution, hood: Neighborhood, u: FloatArray, shape: FloatArray
    ) -> float:
        """Return what a point that is no candidate can score at most.

        Where the candidates are the best by shape, no other point has more shape than the last
        of them; and what is no neighbour of the query loses at least what a distance of 1 costs.
        """
        if solution.complete:
            return -np.inf
        if not solution.certified or not len(shape):
            return np.inf
        listed = np.count_nonzero(np.isfinite(u)) >= np.count_nonzero(np.isfinite(hood.u))
        return float(shape[-1]) * float(np.exp(-self.weight * listed))


def _likely(
    shape: FloatArray, nearest: FloatArray, farthest: FloatArray, mixture: Fused, top: int
) -> tuple[IntArray, float]:
    """Return the places of the candidates that may be among the best, at whatever distance.

    It is between ``nearest`` and ``farthest``. Beside the places, what a candidate that is left out
    can score at most.
    """
    if len(shape) <= top:
        return np.arange(len(shape)), -np.inf
    most, least = blended(shape, nearest, mixture), blended(shape, farthest, mixture)
    enough = np.partition(least, len(least) - top)[len(least) - top]
    likely = most >= enough
    return np.flatnonzero(likely), float(most[~likely].max(initial=-np.inf))


def capped(shape: FloatArray, u: FloatArray, most: float) -> FloatArray:
    """Return what shape scores count: those of the query's neighbours no more than ``most``."""
    counted: FloatArray = np.where(u <= 1, np.minimum(shape, most), shape)
    return counted


def blended(shape: FloatArray, u: FloatArray, mixture: Fused) -> FloatArray:
    """Return shape scores after what distance costs, see `Fusion`."""
    scores: FloatArray = shape * np.exp(-mixture.weight * np.minimum(u, mixture.horizon))
    return scores


def reciprocal_ranks(ties: IntArray, sq_distances: FloatArray) -> FloatArray:
    """Return ``1 / (60 + rank)``, added up over the order of some points and that by distance.

    Of points at the same distance the one with the smallest number of ``ties`` comes first.
    """
    nearer = np.argsort(np.lexsort((ties, sq_distances)))
    ranks = np.arange(1, len(ties) + 1)
    scores: FloatArray = 1 / (RANK_OFFSET + ranks) + 1 / (RANK_OFFSET + 1 + nearer)
    return scores


def _mean_sq_distances(engine: Engine, query: Query, points: IntArray) -> FloatArray:
    """Return the plain squared distances of some points to a query."""
    mean: FloatArray = _shares(query) @ engine.between(query, points)[query.weights > 0]
    return mean


def _shares(query: Query) -> FloatArray:
    """Return how much each positive example counts."""
    weights = query.weights[query.weights > 0]
    shares: FloatArray = weights / weights.sum()
    return shares


def _measured(engine: Engine, query: Query, points: IntArray, distances: FloatArray) -> FloatArray:
    """Return the plain distances of points to a query, of which some are known."""
    unknown = np.isnan(distances)
    if not unknown.any():
        return distances
    sq_distances = _mean_sq_distances(engine, query, points[unknown])
    distances = distances.copy()
    distances[unknown] = np.sqrt(np.maximum(sq_distances, 0.0))
    return distances


def query_points(query: Query) -> tuple[IntArray, IntArray]:
    """Return the points of the query that are positive examples, best first, and all others."""
    weights = query.weights[: len(query.indices)]
    order = np.argsort(-weights, kind="stable")
    n_positive = np.count_nonzero(weights > 0)
    return query.indices[order[:n_positive]], query.indices[order[n_positive:]]


def others_wanted(query: Query, top: int, include_query: bool) -> int:
    """Return how many points an answer has beside the query's own, which come first."""
    if not include_query:
        return top
    return max(0, top - int(np.count_nonzero(query.weights[: len(query.indices)] > 0)))


def ordered(
    engine: Engine,
    query: Query,
    solution: Solution,
    top: int,
    include_query: bool,
    candidates: Candidates | None = None,
) -> Solution:
    """Return the best ``top`` points of a solution, or of what was fused with it, in order.

    Scores descend, ties go to the smaller index. Points that score zero, because the graph does
    not connect them to the query or only by less than the error bound, are in the order of plain
    distance to its positive examples, after positive scores and before negative ones. The points
    of the query are left out, or come first and its negative ones last.

    The answer is certified if no point outside of it can score higher than one of it. The query's
    own points, which are left out or come first or last by rule, do not count.
    """
    n_found, whole = len(solution.points) - len(query.indices), candidates or solution
    if not (solution.complete or include_query or candidates) and n_found == top:
        # The best, in order, and then the query's own: nothing is left to do.
        certified = solution.certified or top >= engine.n_alive - len(query.indices)
        return solution.take(slice(0, top), certified=certified)
    beyond = candidates.beyond if candidates else -np.inf
    own = _among(whole.points, query.indices)
    kept = ~own
    if len(whole.points) > engine.n_alive and engine.alive is not None:
        kept &= engine.alive[whole.points]
    places = np.flatnonzero(kept)
    points, scores = whole.points[places], whole.scores[places]
    wanted = others_wanted(query, top, include_query)
    n_others = engine.n_alive - len(query.indices)
    by_distance = solution.solver == "distance"  # every score counts, none stands for "unreached"

    def certain(least: float, outside: float) -> bool:
        """Whether nothing with a score of ``outside`` or less can belong before ``least``."""
        clear = least > max(outside, beyond) + 2 * whole.bound
        return clear if candidates else solution.certified or (solution.complete and clear)

    up = _best(engine, points, scores, (scores > 0) | by_distance, wanted)
    if len(up) > wanted > 0 and not include_query:
        proven, chosen = certain(scores[up[wanted - 1]], scores[up[wanted]]), places[up[:wanted]]
        if candidates:
            return _fused_answer(engine, query, solution, candidates.take(chosen), proven)
        return solution.take(chosen, certified=proven)
    indices, values = points[up], scores[up]
    outside = -np.inf  # the score of the best point that is left out
    if len(indices) > wanted:
        outside, indices, values = values[wanted], indices[:wanted], values[:wanted]
    elif n_others > wanted or len(indices) < n_others:
        negative = scores < 0
        n_zero = n_others - len(indices) - int(np.count_nonzero(negative))
        missing = wanted - len(indices)
        if missing < n_zero:
            outside = 0.0
        if missing:
            down = _best(engine, points, scores, negative, max(0, missing - n_zero))
            known = np.concatenate([indices, points[negative]])
            near = _unreached(engine, query, known, min(missing, n_zero))
            indices = np.concatenate([indices, near, points[down]])
            values = np.concatenate([values, np.zeros(len(near)), scores[down]])
        elif not n_zero:
            outside = float(scores[negative].max(initial=-np.inf))
        if len(indices) > wanted:
            outside = max(outside, values[wanted])
            indices, values = indices[:wanted], values[:wanted]
    proven = certain(float(values.min(initial=np.inf)), outside)
    certified = bool(proven or len(indices) >= n_others or len(indices) == 0)
    if include_query:
        first, last = query_points(query)
        score_of = dict(zip(whole.points[own].tolist(), whole.scores[own], strict=True))
        last = last if len(indices) >= n_others else last[:0]
        ends = [np.array([score_of.get(int(p), 0.0) for p in some]) for some in (first, last)]
        indices = np.concatenate([first, indices, last])[:top]
        values = np.concatenate([ends[0], values, ends[1]])[:top]
    if candidates:
        chosen_ones = candidates.scoring(indices, values)
        return _fused_answer(engine, query, solution, chosen_ones, certified)
    return changed(solution, points=indices, scores=values, certified=certified)


def reordered(
    engine: Engine, query: Query, hood: Neighborhood, answer: Solution, top: int
) -> Solution:
    """Return the best of an answer by shape, ordered by reciprocal ranks among its own points.

    Points that score zero or less stay where they are, as do those of the query.
    """
    found = replace(answer, complete=False)
    candidates = Fusion("reciprocal_rank").fuse(engine, query, hood, found, top, np.inf)
    moved = (answer.scores > 0) & ~_among(answer.points, query.indices)
    n_moved = int(np.count_nonzero(moved))
    ties = _ties(engine, candidates.points[:n_moved])
    order = np.empty(len(moved), dtype=np.intp)
    order[moved] = np.lexsort((ties, -candidates.scores[:n_moved]))
    order[~moved] = np.arange(n_moved, len(moved))
    return _fused_answer(engine, query, found, candidates.take(order[:top]), certified=False)


def _fused_answer(
    engine: Engine, query: Query, solution: Solution, chosen: Candidates, certified: bool
) -> Solution:
    """Return the chosen candidates, in their order, as the answer; all have distances then."""
    return changed(
        solution,
        points=chosen.points,
        scores=chosen.scores,
        bound=chosen.bound,
        certified=bool(certified),
        complete=chosen.complete,
        shape=chosen.shape,
        distances=_measured(engine, query, chosen.points, chosen.distances),
        fused=chosen.fused,
    )


def _among(points: IntArray, indices: IntArray) -> BoolArray:
    """Return which points are those of the query."""
    if len(indices) == 1:
        found: BoolArray = points == indices[0]
        return found
    return np.isin(points, indices)


def _ties(engine: Engine, points: IntArray) -> IntArray:
    """Return a number for each of some points, of which the smallest wins a tie."""
    return points if engine.tie_order is None else engine.tie_order(points)


def _best(
    engine: Engine, points: IntArray, scores: FloatArray, use: BoolArray, wanted: int
) -> IntArray:
    """Return the places of the best of some points, one more than are wanted if there are."""
    (places,) = np.nonzero(use)
    if len(places) > wanted + 1:  # few are sorted where few are wanted
        least = np.partition(-scores[places], wanted)[wanted]
        places = places[-scores[places] <= least]
    order: IntArray = places[np.lexsort((_ties(engine, points[places]), -scores[places]))]
    return order[: wanted + 1]


def _unreached(engine: Engine, query: Query, known: IntArray, wanted: int) -> IntArray:
    """Return so many points besides those that are known, by plain distance."""
    length = min(engine.n_alive, wanted + len(known))
    near = engine.nearest(query, length).indices[0].astype(np.intp)
    near = near[(near >= 0) & ~np.isin(near, known)][:wanted]
    n_known = len(near) + len(known) + len(query.indices)
    if len(near) < wanted and n_known < engine.n_alive and engine.metric in GIVEN_METRICS:
        # Distances of the others are unknown: a graph was given.
        others = np.setdiff1d(live_points(engine), np.concatenate([near, known, query.indices]))
        near = np.concatenate([near, others])[:wanted]
    found: IntArray = near
    return found


def with_unreached(engine: Engine, query: Query, answer: Solution, points: IntArray) -> Solution:
    """Return an answer with more points after it, which score zero."""
    nothing, distances = np.zeros(len(points)), None
    if answer.fused:
        distances = _measured(engine, query, points, np.full(len(points), np.nan))
    return answer.joined(Solution(points, nothing, 0.0, shape=nothing, distances=distances))


def one_sided(queries: Sequence[Query]) -> list[Query]:
    """Return two queries for each that has a negative weight, and all others as they are.

    Both have all its examples: one with positive weights as they are and zero for the others, one
    with negative weights turned positive and zero for the others.
    """
    parts = []
    for query in queries:
        if (query.weights >= 0).all():
            parts.append(query)
        else:
            parts.append(replace(query, weights=np.maximum(query.weights, 0.0)))
            parts.append(replace(query, weights=np.maximum(-query.weights, 0.0)))
    return parts


def joined(queries: Sequence[Query], solutions: Iterable[Solution]) -> Iterator[Solution]:
    """Subtract the parts of `one_sided` again, for a method that is linear in its weights.

    Each part only adds up positive terms, so its error is known; errors of both add up. A score
    that they cannot tell from zero is zero.
    """
    parts = iter(solutions)
    for query in queries:
        up = next(parts)
        if (query.weights >= 0).all():
            yield up
            continue
        down = next(parts)
        scores: FloatArray = up.scores - down.scores
        rounding = EPS * float(np.abs(scores).max(initial=0.0))
        scores, bound = without_noise(scores, up.bound + down.bound + rounding)
        n_iter, converged = max(up.n_iter, down.n_iter), up.converged and down.converged
        yield changed(up, scores=scores, bound=bound, n_iter=n_iter, converged=converged)
    # Whoever solves may have something to say at the end.
    next(parts, None)
