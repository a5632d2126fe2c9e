"""A table of results as text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from io import StringIO

from rich.box import ASCII_DOUBLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table

from rankfold.evaluation.depths import DepthGain

JSON_FIELDS = ("dataset", "method", "metric", "mean", "low", "high", "harm")

PLAIN = "plain distance"
"""What all methods are compared with."""

HEAD = ("metric", "method", "queries", "mean", "95 % interval", "harm", "p")


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


SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""Characters that LaTeX does not print as they are."""


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join("".join(SPECIAL.get(sign, sign) for sign in cell) for cell in cells) + r" \\"
