"""Methods answer queries in blocks, here or in several processes, until done or stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.base import clone

from rankfold.evaluation.measures import Measure, depth_of, measure_all
from rankfold.types import Dataset, FloatArray, IntArray, Ranking

BLOCK = 64
"""Queries answered at once. The same however many processes share the work, because the
last digit of a score may depend on what else is solved with it."""


class Ranks(Protocol):
    """What an evaluation needs of a method, as every ranker of rankfold has it."""

    metric: str

    def fit(self, X: Any) -> Any:
        """Learn the shape of the data."""

    def rank_many(
        self, queries: Sequence[int], *, top: int | None = None, include_query: bool = False
    ) -> list[Ranking]:
        """Rank the database for many queries."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""

    def set_params(self, **parameters: Any) -> Any:
        """Change some parameters."""


@dataclass(frozen=True, eq=False)
class Task:
    """Queries on a data set, and how their answers are measured.

    Parameters
    ----------
    dataset : Dataset
    queries : array of int
    measures : tuple of Measure
    include_query : bool
        Whether a query is one of its own results, and relevant.
    """

    dataset: Dataset
    queries: IntArray
    measures: tuple[Measure, ...]
    include_query: bool

    def n_relevant(self) -> IntArray:
        """Return how many results each query looks for."""
        counts = class_sizes(self.dataset.labels)[self.queries]
        return counts if self.include_query else counts - 1

    def top(self) -> int:
        """Return how many results the measures look at."""
        most = int(self.n_relevant().max())
        return depth_of(self.measures, most, len(self.dataset.labels))

    def measured(self, places: IntArray, answers: Sequence[IntArray]) -> dict[str, FloatArray]:
        """Measure the answers to the queries at these places."""
        labels = self.dataset.labels
        sizes = self.n_relevant()
        rows = [
            measure_all(
                self.measures,
                (labels[ids] == labels[self.queries[place]]).astype(np.float64),
                np.ones(sizes[place]),
            )
            for place, ids in zip(places, answers, strict=True)
        ]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}


class Part(NamedTuple):
    """Measures of one method on the queries at some places of the task."""

    method: str
    places: IntArray
    values: dict[str, FloatArray]


def class_sizes(labels: IntArray) -> IntArray:
    """Return for every point how many have its label, itself among them.

    Examples
    --------
    >>> import numpy as np
    >>> class_sizes(np.array([7, 3, 7]))
    array([2, 1, 2])
    """
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    sizes: IntArray = counts[place]
    return sizes


def answer(
    rankers: Mapping[str, Ranks], task: Task, n_jobs: int, progress: bool
) -> tuple[dict[str, dict[str, FloatArray]], bool]:
    """Let every method answer every query.

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
        for method in rankers
    }
    work = _in_processes if n_jobs > 1 else _here
    try:
        with _bar(progress, len(rankers) * n_queries) as advance:
            for part in work(rankers, task, n_jobs):
                for metric, found in part.values.items():
                    values[part.method][metric][part.places] = found
                advance(part.method, len(part.places))
    except KeyboardInterrupt:
        return values, False
    return values, True


def _here(rankers: Mapping[str, Ranks], task: Task, n_jobs: int) -> Iterator[Part]:
    places = np.arange(len(task.queries))
    for method, ranker in rankers.items():
        yield from _answer_part(method, ranker, task, places)


def _in_processes(rankers: Mapping[str, Ranks], task: Task, n_jobs: int) -> Iterator[Part]:
    """Cut the queries into as many runs of blocks as there are processes.

    Each run fits its method anew: a fitted one may hold a factorisation, which cannot
    be sent to another process.
    """
    blocks = np.arange(0, len(task.queries), BLOCK)
    runs = [
        np.arange(run[0], min(run[-1] + BLOCK, len(task.queries)))
        for run in np.array_split(blocks, min(n_jobs, len(blocks)))
    ]
    calls = (
        delayed(_answer_whole)(method, ranker, task, places)
        for method, ranker in rankers.items()
        for places in runs
    )
    for parts in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls):
        yield from parts


def _answer_whole(method: str, ranker: Ranks, task: Task, places: IntArray) -> list[Part]:
    return list(_answer_part(method, ranker, task, places))


def _answer_part(method: str, ranker: Ranks, task: Task, places: IntArray) -> Iterator[Part]:
    own = clone(ranker).set_params(metric=task.dataset.metric)
    own.fit(task.dataset.X)
    top = task.top()
    for start in range(0, len(places), BLOCK):
        block = places[start : start + BLOCK]
        rankings = own.rank_many(
            task.queries[block].tolist(), top=top, include_query=task.include_query
        )
        yield Part(method, block, task.measured(block, [ranking.ids for ranking in rankings]))


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
