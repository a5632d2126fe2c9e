"""JSON Lines: an object on every line, one field of which is the vector."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rankfold.errors import InputError
from rankfold.inputs.points import Points, checked_points, plain, reading
from rankfold.inputs.tables import Choice, choose, listed

LONGEST_LINE = 2**24
"""Characters that a line may have."""

MOST_FIELDS = 1000
"""Different fields that the objects of a file may have."""

Record = tuple[int, dict[str, Any]]
"""The number of a line, and the object on it."""


def read_json_lines(
    path: Path,
    *,
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
) -> Points:
    """Read a field that is a list of numbers, or several that are numbers, as vectors.

    The first object decides which; all other fields are payload. What an object lacks is None.
    """
    with reading(path, "JSON Lines"):
        lines = records(path)
        first = next(lines, None)
        if first is None:
            raise InputError(f"{str(path)!r} is empty; write one object per line.")
        names = fields_of(path, vector_columns, payload_columns, first)
        choice = choose(
            repr(str(path)),
            names,
            {name for name, value in first[1].items() if _is_number(value)},
            {name for name, value in first[1].items() if _is_vector(value)},
            id_column,
            vector_columns,
            payload_columns,
        )
        vectors, columns = _collected(path, first, lines, choice, payload_columns is None)
    ids = None if choice.id is None else columns.pop(choice.id)
    return checked_points(path, vectors, ids, columns, vector_columns=choice.vector)


def read_json_columns(path: Path) -> dict[str, list[Any]]:
    """Read every field as a column, where there are no vectors."""
    with reading(path, "JSON Lines"):
        columns: dict[str, list[Any]] = {}
        for row, (line, record) in enumerate(records(path)):
            _append(path, line, row, record, columns, set(), grows=True)
        if not columns:
            raise InputError(f"{str(path)!r} is empty; write one object per line.")
    return columns


def records(path: Path) -> Iterator[Record]:
    """Yield the objects of a file, with the numbers of their lines; empty lines are skipped."""
    with path.open(encoding="utf-8-sig") as file:
        for line in range(1, 2**62):
            text = file.readline(LONGEST_LINE + 1)
            if not text:
                return
            if len(text) > LONGEST_LINE:
                raise InputError(
                    f"line {line} of {str(path)!r} has more than {LONGEST_LINE:,} characters; "
                    "write one object per line."
                )
            if text.strip():
                yield line, _record(path, line, text)


def fields_of(
    path: Path,
    vector: Sequence[str] | None,
    payload: Sequence[str] | None,
    first: Record,
) -> list[str]:
    """Return the fields to choose from: those of the first object, and payload it may lack."""
    names = list(first[1])
    missing = [name for name in vector or () if name not in names]
    if missing:
        raise InputError(
            f"line {first[0]} of {str(path)!r} has no field {missing[0]!r}; it has {listed(names)}."
        )
    return list(dict.fromkeys([*names, *(payload or ())]))


def _record(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(
            f"line {line} of {str(path)!r} is not JSON ({reason}): {text.strip()!r:.60}; write one "
            "object per line."
        ) from None
    if not isinstance(found, dict):
        raise InputError(
            f"line {line} of {str(path)!r} is {text.strip()!r:.60}, but must be an object, such as "
            '{"id": "a", "vector": [0.1, 0.9]}.'
        )
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the field {name!r:.80} is there twice")
        found[name] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON; write null where a value is missing")


def _collected(
    path: Path, first: Record, others: Iterator[Record], choice: Choice, grows: bool
) -> tuple[Any, dict[str, list[Any]]]:
    """Return the vectors, and the columns beside them; with ``grows``, new fields are taken."""
    columns: dict[str, list[Any]] = {name: [] for name in choice.beside}
    used, values = set(choice.vector), array("d")
    width = n_rows = 0
    for line, record in _chained(first, others):
        vector = _vector(path, line, record, choice.vector)
        width = width or len(vector)
        if len(vector) != width:
            raise InputError(
                f"line {line} of {str(path)!r} has a vector of {len(vector)} numbers, but line "
                f"{first[0]} has {width}; every line needs as many."
            )
        values.extend(vector)
        if choice.id is not None and record.get(choice.id) is None:
            raise InputError(f"line {line} of {str(path)!r} has no {choice.id!r}; give it an id.")
        _append(path, line, n_rows, record, columns, used, grows=grows)
        n_rows += 1
    return np.frombuffer(values).reshape(n_rows, width), columns


def _chained(first: Record, others: Iterator[Record]) -> Iterator[Record]:
    yield first
    yield from others


def _append(
    path: Path,
    line: int,
    row: int,
    record: dict[str, Any],
    columns: dict[str, list[Any]],
    used: set[str],
    *,
    grows: bool,
) -> None:
    """Add an object to columns; fields that come late were missing before."""
    if grows:
        for name in record:
            if name not in columns and name not in used:
                columns[name] = [None] * row
        if len(columns) > MOST_FIELDS:
            raise InputError(
                f"the lines of {str(path)!r} have more than {MOST_FIELDS:,} different fields; name "
                "those to keep with payload_columns."
            )
    for name, column in columns.items():
        value = record.get(name)
        if isinstance(value, list | dict):
            kind = "a list" if isinstance(value, list) else "an object"
            raise InputError(
                f"line {line} of {str(path)!r} has {kind} in the field {name!r}, but payload is "
                "numbers, text, true, false or null; write it as text, or name the fields to keep "
                "with payload_columns."
            )
        column.append(plain(value, f"the field {name!r} in line {line} of {str(path)!r}"))


def _vector(path: Path, line: int, record: dict[str, Any], names: tuple[str, ...]) -> list[float]:
    wanted = "a list of numbers" if len(names) == 1 else "a number"
    for name in names:
        if name not in record:
            raise InputError(
                f"line {line} of {str(path)!r} has no field {name!r}, which must be {wanted}; give "
                "it one, or remove the line."
            )
    found = [record[name] for name in names]
    numbers = found[0] if len(names) == 1 and isinstance(found[0], list) else found
    if not numbers or not all(_is_number(number) for number in numbers):
        named = ", ".join(map(repr, names[:5]))
        shown = found[0] if len(names) == 1 else found
        raise InputError(
            f"line {line} of {str(path)!r} has {shown!r:.60} in {named}, but must have {wanted}; "
            "mend it, or name the field of the vector with vector_columns."
        )
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        raise InputError(
            f"line {line} of {str(path)!r} has a number too large for a vector; scale it."
        ) from None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_number(number) for number in value)
