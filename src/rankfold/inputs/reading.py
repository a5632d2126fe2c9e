"""Read points from a file, by what its name ends in, or from a folder of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from rankfold.check import InputError, check_flag
from rankfold.inputs.arrays import read_npy, read_npz
from rankfold.inputs.hdf5 import read_hdf5
from rankfold.inputs.images import read_images
from rankfold.inputs.parquet import read_parquet
from rankfold.inputs.points import Points
from rankfold.inputs.text import read_text

READERS: Mapping[str, Callable[..., Points]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_text,
    ".tsv": read_text,
    ".parquet": read_parquet,
    ".hdf5": read_hdf5,
    ".h5": read_hdf5,
}
"""The reader of each kind of file; its keywords are the options it knows."""


def read_points(
    path: str | Path,
    *,
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
    header: bool | None = None,
    dataset: str | None = None,
    size: tuple[int, int] | None = None,
    colour: bool | None = None,
    progress: bool = False,
) -> Points:
    """Read vectors, and ids and payload where there are some.

    Parameters
    ----------
    path : str or path
        A file whose name ends in one of ``READERS``, or a folder of images.
    id_column : str, optional
        Column (or array of an .npz) of the ids; else the one named ``id`` (``ids``).
    vector_columns : list of str, optional
        Columns (or the array of an .npz) of the vector; else those that look like one.
    payload_columns : list of str, optional
        Columns to keep as payload; else all others. An empty list keeps none.
    header : bool, optional
        Whether a table of text begins with the names of its columns; else it is guessed.
    dataset : str, optional
        The data set of an HDF5 file; else ``train``.
    size : (int, int), optional
        Width and height that images are brought to; else 32 x 32.
    colour : bool, optional
        Whether images keep their colours; else they become grey.
    progress : bool
        Whether a folder of images shows a bar on standard error.

    Returns
    -------
    Points

    Raises
    ------
    InputError
        If the file is missing, cannot be read, or does not fit; the message says how to mend it.
    MissingExtraError
        If the package that reads such files is not installed.
    """
    path = Path(path)
    options = {
        "id_column": id_column,
        "vector_columns": vector_columns,
        "payload_columns": payload_columns,
        "header": header,
        "dataset": dataset,
        "size": size,
        "colour": colour,
    }
    reader = reader_of(path)
    given = {name: value for name, value in options.items() if value is not None}
    check_options(path, reader, given)
    if "progress" in signature(reader).parameters:
        given["progress"] = progress
    return reader(path, **given)


def reader_of(path: Path) -> Callable[..., Points]:
    """Return what reads this file or folder; it must be there."""
    if path.is_dir():
        return read_images
    check_file(path)
    if path.suffix.lower() not in READERS:
        raise InputError(
            f"{str(path)!r} ends in {path.suffix!r}, but the files that can be read end in "
            f"{', '.join(READERS)}; write it as one of these, or give a folder of images."
        )
    return READERS[path.suffix.lower()]


def check_file(path: Path) -> None:
    """Require a file that is there."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; check its name and folder.")


def check_options(path: Path, reader: Callable[..., Points], given: Mapping[str, Any]) -> None:
    """Require options that mean something for this kind of file."""
    known = signature(reader).parameters
    for name, value in given.items():
        if name not in known:
            kind = "a folder of images" if path.is_dir() else f"{path.suffix} files"
            raise InputError(f"{name} is given, but means nothing for {kind}; leave it out.")
        if name in ("header", "colour"):
            check_flag(value, name)
        if name.endswith("_columns") and not (
            isinstance(value, list | tuple) and all(isinstance(column, str) for column in value)
        ):
            raise InputError(f"{name} is {value!r}, but must be a list of names.")
