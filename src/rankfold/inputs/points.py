"""Points as they come in: vectors, and perhaps ids, payload and a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankfold.check import InputError, MissingExtraError, check_matrix
from rankfold.inputs.plain import Columns, plain_columns, plain_ids
from rankfold.types import FloatArray


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
    """

    vectors: FloatArray
    ids: list[int | str] | None = None
    payload: Columns | None = None
    metric: str | None = None

    def __len__(self) -> int:
        return len(self.vectors)


def checked_points(
    path: Path,
    vectors: Any,
    ids: Any = None,
    payload: Mapping[str, Any] | None = None,
    metric: str | None = None,
) -> Points:
    """Check what a file held, and put it into plain values."""
    name = repr(str(path))
    matrix = checked_vectors(vectors, name)
    columns = plain_columns(payload or {}, len(matrix), name)
    return Points(
        matrix, None if ids is None else plain_ids(ids, len(matrix), name), columns or None, metric
    )


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
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"{str(path)!r} cannot be read as {kind} ({reason}); "
            "it may be cut off, damaged or of another kind: write it anew."
        ) from error
