"""Printed figures beside ours: how near, and whether that is as recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rankfold.paper.measuring import Datasets, Measured, Pieces, Results, measure
from rankfold.paper.section import Grid, Section
from rankfold.paper.tables import METRICS, Row, Status, Table, status_of


@dataclass(frozen=True)
class Outcome:
    """One printed figure and ours, in the form of ``results.json``.

    Parameters
    ----------
    dataset, method, metric : str
    cutoff : int
    printed, ours, difference : float
        In per cent.
    status : str
        How near ours is now.
    settings : dict
    """

    dataset: str
    method: str
    metric: str
    cutoff: int
    printed: float
    ours: float
    difference: float
    status: Status
    settings: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Return what a file of results holds of it."""
        return asdict(self)


def work(tables: Sequence[Table], datasets: Datasets) -> Pieces:
    """Return a measurement for every row, and for the settings that the paper states."""
    pieces: Pieces = {}
    for table in tables:
        data = datasets[table.dataset]
        for row in table.rows:
            arguments = (data, table.cutoff, row.metric)
            pieces[table.name, row.method] = partial(measure, row.ranker(), *arguments)
            if row.as_printed:
                ranker = row.ranker(**row.as_printed)
                pieces[table.name, row.method, "as printed"] = partial(measure, ranker, *arguments)
    return pieces


def outcomes(tables: Sequence[Table], results: Results) -> list[Outcome]:
    """Return every printed figure beside ours."""
    return [outcome for table, row in _rows(tables) for outcome in compare(table, row, results)]


def compare(table: Table, row: Row, results: Results) -> list[Outcome]:
    """Return precision and recall of one row beside the printed ones."""
    found: Measured = results[table.name, row.method]
    ours = dict(zip(METRICS, found, strict=True))
    settings = {**row.arguments(), **({"metric": row.metric} if row.metric else {})}
    return [
        Outcome(
            table.dataset,
            row.method,
            metric,
            table.cutoff,
            figure.printed,
            ours[metric],
            ours[metric] - figure.printed,
            status_of(figure.printed, ours[metric]),
            settings,
        )
        for metric, figure in row.figures.items()
    ]


def moved(tables: Sequence[Table], results: Results) -> list[str]:
    """Say of every figure that is no longer as near as recorded what it was and what it is."""
    return [
        f"{table.name}, {row.method}, {outcome.metric}@{table.cutoff}: recorded "
        f'"{row.figures[outcome.metric].status}", now "{outcome.status}" '
        f"(printed {outcome.printed:.2f}, ours {outcome.ours:.3f})"
        for table, row in _rows(tables)
        for outcome in compare(table, row, results)
        if outcome.status != row.figures[outcome.metric].status
    ]


def section(table: Table, results: Results) -> Section:
    """Return the table with every remark on it."""
    cells = tuple(
        (
            row.method if outcome.metric == METRICS[0] else "",
            f"{outcome.metric[0].upper()}@{table.cutoff}",
            f"{outcome.printed:.2f}",
            f"{outcome.ours:.3f}",
            # Adding zero turns a rounded -0.0 into 0.0.
            f"{round(outcome.difference, 3) + 0.0:+.3f}",
            outcome.status,
        )
        for row in table.rows
        for outcome in compare(table, row, results)
    )
    header = ("method", "measure", "printed", "ours", "difference", "status")
    return Section(
        f"{table.name}: {table.title}",
        (_heading(table), *_remarks(table, results)),
        grids=(Grid(header, cells, n_words=2),),
    )


def _heading(table: Table) -> str:
    remark = f"{table.remark} " if table.remark else ""
    return f"{remark}Bandwidth of the paper's graphs: sigma = {table.sigma:g}."


def _remarks(table: Table, results: Results) -> Iterator[str]:
    methods: dict[str, list[str]] = {}
    for row in table.rows:
        for text in filter(None, (row.reason, row.note + _stated(table, row, results))):
            methods.setdefault(text, []).append(row.method)
    for text, names in methods.items():
        yield f"{', '.join(names)}: {text}"


def _stated(table: Table, row: Row, results: Results) -> str:
    if not row.as_printed:
        return ""
    found: Measured = results[table.name, row.method, "as printed"]
    return f" As stated, ours is {found.precision:.2f} and {found.recall:.2f}."


def _rows(tables: Sequence[Table]) -> Iterator[tuple[Table, Row]]:
    return ((table, row) for table in tables for row in table.rows)
