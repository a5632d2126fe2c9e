"""Points, vectors, ids and payload from files, by their suffix; payload from memory, too."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

from rankfold.check import check_flag
from rankfold.errors import InputError, MissingExtraError
from rankfold.inputs.images import SIZE, SUFFIXES, read_image, read_images
from rankfold.inputs.json_lines import read_json_columns, read_json_lines
from rankfold.inputs.points import (
    Columns,
    Points,
    checked_points,
    checked_vectors,
    plain_columns,
    plain_ids,
    reading,
)
from rankfold.inputs.tables import (
    check_names,
    listed,
    read_parquet,
    read_parquet_columns,
    read_text,
    read_text_columns,
    table_columns,
)
from rankfold.types import FloatArray

MAGIC = b"\x93NUMPY"

METRICS = {"angular": "cosine", "euclidean": "euclidean"}
"""What the attribute ``distance`` of a file is called here."""

EXPANSION = 1100
"""No compression that is in use makes values smaller by more than this factor."""

STANDARD_INPUT = "-"

TEXT_SUFFIXES = (".txt", ".json")

COLUMN_READERS = {
    ".parquet": read_parquet_columns,
    ".csv": read_text_columns,
    ".tsv": read_text_columns,
    ".jsonl": read_json_columns,
    ".ndjson": read_json_columns,
}


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
            f"{listed([*arrays])}.",
            "vector_columns",
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
            f"{found.id.get_storage_size()}; it was never filled or is damaged: write it again."
        )
    return found[...]


def _h5py() -> Any:
    try:
        import h5py
    except ModuleNotFoundError:
        raise MissingExtraError("h5py", "hdf5") from None
    return h5py


READERS: Mapping[str, Callable[..., Points]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_text,
    ".tsv": read_text,
    ".parquet": read_parquet,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
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
            raise InputError(f"{name} is given, but means nothing for {kind}; leave it out.", name)
        if name in ("header", "colour"):
            check_flag(value, name)
        if name.endswith("_columns") and not (
            isinstance(value, list | tuple) and all(isinstance(column, str) for column in value)
        ):
            raise InputError(f"{name} is {value!r}, but must be a list of names.")


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
    decoder, place, lists = json.JSONDecoder(), 0, []
    while place < len(text):
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name} is not a list of numbers in JSON: {error}.") from None
        lists.append(value)
        place = next((at for at in range(end, len(text)) if text[at] not in " \t\r\n,"), len(text))
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

    They come as text, as ids on a command line do, with the blanks that are before and after
    them; empty lines are left out.
    """
    if str(path) == STANDARD_INPUT:
        text, name = sys.stdin.read(), "standard input"
    else:
        check_file(Path(path))
        text, name = _text_of(Path(path)), repr(str(path))
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    ids = [line for line in lines if line]
    if not ids:
        raise InputError(f"{name} has no ids; write one per line.")
    return ids


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not text in UTF-8 ({error.reason}).") from None


def as_columns(payload: Any, n_rows: int | None) -> Columns:
    """Return payload as lists of plain values, one per row.

    Parameters
    ----------
    payload : dict of sequences, pandas.DataFrame, pyarrow.Table, str or path, optional
        Columns, or the name of a .parquet, .csv, .tsv or .jsonl file of them. None is no column.
    n_rows : int or None
        The number of points, and so of values in every column; None for that of the first.

    Returns
    -------
    dict of str to list
        Of int, float, bool, str and None. Missing values (NaN, NaT) are None, dates and
        times are ISO strings, decimals are floats.

    Examples
    --------
    >>> import numpy as np
    >>> as_columns({"price": np.array([2.5, np.nan]), "name": ["tea", "milk"]}, n_rows=2)
    {'price': [2.5, None], 'name': ['tea', 'milk']}
    """
    if payload is None:
        return {}
    if isinstance(payload, str | Path):
        columns, name = _from_file(Path(payload)), repr(str(payload))
    else:
        columns, name = _from_memory(payload), "the payload"
    if n_rows is None:
        n_rows = next((len(values) for values in columns.values() if hasattr(values, "__len__")), 0)
    return plain_columns(columns, n_rows, name)


def read_payload(path: Path, id_column: str | None = None) -> tuple[list[int | str], Columns]:
    """Read ids, and columns of payload for them, from a table without vectors.

    Parameters
    ----------
    path : Path
        A .parquet, .csv, .tsv or .jsonl file.
    id_column : str, optional
        Else "id".
    """
    chosen, name = id_column or "id", repr(str(path))
    columns = dict(_from_file(path))
    if chosen not in columns or len(columns) == 1:
        raise InputError(
            f"{name} has the columns {', '.join(map(repr, columns))}, but must have {chosen!r}, "
            "which names the points, and others to give them; name the first with id_column."
        )
    names = columns.pop(chosen)
    ids = plain_ids(names, len(names), name)
    return ids, plain_columns(columns, len(ids), name)


def _from_file(path: Path) -> Mapping[str, Any]:
    check_file(path)
    if path.suffix.lower() not in COLUMN_READERS:
        raise InputError(
            f"{str(path)!r} ends in {path.suffix!r}, but payload comes from files that end in "
            f"{', '.join(COLUMN_READERS)}."
        )
    return COLUMN_READERS[path.suffix.lower()](path)


def _from_memory(payload: Any) -> Mapping[Any, Any]:
    if isinstance(payload, Mapping):
        return payload
    pyarrow = sys.modules.get("pyarrow")  # who hands in a table has imported it
    if pyarrow is not None and isinstance(payload, pyarrow.Table):
        return table_columns(payload, "the payload")
    if hasattr(payload, "columns") and hasattr(payload, "__getitem__"):
        names = list(payload.columns)
        check_names("the payload", names)
        return {name: payload[name] for name in names}
    raise InputError(
        f"payload is {type(payload).__name__}, but must be a dict of columns, a pandas.DataFrame, "
        "a pyarrow.Table or the name of a .parquet, .csv, .tsv or .jsonl file."
    )
