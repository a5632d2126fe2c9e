"""Methods side by side: the same queries, the same measures, one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankfold.check import InputError, check_choice, check_count, check_flag
from rankfold.evaluation.answering import Methods, Ranks, answer
from rankfold.evaluation.results import Evaluation
from rankfold.evaluation.tasks import Metrics, Task, make_task
from rankfold.rankers import Euclidean
from rankfold.types import Dataset, SearchCollection


def evaluate(
    rankers: Mapping[str, Ranks],
    dataset: Dataset | SearchCollection,
    metrics: Metrics = None,
    *,
    queries: Any = None,
    include_query: bool = False,
    base: str | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    seed: int = 0,
) -> Evaluation:
    """Let every method answer the same queries, and measure the answers.

    In a data set a result is relevant if it has the label of the query; in a search collection,
    if it was judged so. Each ranker is copied, takes the metric of the data, and is fitted to it;
    the ones handed in stay as they are, and must not ask for a third metric.
    Harm is always measured against plain distance, which needs no ranker of its own.

    Ctrl-C ends the work early: what was answered until then is returned, with
    ``complete`` False. All methods are then compared on the same queries.

    Parameters
    ----------
    rankers : dict of str to ranker
    dataset : Dataset or SearchCollection
    metrics : str or sequence of str, optional
        "precision@K", "recall@K", "ndcg@K", "average_precision", "average_precision@K",
        "trapezoidal_average_precision", "r_precision", "reciprocal_rank", "bulls_eye". By default
        "r_precision", "average_precision" and "ndcg@10"; among more than 5,000 points
        "precision@1", "precision@10", "precision@50" and "ndcg@10", which need no complete
        ranking. For a search collection "ndcg@10", "average_precision" (of the first 1,000, among
        more than 5,000 documents) and "recall@100".
    queries : int, sequence or "all", optional
        Row numbers, or ids of the queries of a search collection; a single number draws that many
        at random. By default all that have something to find; 500 of them, among more than 5,000
        points. A query without any relevant point is refused.
    include_query : bool
        Whether a query is one of its own results, and counts as relevant.
    base : str, optional
        The method that the paired test compares with; plain distance by default.
    n_jobs : int
        Processes that share the work.
    progress : bool
        Whether to show a bar on standard error.
    seed : int
        Of drawn queries, intervals and tests.

    Examples
    --------
    >>> from rankfold import RAN, datasets
    >>> found = evaluate({"ran": RAN(n_neighbors=10)}, datasets.load("moons"), queries=50)
    >>> for row in found.table():
    ...     print(f"{row.metric}: {row.mean:.2f}, harm {row.harm:.0%}")
    r_precision: 1.00, harm 0%
    average_precision: 1.00, harm 0%
    ndcg@10: 1.00, harm 0%
    """
    check_count(seed, "seed", least=0)
    task = make_task(dataset, metrics, queries, check_flag(include_query, "include_query"), seed)
    _check_rankers(rankers, task)
    check_count(n_jobs, "n_jobs")
    methods: dict[str | None, Ranks] = {None: Euclidean()}
    methods.update(rankers)
    return run_task(methods, task, base=base, n_jobs=n_jobs, progress=progress, seed=seed)


def run_task(
    methods: Methods,
    task: Task,
    *,
    base: str | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    seed: int = 0,
    in_turn: bool = False,
) -> Evaluation:
    """Let methods do a task; one of them, under None, is plain distance.

    Parameters
    ----------
    methods : dict of name to ranker
    task : Task
    base, n_jobs, progress, seed
        As for `evaluate`.
    in_turn : bool
        As for `answer`.
    """
    names = tuple(name for name in methods if name is not None)
    if base is not None:
        check_choice(base, "base", names)
    values, complete = answer(methods, task, n_jobs, check_flag(progress, "progress"), in_turn)
    return Evaluation(
        task.name,
        task.names,
        {name: values[name] for name in names},
        values[None],
        tuple(measure.name for measure in task.metrics),
        base,
        complete,
        seed,
        task.notes,
    )


def _check_rankers(rankers: object, task: Task) -> None:
    if not isinstance(rankers, Mapping) or not rankers:
        raise InputError(
            f"rankers is {rankers!r}, but must map names to rankers, for example "
            "{'ran': RAN(), 'euclidean': Euclidean()}."
        )
    for name, ranker in rankers.items():
        if isinstance(ranker, type) or not hasattr(ranker, "rank_many"):
            raise InputError(
                f"rankers[{name!r}] is {ranker!r}, but must be a ranker such as RAN() or "
                "Euclidean(), an object and not its class."
            )
        if ranker.metric not in ("euclidean", task.metric):
            raise InputError(
                f"rankers[{name!r}] has metric {ranker.metric!r}, but {task.name!r} is measured "
                f"by {task.metric!r}, for all methods alike; change the metric of the data set."
            )
