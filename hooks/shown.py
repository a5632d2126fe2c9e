"""Shows files of the repository inside pages: a link that stands alone becomes what it leads to.

A line such as ``[rankfold.errors.InputError](../src/rankfold/check.py)`` is a plain link on the
web view of the repository. On the site the definition stands there as it is in the source, without
its docstring, so that no page can show code that has changed. Pages in Markdown are
included, and other files are shown as they are.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

from mkdocs.exceptions import PluginError

LINK = re.compile(r"^\[`?(?P<name>[^\]`\n]+)`?\]\((?P<path>\.\./[^)\s#]+)\)$", re.MULTILINE)
FOR_CHECKERS = re.compile(r"  # (type: ignore\[[^\]]*\]|noqa: \w+|fmt: skip)$", re.MULTILINE)
LANGUAGES = {".cff": "yaml", ".toml": "toml"}

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Replace links to files outside the docs by what they lead to."""
    docs = Path(config.docs_dir).resolve()
    folder = Path(page.file.abs_src_path).resolve().parent

    def replacement(link: re.Match[str]) -> str:
        path = (folder / link["path"]).resolve()
        if path.is_relative_to(docs):
            return link[0]
        try:
            return show(path, link["name"])
        except (LookupError, OSError) as error:
            raise PluginError(f"{page.file.src_path}: {link[0]}: {error}") from error

    return LINK.sub(replacement, markdown)


def show(path: Path, name: str) -> str:
    """Return a file, or in a module the definition of this dotted name, as Markdown."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    language = LANGUAGES.get(path.suffix, "text")
    if path.suffix == ".py":
        language, text = "python", definition(text, inside(path, name))
    return f'```{language} title="{name}"\n{text.rstrip()}\n```'


def inside(path: Path, name: str) -> list[str]:
    """Return the part of a dotted name that lies inside the module at this path."""
    parts = name.split(".")
    module = path.with_suffix("").parts
    for length in range(len(parts) - 1, 0, -1):
        if module[-length:] == tuple(parts[:length]):
            return parts[length:]
    raise LookupError(f"{name} is not in {path.name}; give the module and the name in it.")


def definition(source: str, names: list[str]) -> str:
    r"""Return the source of a function or class, without its docstring.

    Examples
    --------
    >>> print(definition('def double(x):\n    "Twice."\n    return 2 * x', ["double"]))
    def double(x):
        return 2 * x
    """
    node: Any = ast.parse(source)
    for name in names:
        found = [n for n in node.body if isinstance(n, Definition) and n.name == name]
        if not found:
            raise LookupError(f"there is no definition of {'.'.join(names)} in the module.")
        node = found[0]
    lines = source.splitlines()
    kept = range(node.lineno - 1, node.end_lineno)
    if ast.get_docstring(node) is not None:
        spoken = node.body[0]
        kept = [n for n in kept if not spoken.lineno - 1 <= n < spoken.end_lineno]
    return FOR_CHECKERS.sub("", dedent("\n".join(lines[n] for n in kept)))
