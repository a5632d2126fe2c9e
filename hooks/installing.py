"""Says how rankfold is installed: from its folder, or by name once ``published`` is true.

Pages are written as for the folder; mkdocs.yml decides.
"""

from __future__ import annotations

import re
from typing import Any

COMMAND = re.compile(r"pip install '?\.(\[[\w,-]+\])?'?(?=[\s;`]|$)")


def by_name(text: str) -> str:
    """Name the package in commands that install it from its folder.

    Examples
    --------
    >>> by_name("pip install '.[serve]'")
    "pip install 'rankfold[serve]'"
    >>> by_name("`pip install .`")
    '`pip install rankfold`'
    """

    def named(found: re.Match[str]) -> str:
        return f"pip install 'rankfold{found[1]}'" if found[1] else "pip install rankfold"

    return COMMAND.sub(named, text)


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Change a page if the package is published."""
    return by_name(markdown) if config["extra"]["published"] else markdown
