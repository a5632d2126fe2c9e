"""Find a data set by name: made here, shipped with scikit-learn, or in a folder of files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from rankfold.check import check_choice
from rankfold.datasets.synthetic import moons, rings
from rankfold.types import Dataset, FloatArray, IntArray

FOLDER_VARIABLE = "RANKFOLD_DATA"


def load(name: str, folder: str | Path | None = None) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        "moons" and "rings" are made, "digits" comes with scikit-learn, all others are
        read from files: "yale", "orl", "usps" (the paper's 400), "coil20", "umist", "mnist".
    folder : path, optional
        Where the files are; by default the folder named by RANKFOLD_DATA.

    Examples
    --------
    >>> load("digits").X.shape
    (1797, 64)
    """
    check_choice(name, "name", tuple(DATASETS))
    return DATASETS[name](Path(folder or os.environ.get(FOLDER_VARIABLE, "")))


def _file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{name} is not in {str(folder)!r}; pass folder=... or set {FOLDER_VARIABLE} to the "
            "folder that holds the data files."
        )
    return path


def _digits(_: Path) -> Dataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Dataset("digits", digits.data, digits.target.astype(np.intp))


def _vectors(name: str, file: str) -> Callable[[Path], Dataset]:
    def read(folder: Path) -> Dataset:
        content = loadmat(_file(folder, file))
        return Dataset(name, content["X"].astype(np.float64), _labels(content["Y"]))

    return read


def _distances(name: str, file: str, metric: str) -> Callable[[Path], Dataset]:
    def read(folder: Path) -> Dataset:
        content = loadmat(_file(folder, file))
        return Dataset(name, content["Diff"], _labels(content["labels"]), metric)

    return read


def _usps(folder: Path) -> Dataset:
    """Return the paper's 400 images: the first 40 of each digit."""
    whole = _vectors("usps", "usps_1854.mat")(folder)
    first = [np.flatnonzero(whole.labels == label)[:40] for label in np.unique(whole.labels)]
    rows = np.concatenate(first)
    return Dataset("usps", whole.X[rows], whole.labels[rows])


def _mnist(folder: Path) -> Dataset:
    with np.load(_file(folder, "mnist_70k.npz"), allow_pickle=False) as content:
        X: FloatArray = content["X"].astype(np.float32)
        return Dataset("mnist", X, content["y"].astype(np.intp))


def _labels(column: IntArray) -> IntArray:
    return column.ravel().astype(np.intp)


DATASETS: dict[str, Callable[[Path], Dataset]] = {
    "moons": lambda _: moons(),
    "rings": lambda _: rings(),
    "digits": _digits,
    "yale": _distances("yale", "yale_diff.mat", "precomputed_sq"),
    "orl": _distances("orl", "orl_diff.mat", "precomputed"),
    "usps": _usps,
    "usps_all": _vectors("usps_all", "usps_1854.mat"),
    "coil20": _vectors("coil20", "coil20.mat"),
    "umist": _vectors("umist", "umist.mat"),
    "mnist": _mnist,
}
