"""Questions to an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankfold.check import InputError, check_choice, check_count
from rankfold.index.answering import Answering
from rankfold.index.asked import Asked
from rankfold.index.contents import Contents
from rankfold.index.keeper import Keeper
from rankfold.index.results import Reason, Results, as_list
from rankfold.rankers import RANKERS, Ranker

if TYPE_CHECKING:
    from rankfold.evaluation import Evaluation


class Asking(Contents):
    """Answers queries in the state that was committed last.

    Parameters
    ----------
    keeper : Keeper
    """

    def __init__(self, keeper: Keeper) -> None:
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

    def evaluate(
        self,
        label: str | None = None,
        *,
        vectors: Any = None,
        vector_ids: Sequence[Any] | None = None,
        qrels: Mapping[Any, Mapping[Any, int]] | None = None,
        methods: Sequence[str] = ("euclidean", "ran"),
        metrics: str | Sequence[str] | None = None,
        queries: Any = None,
        base: str | None = None,
        name: str | None = None,
        progress: bool = False,
        seed: int = 0,
    ) -> Evaluation:
        """Measure methods side by side on the graph that is there, with harm and intervals.

        Either points ask for those that share their label, or vectors for what was judged
        relevant to them. Nothing is searched or learned anew: methods rank as in `query`. The
        index does not change meanwhile.

        Parameters
        ----------
        label : str, optional
            A column of the payload; points that share its value are relevant to each other. Where
            it is missing, points are neither queries nor relevant.
        vectors : array, shape (n_queries, n_features), optional
            Questions that are not in the index.
        vector_ids : sequence, optional
            What ``qrels`` calls them; row numbers by default.
        qrels : dict of dict, optional
            ``qrels[query][id]`` is a grade, as `read_qrels` gives it; above zero is relevant. Ids
            are compared as text.
        methods : sequence of str
            Names of RANKERS.
        metrics, base, progress, seed
            As for `rankfold.evaluate`.
        queries : int, sequence of ids or "all", optional
            What to ask, or how much of it; by default everything, and 500 queries where there are
            more than 5,000 points.
        name : str, optional
            Stands for the index in the table; the name of its folder by default.

        Examples
        --------
        >>> from rankfold import Index, datasets
        >>> moons = datasets.load("moons")
        >>> index = Index.build(moons.X, payload={"moon": moons.labels}, n_neighbors=10)
        >>> found = index.evaluate("moon", metrics="precision@100", queries=50)
        >>> for row in found.table():
        ...     print(f"{row.method}: {row.mean:.2f}")
        euclidean: 0.81
        ran: 1.00
        """
        if (label is None) == (qrels is None) or (vectors is None) != (qrels is None):
            raise InputError(
                "give either label, the column of the payload that says what belongs together, or "
                "vectors and qrels, questions and judgements of what answers them."
            )
        from rankfold.evaluation.run import run_task
        from rankfold.index.evaluation import by_judgements, by_label

        check_count(seed, "seed", least=0)
        names = [methods] if isinstance(methods, str) else list(methods)
        for method in names:
            check_choice(method, "method", tuple(RANKERS))
        with self._keeper.current() as engine:
            if label is not None:
                task = by_label(self._keeper, engine, label, metrics, queries, seed)
            else:
                judged = vectors, vector_ids, qrels or {}
                task = by_judgements(self._keeper, engine, *judged, metrics, queries, seed)
            task = task if name is None else replace(task, name=name)
            fitted: dict[str | None, Ranker] = {}
            for one in (None, *names):
                fitted[one] = self._answering.fitted(one or "euclidean", {}, engine)
            return run_task(fitted, task, base=base, progress=progress, seed=seed)

    def _ask(self, asked: Asked) -> Results:
        """Answer a query."""
        checked = asked.checked()
        return Results(*self._answering.answer(checked), checked, self)

    def _reason(self, asked: Asked, point: Any) -> Reason:
        """Explain the place of a point in the answer to a query."""
        return self._answering.reason(asked, point)
