"""How a database writes the single tests that conditions are made of."""

from __future__ import annotations

from collections.abc import Sequence

Literal = bool | int | float | str


class Dialect:
    """SQL as SQLite understands it; other databases override what they write differently.

    Every method returns SQL that is true or false, never null, and the values to bind to its marks.
    ``kind`` is that of a column, or "id"; ``key`` is what the column is called in the database.
    """

    def present(self, kind: str, key: str) -> str:
        """Return the test for a value that is not missing."""
        return f"{key} IS NOT NULL"

    def compared(
        self, kind: str, key: str, sign: str, value: Literal
    ) -> tuple[str, Sequence[object]]:
        """Compare a column with a value that fits its kind."""
        test = f"({key} IS NOT NULL AND {key} {sign} ?)"
        if kind == "id" and sign != "=":
            stored = "text" if isinstance(value, str) else "integer"
            test = f"(typeof({key}) = '{stored}' AND {test})"
        return test, [value]

    def one_of(
        self, kind: str, key: str, values: Sequence[Literal]
    ) -> tuple[str, Sequence[object]]:
        """Look for one of several values."""
        return f"({key} IS NOT NULL AND {key} IN ({', '.join('?' * len(values))}))", values

    def like(self, kind: str, key: str, pattern: str) -> tuple[str, Sequence[object]]:
        """Compare a text with a pattern; the letters a to z are as good as A to Z."""
        return f"(typeof({key}) = 'text' AND {key} LIKE ?)", [pattern]


SQLITE = Dialect()
