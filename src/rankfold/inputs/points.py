"""Points as they come in: vectors, and perhaps ids, payload and a metric, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rankfold.check import check_matrix
from rankfold.errors import InputError, MissingExtraError
from rankfold.types import FloatArray

Plain: TypeAlias = int | float | bool | str | None
Columns: TypeAlias = dict[str, list[Plain]]

LARGEST = 2**63
"""Whole numbers from here on do not fit into the 64 bits in which they are stored."""


def plain_columns(columns: Mapping[Any, Iterable[Any]], n_rows: int, name: str) -> Columns:
    """Require named columns of equal length, and make every value of theirs plain."""
    result: Columns = {}
    for column, values in columns.items():
        if not isinstance(column, str) or not column:
            raise InputError(
                f"{name} has a payload column named {column!r}, but names must be text that is "
                "not empty; rename it."
            )
        what = f"payload column {column!r} of {name}"
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InputError(f"{what} is {values!r:.80}, but must be a list, one value per row.")
        listed = _list(values)
        if len(listed) != n_rows:
            raise InputError(
                f"{what} has {len(listed)} values, but there are {n_rows} rows: "
                "give one value per row, None where there is none."
            )
        result[column] = [plain(value, what) for value in listed]
    return result


def plain_ids(values: Any, n_rows: int, name: str) -> list[int | str]:
    """Require distinct ids, whole numbers or text, one per row."""
    if len(values) != n_rows:
        raise InputError(f"{name} has {len(values)} ids, but {n_rows} rows: give one id per row.")
    what = f"the ids of {name}"
    rows: dict[int | str, int] = {}
    for row, value in enumerate(_list(values)):
        identity = plain(value, what)
        if isinstance(identity, bool | float | None) or identity == "":
            raise InputError(
                f"row {row} of {name} has the id {value!r}, but ids must be whole numbers or text; "
                "give every row an id, or name another column with id_column."
            )
        if rows.setdefault(identity, row) != row:
            raise InputError(
                f"rows {rows[identity]} and {row} of {name} both have the id {identity!r}, but ids "
                "must differ; remove one of the rows, or name another column with id_column."
            )
    return list(rows)


def plain(value: Any, what: str) -> Plain:
    """Return the plain value that says the same; ``what`` names it in the message.

    Examples
    --------
    >>> plain(np.int64(3), "x"), plain(float("nan"), "x"), plain(date(2024, 2, 29), "x")
    (3, None, '2024-02-29')
    """
    if isinstance(value, np.generic):
        value = _from_numpy(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, what)
    if isinstance(value, int) and -LARGEST <= value < LARGEST:
        return int(value)
    if isinstance(value, float | Decimal) and not math.isinf(value):
        return None if math.isnan(value) else float(value)
    if type(value).__name__ in ("NaTType", "NAType"):  # pandas' own, which need not be installed
        return None
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    raise InputError(
        f"{what} holds {value!r:.80} ({type(value).__name__}), but must hold whole numbers of 64 "
        "bits, finite numbers, text, True, False, dates or None; convert it or leave it out."
    )


def _list(values: Iterable[Any]) -> list[Any]:
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biufU":
        return list(values.tolist())  # much faster than one by one
    return list(values)


def _from_numpy(value: np.generic) -> Any:
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            return None
        # Nanoseconds come out of item() as a bare count.
        coarse = value if np.datetime_data(value)[0] == "D" else value.astype("datetime64[us]")
        moment = coarse.item()
        return str(value) if isinstance(moment, int) else moment
    return value.item()


def _text(value: str, what: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{what} holds {value!a:.80}, which is not valid Unicode; mend or rename it."
        ) from None
    return str(value)


@dataclass(frozen=True, eq=False)
class Points:
    """What an index is built from.

    Parameters
    ----------
    vectors : array of float32 or float64, shape (n_points, n_features)
        Finite; it may be a read-only memory map.
    ids : list of int or str, optional
        Distinct, one per row; None where the file has none.
    payload : dict of lists, optional
        Columns of plain values (int, float, bool, str, None), one value per row.
    metric : {"euclidean", "cosine"}, optional
        The metric the file says its vectors are meant for.
    vector_columns : tuple of str
        The columns of a table that make the vector; none where there are no columns.
    """

    vectors: FloatArray
    ids: list[int | str] | None = None
    payload: Columns | None = None
    metric: str | None = None
    vector_columns: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.vectors)


def checked_points(
    path: Path,
    vectors: Any,
    ids: Any = None,
    payload: Mapping[str, Any] | None = None,
    metric: str | None = None,
    vector_columns: tuple[str, ...] = (),
) -> Points:
    """Check what a file held, and put it into plain values."""
    name = repr(str(path))
    matrix = checked_vectors(vectors, name)
    columns = plain_columns(payload or {}, len(matrix), name)
    names = None if ids is None else plain_ids(ids, len(matrix), name)
    return Points(matrix, names, columns or None, metric, vector_columns)


def checked_vectors(vectors: Any, name: str) -> FloatArray:
    """Require at least one row of finite numbers; single precision where that loses nothing."""
    array = np.asarray(vectors)
    if array.dtype.kind in "iufb" and array.dtype.itemsize <= 2:
        array = array.astype(np.float32)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.ndim == 2 and 0 in array.shape:
        missing = "rows" if not len(array) else "columns of numbers"
        raise InputError(f"{name} has no {missing}, but an index needs at least one vector.")
    return check_matrix(array, name)


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library makes of a broken file into one line that names the file.

    Libraries answer a broken file with almost any exception, so that all are caught.
    """
    try:
        yield
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:200] or type(error).__name__
        reason = "".join(letter if letter.isprintable() else "?" for letter in words)
        raise InputError(
            f"{str(path)!r} cannot be read as {kind} ({reason}); "
            "it may be cut off, damaged or of another kind: write it again."
        ) from error
