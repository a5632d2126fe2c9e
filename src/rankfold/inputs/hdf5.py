"""HDF5 files in the layout of ann-benchmarks, through h5py (extra ``hdf5``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankfold.check import InputError, MissingExtraError
from rankfold.inputs.columns import listed
from rankfold.inputs.points import Points, checked_points, reading

METRICS = {"angular": "cosine", "euclidean": "euclidean"}
"""What the attribute ``distance`` of a file is called here."""

EXPANSION = 1100
"""No compression that is in use makes values smaller by more than this factor."""


def read_hdf5(path: Path, *, dataset: str = "train") -> Points:
    """Read one data set of the file, and the metric from its attribute ``distance``."""
    h5py = _h5py()
    with reading(path, "HDF5"), h5py.File(path, "r") as file:
        metric = file.attrs.get("distance")
        vectors = np.asarray(_values(file, dataset, h5py, repr(str(path))))
    name = metric.decode() if isinstance(metric, bytes) else metric
    return checked_points(
        path, vectors, metric=METRICS.get(name) if isinstance(name, str) else None
    )


def _values(file: Any, name: str, h5py: Any, path: str) -> Any:
    found = file.get(name) if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
    if not isinstance(found, h5py.Dataset):
        raise InputError(
            f"{path} has no data set {name!r}; it has {listed(sorted(file))}. "
            "Name another with dataset."
        )
    # Values kept in another file could be any file of this machine.
    if found.external or found.is_virtual:
        raise InputError(f"{name!r} of {path} keeps its values in other files; copy them into one.")
    if found.nbytes > EXPANSION * max(1, found.id.get_storage_size()):
        raise InputError(
            f"{name!r} of {path} should hold {found.nbytes} bytes of values but is stored in "
            f"{found.id.get_storage_size()}; it was never filled or is damaged: write it anew."
        )
    return found[...]


def _h5py() -> Any:
    try:
        import h5py
    except ModuleNotFoundError:
        raise MissingExtraError("h5py", "hdf5") from None
    return h5py
