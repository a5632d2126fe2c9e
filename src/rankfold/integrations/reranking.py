"""Order a few candidates by their shape around a query: what all re-rankers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from rankfold.check import InputError, check_matrix
from rankfold.rankers import RAN
from rankfold.rankers.base import Ranker
from rankfold.types import FloatArray, IntArray


def rerank(
    candidates: Any, query: Any, top: int | None = None, ranker: Ranker | None = None
) -> tuple[IntArray, FloatArray]:
    """Return the places of the best candidates, best first, and their scores.

    Parameters
    ----------
    candidates : array, shape (n_candidates, n_features)
    query : array, shape (n_features,)
        With a precomputed metric, these are distances among the candidates and to them.
    top : int, optional
        How many; all by default.
    ranker : Ranker, optional
        Is not changed. ``RAN(metric="cosine")`` by default, in whose scores shape and distance to
        the query are fused; ``RAN(metric="cosine", fusion="none")`` ranks by shape alone.

    Examples
    --------
    >>> rerank([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], [1.0, 0.1], top=2)[0]
    array([2, 0])
    """
    check_ranker(ranker)
    if not len(candidates):
        return np.empty(0, dtype=np.intp), np.empty(0)
    points = check_matrix(candidates, "candidates")
    fitted = (RAN(metric="cosine") if ranker is None else clone(ranker)).fit(points)
    ranking = fitted.rank(vectors=query, top=top)
    return ranking.ids, ranking.scores


def check_ranker(ranker: object) -> None:
    """Require a ranker, or None for the one that is taken by default."""
    if ranker is not None and not isinstance(ranker, Ranker):
        raise InputError(
            f"ranker is {ranker!r}, but must be a ranker, such as RAN(metric='cosine').", "ranker"
        )
