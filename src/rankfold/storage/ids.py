"""What may be the id of a point, and what may be a slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankfold.check import InputError

LONGEST = 1000
WHOLE = range(-(2**63), 2**63)

Id = str | int
Slots = npt.NDArray[np.int64]


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
    rankfold.check.InputError: ids are given more than once: 'a'; every point needs its own.
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
        if not 0 < length <= LONGEST:
            wrong = next(text for text in texts if len(text) == length)
            raise InputError(
                f"an id has {length} characters ({wrong[:20]!r}), but must have 1 to {LONGEST}."
            )
