"""The outcome of an evaluation: a value for every method, measure and query, and its tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from functools import cached_property
from io import StringIO
from typing import Any

import numpy as np
from rich.box import ASCII_DOUBLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table

from rankfold.evaluation.measures import (
    ROUNDING,
    Measure,
    bootstrap_interval,
    randomization_test,
    share_worse,
)
from rankfold.types import BoolArray, FloatArray

JSON_FIELDS = ("dataset", "method", "metric", "mean", "low", "high", "harm")

PLAIN = "plain distance"
"""What all methods are compared with."""

HEAD = ("metric", "method", "queries", "mean", "95 % interval", "harm", "p")

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""Characters that LaTeX does not print as they are."""

DEPTHS = (1, 2, 5, 10, 20, 50, 100)
"""How many of the first results are looked at."""

FEWEST_QUERIES = 10
"""With fewer, intervals say nothing."""


@dataclass(frozen=True)
class Row:
    """One method under one measure.

    Parameters
    ----------
    dataset, method, metric : str
    n_queries : int
        Queries behind the mean.
    mean : float
    low, high : float
        Bounds of the 95 % bootstrap interval of the mean.
    harm : float
        Share of queries that come out worse than under plain distance.
    p_value : float or None
        Of the paired test against the base; None for the base itself.
    """

    dataset: str
    method: str
    metric: str
    n_queries: int
    mean: float
    low: float
    high: float
    harm: float
    p_value: float | None


def to_text(
    rows: Sequence[Row],
    gains: Sequence[DepthGain],
    title: str,
    notes: Sequence[str],
    width: int | None = None,
) -> str:
    """Return tables in plain ASCII, the first with a section per metric."""
    table = _empty_table(title, HEAD, n_left=2)
    for place, (cells, row) in enumerate(zip(_cells(rows), rows, strict=True)):
        last = place + 1 == len(rows) or rows[place + 1].metric != row.metric
        table.add_row(*cells, end_section=last)
    screen = StringIO()
    console = Console(file=screen, width=width or 100, color_system=None, markup=False)
    console.print(table)
    if gains:
        head, *lines = _depth_cells(gains)
        below = _empty_table(None, head, n_left=1)
        for line in lines:
            below.add_row(*line)
        console.print(below)
    for note in notes:
        console.print(note, highlight=False)
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def to_markdown(rows: Sequence[Row], gains: Sequence[DepthGain], notes: Sequence[str]) -> str:
    """Return pipe tables, followed by the notes."""
    lines = [_pipes(("dataset", *HEAD)), "|---|---|---|---:|---:|---:|---:|---:|"]
    lines += [_pipes((row.dataset, *cells)) for cells, row in zip(_cells(rows), rows, strict=True)]
    if gains:
        head, *others = _depth_cells(gains)
        lines += ["", _pipes(head), "|---" + "|---:" * (len(head) - 1) + "|", *map(_pipes, others)]
    return "\n".join([*lines, "", *notes]) + "\n"


def to_latex(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Return a ``tabular`` with a rule between metrics; the notes are comments above it."""
    lines = [f"% {note}" for note in notes]
    lines += [r"\begin{tabular}{lllrrrrr}", r"\toprule", _ampersands(("dataset", *HEAD))]
    metric = None
    for cells, row in zip(_cells(rows), rows, strict=True):
        if row.metric != metric:
            lines.append(r"\midrule")
        metric = row.metric
        lines.append(_ampersands((row.dataset, *cells)))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def to_csv(rows: Sequence[Row]) -> str:
    """Return every field of every row; a missing p-value is empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Row)])
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue()


def to_json(rows: Sequence[Row]) -> str:
    """Return a list of objects with the keys of ``JSON_FIELDS``."""
    records = [{key: asdict(row)[key] for key in JSON_FIELDS} for row in rows]
    return json.dumps(records, indent=2) + "\n"


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        yield (
            row.metric,
            row.method,
            str(row.n_queries),
            f"{row.mean:.4f}",
            f"{row.low:.4f} - {row.high:.4f}",
            f"{row.harm:.1%}",
            _p_text(row.p_value),
        )


def _depth_cells(gains: Sequence[DepthGain]) -> list[tuple[str, ...]]:
    """Return the precision by depth: a head, plain distance, and a line for each method."""
    depths = sorted({gain.depth for gain in gains})
    lines: dict[str, dict[int, float]] = {PLAIN: {gain.depth: gain.plain for gain in gains}}
    for gain in gains:
        lines.setdefault(gain.method, {})[gain.depth] = gain.mean
    head = ("precision at", *map(str, depths))
    return [head, *((name, *(f"{of[n]:.3f}" for n in depths)) for name, of in lines.items())]


def _empty_table(title: str | None, head: Sequence[str], n_left: int) -> Table:
    table = Table(title=title, title_justify="left", box=ASCII_DOUBLE_HEAD)
    for place, name in enumerate(head):
        align: JustifyMethod = "left" if place < n_left else "right"
        table.add_column(name, justify=align, overflow="fold")
    return table


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return ""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join("".join(SPECIAL.get(sign, sign) for sign in cell) for cell in cells) + r" \\"


@dataclass(frozen=True)
class DepthGain:
    """The precision of a method among its first results, beside that of plain distance.

    Parameters
    ----------
    method : str
    depth : int
        How many results are looked at.
    plain, mean : float
        Share of relevant results by plain distance and by the method.
    low, high : float
        Bounds of the 95 % bootstrap interval of the mean difference, query by query.
    """

    method: str
    depth: int
    plain: float
    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 where the method is better, -1 where it is worse, 0 where that is not clear."""
        return int(self.low > ROUNDING) - int(self.high < -ROUNDING)


def depth_measures(n_results: int) -> tuple[Measure, ...]:
    """Return the precision at every depth that answers of such a length have."""
    return tuple(Measure("precision", depth) for depth in DEPTHS if depth <= max(1, n_results))


def depth_gains(
    values: Mapping[str, Mapping[str, FloatArray]],
    plain: Mapping[str, FloatArray],
    answered: BoolArray,
    seed: int,
) -> tuple[DepthGain, ...]:
    """Return how each method compares at each depth, over queries that all have answered.

    Methods that rank like plain distance everywhere are left out.
    """
    measures = [measure for measure in depth_measures(DEPTHS[-1]) if measure.name in plain]
    found: list[DepthGain] = []
    if not measures or not answered.any():
        return ()
    before = np.column_stack([plain[measure.name][answered] for measure in measures])
    for method, reached in values.items():
        after = np.column_stack([reached[measure.name][answered] for measure in measures])
        if np.abs(after - before).max(initial=0.0) <= ROUNDING and _same(reached, plain):
            continue
        low, high = bootstrap_interval(after - before, seed)
        rows = zip(measures, before.mean(axis=0), after.mean(axis=0), low, high, strict=True)
        found += [
            DepthGain(method, measure.cutoff or 0, *map(float, numbers))
            for measure, *numbers in rows
        ]
    return tuple(found)


def verdict(gains: Sequence[DepthGain]) -> str:
    """Return in words where a method is better than plain distance, and where it is worse.

    Examples
    --------
    >>> signs = {1: -0.1, 2: 0.0, 5: 0.1, 10: 0.2}
    >>> verdict([DepthGain("RAN", depth, 0.5, 0.5, by, by) for depth, by in signs.items()])
    'RAN is better than plain distance from the first 5 results on; worse at 1.'
    """
    method, depths = gains[0].method, [gain.depth for gain in gains]
    better, worse = (
        _at([gain.depth for gain in gains if gain.sign == sign], depths) for sign in (1, -1)
    )
    if not (better or worse):
        return f"{method} is neither better nor worse than plain distance at any depth."
    if not better:
        return f"{method} is worse than plain distance {worse}, and better nowhere."
    end = f"; worse {worse}" if worse else ""
    return f"{method} is better than plain distance {better}{end}."


def _at(some: Sequence[int], depths: Sequence[int]) -> str:
    """Return depths in words: all, those from one on, or a list."""
    if not some:
        return ""
    if len(some) == len(depths):
        return "at every depth"
    if len(some) > 1 and list(some) == list(depths[-len(some) :]):
        return f"from the first {some[0]} results on"
    *others, last = map(str, some)
    return f"at {', '.join(others)} and {last}" if others else f"at {last}"


def _same(values: Mapping[str, FloatArray], plain: Mapping[str, FloatArray]) -> bool:
    """Tell whether a method has reached exactly what plain distance has."""
    return all(
        np.abs(np.nan_to_num(values[name] - plain[name])).max(initial=0.0) <= ROUNDING
        for name in plain
    )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What every method reached on every query.

    Parameters
    ----------
    dataset : str
    queries : tuple
        What was asked: row numbers, or the ids of a run file.
    values : dict
        ``values[method][metric]`` is an array with a value per query, in the order of
        ``queries``; NaN where the evaluation was stopped before the query was answered.
    plain : dict
        ``plain[metric]``: the same for plain distance, by which harm is measured.
    metrics : tuple of str
        What the table reports; ``values`` also has the precision at several depths.
    base : str or None
        The method that the paired tests compare with; None for plain distance.
    complete : bool
        Whether every method answered every query.
    seed : int
        Of the intervals and tests.
    notes : tuple of str
        What else a reader should know: which queries were drawn or left out.
    """

    dataset: str
    queries: tuple[Any, ...]
    values: dict[str, dict[str, FloatArray]]
    plain: dict[str, FloatArray]
    metrics: tuple[str, ...]
    base: str | None = None
    complete: bool = True
    seed: int = 0
    notes: tuple[str, ...] = ()

    def table(self) -> tuple[Row, ...]:
        """Return a row per metric and method: mean, interval, harm and paired test.

        After a stop it is over the queries that all methods have answered.
        """
        return self._rows

    def depths(self) -> tuple[DepthGain, ...]:
        """Return how each method compares with plain distance among its first 1, 2, 5 ... results.

        Methods that rank like plain distance are left out.
        """
        return self._depths

    def verdicts(self) -> tuple[str, ...]:
        """Return in words, for each method, at which depths it is better or worse than plain.

        Better or worse is what the 95 % interval of the mean difference leaves no doubt of.
        """
        n_answered = int(self._answered.sum())
        if n_answered < FEWEST_QUERIES:
            return ()
        by_method: dict[str, list[DepthGain]] = {}
        for gain in self.depths():
            by_method.setdefault(gain.method, []).append(gain)
        return tuple(verdict(gains) for gains in by_method.values())

    def mean(self, method: str, metric: str) -> float:
        """Return the mean over the queries that all have answered; NaN if there is none."""
        answered = self.values[method][metric][self._answered]
        return float(answered.mean()) if len(answered) else float("nan")

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def __repr__(self) -> str:
        methods = ", ".join(self.values)
        return f"Evaluation({self.dataset!r}, {len(self.queries)} queries, of {methods})"

    def to_text(self, width: int | None = None) -> str:
        """Return the table for reading in a terminal."""
        return to_text(self.table(), self.depths(), self._title(), self._notes(), width)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        return to_markdown(self.table(), self.depths(), self._notes())

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular``; needs the package booktabs."""
        return to_latex(self.table(), self._notes())

    def to_csv(self) -> str:
        """Return the table as comma-separated values, at full precision."""
        return to_csv(self.table())

    def to_json(self) -> str:
        """Return the rows as a JSON list of {dataset, method, metric, mean, low, high, harm}."""
        return to_json(self.table())

    @cached_property
    def _answered(self) -> BoolArray:
        """Which queries all methods have answered."""
        everything = [*self.values.values(), self.plain]
        found = [np.isfinite(_columns(values, self.metrics)).all(axis=1) for values in everything]
        answered: BoolArray = np.logical_and.reduce(found)
        return answered

    @cached_property
    def _depths(self) -> tuple[DepthGain, ...]:
        return depth_gains(self.values, self.plain, self._answered, self.seed)

    @cached_property
    def _rows(self) -> tuple[Row, ...]:
        if not self._answered.any():
            return ()
        by_method = [self._rows_of(method) for method in self.values]
        return tuple(row for rows in zip(*by_method, strict=True) for row in rows)

    def _rows_of(self, method: str) -> list[Row]:
        base = self.plain if self.base is None else self.values[self.base]
        values, compared, plain = (
            _columns(some, self.metrics)[self._answered]
            for some in (self.values[method], base, self.plain)
        )
        low, high = bootstrap_interval(values, self.seed)
        p_values = randomization_test(values - compared, self.seed)
        return [
            Row(
                dataset=self.dataset,
                method=method,
                metric=metric,
                n_queries=len(values),
                mean=float(values[:, column].mean()),
                low=float(low[column]),
                high=float(high[column]),
                harm=share_worse(values[:, column], plain[:, column]),
                p_value=float(p_values[column]) if method != self.base else None,
            )
            for column, metric in enumerate(self.metrics)
        ]

    def _title(self) -> str:
        return f"{self.dataset}, {len(self.queries):,} queries"

    def _notes(self) -> tuple[str, ...]:
        legend = (
            "harm: share of queries worse than under plain distance; "
            f"p: paired randomisation test against {self.base or PLAIN}."
        )
        notes = (*self.verdicts(), legend, *self.notes)
        if self.complete:
            return notes
        done, total = int(self._answered.sum()), len(self.queries)
        return (*notes, f"Incomplete: stopped after {done:,} of {total:,} queries.")


def _columns(values: dict[str, FloatArray], metrics: Sequence[str]) -> FloatArray:
    return np.column_stack([values[metric] for metric in metrics])
