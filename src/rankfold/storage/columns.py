"""Ids, slots and payload columns: what they may hold, and how they are checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from rankfold.errors import InputError

LONGEST_ID = 1000
WHOLE = range(-(2**63), 2**63)

Id = str | int
Slots = npt.NDArray[np.int64]

MOST = 500

LONGEST_NAME = 100

KINDS = {bool: "boolean", int: "integer", float: "number", str: "text"}

EXACT = 2**53
"""Up to this size, every whole number is a float as well."""

UNKNOWN = "unknown"
"""The kind of a column in which every value is missing so far."""

Value = bool | int | float | str | None


def checked_ids(ids: Any) -> list[Id]:
    """Require ids: texts of 1 to 1000 characters and whole numbers of 64 bits."""
    checked = plain(ids, "ids")
    kinds = set(map(type, checked))
    if kinds - {int, str}:
        place = next(i for i, value in enumerate(checked) if type(value) not in (int, str))
        value = checked[place]
        raise InputError(
            f"id {place} is {value!r} ({type(value).__name__}), but ids are whole numbers or "
            "texts; an example that is not in the index goes into vectors."
        )
    if str in kinds:
        _check_names([value for value in checked if type(value) is str])
    if int in kinds:
        for number in checked:
            if type(number) is int and number not in WHOLE:
                raise InputError(f"id {number} is too large: whole numbers have up to 64 bits.")
    return checked


def held_among(ids: Sequence[Any], find: Callable[[list[Id]], Iterable[bool]]) -> list[bool]:
    """Tell of each value whether a point has it as its id; what can be no id, nobody has.

    Parameters
    ----------
    ids : sequence
    find : callable
        Tells it of ids that can be some.

    Examples
    --------
    >>> held_among([1, "", 2, 0.5], lambda ids: [one == 2 for one in ids])
    [False, False, True, False]
    """
    places = [place for place, one in enumerate(ids) if _is_id(one)]
    held = [False] * len(ids)
    for place, found in zip(places, find(checked_ids([ids[p] for p in places])), strict=True):
        held[place] = bool(found)
    return held


def _is_id(value: Any) -> bool:
    try:
        checked_ids([value])
    except InputError:
        return False
    return True


def distinct_ids(ids: Any) -> list[Id]:
    """Require ids that are all different.

    Examples
    --------
    >>> distinct_ids([1, "1"])
    [1, '1']
    >>> distinct_ids(["a", "b", "a"])
    Traceback (most recent call last):
    ...
    rankfold.errors.InputError: ids are given more than once: 'a'; every point needs its own.
    """
    checked = checked_ids(ids)
    if len(set(checked)) < len(checked):
        raise ids_twice(value for value, count in Counter(checked).items() if count > 1)
    return checked


def ids_twice(ids: Iterable[Id]) -> InputError:
    """Return the error for ids that several points have."""
    return InputError(f"ids are given more than once: {few(ids)}; every point needs its own.")


def checked_slots(slots: Any, name: str) -> list[int]:
    """Require slot numbers."""
    array = np.asarray(slots)
    if array.size == 0:
        return []
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0:
        raise InputError(f"{name} must be a flat list of slots: whole numbers of 0 or more.")
    checked: list[int] = array.tolist()
    return checked


def distinct_slots(slots: Any, name: str) -> list[int]:
    """Require slot numbers that are all different."""
    checked = checked_slots(slots, name)
    if len(set(checked)) < len(checked):
        raise InputError(f"{name} holds a slot more than once.")
    return checked


def check_texts(texts: Iterable[str], name: str) -> None:
    """Require texts that files can hold."""
    together = "".join(texts)
    try:
        together.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds half of a surrogate pair ({together[error.start]!r}), which is no "
            "character; read the text with the right encoding."
        ) from None
    if "\0" in together:
        raise InputError(f"{name} holds a NUL character, which cannot be stored; remove it.")


def few(values: Iterable[object]) -> str:
    """Name up to five values."""
    listed = list(values)
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return ", ".join(map(repr, listed[:5])) + more


def plain(values: Any, name: str) -> list[Any]:
    """Return a list of Python's own values."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{name} is {type(values).__name__}, but must be a list.")
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if not isinstance(listed, list):
        raise InputError(f"{name} is a single value, but must be a list.")
    if not any(issubclass(kind, np.generic) for kind in set(map(type, listed))):
        return listed
    return [value.item() if isinstance(value, np.generic) else value for value in listed]


def _check_names(texts: list[str]) -> None:
    check_texts(texts, "an id")
    for length in set(map(len, texts)):
        if not 0 < length <= LONGEST_ID:
            wrong = next(text for text in texts if len(text) == length)
            raise InputError(
                f"an id has {length} characters ({wrong[:20]!r}), but must have 1 to {LONGEST_ID}."
            )


@dataclass(frozen=True)
class Column:
    """A column of the payload; its values stand in column ``c<position>`` of the database."""

    name: str
    kind: str
    position: int
    key: str = field(init=False)
    """Its name in the database, free of anything that a user wrote."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"c{self.position}")


@dataclass(frozen=True)
class Values:
    """Checked values of one column."""

    kind: str
    values: list[Value]


def checked_payload(payload: Mapping[str, Any] | None, n_points: int) -> dict[str, Values]:
    """Require columns of one type each, with a value or None for every point.

    Examples
    --------
    >>> checked_payload({"price": [1, 2.5, None]}, 3)
    {'price': Values(kind='number', values=[1.0, 2.5, None])}
    """
    if payload is None:
        return {}
    if not isinstance(payload, Mapping):
        raise InputError(f"payload is {type(payload).__name__}, but must map names to columns.")
    if len(payload) > MOST:
        raise InputError(f"payload has {len(payload)} columns, but may have up to {MOST}.")
    checked = {}
    for name, column in payload.items():
        _check_name(name)
        checked[name] = _checked_values(plain(column, f"column {name!r}"), name)
        length = len(checked[name].values)
        if length != n_points:
            raise InputError(
                f"column {name!r} has {length} values for {n_points} points; give one each, "
                "and None where there is none."
            )
    return checked


def new_columns(payload: Mapping[str, Values]) -> tuple[Column, ...]:
    """Return the columns that hold a payload."""
    return tuple(
        Column(name, values.kind, position)
        for position, (name, values) in enumerate(payload.items())
    )


def known_columns(described: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    """Return columns of these names and kinds, as `new_columns` makes them; these were read."""
    columns = tuple(Column(name, kind, i) for i, (name, kind) in enumerate(described))
    for column in columns:
        _check_name(column.name)
        if column.kind not in (*KINDS.values(), UNKNOWN):
            raise InputError(f"column {column.name!r} is of the kind {column.kind!r}")
    return columns


def widened(columns: Sequence[Column], payload: Mapping[str, Values]) -> tuple[Column, ...]:
    """Return the columns as they must be to hold more values: whole numbers may become others.

    Floats that are whole numbers, such as those of a pandas column with a missing value, do
    not make a column of whole numbers another one.
    """
    unknown = set(payload) - {column.name for column in columns}
    if unknown:
        raise InputError(
            f"payload has new columns: {few(sorted(unknown))}; known are "
            f"{few(column.name for column in columns) or 'none'}. add_columns adds them to "
            "all points."
        )
    return tuple(
        Column(column.name, _common(column, payload[column.name]), column.position)
        if column.name in payload
        else column
        for column in columns
    )


def extended(columns: Sequence[Column], payload: Mapping[str, Values]) -> tuple[Column, ...]:
    """Return the columns, and after them those of a payload, which must be new."""
    known = [column.name for column in columns if column.name in payload]
    if known:
        raise InputError(
            f"payload has columns that are there already: {few(known)}; update changes their "
            "values, and new columns need other names."
        )
    if len(columns) + len(payload) > MOST:
        raise InputError(
            f"there would be {len(columns) + len(payload)} columns, but there may be up to {MOST}."
        )
    added = (
        Column(name, values.kind, position)
        for position, (name, values) in enumerate(payload.items(), start=len(columns))
    )
    return (*columns, *added)


def too_large(name: str, value: object) -> InputError:
    """Return the error for a whole number that would lose digits among other numbers."""
    return InputError(
        f"column {name!r} would hold {value}, a whole number beyond 2**53, beside numbers that are "
        "not whole, where it would lose digits; keep it in a column of whole numbers or texts, or "
        "write it as a float if its last digits do not matter."
    )


def _common(column: Column, arriving: Values) -> str:
    kinds = {column.kind, arriving.kind} - {UNKNOWN}
    if kinds == {"integer", "number"}:
        if column.kind == "integer" and _are_whole(arriving.values):
            return "integer"
        _check_exact(column.name, arriving.values)
        return "number"
    if len(kinds) > 1:
        raise InputError(
            f"column {column.name!r} holds {column.kind} values, but got {arriving.kind} ones."
        )
    return kinds.pop() if kinds else UNKNOWN


def _are_whole(values: Iterable[Any]) -> bool:
    """Tell whether every float is a whole number that no rounding has led to."""
    return all(
        type(value) is not float or (value.is_integer() and abs(value) < EXACT) for value in values
    )


def _check_exact(name: str, values: Iterable[Any]) -> None:
    for value in values:
        if type(value) is int and abs(value) > EXACT:
            raise too_large(name, value)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"a column is called {name!r}, but names are texts of 1 to {LONGEST_NAME} printable "
            "characters."
        )
    if name == "id":
        raise InputError("a column is called 'id', which is the name of the ids; rename it.")


def _checked_values(values: list[Any], name: str) -> Values:
    kinds = set(map(type, values))
    if float in kinds:
        values = [None if type(value) is float and isnan(value) else value for value in values]
        kinds = set(map(type, values))
    kinds.discard(type(None))
    wrong = kinds - set(KINDS)
    if wrong or (len(kinds) > 1 and kinds != {int, float}):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(
            f"column {name!r} holds values of type {names}, but must hold one of int, float, bool "
            "or str, and None for what is missing; write dates as ISO text, such as '2024-12-31'."
        )
    if int in kinds and any(type(value) is int and value not in WHOLE for value in values):
        raise InputError(f"column {name!r} holds whole numbers of more than 64 bits.")
    if kinds == {int, float}:
        if _are_whole(values):
            return Values("integer", [None if value is None else int(value) for value in values])
        _check_exact(name, values)
        return Values("number", [None if value is None else float(value) for value in values])
    if str in kinds:
        check_texts((value for value in values if value is not None), f"column {name!r}")
    return Values(KINDS[kinds.pop()] if kinds else UNKNOWN, values)
