"""Payload on its way into a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankfold.databases.contract import Session
from rankfold.storage.columns import EXACT, Column, Values, too_large

AS_KIND: dict[str, Callable[[Any], Any]] = {"number": float, "integer": int}


def table_values(
    columns: Sequence[Column], payload: Mapping[str, Values], n_points: int
) -> dict[str, list[Any]]:
    """Return a list of values for every column; what the payload leaves out is missing.

    Examples
    --------
    >>> column = Column("price", "number", 0)
    >>> table_values([column, Column("name", "text", 1)], {"price": Values("integer", [3])}, 1)
    {'price': [3.0], 'name': [None]}
    """
    return {
        column.name: (
            _as_kind(column, payload[column.name].values)
            if column.name in payload
            else [None] * n_points
        )
        for column in columns
    }


def check_widening(session: Session, after: Sequence[Column]) -> None:
    """Require that whole numbers which become others lose no digits."""
    for old, new in zip(session.head.columns, after, strict=True):
        if (old.kind, new.kind) == ("integer", "number"):
            name = "`" + old.name.replace("`", "``") + "`"
            inexact = session.matching(f"{name} not between {-EXACT} and {EXACT}")
            if len(inexact):
                _, payload = session.points(inexact[:1], [old])
                raise too_large(old.name, payload[old.name][0])


def _as_kind(column: Column, values: list[Any]) -> list[Any]:
    change = AS_KIND.get(column.kind)
    if change is None:
        return values
    return [None if value is None else change(value) for value in values]
