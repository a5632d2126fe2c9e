"""Ids as they are typed, and ids as an index knows them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfold.databases import Collection
    from rankfold.index import Index

Id = str | int


def whole(text: str) -> int | None:
    """Return the whole number that a text is, if it would be written in the same way.

    Examples
    --------
    >>> whole("7"), whole("-7"), whole("007"), whole("7.0")
    (7, -7, None, None)
    """
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def other_reading(name: Id) -> Id | None:
    """Return the number for a text, and the text for a number."""
    return whole(name) if isinstance(name, str) else str(name)


def find_ids(index: Index | Collection, names: Iterable[Id]) -> list[Id]:
    """Return ids as the index knows them.

    An id is taken as it stands if a point has it: text from a command line as text. Else it
    is read the other way, 7 for the text "7" and the text for the number, if a point has that.

    Parameters
    ----------
    index : Index
    names : ids, as they were typed or read
    """
    given = list(names)
    others = [other_reading(name) for name in given]
    held = index.holds([*given, *others])
    return [
        name if there or other is None or not other_there else other
        for name, other, there, other_there in zip(
            given, others, held[: len(given)], held[len(given) :], strict=True
        )
    ]


def read_new_ids(path: str | Path) -> list[Id]:
    """Read ids of new points, one per line: whole numbers if all are, else texts."""
    from rankfold.inputs import read_ids

    texts = read_ids(path)
    numbers = [whole(text) for text in texts]
    found = [number for number in numbers if number is not None]
    return list(found) if len(found) == len(texts) else list(texts)
