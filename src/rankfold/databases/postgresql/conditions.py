"""Conditions in the SQL of PostgreSQL, with the same answers as from SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import inf, nan, nextafter

from rankfold.storage.columns import UNKNOWN
from rankfold.storage.dialect import Dialect, Literal
from rankfold.storage.ids import WHOLE

FALSE: tuple[str, list[object]] = ("(FALSE)", [])


class PostgreSQLDialect(Dialect):
    """Ids are two columns here, of numbers and of texts; and types are never mixed.

    Whole numbers and others are compared exactly, as SQLite does, not after rounding.
    """

    def present(self, kind: str, key: str) -> str:
        """Return the test for a value that is not missing."""
        return "TRUE" if kind == "id" else f"{key} IS NOT NULL"

    def compared(
        self, kind: str, key: str, sign: str, value: Literal
    ) -> tuple[str, Sequence[object]]:
        """Compare a column with a value that fits its kind."""
        if kind == UNKNOWN:
            return FALSE
        if kind == "number" and not isinstance(value, str):
            sign, bound = _as_float(sign, value)
            return f"({key} IS NOT NULL AND {key} {sign} %s)", [bound]
        if kind == "id":
            key = _id_key(value)
        return f"({key} IS NOT NULL AND {key} {sign} %s)", [_exactly(value)]

    def one_of(
        self, kind: str, key: str, values: Sequence[Literal]
    ) -> tuple[str, Sequence[object]]:
        """Look for one of several values."""
        tests = [self.compared(kind, key, "=", value) for value in values]
        bound = [value for _, part in tests for value in part]
        return f"({' OR '.join(sql for sql, _ in tests)})", bound

    def like(self, kind: str, key: str, pattern: str) -> tuple[str, Sequence[object]]:
        """Compare a text with a pattern; by the collation C, only a to z equal A to Z."""
        if kind == UNKNOWN:
            return FALSE
        key = "id_text" if kind == "id" else key
        return f"({key} IS NOT NULL AND {key} ILIKE %s COLLATE \"C\" ESCAPE '')", [pattern]


def _id_key(value: Literal) -> str:
    return "id_text" if isinstance(value, str) else "id_number"


def _exactly(value: Literal) -> object:
    """Return a value that compares with whole numbers without rounding."""
    if not isinstance(value, float):
        return value
    if value.is_integer() and int(value) in WHOLE:
        return int(value)
    return Decimal(value)


def _as_float(sign: str, value: bool | int | float) -> tuple[str, float]:
    """Return a comparison with a float that holds for the same floats as that with a number.

    Examples
    --------
    >>> _as_float("<", 10)
    ('<', 10.0)
    >>> _as_float("<", 2**53 + 1)  # which is no float
    ('<=', 9007199254740992.0)
    """
    near = float(value)
    if near == value:
        return sign, near
    if sign == "=":
        return sign, nan  # which no point has
    if sign in ("<", "<="):
        return "<=", near if near < value else nextafter(near, -inf)
    return ">=", near if near > value else nextafter(near, inf)
