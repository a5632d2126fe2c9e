"""Which column of a table is what: the id, the vector, or payload."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from rankfold.check import InputError

ID_COLUMNS = ("id", "index", "__index_level_0__")
"""Columns taken for the ids; the last two are how pandas writes the index of a frame."""

LIST_COLUMNS = ("vector", "embedding")
"""Columns of lists taken for the vector when there are several."""


@dataclass(frozen=True)
class Choice:
    """The names of the columns to read."""

    id: str | None
    vector: tuple[str, ...]
    payload: tuple[str, ...]

    @property
    def beside(self) -> list[str]:
        """Return what is read beside the vector, each once."""
        return list(dict.fromkeys((*self.payload, *filter(None, [self.id]))))


def choose(
    file: str,
    names: Sequence[str],
    numbers: Set[str],
    lists: Set[str] = frozenset(),
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
) -> Choice:
    """Decide what each column is; whatever is named by the caller wins.

    Examples
    --------
    >>> choose("f", ["id", "x", "y", "kind"], numbers={"id", "x", "y"})
    Choice(id='id', vector=('x', 'y'), payload=('kind',))
    """
    check_names(file, names)
    for name in (*filter(None, [id_column]), *(vector_columns or ()), *(payload_columns or ())):
        if name not in names:
            raise InputError(f"{file} has no column {name!r}; it has {listed(names)}.")
    found = [name for name in ID_COLUMNS if name in names and name not in (vector_columns or ())]
    identity = id_column or next(iter(found), None)
    taken = {*ID_COLUMNS, identity, *(payload_columns or ())}
    free = [name for name in names if name not in taken]
    vector = tuple(vector_columns or ()) or _vector(
        file,
        [name for name in free if name in lists],
        [name for name in free if name in numbers],
    )
    if not vector:
        raise InputError(
            f"{file} has no column of numbers for the vector; it has {listed(names)}. Write the "
            "vectors as numeric columns, and check how columns are separated."
        )
    rest = tuple(name for name in names if name != identity and name not in vector)
    return Choice(identity, vector, rest if payload_columns is None else tuple(payload_columns))


def check_names(file: str, names: Sequence[str]) -> None:
    """Require that no two columns have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{file} has several columns named {name!r}; rename all but one.")
        seen.add(name)


def _vector(file: str, lists: list[str], numbers: list[str]) -> tuple[str, ...]:
    if not lists:
        return tuple(numbers)
    known = [name for name in LIST_COLUMNS if name in lists]
    if not known and len(lists) > 1:
        raise InputError(
            f"{file} has several columns of lists ({listed(lists)}); name the one that holds the "
            "vector with vector_columns."
        )
    return ((known or lists)[0],)


def listed(names: Sequence[str]) -> str:
    """Return the names for a message, the first ten of them."""
    shown = ", ".join(repr(name) for name in names[:10]) or "none"
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
