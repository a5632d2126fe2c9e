"""Methods side by side: the same queries, the same measures, here or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.base import clone

from rankfold.check import check_choice, check_count, check_flag
from rankfold.errors import InputError
from rankfold.evaluation.results import Evaluation
from rankfold.evaluation.tasks import Metrics, Task, make_task
from rankfold.rankers import Distance, Ranker
from rankfold.types import Dataset, FloatArray, IntArray, Ranking, SearchCollection

BLOCK = 64
"""Queries answered at once. The same however many processes share the work, because the
last digit of a score may depend on what else is solved with it."""

Values = dict[str, FloatArray]
"""A value for every query, by the name of the measure; NaN where there is none yet."""


class Ranks(Protocol):
    """What an evaluation needs of a method, as every ranker of rankfold has it."""

    metric: str

    def fit(self, X: Any) -> Any:
        """Learn the shape of the data."""

    def rank_many(
        self, queries: Sequence[Any], *, top: int | None = None, include_query: bool = False
    ) -> list[Ranking]:
        """Rank the database for many queries."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""

    def set_params(self, **parameters: Any) -> Any:
        """Change some parameters."""


Methods = Mapping[str | None, Ranks]
"""Rankers by name; None is plain distance, which all others are compared with."""


class Part(NamedTuple):
    """Measures of one method on the queries at some places of the task."""

    method: str | None
    places: IntArray
    values: Values


class Work(NamedTuple):
    """What a process has to do: let some methods answer blocks of queries."""

    key: str
    methods: Methods
    task: Task


def answer(
    methods: Methods, task: Task, n_jobs: int, progress: bool, in_turn: bool = False
) -> tuple[dict[str | None, Values], bool]:
    """Let every method answer every query.

    All methods answer a block of queries before the next one begins, so that work that is
    stopped has compared them on the same queries.

    Parameters
    ----------
    methods : dict of name to ranker
    task : Task
    n_jobs : int
        Processes that share the blocks.
    progress : bool
    in_turn : bool
        Whether each method answers all queries before the next one is fitted, because they are
        too many to be fitted at once.

    Returns
    -------
    values : dict
        ``values[method][metric]``, NaN for what was not answered.
    complete : bool
        False if the work was interrupted; what was done until then is there.
    """
    n_queries = len(task.queries)
    values = {
        method: {measure.name: np.full(n_queries, np.nan) for measure in task.measures}
        for method in methods
    }
    groups = [{name: methods[name]} for name in methods] if in_turn else [dict(methods)]
    blocks = [np.arange(n, min(n + BLOCK, n_queries)) for n in range(0, n_queries, BLOCK)]
    work = [Work(uuid4().hex, group, task) for group in groups]
    answered = _in_processes(work, blocks, n_jobs) if n_jobs > 1 else _here(work, blocks)
    try:
        with _bar(progress, sum(name is not None for name in methods) * n_queries) as advance:
            for part in answered:
                for metric, found in part.values.items():
                    values[part.method][metric][part.places] = found
                if part.method is not None:
                    advance(part.method, len(part.places))
    except KeyboardInterrupt:
        return values, False
    return values, True


def _here(work: Sequence[Work], blocks: Sequence[IntArray]) -> Iterator[Part]:
    engine = None
    for key, methods, task in work:
        if engine is None:
            engine = _engine(task)
        fitted = _fitted(methods, task, engine)
        for block in blocks:
            yield from _answered(Work(key, fitted, task), block)


def _in_processes(work: Sequence[Work], blocks: Sequence[IntArray], n_jobs: int) -> Iterator[Part]:
    """Send blocks to processes.

    Each process fits the methods again: a fitted one may hold a factorisation, which cannot be sent
    to another process.
    """
    calls = (delayed(_answer_there)(one, block) for one in work for block in blocks)
    for parts in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls):
        yield from parts


def _answer_there(work: Work, block: IntArray) -> list[Part]:
    return list(_answered(_fitted_there(_Known(work)), block))


class _Known:
    """Work that is recognised by its key, so that a process fits once for all its blocks."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __hash__(self) -> int:
        return hash(self.work.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and other.work.key == self.work.key


@lru_cache(maxsize=1)
def _fitted_there(known: _Known) -> Work:
    work = known.work
    return work._replace(methods=_fitted(work.methods, work.task, _engine(work.task)))


def _engine(task: Task) -> Any:
    """Return the engine that all methods share, plain distance among them."""
    return None if task.X is None else Distance(task.metric).fit(task.X).engine_


def _fitted(methods: Methods, task: Task, engine: Any) -> Methods:
    if task.X is None:
        return methods
    copies = {name: clone(r).set_params(metric=task.metric) for name, r in methods.items()}
    return {
        name: copy.fit(engine if isinstance(copy, Ranker) else task.X)
        for name, copy in copies.items()
    }


def _answered(work: Work, block: IntArray) -> Iterator[Part]:
    """Let every method answer a block; a ranker of two names answers once."""
    _, methods, task = work
    queries, top = [task.queries[place] for place in block.tolist()], task.top()
    known: dict[int, Values] = {}
    for name, ranker in methods.items():
        if id(ranker) not in known:
            rankings = ranker.rank_many(queries, top=top, include_query=task.include_query)
            known[id(ranker)] = task.measured(block, [ranking.indices for ranking in rankings])
        yield Part(name, block, known[id(ranker)])


@contextmanager
def _bar(shown: bool, total: int) -> Iterator[Callable[[str, int], None]]:
    """Yield what is to be told of every method and number of queries that are done."""
    if not shown:
        yield lambda method, n_queries: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # In a file, a bar is only noise.
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("fitting", total=total)
        yield lambda method, n_queries: progress.update(task, description=method, advance=n_queries)


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
    methods: dict[str | None, Ranks] = {None: Distance()}
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
            "{'ran': RAN(), 'distance': Distance()}."
        )
    for name, ranker in rankers.items():
        if isinstance(ranker, type) or not hasattr(ranker, "rank_many"):
            raise InputError(
                f"rankers[{name!r}] is {ranker!r}, but must be a ranker such as RAN() or "
                "Distance(), an object and not its class."
            )
        if ranker.metric not in ("euclidean", task.metric):
            raise InputError(
                f"rankers[{name!r}] has metric {ranker.metric!r}, but {task.name!r} is measured "
                f"by {task.metric!r}, for all methods alike; change the metric of the data set."
            )
