"""Lets examples be copied without prompts and answers.

Examples on pages are sessions, with ``>>>`` and what is answered, so that they can be run as tests.
On the site they are marked as such, and the style leaves out what nobody types when the button
copies them.
"""

from __future__ import annotations

import re
from typing import Any

SESSION = re.compile(r"^( *)```python\n(?=\1>>> )", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    r"""Mark blocks of Python that begin with a prompt as sessions.

    Examples
    --------
    >>> on_page_markdown("```python\n>>> 1 + 1\n2\n\n```")
    '```pycon\n>>> 1 + 1\n2\n\n```'
    >>> on_page_markdown("```python\nprint(2)\n```")
    '```python\nprint(2)\n```'
    """
    return SESSION.sub(r"\1```pycon\n", markdown)
