"""Results that are good and unlike each other: maximal marginal relevance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rankfold.check import check_count, check_distances, check_matrix, check_share
from rankfold.errors import InputError
from rankfold.neighbors import Engine
from rankfold.types import FloatArray, IntArray, Ranking

LEAST_CANDIDATES, CANDIDATES_PER_RESULT = 100, 5
"""Candidates that are looked at: so many at least, and so many for every result."""


def n_candidates(top: int) -> int:
    """Return how long a ranking should be for ``top`` diverse results.

    Examples
    --------
    >>> n_candidates(10), n_candidates(50)
    (100, 250)
    """
    return max(LEAST_CANDIDATES, CANDIDATES_PER_RESULT * check_count(top, "top"))


def diversify(relevance: Any, sq_distances: Any, top: int, amount: float) -> IntArray:
    """Choose results one by one: each relevant, and unlike those that were chosen before.

    Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): the next result is the
    candidate with the largest

        (1 - amount) r_i - amount max_{chosen j} exp(-d_ij / m).

    The relevance r is the score, brought to 0 to 1 within the candidates. d is the squared
    distance, and m the median, over the candidates, of that to the nearest other one that is not
    a copy: a copy has the similarity 1, a neighbour 1/e, and neither the unit of
    distance nor a few outliers matter. From an amount of 0.5 on, a copy of a chosen result waits
    for every candidate that is at least as relevant as it is similar to the chosen ones. Ties go
    to the better ranked candidate. The best ranked one is always the first.

    Parameters
    ----------
    relevance : array, shape (n_candidates,)
        Scores of the candidates, best first.
    sq_distances : array, shape (n_candidates, n_candidates)
        Squared distances between them, as of ``engine.pairs``.
    top : int
        How many to choose; time grows with ``top`` times the number of candidates.
    amount : float
        From 0, as ranked, to 1, as different as can be.

    Returns
    -------
    order : array of int
        Places of the chosen among the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.0], [3.0]])          # the second is a copy of the first
    >>> diversify([1.0, 0.9, 0.8], (X - X.T) ** 2, top=3, amount=0.5)
    array([0, 2, 1])
    """
    scores = _check_relevance(relevance)
    distances = check_matrix(sq_distances, "sq_distances", len(scores))
    if len(distances) != len(scores):
        raise InputError(
            f"sq_distances has shape {distances.shape}, but there are {len(scores)} candidates: "
            "give the squared distances between all of them."
        )
    check_distances(distances, "sq_distances", squared=False)
    top = min(check_count(top, "top"), len(scores))
    amount = check_share(amount, "amount", zero=True, one=True)
    if amount == 0:
        return np.arange(top)
    worth = (1 - amount) * _within_unit(scores)
    unit = _typical_nearest(distances)
    nearest = np.zeros(len(scores))
    order = np.empty(top, dtype=np.intp)
    left = np.ones(len(scores), dtype=bool)
    for place in range(top):
        gains = np.where(left, worth - amount * nearest, -np.inf)
        chosen = order[place] = 0 if place == 0 else np.argmax(gains)
        left[chosen] = False
        similarity = np.exp(-np.maximum(distances[chosen], 0.0) / unit)
        nearest = np.maximum(nearest, similarity)
    return order


def diverse(engine: Engine, ranking: Ranking, top: int, amount: float) -> Ranking:
    """Return the ``top`` diverse results of a ranking.

    Parameters
    ----------
    engine : Engine
        Of the ranker: ``ranker.engine_``.
    ranking : Ranking
        Its first ``n_candidates(top)`` results are the candidates.
    top, amount
        As for `diversify`.

    Examples
    --------
    >>> from rankfold import RAN, datasets
    >>> ranker = RAN().fit(datasets.load("digits").X)
    >>> ranking = ranker.rank(0, top=n_candidates(5))
    >>> diverse(ranker.engine_, ranking, top=5, amount=0.5).indices[0] == ranking.indices[0]
    np.True_
    """
    indices = ranking.indices[: n_candidates(top)]
    scores = ranking.scores[: len(indices)]
    order = diversify(scores, engine.pairs(indices), top, amount)
    # Others may well score higher than what was chosen.
    return replace(ranking, solution=ranking.solution.take(order, certified=False))


def _check_relevance(relevance: Any) -> FloatArray:
    scores = check_matrix(np.atleast_2d(np.asarray(relevance)), "relevance")
    if len(scores) != 1 or not scores.shape[1]:
        raise InputError(
            f"relevance has shape {np.shape(relevance)}, but must be a list of scores, one for "
            "each candidate."
        )
    if np.any(np.diff(scores[0]) > 0):
        raise InputError("relevance does not descend; give the candidates best first.")
    descending: FloatArray = scores[0].astype(np.float64)
    return descending


def _typical_nearest(sq_distances: FloatArray) -> float:
    """Return the median squared distance to the nearest other candidate that is not a copy."""
    nearest = np.where(sq_distances > 0, sq_distances, np.inf).min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else 1.0


def _within_unit(scores: FloatArray) -> FloatArray:
    """Bring scores to 0 to 1; scores that are all alike leave the choice to the distances."""
    span = scores[0] - scores[-1]
    within: FloatArray = (scores - scores[-1]) / span if span > 0 else np.ones(len(scores))
    return within
