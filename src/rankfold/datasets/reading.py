"""Read points and labels from a file, or say what is wrong with it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadWarning

from rankfold.check import InputError
from rankfold.datasets.files import DataFile
from rankfold.types import FloatArray, IntArray


def read_points(path: Path, file: DataFile) -> tuple[FloatArray, IntArray]:
    """Return the points and the labels that a file holds under the names given for it."""
    try:
        content = _arrays(path, (file.points, file.labels))
        points, labels = np.asarray(content[file.points]), np.asarray(content[file.labels])
    # What a parser raises on a broken file depends on where it is broken.
    except Exception as error:
        raise _unusable(path, file, f"{type(error).__name__}: {error}") from error
    if points.dtype.kind not in "iufb" or labels.dtype.kind not in "iufb":
        raise _unusable(path, file, f"{points.dtype} and {labels.dtype} instead of numbers")
    if points.ndim != 2 or labels.size != len(points):
        raise _unusable(path, file, f"arrays of shapes {points.shape} and {labels.shape}")
    return points, labels.ravel().astype(np.intp)


def _arrays(path: Path, names: tuple[str, str]) -> Mapping[str, Any]:
    if path.suffix == ".npz":
        # NumPy leaves a file open that it fails to read, if it has opened it itself.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            return {name: content[name] for name in names}
    with warnings.catch_warnings():
        # SciPy warns of an array that it cannot read, and returns a text in its place.
        warnings.simplefilter("error", MatReadWarning)
        return dict(loadmat(path, variable_names=names))


def _unusable(path: Path, file: DataFile, reason: str) -> InputError:
    return InputError(
        f"{str(path)!r} cannot be used ({reason}): it may be cut off or another file. "
        f"It must hold {file.content}; replace it with a whole copy, or remove it."
    )
