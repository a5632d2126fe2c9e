"""Find a data set by name: made here, shipped with scikit-learn, or read from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rankfold.check import check_choice
from rankfold.datasets.files import FILES, locate, read_points
from rankfold.datasets.synthetic import moons, rings
from rankfold.types import Dataset, FloatArray, IntArray

__all__ = ["DATASETS", "load"]

Folder = str | Path | None


def load(name: str, folder: Folder = None) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        "moons" and "rings" are made, "digits" comes with scikit-learn, all others are
        read from files: "yale", "orl", "usps" (the paper's 400), "usps_all", "coil20",
        "umist", "mnist".
    folder : path, optional
        Where the file is. By default it is sought in the folder named by RANKFOLD_DATA,
        then in the user's cache, and is else downloaded into that cache, which needs the
        extra ``data``. MNIST is never downloaded.

    Raises
    ------
    FileNotFoundError
        If the file is in none of these places; the message says what to put where.
    InputError
        If the name is unknown, or the file is there but cannot be used.

    Examples
    --------
    >>> load("digits").X.shape
    (1797, 64)
    """
    check_choice(name, "name", tuple(DATASETS))
    return DATASETS[name](folder)


def _read(file: str, folder: Folder) -> tuple[FloatArray, IntArray]:
    return read_points(locate(file, folder), FILES[file])


def _digits(_: Folder) -> Dataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Dataset("digits", digits.data, digits.target.astype(np.intp))


def _vectors(name: str, file: str) -> Callable[[Folder], Dataset]:
    def read(folder: Folder) -> Dataset:
        X, labels = _read(file, folder)
        return Dataset(name, X.astype(np.float64), labels)

    return read


def _distances(name: str, file: str, metric: str) -> Callable[[Folder], Dataset]:
    def read(folder: Folder) -> Dataset:
        distances, labels = _read(file, folder)
        return Dataset(name, distances, labels, metric)

    return read


def _usps(folder: Folder) -> Dataset:
    """Return the paper's 400 images: the first 40 of each digit."""
    whole = _vectors("usps", "usps_1854.mat")(folder)
    first = [np.flatnonzero(whole.labels == label)[:40] for label in np.unique(whole.labels)]
    rows = np.concatenate(first)
    return Dataset("usps", whole.X[rows], whole.labels[rows])


def _mnist(folder: Folder) -> Dataset:
    X, labels = _read("mnist_70k.npz", folder)
    return Dataset("mnist", X.astype(np.float32), labels)


DATASETS: dict[str, Callable[[Folder], Dataset]] = {
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
