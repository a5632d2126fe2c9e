"""The outcome of an evaluation: a value for every method, measure and query, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankfold.evaluation import formats
from rankfold.evaluation.depths import FEWEST_QUERIES, DepthGain, depth_gains, verdict
from rankfold.evaluation.statistics import bootstrap_interval, randomization_test, share_worse
from rankfold.types import BoolArray, FloatArray


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

    def table(self) -> tuple[formats.Row, ...]:
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
        return formats.to_text(self.table(), self.depths(), self._title(), self._notes(), width)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        return formats.to_markdown(self.table(), self.depths(), self._notes())

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular``; needs the package booktabs."""
        return formats.to_latex(self.table(), self._notes())

    def to_csv(self) -> str:
        """Return the table as comma-separated values, at full precision."""
        return formats.to_csv(self.table())

    def to_json(self) -> str:
        """Return the rows as a JSON list of {dataset, method, metric, mean, low, high, harm}."""
        return formats.to_json(self.table())

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
    def _rows(self) -> tuple[formats.Row, ...]:
        if not self._answered.any():
            return ()
        by_method = [self._rows_of(method) for method in self.values]
        return tuple(row for rows in zip(*by_method, strict=True) for row in rows)

    def _rows_of(self, method: str) -> list[formats.Row]:
        base = self.plain if self.base is None else self.values[self.base]
        values, compared, plain = (
            _columns(some, self.metrics)[self._answered]
            for some in (self.values[method], base, self.plain)
        )
        low, high = bootstrap_interval(values, self.seed)
        p_values = randomization_test(values - compared, self.seed)
        return [
            formats.Row(
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
            f"p: paired randomisation test against {self.base or formats.PLAIN}."
        )
        notes = (*self.verdicts(), legend, *self.notes)
        if self.complete:
            return notes
        done, total = int(self._answered.sum()), len(self.queries)
        return (*notes, f"Incomplete: stopped after {done:,} of {total:,} queries.")


def _columns(values: dict[str, FloatArray], metrics: Sequence[str]) -> FloatArray:
    return np.column_stack([values[metric] for metric in metrics])
