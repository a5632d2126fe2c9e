"""What the integrations share: answers to a text that was embedded, and re-ranked candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rankfold.check import check_matrix
from rankfold.errors import InputError
from rankfold.index import Index
from rankfold.rankers import RAN
from rankfold.rankers.base import Ranker
from rankfold.types import FloatArray, IntArray


@dataclass(frozen=True)
class Passage:
    """A result of an index as other packages take it.

    Parameters
    ----------
    id : str
    text : str
        What stands in the column of texts.
    facts : dict
        All other columns.
    score : float
    """

    id: str
    text: str
    facts: dict[str, Any]
    score: float


def check_text_column(index: Index, column: str) -> None:
    """Require a column of texts in the payload."""
    if index.columns.get(column) != "text":
        found = ", ".join(f"{name!r} ({kind})" for name, kind in index.columns.items())
        raise InputError(
            f"text is {column!r}, but must name a column of texts in the payload of the index, "
            f"which has {found or 'no columns'}.",
            "text",
        )


def passages(
    index: Index, vector: Any, text: str, top: int, options: Mapping[str, Any]
) -> list[Passage]:
    """Return the best of an index for a vector; ``options`` are those of `Index.query`."""
    results = index.query(vectors=vector, top=top, **options)
    return [
        Passage(
            str(row["id"]),
            row["payload"][text] or "",
            {name: value for name, value in row["payload"].items() if name != text},
            row["score"],
        )
        for row in results.rows()
    ]


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
    return ranking.indices, ranking.scores


def check_ranker(ranker: object) -> None:
    """Require a ranker, or None for the one that is taken by default."""
    if ranker is not None and not isinstance(ranker, Ranker):
        raise InputError(
            f"ranker is {ranker!r}, but must be a ranker, such as RAN(metric='cosine').", "ranker"
        )
