"""The outcome of an evaluation: a value for every method, measure and query, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankfold.evaluation import formats
from rankfold.evaluation.statistics import bootstrap_interval, randomization_test, share_worse
from rankfold.types import FloatArray

PLAIN = "plain distance"
"""What the base of the paired tests is called where it is none of the methods."""


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
    base : str or None
        The method that the paired tests compare with; None for plain distance.
    complete : bool
        Whether every method answered every query.
    seed : int
        Of the intervals and tests.
    """

    dataset: str
    queries: tuple[Any, ...]
    values: dict[str, dict[str, FloatArray]]
    plain: dict[str, FloatArray]
    base: str | None = None
    complete: bool = True
    seed: int = 0

    def table(self) -> tuple[formats.Row, ...]:
        """Return a row per metric and method: mean, interval, harm and paired test.

        Methods that answered nothing before a stop are left out. A mean is over the queries
        that its method has answered, a comparison over those that both have answered.
        """
        return self._rows

    def mean(self, method: str, metric: str) -> float:
        """Return the mean over the queries that were answered; NaN if none was."""
        values = self.values[method][metric]
        answered = values[np.isfinite(values)]
        return float(answered.mean()) if len(answered) else float("nan")

    def __str__(self) -> str:
        return "\n".join(map(str.rstrip, self.to_text().splitlines()))

    def __repr__(self) -> str:
        methods = ", ".join(self.values)
        return f"Evaluation({self.dataset!r}, {len(self.queries)} queries, of {methods})"

    def to_text(self, width: int | None = None) -> str:
        """Return the table for reading in a terminal."""
        return formats.to_text(self.table(), self._title(), self._notes(), width)

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        return formats.to_markdown(self.table(), self._notes())

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
    def _rows(self) -> tuple[formats.Row, ...]:
        by_method = [self._rows_of(method) for method in self.values]
        answered = (rows for rows in by_method if rows)
        return tuple(row for rows in zip(*answered, strict=True) for row in rows)

    def _rows_of(self, method: str) -> list[formats.Row]:
        metrics = list(self.plain)
        values = _columns(self.values[method], metrics)
        plain = _columns(self.plain, metrics)
        answered = np.isfinite(values).all(axis=1)
        if not answered.any():
            return []
        base = plain if self.base is None else _columns(self.values[self.base], metrics)
        both = answered & np.isfinite(base).all(axis=1)
        low, high = bootstrap_interval(values[answered], self.seed)
        p_values = randomization_test(values[both] - base[both], self.seed)
        return [
            formats.Row(
                dataset=self.dataset,
                method=method,
                metric=metric,
                n_queries=int(answered.sum()),
                mean=float(values[answered, column].mean()),
                low=float(low[column]),
                high=float(high[column]),
                harm=share_worse(values[answered, column], plain[answered, column]),
                p_value=float(p_values[column]) if both.any() and method != self.base else None,
            )
            for column, metric in enumerate(metrics)
        ]

    def _title(self) -> str:
        return f"{self.dataset}, {len(self.queries):,} queries"

    def _notes(self) -> tuple[str, ...]:
        notes = (
            "harm: share of queries worse than under plain distance; "
            f"p: paired randomisation test against {self.base or PLAIN}.",
        )
        if self.complete:
            return notes
        done = sum(int(np.isfinite(next(iter(v.values()))).sum()) for v in self.values.values())
        total = len(self.values) * len(self.queries)
        return (*notes, f"Incomplete: stopped after {done:,} of {total:,} answers.")


def _columns(values: dict[str, FloatArray], metrics: Sequence[str]) -> FloatArray:
    return np.column_stack([values[metric] for metric in metrics])
