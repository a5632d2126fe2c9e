"""Methods answer queries in blocks, here or in several processes, until done or stopped."""

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

from rankfold.evaluation.tasks import Task
from rankfold.rankers import Euclidean, Ranker
from rankfold.types import FloatArray, IntArray, Ranking

BLOCK = 64
"""Queries answered at once. The same however many processes share the work, because the
last digit of a score may depend on what else is solved with it."""


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

Values = dict[str, FloatArray]
"""A value for every query, by the name of the measure; NaN where there is none yet."""


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

    Each process fits the methods anew: a fitted one may hold a factorisation, which cannot be sent
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
    return None if task.X is None else Euclidean(task.metric).fit(task.X).engine_


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
            known[id(ranker)] = task.measured(block, [ranking.ids for ranking in rankings])
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
