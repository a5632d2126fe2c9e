"""Methods side by side: the same queries, the same measures, one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankfold.check import InputError, check_choice, check_count, check_flag, check_ids
from rankfold.evaluation.answering import Ranks, Task, answer, class_sizes
from rankfold.evaluation.measures import DEFAULTS, parse_measures
from rankfold.evaluation.results import Evaluation
from rankfold.neighbors import METRICS, ExactEngine
from rankfold.types import Dataset, FloatArray, IntArray


def evaluate(
    rankers: Mapping[str, Ranks],
    dataset: Dataset,
    metrics: str | Sequence[str] = DEFAULTS,
    *,
    queries: Any = None,
    include_query: bool = False,
    base: str | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    seed: int = 0,
) -> Evaluation:
    """Let every method answer the same queries, and measure the answers.

    A result is relevant if it has the label of the query. Each ranker is copied, takes
    the metric of the data set, and is fitted to it; the ones handed in stay as they are,
    and must not ask for a third metric.
    Harm is always measured against plain distance, which needs no ranker of its own.

    Ctrl-C ends the work early: what was answered until then is returned, with
    ``complete`` False.

    Parameters
    ----------
    rankers : dict of str to ranker
    dataset : Dataset
    metrics : str or sequence of str
        "precision@K", "recall@K", "ndcg@K", "average_precision",
        "trapezoidal_average_precision", "r_precision", "reciprocal_rank", "bulls_eye".
    queries : int or sequence of int, optional
        Row numbers; a single number draws that many at random. By default every point
        that has something to find. A query without any relevant point is refused.
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
    dataset = check_dataset(dataset)
    _check_rankers(rankers, dataset)
    if base is not None:
        check_choice(base, "base", tuple(rankers))
    check_flag(progress, "progress")
    check_count(seed, "seed", least=0)
    include_query = check_flag(include_query, "include_query")
    chosen = choose_queries(dataset, queries, include_query, seed)
    task = Task(dataset, chosen, parse_measures(metrics), include_query)
    check_count(n_jobs, "n_jobs")
    plain = _plain_values(task)
    values, complete = answer(rankers, task, n_jobs, progress)
    return Evaluation(dataset.name, tuple(chosen.tolist()), values, plain, base, complete, seed)


def choose_queries(dataset: Dataset, queries: Any, include_query: bool, seed: int) -> IntArray:
    """Return the rows to ask for: all that have something to find, some of them, or those given."""
    found = class_sizes(dataset.labels) - (not include_query)
    eligible: IntArray = np.flatnonzero(found)
    if not len(eligible):
        raise InputError(
            f"no two points of {dataset.name!r} share a label, so no query has anything to find."
        )
    if queries is None:
        return eligible
    if np.ndim(queries) == 0:
        number = check_count(queries, "queries")
        if number > len(eligible):
            raise InputError(
                f"queries is {number}, but only {len(eligible)} points of {dataset.name!r} "
                "have another one with their label."
            )
        rng = np.random.default_rng(seed)
        return np.sort(rng.choice(eligible, number, replace=False)).astype(np.intp)
    rows = check_ids(queries, len(dataset.labels))
    if not len(rows):
        raise InputError("queries is empty; give at least one row number, or None for all.")
    alone = rows[found[rows] == 0]
    if len(alone):
        raise InputError(
            f"query {alone[0]} has nothing to find: no other point of {dataset.name!r} has its "
            "label. Leave it out, or pass include_query=True."
        )
    return rows


def check_dataset(dataset: object) -> Dataset:
    """Require a Dataset of finite numbers with a label for every point."""
    if not isinstance(dataset, Dataset):
        raise InputError(
            f"dataset is {type(dataset).__name__}, but must be a rankfold.Dataset: "
            "Dataset(name, X, labels), or datasets.load(name)."
        )
    check_choice(dataset.metric, "dataset.metric", METRICS)
    X, labels = np.asarray(dataset.X), np.asarray(dataset.labels)
    if X.ndim != 2 or X.dtype.kind not in "fiu" or not np.isfinite(X).all():
        raise InputError(
            f"X of {dataset.name!r} has shape {X.shape} and type {X.dtype}, but must have rows "
            "and columns of finite numbers."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InputError(
            f"labels of {dataset.name!r} holds NaN; leave unlabelled points out, or give each a "
            "label of its own."
        )
    if labels.shape != X.shape[:1]:
        raise InputError(
            f"labels of {dataset.name!r} has shape {labels.shape}, but there are "
            f"{len(X)} points: give one label for each."
        )
    return replace(dataset, X=X, labels=labels)


def _check_rankers(rankers: object, dataset: Dataset) -> None:
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
        if ranker.metric not in ("euclidean", dataset.metric):
            raise InputError(
                f"rankers[{name!r}] has metric {ranker.metric!r}, but {dataset.name!r} is measured "
                f"by {dataset.metric!r}, for all methods alike; change the metric of the data set."
            )


def _plain_values(task: Task) -> dict[str, FloatArray]:
    """Measure plain distance: nearest first, ties to the smaller row, the query at the top."""
    dataset = task.dataset
    engine = ExactEngine(dataset.X, dataset.metric)
    nobody = np.empty((0, engine.n_features))
    top = task.top()
    answers = []
    for query, row in zip(task.queries, engine.sq_distances(task.queries, nobody), strict=True):
        order = np.argsort(row, kind="stable")
        others = order[order != query]
        answers.append((np.r_[query, others] if task.include_query else others)[:top])
    return task.measured(np.arange(len(task.queries)), answers)
