"""Links names in the text of the reference to where they are described."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

TARGETS = re.compile(r"^::: (rankfold\.[\w.]+)$", re.MULTILINE)
NAME = re.compile(r"(?<!<b>)<code>([A-Za-z_][\w.]*)(\(\))?</code>(?!</a>|</autoref>|</b>)")
LINKING = ("api/", "glossary.md")
METHODS_TOO = {"explain", "rank_many"}
"""Functions of which a class has a method of the same name, which is what text mostly means."""


def targets(pages: list[str]) -> dict[str, str]:
    """Return the full names of what the reference describes, by last parts that tell them apart.

    Examples
    --------
    >>> targets(["::: rankfold.RAN", "::: rankfold.index.Results"])
    {'RAN': 'rankfold.RAN', 'Results': 'rankfold.index.Results'}
    """
    names = [name for page in pages for name in TARGETS.findall(page)]
    lasts = Counter(name.rpartition(".")[2] for name in names)
    found = {name.rpartition(".")[2]: name for name in names}
    return {last: found[last] for last in found if lasts[last] == 1 and last not in METHODS_TOO}


def link(html: str, known: dict[str, str]) -> str:
    """Turn code that is a known name, or a member of one, into a reference.

    Examples
    --------
    >>> link("<code>RAN</code> or <code>x</code>", {"RAN": "rankfold.RAN"})
    '<autoref identifier="rankfold.RAN" optional><code>RAN</code></autoref> or <code>x</code>'
    """

    def reference(code: re.Match[str]) -> str:
        first, dot, member = code[1].removeprefix("rankfold.").partition(".")
        if first not in known:
            return code[0]
        identifier = known[first] + dot + member
        return f'<autoref identifier="{identifier}" optional>{code[0]}</autoref>'

    return NAME.sub(reference, html)


_known: dict[str, str] = {}


def on_files(files: Any, **_: Any) -> None:
    """Read what there is before pages are made."""
    reference = [file for file in files.documentation_pages() if file.src_uri.startswith("api/")]
    _known.clear()
    _known.update(targets([file.content_string for file in reference]))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Link names on pages of the reference."""
    return link(html, _known) if page.file.src_uri.startswith(LINKING) else html
