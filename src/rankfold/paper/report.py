"""The report in Markdown, and its results as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rankfold.paper.outcomes import Outcome
from rankfold.paper.section import Grid, Section

TITLE = "Ranking with Adaptive Neighbors, reproduced"


def to_json(outcomes: Sequence[Outcome]) -> str:
    """Return a list of {dataset, method, metric, cutoff, printed, ours, difference, ...}."""
    return json.dumps([outcome.record() for outcome in outcomes], indent=2) + "\n"


def to_markdown(sections: Sequence[Section]) -> str:
    """Return the report; its pictures are files beside it."""
    lines = [f"# {TITLE}", "", "Printed by `rankfold reproduce`; do not edit.", ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        for paragraph in filter(None, section.paragraphs):
            lines += [paragraph, ""]
        for picture in section.pictures:
            lines += [f"![{picture.caption}]({picture.name}.png)", ""]
        for grid in section.grids:
            lines += [*_grid(grid), ""]
    return "\n".join(lines).rstrip() + "\n"


def _grid(grid: Grid) -> Iterator[str]:
    if grid.title:
        yield f"**{grid.title}**"
        yield ""
    marks = ["---"] * grid.n_words + ["---:"] * (len(grid.header) - grid.n_words)
    rows = [(*cells[:-1], f"`{cells[-1]}`") if grid.code else cells for cells in grid.rows]
    for cells in (grid.header, marks, *rows):
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
