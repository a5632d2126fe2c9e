"""From rankings to runs and back: evaluate what stands in TREC files, of whatever origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankfold.check import InputError, check_choice, check_count, check_flag
from rankfold.evaluation.depths import DEPTHS, depth_measures
from rankfold.evaluation.measures import DEFAULTS, measure_all, parse_measures
from rankfold.evaluation.results import Evaluation
from rankfold.evaluation.tasks import check_dataset, choose_queries, few
from rankfold.evaluation.trec import Qrels, Run
from rankfold.metrics import trec_order
from rankfold.types import Dataset, FloatArray, IntArray, Ranking


def make_run(queries: Sequence[int], rankings: Sequence[Ranking]) -> Run:
    """Return rankings as a run that every reader puts in the same order.

    Readers of run files know scores in single precision and order ties by name. Scores
    are therefore rounded to single precision, and one that does not fall below its
    predecessor becomes the next smaller number.

    Parameters
    ----------
    queries : sequence of int
        Row numbers, which become the names of the queries.
    rankings : sequence of Ranking
        The answer to each.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold import Euclidean
    >>> ranker = Euclidean().fit(np.array([[0.0], [1.0], [-1.0], [3.0]]))
    >>> make_run([0], ranker.rank_many([0]))
    {'0': {'1': -1.0, '2': -1.0000001, '3': -9.0}}
    """
    return {
        str(query): dict(zip(map(str, ranking.ids.tolist()), _falling(ranking.scores), strict=True))
        for query, ranking in zip(queries, rankings, strict=True)
    }


def make_qrels(dataset: Dataset, queries: Any = None, include_query: bool = False) -> Qrels:
    """Return the points that share the label of each query, with grade 1.

    Parameters
    ----------
    dataset : Dataset
        Whose labels say what is relevant.
    queries, include_query
        As for ``evaluate``.
    """
    dataset = check_dataset(dataset)
    include_query = check_flag(include_query, "include_query")
    qrels: Qrels = {}
    asked = "all" if queries is None else queries
    for query in choose_queries(dataset, asked, include_query, seed=0):
        alike = np.flatnonzero(dataset.labels == dataset.labels[query])
        kept = alike if include_query else alike[alike != query]
        qrels[str(query)] = dict.fromkeys(map(str, kept.tolist()), 1)
    return qrels


def evaluate_runs(
    runs: Mapping[str, Mapping[str, Mapping[str, float]]],
    qrels: Mapping[str, Mapping[str, int]],
    metrics: str | Sequence[str] = DEFAULTS,
    *,
    plain: str,
    base: str | None = None,
    name: str = "runs",
    seed: int = 0,
) -> Evaluation:
    """Measure runs as trec_eval reads them.

    The queries are those of ``qrels`` with a grade above zero; a run that leaves one out
    scores nothing on it. Points without a grade are not relevant. nDCG uses the grades.

    Parameters
    ----------
    runs : dict of str to run
        By the names that the table gives them.
    qrels : dict
        What is relevant: ``qrels[query][point]`` is a grade.
    metrics : str or sequence of str
    plain : str
        The run that ranks by plain distance, by which harm is measured.
    base : str, optional
        The run that the paired test compares with; ``plain`` by default.
    name : str
        Stands for the data set in the table.
    seed : int
    """
    if not isinstance(runs, Mapping) or not runs:
        raise InputError(f"runs is {runs!r}, but must map names to runs, as read_run gives them.")
    check_choice(plain, "plain", tuple(runs))
    base = plain if base is None else base
    check_choice(base, "base", tuple(runs))
    check_count(seed, "seed", least=0)
    reported = parse_measures(metrics)
    measures = tuple(dict.fromkeys((*reported, *depth_measures(DEPTHS[-1]))))
    ideals = {query: np.array([g for g in grades.values() if g > 0], dtype=np.float64)
              for query, grades in qrels.items()}  # fmt: skip
    queries = [query for query, ideal in ideals.items() if len(ideal)]
    if not queries:
        raise InputError("qrels holds no grade above zero, so no query has anything to find.")
    for method, run in runs.items():
        if not set(run) & set(queries):
            raise InputError(
                f"runs[{method!r}] answers none of the queries of qrels: it has {few(run)}, "
                f"while qrels has {few(queries)}."
            )
    values = {}
    for method, run in runs.items():
        rows = [
            measure_all(measures, _gains(run.get(query, {}), qrels[query]), ideals[query])
            for query in queries
        ]
        values[method] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    names = tuple(measure.name for measure in reported)
    return Evaluation(name, tuple(queries), values, values[plain], names, base, seed=seed)


def _gains(results: Mapping[str, float], grades: Mapping[str, int]) -> FloatArray:
    points = list(results)
    order: IntArray = trec_order(points, list(results.values()))
    return np.array([max(0, grades.get(points[place], 0)) for place in order], dtype=np.float64)


def _falling(scores: FloatArray) -> list[float]:
    """Return scores that fall strictly in single precision, as near as can be to those given."""
    largest = float(np.finfo(np.float32).max) / 2
    bits = np.clip(scores, -largest, largest).astype(np.float32).view(np.int32).astype(np.int64)
    # Whole numbers in the order of the floats: one step is the next float.
    steps = np.where(bits < 0, -(bits + 2**31), bits)
    count = np.arange(len(steps))
    steps = np.minimum.accumulate(steps + count) - count
    bits = np.where(steps < 0, -steps - 2**31, steps)
    return [float(str(score)) for score in bits.astype(np.int32).view(np.float32)]
