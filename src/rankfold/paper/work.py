"""Work in pieces: each is done in some process, all of them under one progress bar."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.exceptions import ConvergenceWarning

from rankfold.check import check_count
from rankfold.evaluation import evaluate
from rankfold.rankers import Ranker
from rankfold.types import Dataset

Work = Callable[[], Any]
"""What another process can do: a function with its arguments, ``functools.partial``."""

Pieces = dict[tuple[str, ...], Work]
"""Work by its name."""

Datasets = Mapping[str, Dataset]
"""The data sets that a run keeps to."""

Results = Mapping[tuple[str, ...], Any]
"""What came of every piece of work, by its name."""


class Measured(NamedTuple):
    """Means over all queries, in per cent."""

    precision: float
    recall: float


def measure(ranker: Ranker, dataset: Dataset, cutoff: int, metric: str | None = None) -> Measured:
    """Measure as the paper does: every point a query, which counts as found and as relevant.

    Parameters
    ----------
    ranker : Ranker
    dataset : Dataset
    cutoff : int
    metric : str, optional
        Instead of that of the data set.
    """
    names = (f"precision@{cutoff}", f"recall@{cutoff}")
    data = replace(dataset, metric=metric or dataset.metric)
    found = evaluate({"it": ranker}, data, names, include_query=True)
    if not found.complete:
        raise KeyboardInterrupt
    return Measured(*(100 * found.mean("it", name) for name in names))


def do_all(work: Pieces, n_jobs: int | None = None) -> Results:
    """Do every piece of work, in processes, with a bar on standard error.

    Parameters
    ----------
    work : dict
    n_jobs : int, optional
        Processes; by default one for every processor.
    """
    n_processes = os.cpu_count() if n_jobs is None else check_count(n_jobs, "n_jobs")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    results: dict[tuple[str, ...], Any] = {}
    calls = (delayed(_do)(name, piece) for name, piece in work.items())
    pool = Parallel(n_jobs=n_processes, return_as="generator_unordered")
    # In a file, a bar is only noise.
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        bar = progress.add_task("measuring", total=len(work))
        for name, result in pool(calls):
            results[name] = result
            progress.update(bar, description=", ".join(name), advance=1)
    return {name: results[name] for name in work}


def _do(name: tuple[str, ...], piece: Work) -> tuple[tuple[str, ...], Any]:
    with warnings.catch_warnings():
        # That alternations have not settled after so many is one of the findings.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return name, piece()
