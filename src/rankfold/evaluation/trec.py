"""Run and qrels files in the format of TREC, and evaluations of what stands in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rankfold.check import check_choice, check_count, check_flag
from rankfold.errors import InputError
from rankfold.evaluation.measures import DEFAULTS, measure_all, parse_measures
from rankfold.evaluation.results import DEPTHS, Evaluation, depth_measures
from rankfold.evaluation.tasks import check_dataset, choose_queries, few
from rankfold.files import replacing
from rankfold.metrics import trec_order
from rankfold.types import Dataset, FloatArray, IntArray, Ranking

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]

Number = TypeVar("Number", int, float)

RUN_LINE = ("query", "Q0", "point", "rank", "score", "tag")
QRELS_LINE = ("query", "0", "point", "grade")


def read_run(path: str | Path) -> Run:
    """Read a run; the results of a query come in the order of ``trec_order``.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    run : dict of dict
        ``run[query][point]`` is a score.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_run(path, {"0": {"4": 0.5, "2": 0.9}})
    >>> read_run(path)
    {'0': {'2': 0.9, '4': 0.5}}
    """
    run: Run = _read(Path(path), RUN_LINE, _finite)
    return {query: _ordered(results) for query, results in run.items()}


def write_run(path: str | Path, run: Mapping[str, Mapping[str, float]], tag: str = "run") -> None:
    """Write a run, all at once or not at all; ranks count from 1 in the order of ``trec_order``.

    Parameters
    ----------
    path : str or Path
    run : dict of dict
        ``run[query][point]`` is a score.
    tag : str
        Name of the run, the last word of every line.
    """
    _check_words([tag], "tag")
    for query, results in run.items():
        _check_words([query, *results], "run")
    lines = (
        f"{query} Q0 {point} {rank} {float(score)!r} {tag}\n"
        for query, results in run.items()
        for rank, (point, score) in enumerate(_ordered(results).items(), start=1)
    )
    _write(Path(path), lines)


def read_qrels(path: str | Path) -> Qrels:
    """Read which points are relevant to which query, and how much.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    qrels : dict of dict
        ``qrels[query][point]`` is a grade, a whole number.
    """
    return _read(Path(path), QRELS_LINE, int)


def write_qrels(path: str | Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write which points are relevant to which query, all at once or not at all.

    Parameters
    ----------
    path : str or Path
    qrels : dict of dict
        ``qrels[query][point]`` is a grade, a whole number.
    """
    for query, grades in qrels.items():
        _check_words([query, *grades], "qrels")
    lines = (
        f"{query} 0 {point} {int(grade)}\n"
        for query, grades in qrels.items()
        for point, grade in grades.items()
    )
    _write(Path(path), lines)


def _read(
    path: Path, form: tuple[str, ...], number: Callable[[str], Number]
) -> dict[str, dict[str, Number]]:
    place = form.index("score" if "score" in form else "grade")
    found: dict[str, dict[str, Number]] = {}
    for count, line in _lines(path):
        words = line.split()
        if len(words) != len(form):
            raise InputError(
                f"{path}, line {count}: has {len(words)} words, but must have {len(form)}: "
                f"{' '.join(form)}."
            )
        query, point = words[0], words[2]
        try:
            value = number(words[place])
        except ValueError:
            raise InputError(
                f"{path}, line {count}: the {form[place]} is {words[place]!r}, but must be a "
                f"{'whole' if form[place] == 'grade' else 'finite'} number."
            ) from None
        if point in found.setdefault(query, {}):
            raise InputError(
                f"{path}, line {count}: point {point!r} stands twice under query {query!r}; "
                "keep one of the lines."
            )
        found[query][point] = value
    if not found:
        raise InputError(f"{path} is empty; expected lines of {' '.join(form)}.")
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8-sig") as file:
        try:
            for count, line in enumerate(file, start=1):
                if line.strip():
                    yield count, line
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not a text file in UTF-8 ({error}).") from None


def _finite(word: str) -> float:
    value = float(word)
    if not np.isfinite(value):
        raise ValueError(word)
    return value


def _ordered(results: Mapping[str, float]) -> dict[str, float]:
    points = list(results)
    scores = [float(score) for score in results.values()]
    if not np.isfinite(scores).all():
        raise InputError("a run holds a score that is NaN or infinite; every score must be finite.")
    return {points[place]: scores[place] for place in trec_order(points, scores)}


def _check_words(words: Iterable[str], name: str) -> None:
    for word in words:
        if not isinstance(word, str) or len(word.split()) != 1 or word != word.strip():
            raise InputError(
                f"{name} holds {word!r}, but the fields of a TREC file are separated by blanks: "
                "every name must be text without any."
            )


def _write(path: Path, lines: Iterable[str]) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


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
    >>> from rankfold import Distance
    >>> ranker = Distance().fit(np.array([[0.0], [1.0], [-1.0], [3.0]]))
    >>> make_run([0], ranker.rank_many([0]))
    {'0': {'1': -1.0, '2': -1.0000001, '3': -9.0}}
    """
    found = {}
    for query, ranking in zip(queries, rankings, strict=True):
        names = map(str, ranking.indices.tolist())
        found[str(query)] = dict(zip(names, _falling(ranking.scores), strict=True))
    return found


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
