"""The settings of every row, as the code that makes them."""

from __future__ import annotations

from collections.abc import Sequence

from rankfold.paper.section import Grid, Section
from rankfold.paper.tables import Row, Table


def section(tables: Sequence[Table]) -> Section | None:
    """Return a table of all settings; None without tables."""
    rows = tuple((table.name, row.method, code(row)) for table in tables for row in table.rows)
    if not rows:
        return None
    text = "Each row is made by this, with the metric of the data set where none is named."
    header = ("table", "method", "settings")
    return Section("The settings", (text,), grids=(Grid(header, rows, n_words=3, code=True),))


def code(row: Row) -> str:
    """Return the code that makes the ranker of a row."""
    made = row.ranker(**({"metric": row.metric} if row.metric else {}))
    return " ".join(repr(made).split())
