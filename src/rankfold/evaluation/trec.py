"""Run and qrels files in the format of TREC.

A run has a line ``query Q0 point rank score tag`` per result, qrels a line ``query 0 point
grade`` per judged point. In memory both are dicts of dicts, as pytrec_eval and ir-measures
take them: ``run[query][point]`` is a score, ``qrels[query][point]`` a grade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from rankfold.check import InputError
from rankfold.files import replacing
from rankfold.metrics import trec_order

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
                f"{name} holds {word!r}, but the fields of a TREC file are parted by blanks: "
                "every name must be text without any."
            )


def _write(path: Path, lines: Iterable[str]) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)
