"""Vectors in pieces: .npy files, Parquet files and the chunks of Zarr arrays."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankfold.check import InputError, MissingExtraError
from rankfold.inputs.arrays import map_array
from rankfold.inputs.parquet import describe_parquet, parquet_parts
from rankfold.inputs.points import reading
from rankfold.inputs.reading import check_file
from rankfold.types import FloatArray

FILES = (".npy", ".parquet")
ZARR = ("zarr.json", ".zarray")
"""Files that a folder has if it is a Zarr array, of format 3 or 2."""

SHARD_NUMBERS = 2**26
"""Arrays are cut into shards of about so many numbers."""

BLOCK_NUMBERS = 2**22


@dataclass(frozen=True)
class Shard:
    """Some rows of an array, or a whole Parquet file.

    Parameters
    ----------
    path : str
    kind : {".npy", ".parquet", "zarr"}
    start, stop : int
        Rows of the array or file.
    vector : tuple of str
        Columns of the vector in a Parquet file.
    id : str, optional
        Its column of ids.
    payload : tuple of str
        Its columns of payload.
    """

    path: str
    kind: str
    start: int
    stop: int
    vector: tuple[str, ...] = ()
    id: str | None = None
    payload: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        return repr(self.path)

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the vectors in single precision, some rows at a time."""
        if self.kind == ".parquet":
            check_file(Path(self.path))
            for block, _ in parquet_parts(Path(self.path), self.vector, ()):
                yield np.asarray(block, dtype=np.float32)
            return
        array = _array(Path(self.path), self.kind)
        step = max(1, BLOCK_NUMBERS // max(1, array.shape[1]))
        for first in range(self.start, self.stop, step):
            # What is too large for single precision becomes infinite, which is refused later.
            with reading(Path(self.path), self.kind), np.errstate(over="ignore"):
                block = np.asarray(array[first : min(first + step, self.stop)], dtype=np.float32)
            yield block

    def columns(self) -> Iterator[tuple[int, dict[str, list[Any]]]]:
        """Yield numbers of rows, and their ids and payload by column, some rows at a time."""
        beside = list(dict.fromkeys([*self.payload, *filter(None, [self.id])]))
        if not beside:
            yield len(self), {}
            return
        for block, columns in parquet_parts(Path(self.path), (), beside):
            yield len(block), columns


def find_shards(
    shards: Any,
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
) -> list[Shard]:
    """Return the shards that are meant; only what describes them is read.

    Parameters
    ----------
    shards : str, path or list of them
        A file; a folder of .npy or Parquet files; a Zarr array; or a pattern such as
        ``parts/*.npy``. Files of a folder or pattern are in the order of their names.
    id_column, vector_columns, payload_columns
        Of Parquet files, as for `rankfold.inputs.read_points`.
    """
    given = [shards] if isinstance(shards, str | Path) else list(shards)
    paths = [path for one in given for path in _paths(one)]
    if not paths:
        raise InputError("there are no shards; name files, a folder, or a Zarr array.")
    found = []
    for path in paths:
        if path.suffix.lower() == ".parquet":
            choice, n_rows = describe_parquet(path, id_column, vector_columns, payload_columns)
            found.append(
                Shard(str(path), ".parquet", 0, n_rows, choice.vector, choice.id, choice.payload)
            )
        else:
            if id_column or vector_columns or payload_columns:
                raise InputError(f"columns are named, but {str(path)!r} has none; leave them out.")
            found.extend(_of_array(path))
    return [_with_rows(shard) for shard in found]


def _paths(given: str | Path) -> list[Path]:
    path = Path(given).absolute()
    if _is_zarr(path):
        return [path]
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix.lower() in FILES)
        if not found:
            raise InputError(
                f"the folder {str(given)!r} holds no {' or '.join(FILES)} file and is no Zarr "
                "array; name one that is."
            )
        return found
    if not path.exists() and glob.has_magic(str(given)):
        matching = sorted(map(Path, glob.glob(str(path))))  # noqa: PTH207 - it is absolute
        if not matching:
            raise InputError(f"no file matches {str(given)!r}; check its name and folder.")
        return [one for match in matching for one in _paths(match)]
    check_file(path)
    if path.suffix.lower() not in FILES:
        raise InputError(
            f"{str(given)!r} ends in {path.suffix!r}, but shards are {', '.join(FILES)} files or "
            "Zarr arrays; write it as one of these."
        )
    return [path]


def _of_array(path: Path) -> list[Shard]:
    kind = "zarr" if path.is_dir() else ".npy"
    array = _array(path, kind)
    step = max(1, SHARD_NUMBERS // max(1, array.shape[1]))
    if kind == "zarr":  # a chunk is read as a whole, and should be read once
        step = max(1, step // array.chunks[0]) * array.chunks[0]
    starts = range(0, array.shape[0], step) or [0]
    return [Shard(str(path), kind, one, min(one + step, array.shape[0])) for one in starts]


def _array(path: Path, kind: str) -> Any:
    """Open an array of two dimensions; its numbers stay on disk."""
    if kind == "zarr":
        array = _open_zarr(path)
    else:
        check_file(path)
        array = map_array(path)
    if len(array.shape) != 2 or array.dtype.kind not in "iufb":
        raise InputError(
            f"{str(path)!r} has shape {array.shape} and holds {array.dtype} values, but a shard "
            "is an array of numbers of shape (n_points, n_features)."
        )
    return array


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ModuleNotFoundError:
        raise MissingExtraError("zarr", "dask") from None
    if not _is_zarr(path):
        raise InputError(f"there is no Zarr array {str(path)!r}; check its name and folder.")
    with reading(path, "a Zarr array"):
        return zarr.open_array(path, mode="r")


def _is_zarr(path: Path) -> bool:
    return any((path / name).is_file() for name in ZARR)


def _with_rows(shard: Shard) -> Shard:
    if not len(shard):
        raise InputError(f"{shard} has no rows; leave it out.")
    return shard
