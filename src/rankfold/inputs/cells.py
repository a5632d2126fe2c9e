"""What the cells of a table of text say: numbers, truth values or text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rankfold.inputs.plain import LARGEST, Plain

PANDAS_HEADER = 4
"""A first line 0,1,2,3,... of at least so many columns is how pandas names unnamed columns."""


def header_is_there(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the first line of a table holds the names of its columns.

    It does when none of its cells is a number, when one is text above a number, and when
    they count 0, 1, 2, ... as pandas does for columns without names. ``second`` is the line
    below, empty where there is none.

    Examples
    --------
    >>> header_is_there(["x", "y"], ["1", "2"])
    True
    >>> header_is_there(["1", "2", "cat"], ["3", "4", "dog"])
    False
    """
    if not any(is_number(cell) for cell in first):
        return True
    if any(
        above and not is_number(above) and is_number(below)
        for above, below in zip(first, second, strict=False)
    ):
        return True
    named = list(first[1:] if first[0] == "" else first)
    counted = [str(place) for place in range(len(named))]
    long_enough = first[0] == "" or len(named) >= PANDAS_HEADER
    return bool(second) and long_enough and named == counted


def is_number(cell: str) -> bool:
    """Tell whether a cell can be part of a vector."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def typed(cells: Sequence[str]) -> list[Plain]:
    """Give a whole column one type: whole numbers, numbers, truth values or else text.

    Empty cells are None. Numbers that would not be written back as they stand, like 007,
    stay text.

    Examples
    --------
    >>> typed(["1", "", "3"]), typed(["1", "2.5"]), typed(["007", "8"]), typed(["True", "False"])
    ([1, None, 3], [1.0, 2.5], ['007', '8'], [True, False])
    """
    for convert in (_whole, _finite, _truth):
        try:
            return [None if cell == "" else convert(cell) for cell in cells]
        except ValueError:
            continue
    return [None if cell == "" else cell for cell in cells]


def _whole(cell: str) -> int:
    value = int(cell)
    if str(value) != cell or not -LARGEST <= value < LARGEST:
        raise ValueError
    return value


def _finite(cell: str) -> float:
    if not {".", "e", "E"} & set(cell) or "_" in cell:
        return float(_whole(cell))
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError
    return value


def _truth(cell: str) -> bool:
    if cell.lower() not in ("true", "false"):
        raise ValueError
    return cell.lower() == "true"
