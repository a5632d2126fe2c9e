"""The report: its sections and findings, in Markdown, as one HTML page and as JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files

from rankfold.paper.extras import LONG_RUNS, baselines
from rankfold.paper.tables import (
    STATUSES,
    Grid,
    Measurements,
    Outcome,
    PrintedRow,
    Section,
    Table,
    compare,
    once,
    outcomes,
)
from rankfold.rankers import RAN

NOTICEABLE = 1.0
"""Difference in points of a per cent that is worth a word."""

STATUS_CLASS = dict(zip(STATUSES, ("exact", "near", "differs"), strict=True))

TITLE = "Ranking with Adaptive Neighbors, reproduced"


def findings_section(tables: Sequence[Table], results: Measurements) -> Section | None:
    """Return how much agrees, what RAN's rows are, and what the rivals' rows are."""
    if not tables:
        return None
    # A file of other tables need not hold RAN, or rivals on a graph.
    followed = [table for table in tables if ("alternations", table.dataset, "raw") in results]
    first = next(iter(LONG_RUNS))
    bared = [table for table in followed if ("diagonal", table.name, first, "off") in results]
    paragraphs = [_agreement(tables, results)]
    paragraphs += [_alternations(followed, results)] if followed else []
    paragraphs += [_rivals(bared, results)] if bared else []
    return Section("What we found", tuple(paragraphs))


def _agreement(tables: Sequence[Table], results: Measurements) -> str:
    found = outcomes(tables, results)
    counts = [sum(outcome.status == status for outcome in found) for status in STATUSES]
    return (
        f"Of {len(found)} printed figures, {counts[0]} are met to the printed digits, {counts[1]} "
        f"within 0.1, and {counts[2]} differ. The protocol is settled by the paper's "
        "Euclidean rows: every point is a query, which counts as found and as relevant. Some "
        "printed figures are rounded, some are cut off. Settings that the paper does not state "
        "were searched for, as the remark on each row says."
    )


def _alternations(tables: Sequence[Table], results: Measurements) -> str:
    stated = [
        table.title
        for table in once(tables)
        for row in table.rows
        if not _is_rival(row)
        and not row.as_printed
        and all(outcome.status == "exact" for outcome in compare(table, row, results))
    ]
    names = " and ".join(stated) or "no data set"
    courses = {table.title: results["alternations", table.dataset, "raw"] for table in once(tables)}
    parts = ", ".join(
        f"on {title} from {course.free[0]:.2f} to {course.free[-1]:.2f} (with the guard "
        f"{course.guarded[-1]:.2f})"
        for title, course in courses.items()
    )
    n_alternations = max(len(course.free) for course in courses.values())
    return (
        "RAN's rows are those of a single alternation: a graph from the distances alone, then "
        f"the scores. With the paper's k and lambda they are met on {names}. Learning the graph "
        "from the scores in turn, the paper's main idea, is not what its tables measure. Over "
        f"{n_alternations} alternations precision goes {parts}."
    )


def _rivals(tables: Sequence[Table], results: Measurements) -> str:
    above: list[str] = []
    others: list[str] = []
    for table in tables:
        best, name = max(
            (float(results["diagonal", table.name, name, "off"].precision), name)
            for name in (*LONG_RUNS, *(row.method for _, row in baselines([table])))
        )
        printed = max(row.figures["precision"].printed for row in table.rows if _is_rival(row))
        ran = float(results[table.name, "RAN"].precision)
        text = f"{table.name} ({printed:.2f}; now {best:.2f} by {name}; RAN's row {ran:.2f})"
        (above if best > printed + NOTICEABLE else others).append(text)
    kept = f" It does not in {' and '.join(others)}." if others else ""
    return (
        "The rivals' rows, where they are met, keep every point's weight to itself on the diagonal "
        "of the graph, and most of them end after a few steps; the paper says neither. Without the "
        "diagonal, with the same steps or run for long, the best rival rises more than "
        f"{NOTICEABLE:g} above the best printed one in {' and '.join(above) or 'no table'}.{kept}"
    )


def _is_rival(row: PrintedRow) -> bool:
    return not isinstance(row.ranker(), RAN)


def to_html(sections: Sequence[Section], images: Mapping[str, bytes]) -> str:
    """Return the page, with the PNG of every picture inside.

    Parameters
    ----------
    sections : sequence of Section
    images : dict of str to bytes
        The PNG of every picture, by its name.
    """
    style = files("rankfold.paper").joinpath("page.css").read_text(encoding="utf-8")
    entries = "".join(
        f'<li><a href="#s{number}">{escape(section.title)}</a></li>'
        for number, section in enumerate(sections)
    )
    body = "\n".join(_section(number, section, images) for number, section in enumerate(sections))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{TITLE}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{TITLE}</h1>
<p>Every table and figure of the paper, recomputed from data, beside what was printed.
Written by <code>rankfold reproduce</code>.</p>
</header>
<nav><ul>{entries}</ul></nav>
<main>
{body}
</main>
</body>
</html>
"""


def _section(number: int, section: Section, images: Mapping[str, bytes]) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    parts += [f"<p>{escape(text)}</p>" for text in section.paragraphs if text]
    for picture in section.pictures:
        data = b64encode(images[picture.name]).decode("ascii")
        caption = escape(picture.caption)
        parts.append(
            f'<figure><div class="scroll"><img src="data:image/png;base64,{data}" '
            f'alt="{caption}"></div>'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    parts += [_html_grid(grid) for grid in section.grids]
    return f'<section id="s{number}">\n' + "\n".join(parts) + "\n</section>"


def _html_grid(grid: Grid) -> str:
    head = "".join(_cell("th", place, text, grid) for place, text in enumerate(grid.header))
    rows = "\n".join(
        "<tr>"
        + "".join(_cell("td", place, text, grid) for place, text in enumerate(cells))
        + "</tr>"
        for cells in grid.rows
    )
    title = f"<caption>{escape(grid.title)}</caption>" if grid.title else ""
    return (
        f'<div class="scroll"><table>{title}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cell(tag: str, place: int, text: str, grid: Grid) -> str:
    kind = "" if place < grid.n_words else ' class="number"'
    content = escape(text)
    if tag == "td" and text in STATUS_CLASS:
        content = f'<span class="{STATUS_CLASS[text]}">{content}</span>'
    elif tag == "td" and grid.code and place == len(grid.header) - 1:
        content, kind = f"<code>{content}</code>", ' class="code"'
    return f"<{tag}{kind}>{content}</{tag}>"


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
