"""What a query brings from outside: vectors, or ids."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.inputs.arrays import map_array
from rankfold.inputs.images import SIZE, SUFFIXES, read_image
from rankfold.inputs.points import checked_vectors
from rankfold.inputs.reading import check_file, read_points
from rankfold.types import FloatArray

STANDARD_INPUT = "-"
TEXT_SUFFIXES = (".txt", ".json")


def read_vectors(
    path: str | Path, *, size: tuple[int, int] = SIZE, colour: bool = False
) -> FloatArray:
    """Read the vectors of a query; a single one is one row.

    Parameters
    ----------
    path : str or path
        Anything that ``read_points`` reads; an array with one dimension in an .npy file; one
        image; a file of text (.txt, .json); or ``-``, text on standard input. An HDF5 file
        gives its data set ``test``.
    size, colour
        For images, as in ``read_points``.

    Returns
    -------
    array, shape (n_vectors, n_features)
    """
    if str(path) == STANDARD_INPUT:
        return parse_vectors(sys.stdin.read(), "standard input")
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        return read_points(path, size=size, colour=colour).vectors
    check_file(path)
    if suffix in SUFFIXES:
        return read_image(path, size=size, colour=colour)[None, :]
    if suffix in TEXT_SUFFIXES:
        return parse_vectors(_text_of(path), repr(str(path)))
    if suffix == ".npy":
        array = map_array(path)
        return checked_vectors(array[None, :] if array.ndim == 1 else array, repr(str(path)))
    if suffix in (".hdf5", ".h5"):
        return read_points(path, dataset="test").vectors
    return read_points(path).vectors


def parse_vectors(text: str, name: str) -> FloatArray:
    """Return the vectors written as lists of JSON, or as numbers with commas or blanks between.

    A line is a vector, unless no line has more than one number: then all are one vector.

    Examples
    --------
    >>> parse_vectors("1, 2.5", "it").tolist(), parse_vectors("[[1, 2], [3, 4]]", "it").tolist()
    ([[1.0, 2.5]], [[1.0, 2.0], [3.0, 4.0]])
    """
    text = text.strip()
    if not text:
        raise InputError(f"{name} is empty; give the numbers of a vector.")
    rows = _json_rows(text, name) if text.startswith("[") else _number_rows(text, name)
    odd = next((row for row, numbers in enumerate(rows) if len(numbers) != len(rows[0])), None)
    if odd is not None:
        raise InputError(
            f"vector {odd} of {name} has {len(rows[odd])} numbers, but vector 0 has "
            f"{len(rows[0])}; give as many in each."
        )
    try:
        return checked_vectors(np.array(rows, dtype=np.float64), name)
    except OverflowError:
        raise InputError(f"{name} holds a number too large for a vector; scale it.") from None


def _json_rows(text: str, name: str) -> list[list[float]]:
    decoder, rest, lists = json.JSONDecoder(), text, []
    while rest:
        try:
            value, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name} is not a list of numbers in JSON: {error}.") from None
        lists.append(value)
        rest = rest[end:].lstrip(" \t\r\n,")
    rows: list[Any] = []
    for value in lists:
        nested = isinstance(value, list) and value and isinstance(value[0], list)
        rows.extend(value if nested else [value])
    for row in rows:
        wrong = not isinstance(row, list) or any(type(number) not in (int, float) for number in row)
        if wrong:
            raise InputError(f"{name} holds {row!r:.80}, but must hold lists of numbers.")
    return rows


def _number_rows(text: str, name: str) -> list[list[float]]:
    rows: list[list[float]] = []
    for line, content in enumerate(text.splitlines(), start=1):
        words = content.replace(",", " ").split()
        try:
            rows.extend([[float(word) for word in words]] if words else [])
        except ValueError:
            raise InputError(
                f"line {line} of {name} is {content!r:.80}, but must be numbers with commas or "
                "blanks between them, or a list in JSON."
            ) from None
    if all(len(row) == 1 for row in rows):
        return [[row[0] for row in rows]]
    return rows


def read_ids(path: str | Path) -> list[str]:
    """Read ids, one per line, from a file or (``-``) from standard input.

    They come as text, as ids on a command line do; lines without any are left out.
    """
    if str(path) == STANDARD_INPUT:
        text, name = sys.stdin.read(), "standard input"
    else:
        check_file(Path(path))
        text, name = _text_of(Path(path)), repr(str(path))
    ids = [line.strip() for line in text.split("\n") if line.strip()]
    if not ids:
        raise InputError(f"{name} has no ids; write one per line.")
    return ids


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not text in UTF-8 ({error.reason}).") from None
