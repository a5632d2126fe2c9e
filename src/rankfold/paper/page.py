"""The report as one HTML page that needs nothing from outside."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from rankfold.paper.report import TITLE
from rankfold.paper.section import Grid, Section
from rankfold.paper.tables import STATUSES

STATUS_CLASS = dict(zip(STATUSES, ("exact", "near", "differs"), strict=True))


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
<p>Every table and figure of the paper made anew from data, beside what was printed.
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
    parts += [_grid(grid) for grid in section.grids]
    return f'<section id="s{number}">\n' + "\n".join(parts) + "\n</section>"


def _grid(grid: Grid) -> str:
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
