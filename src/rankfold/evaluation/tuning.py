"""Choose parameters on some queries, and report on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from rankfold.check import check_count, check_flag
from rankfold.errors import InputError
from rankfold.evaluation.measures import DEFAULTS, parse_measures
from rankfold.evaluation.results import Evaluation
from rankfold.evaluation.run import Ranks, evaluate, run_task
from rankfold.evaluation.tasks import check_dataset, choose_queries, labelled_task
from rankfold.rankers import Distance
from rankfold.types import Dataset, IntArray

Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Tuning:
    """The outcome of a search over parameters.

    Parameters
    ----------
    best : dict
        The parameters that did best on the tuning queries; of equals, the first.
    ranker : ranker
        A copy of the given one with these parameters, not fitted.
    parameters : dict
        The parameters of every candidate, by its name in ``candidates``.
    candidates : Evaluation
        Every candidate on the tuning queries.
    held_out : Evaluation
        "given" and "tuned" on the other queries, for which nothing was chosen. Empty if the
        search was stopped before.
    """

    best: dict[str, Any]
    ranker: Any
    parameters: dict[str, dict[str, Any]]
    candidates: Evaluation
    held_out: Evaluation

    @property
    def complete(self) -> bool:
        """Whether every candidate was tried and the held-out queries were answered."""
        return self.candidates.complete and self.held_out.complete


def tune(
    ranker: Ranks,
    dataset: Dataset,
    grid: Grid | Sequence[Grid],
    *,
    queries: Any = None,
    held_out: Any = None,
    scoring: str = "average_precision",
    metrics: Sequence[str] = DEFAULTS,
    include_query: bool = False,
    n_jobs: int = 1,
    progress: bool = False,
    seed: int = 0,
) -> Tuning:
    """Try every setting of a grid on some queries, and measure the best on the others.

    Parameters
    ----------
    ranker : ranker
        Its parameters hold where the grid names none.
    dataset : Dataset
    grid : dict of str to sequence, or a sequence of such
        All combinations within a dict are tried.
    queries : int or sequence of int, optional
        What to tune on; by default a random half, the same share of every label. A single
        number draws that many at random.
    held_out : sequence of int, optional
        What to report on; by default all others. A query in both is refused. Where only
        this is given, all others are tuned on.
    scoring : str
        What the best setting has most of.
    metrics : sequence of str
        What is reported on the held-out queries.
    include_query, n_jobs, progress, seed
        As for ``evaluate``. Ctrl-C ends the search with the best of the settings that have
        answered every query.

    Examples
    --------
    >>> from rankfold import RAN, datasets
    >>> found = tune(RAN(), datasets.load("moons"), {"n_neighbors": [10, 150]}, queries=20)
    >>> found.best
    {'n_neighbors': 10}
    >>> len(found.candidates.queries), len(found.held_out.queries)
    (20, 380)
    """
    dataset = check_dataset(dataset)
    include_query = check_flag(include_query, "include_query")
    name = parse_measures(scoring)[0].name
    parse_measures(metrics)
    settings = _settings(grid, ranker)
    tuning_rows, other_rows = _split(dataset, queries, held_out, include_query, seed)
    options: dict[str, Any] = {
        "include_query": include_query,
        "n_jobs": n_jobs,
        "progress": progress,
        "seed": seed,
    }
    candidates = run_task(
        {
            None: Distance(),
            **{label: clone(ranker).set_params(**setting) for label, setting in settings.items()},
        },
        labelled_task(dataset, scoring, tuning_rows, include_query, seed),
        n_jobs=check_count(n_jobs, "n_jobs"),
        progress=progress,
        seed=seed,
        in_turn=True,
    )
    best = settings[_best(candidates, name)]
    tuned = clone(ranker).set_params(**best)
    rankers = {"given": clone(ranker), "tuned": tuned}
    if candidates.complete:
        measured = evaluate(rankers, dataset, metrics, queries=other_rows, **options)
    else:
        measured = _nothing(dataset, other_rows, rankers, metrics)
    return Tuning(best, clone(tuned), settings, candidates, measured)


def _settings(grid: Grid | Sequence[Grid], ranker: Ranks) -> dict[str, dict[str, Any]]:
    """Return every combination of the grid by a name such as "alpha=0.9, n_steps=10"."""
    grids = [grid] if isinstance(grid, Mapping) else list(grid)
    known = ranker.get_params(deep=False)
    settings: dict[str, dict[str, Any]] = {}
    for part in grids:
        for parameter, choices in part.items():
            if parameter.partition("__")[0] not in known:
                raise InputError(
                    f"grid names {parameter!r}, which {type(ranker).__name__} does not have; "
                    f"its parameters are {', '.join(known)}."
                )
            if parameter == "metric":
                raise InputError(
                    "grid names 'metric', but the data set says how its points are measured; "
                    "load it twice, with one metric each, and tune on both."
                )
            if isinstance(choices, str) or not isinstance(choices, Sequence | np.ndarray):
                raise InputError(f"grid[{parameter!r}] is {choices!r}, but must be a list.")
        for values in product(*part.values()):
            setting = dict(zip(part, values, strict=True))
            label = ", ".join(f"{key}={value}" for key, value in setting.items()) or "as given"
            settings[label] = setting
    if not settings:
        raise InputError("grid is empty; give a list of values for at least one parameter.")
    return settings


def _split(
    dataset: Dataset, queries: Any, held_out: Any, include_query: bool, seed: int
) -> tuple[IntArray, IntArray]:
    eligible = choose_queries(dataset, "all", include_query, seed)
    if held_out is not None:
        if np.ndim(held_out) == 0:
            raise InputError(f"held_out is {held_out!r}, but must be a list of row numbers.")
        others = choose_queries(dataset, held_out, include_query, seed)
    if queries is not None and np.ndim(queries) == 0 and held_out is not None:
        number = check_count(queries, "queries")
        rest = np.setdiff1d(eligible, others)
        if number > len(rest):
            raise InputError(f"queries is {number}, but only {len(rest)} are not held out.")
        chosen = np.sort(np.random.default_rng(seed).choice(rest, number, replace=False))
    elif queries is not None:
        chosen = choose_queries(dataset, queries, include_query, seed)
    elif held_out is not None:
        chosen = np.setdiff1d(eligible, others)
    else:
        chosen = _half(eligible, dataset, seed)
    if held_out is None:
        others = np.setdiff1d(eligible, chosen)
    both = np.intersect1d(chosen, others)
    if len(both):
        raise InputError(
            f"query {both[0]} stands in queries and in held_out; a query that helped to choose "
            "the parameters says nothing about how good they are. Keep it in one of the two."
        )
    if not len(chosen) or not len(others):
        raise InputError(
            f"{len(chosen)} queries to tune on and {len(others)} to report on: "
            "both need at least one."
        )
    return chosen, others


def _half(rows: IntArray, dataset: Dataset, seed: int) -> IntArray:
    """Return a random half of the rows, and of those with each label."""
    shuffled = np.random.default_rng(seed).permutation(rows)
    by_label = shuffled[np.argsort(dataset.labels[shuffled], kind="stable")]
    return np.sort(by_label[::2])


def _best(candidates: Evaluation, scoring: str) -> str:
    means = {
        label: float(values[scoring].mean())
        for label, values in candidates.values.items()
        if np.isfinite(values[scoring]).all()
    }
    if not means:
        raise KeyboardInterrupt("the search was stopped before any setting was measured")
    return max(means, key=means.__getitem__)


def _nothing(
    dataset: Dataset, queries: IntArray, rankers: Mapping[str, Ranks], metrics: Sequence[str]
) -> Evaluation:
    """Return the evaluation of queries that nobody has been asked."""
    names = [measure.name for measure in parse_measures(metrics)]
    unknown = {name: np.full(len(queries), np.nan) for name in names}
    values = {label: dict(unknown) for label in rankers}
    asked = tuple(queries.tolist())
    return Evaluation(dataset.name, asked, values, dict(unknown), tuple(names), complete=False)
