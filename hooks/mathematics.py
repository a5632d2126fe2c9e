"""Turns formulas into MathML when the site is built, so that browsers need no script for them.

The web view of the repository renders the same syntax: fences of ``math``, and ``$...$`` in a line.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from mkdocs.exceptions import PluginError

INLINE = r"(?<![\\$\w])\$(?=[^\s$])([^$\n]*[^\s$\\])\$(?![\w$])"
BETWEEN_CODE_AND_ESCAPES = 185
UNKNOWN = re.compile(r"\\[A-Za-z]+")


def mathml(formula: str, display: str = "inline") -> str:
    r"""Return LaTeX as MathML; a command that is not known fails the build.

    Examples
    --------
    >>> "<mi>&#x003BB;</mi>" in mathml(r"\lambda")
    True
    """
    made: str = convert(formula.strip(), display=display)
    unknown = UNKNOWN.search(made)
    if unknown:
        raise PluginError(f"unknown command {unknown[0]} in the formula {formula.strip()}")
    return made


def fence(source: str, *_: Any, **__: Any) -> str:
    """Format a fence of ``math``."""
    return f'<div class="formula">{mathml(source, "block")}</div>'


class Inline(InlineProcessor):
    """Formats ``$...$`` in a line; code keeps its dollars."""

    def handleMatch(  # type: ignore[override]  # noqa: N802
        self, m: re.Match[str], data: str
    ) -> tuple[str | Element, int, int]:
        """Stash the MathML, which is not to be looked at again."""
        assert self.md is not None  # noqa: S101
        return self.md.htmlStash.store(mathml(m[1])), m.start(0), m.end(0)


class Formulas(Extension):
    """Formulas in a line."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Look for formulas after code, and before escapes."""
        md.inlinePatterns.register(Inline(INLINE, md), "formulas", BETWEEN_CODE_AND_ESCAPES)


def on_config(config: Any, **_: Any) -> Any:
    """Add both kinds of formulas to the site."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences.setdefault("custom_fences", []).append(
        {"name": "math", "class": "formula", "format": fence}
    )
    config.markdown_extensions.append(Formulas())
    return config
