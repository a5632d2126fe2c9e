"""Plain distance: the baseline that every other method has to beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rankfold.neighbors import plain_sq_distances
from rankfold.rankers.base import Ranker
from rankfold.types import FloatArray, Query, Solution, Trace


class Euclidean(Ranker):
    """Rank by plain distance to the query.

    The score is minus the squared distance; for several examples, minus the weighted mean
    of the squared distances to them.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "precomputed", "precomputed_sq"}

    Examples
    --------
    >>> import numpy as np
    >>> Euclidean().fit(np.array([[0.0], [1.0], [5.0]])).rank(ids=1).ids
    array([0, 2])
    """

    def __init__(self, metric: str = "euclidean") -> None:
        self.metric = metric

    def _fit(self) -> None:
        pass

    def amounts(self, query: Query, point: int, tol: float) -> FloatArray:
        """Return what each example adds to minus the mean of the squared distances."""
        rows = self.engine_.sq_distances(query.ids, query.vectors)
        added = -query.weights * np.array([row[point] for row in rows])
        amounts: FloatArray = added / query.weights.sum()
        return amounts

    def _score(
        self, queries: Sequence[Query], traced: bool
    ) -> Iterator[tuple[Solution, Trace | None]]:
        for query in queries:
            scores = -plain_sq_distances(self.engine_, query)
            yield Solution(scores, residual=0.0, bound=0.0, n_iter=0, converged=True), None
