"""NumPy's own files: one array (.npy) or several with names (.npz). Pickles are never loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

from rankfold.check import InputError
from rankfold.inputs.columns import listed
from rankfold.inputs.points import Points, checked_points, reading

MAGIC = b"\x93NUMPY"


def read_npy(path: Path) -> Points:
    """Read a two-dimensional array; the values stay on disk until they are used."""
    return checked_points(path, map_array(path))


def map_array(path: Path) -> Any:
    """Return the array of an .npy file, mapped into memory."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if start != MAGIC:
        what = (
            "is not a NumPy file, or is a pickle, which rankfold never loads"
            if start
            else "is empty"
        )
        raise InputError(f"{str(path)!r} {what}; write it with numpy.save(path, vectors).")
    with reading(path, "an .npy file"), _no_pickles(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def read_npz(
    path: Path, *, id_column: str | None = None, vector_columns: list[str] | None = None
) -> Points:
    """Read named arrays: ``vectors`` (or the only one with two dimensions), ``ids``, payload.

    ``id_column`` and ``vector_columns`` name other arrays for the ids and the vectors.
    """
    with reading(path, "an .npz file"), _no_pickles(path), _zipped(path) as archive:
        arrays = {name: np.asarray(archive[name]) for name in archive.files}
    vectors = arrays.pop(_vectors_name(path, arrays, vector_columns))
    ids = id_column or "ids"
    if id_column is not None and id_column not in arrays:
        raise InputError(f"{str(path)!r} has no array {id_column!r}; it has {listed([*arrays])}.")
    identities = arrays.pop(ids, None)
    if identities is not None and identities.ndim != 1:
        raise InputError(
            f"{ids!r} of {str(path)!r} has shape {identities.shape}, but must be flat."
        )
    payload = {name: array for name, array in arrays.items() if array.ndim == 1}
    return checked_points(path, vectors, identities, payload)


def _vectors_name(path: Path, arrays: dict[str, Any], asked: list[str] | None) -> str:
    if asked is not None and (len(asked) != 1 or asked[0] not in arrays):
        raise InputError(
            f"vector_columns is {asked!r}, but must name one array of {str(path)!r}, which has "
            f"{listed([*arrays])}."
        )
    if asked is not None or "vectors" in arrays:
        return asked[0] if asked else "vectors"
    flat = [name for name, array in arrays.items() if array.ndim == 2]
    if len(flat) != 1:
        raise InputError(
            f"{str(path)!r} has no array named 'vectors' and {len(flat)} with two dimensions, "
            "but must have one; write it with numpy.savez(path, vectors=..., ids=...)."
        )
    return flat[0]


@contextmanager
def _zipped(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        if not is_zipfile(file):
            raise InputError(
                f"{str(path)!r} is not an archive of arrays, or is cut off; write it with "
                "numpy.savez(path, vectors=..., ids=...)."
            )
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            yield archive


@contextmanager
def _no_pickles(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if "object" not in str(error).lower():
            raise
        raise InputError(
            f"{str(path)!r} holds Python objects (a pickle), which rankfold never loads; "
            "write numbers or text, for example with vectors.astype('float32')."
        ) from error
