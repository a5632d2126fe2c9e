"""Tables of plain text for terminals."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

WIDEST_CELL = 32
"""Characters of a cell that are shown; the csv format has all of them."""

GAP = 2


def terminal_width() -> int:
    """Return the columns of the terminal, or of COLUMNS, or 100."""
    return shutil.get_terminal_size((100, 24)).columns


def counted(number: int, thing: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "point"), counted(1797, "point")
    ('1 point', '1797 points')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def printable(value: Any) -> str:
    r"""Return a value in one line, without signs that would steer the terminal.

    Examples
    --------
    >>> printable("two\nlines"), printable(None), printable(0.1 + 0.2)
    ('two lines', '', '0.3')
    """
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(sign if sign.isprintable() else " " for sign in text)


def columns_that_fit(
    columns: Mapping[str, Sequence[Any]], fixed: int, width: int
) -> tuple[dict[str, list[str]], list[str]]:
    """Cut cells, and return the columns that have room, and the names of those left out.

    Parameters
    ----------
    columns : dict of name to values
    fixed : int
        How many of them must be shown as they are.
    width : int
    """
    from rich.cells import cell_len, set_cell_size

    shown: dict[str, list[str]] = {}
    left_out: list[str] = []
    room = width
    for place, (name, values) in enumerate(columns.items()):
        cells = [printable(name), *(printable(value) for value in values)]
        if place >= fixed:
            cells = [
                cell
                if cell_len(cell) <= WIDEST_CELL
                else set_cell_size(cell, WIDEST_CELL - 3).rstrip() + "..."
                for cell in cells
            ]
        needed = max(map(cell_len, cells)) + (GAP if shown else 0)
        if place >= fixed and (left_out or needed > room):
            left_out.append(name)
            continue
        shown[name] = cells
        room -= needed
    return shown, left_out


def aligned(columns: Mapping[str, Sequence[str]], numbers: Sequence[bool]) -> str:
    """Return lines of columns whose first cell is their head; numbers go to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, GAP, 0, 0))
    for number in numbers:
        table.add_column(justify="right" if number else "left", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    screen = StringIO()
    # As wide as it takes: rich would cut ids, which must stay whole.
    console = Console(file=screen, width=10_000, color_system=None, markup=False, emoji=False)
    console.print(table, highlight=False)
    return "\n".join(line.rstrip() for line in screen.getvalue().splitlines())


def pairs(values: Mapping[str, Any]) -> str:
    """Return a line for every name and its value."""
    names = [name.replace("_", " ") for name in values]
    texts = [_flat(value) for value in values.values()]
    return aligned({"name": names, "value": texts}, [False, False])


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(key)} {_flat(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list):
        return " x ".join(map(printable, value))
    return "none" if value is None else printable(value)
