"""Questions to an index."""

from __future__ import annotations

from typing import Any

from rankfold.index.answering import Answering
from rankfold.index.asked import Asked
from rankfold.index.contents import Contents
from rankfold.index.keeping import Keeping
from rankfold.index.results import Reason, Results, as_list


class Asking(Contents):
    """Answers queries in the state that was committed last.

    Parameters
    ----------
    keeper : Keeping
    """

    def __init__(self, keeper: Keeping) -> None:
        super().__init__(keeper)
        self._answering = Answering(keeper)

    def query(
        self,
        ids: Any = None,
        vectors: Any = None,
        weights: Any = None,
        *,
        negative: Any = None,
        negative_vectors: Any = None,
        where: str | None = None,
        top: int = 10,
        offset: int = 0,
        diversity: float = 0.0,
        method: str = "ran",
        include_query: bool = False,
        **parameters: Any,
    ) -> Results:
        """Rank the points of the index.

        Parameters
        ----------
        ids : id or list of ids, optional
            Points that serve as examples.
        vectors : array, shape (n_features,) or (n_vectors, n_features), optional
            Examples that are not in the index.
        weights : sequence of float, optional
            How much each example counts, ids first, then vectors.
        negative : id or list of ids, optional
            Examples of what is not looked for.
        negative_vectors : array, optional
            Such examples that are not in the index.
        where : str, optional
            A condition such as ``price < 10 and not sold``. Only points that meet it are
            returned; the graph stays whole.
        top, offset : int
            How many results, and how many to skip before.
        diversity : float
            From 0, as ranked, to 1, as different from each other as can be.
        method : str
            A name of RANKERS.
        include_query : bool
            Whether the query's own points may be among the results.
        **parameters
            Parameters of the method, such as ``smoothness=10``.
        """
        asked = Asked(
            as_list(ids),
            vectors,
            weights,
            as_list(negative),
            negative_vectors,
            where,
            top,
            offset,
            diversity,
            method,
            include_query,
            parameters,
        )
        return self._ask(asked)

    def _ask(self, asked: Asked) -> Results:
        """Answer a query."""
        checked = asked.checked()
        return Results(*self._answering.answer(checked), checked, self)

    def _reason(self, asked: Asked, point: Any) -> Reason:
        """Explain the place of a point in the answer to a query."""
        return self._answering.reason(asked, point)
