"""Scores of results: their scale, and how lists by words, distance and shape are fused.

There is one scale for Python, command line, service and page. By plain distance a score is the
cosine similarity where the metric is cosine, and else minus the distance; a distance is one minus
the cosine similarity, or Euclidean. Rankers themselves work with squared distances, as the
equations of the paper do; what an index answers is on this scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rankfold.explanation import Explanation
from rankfold.rankers.ordering import RANK_OFFSET
from rankfold.types import BoolArray, FloatArray, IntArray, Ranking, changed

BY_DISTANCE = ("distance", "query_expansion")
"""Methods whose scores are minus squared distances."""

LEAST_DEPTH, DEPTH_PER_RESULT = 100, 5
"""How far down each list counts: so many places at least, and so many for every result."""


def scaled_scores(scores: FloatArray, metric: str) -> FloatArray:
    """Return scores for minus squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> scaled_scores(np.array([-4.0, -0.25]), "euclidean")
    array([-2. , -0.5])
    >>> scaled_scores(np.array([-0.5, -2.0]), "cosine")  # of vectors of length one
    array([0.75, 0.  ])
    """
    found: FloatArray = 1 + scores / 2 if metric == "cosine" else np.sign(scores) * _root(scores)
    return found + 0.0  # no negative zero


def _root(scores: FloatArray) -> FloatArray:
    root: FloatArray = np.sqrt(np.abs(scores))
    return root


def scaled_distances(distances: FloatArray, metric: str) -> FloatArray:
    """Return distances for those between vectors as they are kept, of length one for cosine."""
    found: FloatArray = distances**2 / 2 if metric == "cosine" else distances
    return found


def scaled(ranking: Ranking, method: str, metric: str) -> Ranking:
    """Return a ranking on the scale that is shown."""
    solution = ranking.solution
    if method in BY_DISTANCE and solution.fused is None:
        solution = changed(solution, scores=scaled_scores(solution.scores, metric))
    if solution.distances is not None and metric == "cosine":
        solution = changed(solution, distances=scaled_distances(solution.distances, metric))
    return ranking if solution is ranking.solution else changed(ranking, solution=solution)


def scaled_explanation(found: Explanation, method: str, metric: str) -> Explanation:
    """Return an explanation whose score and distance are on the scale that is shown."""
    score = found.score
    if method in BY_DISTANCE and found.fused is None:
        score = float(scaled_scores(np.array([score]), metric)[0])
    distance = float(scaled_distances(np.array([found.distance]), metric)[0])
    return replace(found, score=score, distance=distance)


@dataclass(frozen=True, eq=False)
class Threshold:
    """What is known of the results of a query with ``min_score``.

    Parameters
    ----------
    proven : array of bool
        Of each result, whether its exact score is proven to be at least ``min_score``: it is so
        by more than the bound for the error.
    complete : bool
        Whether it is proven that no other point scores as much.
    """

    proven: BoolArray
    complete: bool

    @classmethod
    def cut(
        cls,
        ranking: Ranking,
        shown: Ranking,
        least: float,
        top: int,
        *,
        all_there: bool,
        by_rank: bool,
    ) -> tuple[Ranking, Threshold]:
        """Return the results of a ranking that score enough, at most ``top``, and what is known.

        ``shown`` is the ranking on the scale that is shown, in which ``least`` is meant. No point
        that is not in it has a higher computed score than its last, and the bound holds for all.

        Parameters
        ----------
        ranking, shown : Ranking
        least : float
        top : int
        all_there : bool
            Whether every point is in the ranking.
        by_rank : bool
            Whether scores are made of ranks, of which the bound says nothing.
        """
        solution, scores = shown.solution, shown.scores
        by_rank = by_rank or (
            solution.fused is not None and solution.fused.kind == "reciprocal_rank"
        )
        enough = scores >= least
        kept = np.flatnonzero(enough)[:top]
        below = scores[~enough]
        # A blend chooses among candidates, and a search may miss points: there a proof is needed.
        known = solution.certified or (solution.fused is None and solution.solver != "distance")
        others = float(below.max()) if len(below) else -np.inf if all_there else np.inf
        complete = known and len(kept) == enough.sum() and others + solution.bound < least
        if by_rank:
            proven, complete = np.zeros(len(kept), dtype=bool), False
        else:
            proven = scores[kept] - solution.bound >= least
        certified = solution.certified and bool(complete)
        cut = replace(ranking, solution=ranking.solution.take(kept, certified=certified))
        return cut, cls(proven, bool(complete))

    def take(self, places: slice) -> Threshold:
        """Return what is known of some of the results."""
        return replace(self, proven=self.proven[places])


def list_depth(top: int) -> int:
    """Return how many places of each list count.

    Examples
    --------
    >>> list_depth(10), list_depth(50)
    (100, 250)
    """
    return max(LEAST_DEPTH, DEPTH_PER_RESULT * top)


class RankedList(NamedTuple):
    """One of the lists that are fused: points, best first, and their scores in it."""

    points: IntArray
    scores: FloatArray

    def without(self, points: IntArray, depth: int) -> RankedList:
        """Return the first places of the list, some points left out."""
        kept = np.flatnonzero(~np.isin(self.points, points))[:depth]
        return RankedList(self.points[kept], self.scores[kept])


class Contribution(NamedTuple):
    """What one list added to the score of one result.

    Parameters
    ----------
    rank : int or None
        The place in the list, from 1; None where the result is not among its first.
    score : float or None
        The score there: of BM25, by plain distance, or by shape.
    share : float
        What it added: 1 / (60 + rank), or nothing.
    """

    rank: int | None
    score: float | None
    share: float


NOTHING = Contribution(None, None, 0.0)


def fuse(lists: Mapping[str, RankedList]) -> tuple[IntArray, FloatArray]:
    """Return the points of some lists, best first, and the sums of their reciprocal ranks.

    Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009): each list adds
    ``1 / (60 + rank)``. Ties go to the smaller point.

    Examples
    --------
    >>> import numpy as np
    >>> near = RankedList(np.array([7, 3]), np.array([0.9, 0.8]))
    >>> named = RankedList(np.array([3]), np.array([5.0]))
    >>> points, scores = fuse({"distance": near, "words": named})
    >>> points, scores.round(4)
    (array([3, 7]), array([0.0325, 0.0164]))
    """
    points = np.concatenate([one.points for one in lists.values()]).astype(np.intp)
    shares = [1 / (RANK_OFFSET + np.arange(1, len(one.points) + 1)) for one in lists.values()]
    distinct, places = np.unique(points, return_inverse=True)
    scores = np.bincount(places, np.concatenate(shares), len(distinct)).astype(np.float64)
    order = np.lexsort((distinct, -scores))
    return distinct[order], scores[order]


def contributions(
    lists: Mapping[str, RankedList], points: Sequence[Any] | IntArray
) -> dict[str, list[Contribution]]:
    """Return what each list added to the score of each of some points."""
    found = {}
    for name, one in lists.items():
        known = {
            point: Contribution(rank, float(score), 1 / (RANK_OFFSET + rank))
            for rank, (point, score) in enumerate(
                zip(one.points.tolist(), one.scores.tolist(), strict=True), start=1
            )
        }
        found[name] = [known.get(int(point), NOTHING) for point in points]
    return found
