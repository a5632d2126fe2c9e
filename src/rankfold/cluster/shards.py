"""Vectors in shards (.npy, Parquet, Zarr), checked and gathered in files that workers share."""

from __future__ import annotations

import glob
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from time import sleep
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankfold.check import check_matrix
from rankfold.cluster.client import TaskRunner
from rankfold.errors import InputError, MissingExtraError
from rankfold.files import check_folder, replacing
from rankfold.inputs.files import check_file, map_array
from rankfold.inputs.points import plain_columns, reading
from rankfold.inputs.tables import describe_parquet, parquet_parts
from rankfold.neighbors.distances import SMALLEST, SinglePrecision
from rankfold.neighbors.exact import as_held
from rankfold.storage.columns import EXACT as EXACT_NUMBERS
from rankfold.storage.columns import (
    UNKNOWN,
    Column,
    Id,
    Values,
    checked_ids,
    checked_payload,
    too_large,
)
from rankfold.types import FloatArray

FILES = (".npy", ".parquet")
ZARR = ("zarr.json", ".zarray")
"""Files that a folder has if it is a Zarr array, of format 3 or 2."""

SHARD_NUMBERS = 2**26
"""Arrays are cut into shards of about so many numbers."""

BLOCK_NUMBERS = 2**22

INDEX = "cells.faiss"
ATTEMPTS, PAUSE = 20, 0.25
"""How often, and after how many seconds each, a folder is deleted into which others write."""

Array = npt.NDArray[Any]


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


class Scratch:
    """Arrays by name in a folder that all workers see.

    A worker writes files of its own, each at once, and the caller alone joins them: a worker that
    dies, or is taken for dead and goes on, harms no file.

    Parameters
    ----------
    folder : str or Path
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(
                f"the worker on {socket.gethostname()!r} does not see the folder "
                f"{str(self.folder)!r}; give scratch, a folder that all workers share."
            )

    def save(self, name: str, array: Array) -> None:
        """Write an array, at once."""
        with replacing(self._path(name)) as partial, partial.open("wb") as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)

    @contextmanager
    def writing(self, name: str, shape: tuple[int, ...], dtype: Any) -> Iterator[Array]:
        """Yield an array in a file to be filled; it appears at the end of the block."""
        with replacing(self._path(name)) as partial:
            array = np.lib.format.open_memmap(partial, "w+", dtype, shape)
            yield array
            array.flush()  # others may read it on another machine

    def load(self, name: str) -> Array:
        """Map an array into memory."""
        mapped: Array = np.load(self._path(name), mmap_mode="r", allow_pickle=False)
        return mapped

    def create(self, name: str, shape: Any, dtype: Any) -> np.memmap[Any, Any]:
        """Make an array in a file, mapped into memory to be filled."""
        return np.lib.format.open_memmap(self._path(name), "w+", dtype, shape)

    def empty(self, shape: Any, dtype: Any) -> Array:
        """Make an array in a file of its own, as `numpy.empty` does in memory."""
        number = len(list(self.folder.glob("made-*.npy")))
        return np.asarray(self.create(f"made-{number}", shape, dtype))

    def join(self, name: str, parts: list[str]) -> None:
        """Put arrays below each other, then delete them."""
        lengths = [len(self.load(part)) for part in parts]
        like, start = self.load(parts[0]), 0
        whole = self.create(name, (sum(lengths), *like.shape[1:]), like.dtype)
        for part, length in zip(parts, lengths, strict=True):
            whole[start : start + length] = self.load(part)
            start += length
            self.delete(part)
        whole.flush()  # workers on other machines read it next

    def delete(self, name: str) -> None:
        """Delete an array."""
        self._path(name).unlink()

    def mapped_index(self) -> Any:
        """Open the index of FAISS that is kept here; its lists stay in the file."""
        import faiss

        index = faiss.read_index(
            str(self.folder / INDEX), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
        )
        # Threads that read ahead gain nothing where a search is one of many.
        faiss.downcast_InvertedLists(index.invlists).prefetch_nthread = 0
        return index

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"


@contextmanager
def scratch_folder(place: Path) -> Iterator[Scratch]:
    """Yield a new folder in a place; it is deleted at the end, come what may."""
    if not place.is_dir():
        raise InputError(f"the folder {str(place)!r} does not exist; make it first.", "scratch")
    check_folder(place)
    folder = mkdtemp(prefix=".rankfold-", suffix=".partial", dir=place.absolute())
    try:
        yield Scratch(folder)
    finally:
        for _ in range(ATTEMPTS):  # tasks that were cancelled may still be writing their last file
            shutil.rmtree(folder, ignore_errors=True)
            if not Path(folder).exists():
                break
            sleep(PAUSE)


class Checked(NamedTuple):
    """What a worker found in a shard."""

    n_features: int
    largest: float
    kinds: dict[str, list[str]]


def hold(folder: str, number: int, shard: Shard, metric: str, exact: bool) -> Checked:
    """Check a shard, and write its vectors as the engine holds them; a task."""
    scratch, largest, first = Scratch(folder), 0.0, 0
    blocks = shard.blocks()
    leading = next(blocks)
    n_features = leading.shape[1]
    if not n_features:
        raise InputError(f"{shard} has vectors of no numbers; leave it out.")
    dtype = np.float64 if exact and metric == "cosine" else np.float32
    with scratch.writing(f"points-{number}", (len(shard), n_features), dtype) as rows:
        for block in chain([leading], blocks):
            checked = check_matrix(block, str(shard), first=shard.start + first)
            largest = max(largest, float(np.abs(checked).max(initial=0.0)))
            rows[first : first + len(block)] = _held(checked, metric, exact, str(shard))
            first += len(block)
    kinds: dict[str, set[str]] = {name: set() for name in shard.payload}
    for _, payload in batches([shard]):
        for name, values in payload.items():
            kinds[name].add(values.kind)
    return Checked(n_features, largest, {name: sorted(found) for name, found in kinds.items()})


def hold_all(
    work: TaskRunner, scratch: Scratch, shards: list[Shard], metric: str, exact: bool
) -> tuple[Column, ...]:
    """Write all points into one file, ``points``; return the columns of their payload."""
    _check_alike(shards)
    folder = str(scratch.folder)
    arguments = [(folder, i, shard, metric, exact) for i, shard in enumerate(shards)]
    found: list[Checked] = work.run("vectors", hold, arguments)
    for shard, checked in zip(shards, found, strict=True):
        if checked.n_features != found[0].n_features:
            width = found[0].n_features
            raise _uneven(str(shard), checked.n_features, str(shards[0]), width)
    largest = max(checked.largest for checked in found)
    if metric == "euclidean" and not exact and 0 < largest < SMALLEST:
        raise InputError(
            f"no value is larger than {largest:.3g}, but squared distances in single precision "
            f"need values of {SMALLEST:g} at least; scale the data."
        )
    scratch.join("points", [f"points-{i}" for i in range(len(shards))])
    return tuple(
        Column(name, _common_kind(name, {kind for one in found for kind in one.kinds[name]}), place)
        for place, name in enumerate(shards[0].payload)
    )


def batches(
    shards: list[Shard], columns: tuple[Column, ...] = ()
) -> Iterator[tuple[list[Id], dict[str, Values]]]:
    """Yield ids and payload, some rows at a time; row numbers where there are no ids."""
    kinds, first = {column.name: column.kind for column in columns}, 0
    for shard in shards:
        for n_rows, found in shard.columns():
            payload = {name: found[name] for name in shard.payload}
            plain = plain_columns(payload, n_rows, str(shard))
            values = checked_payload(plain, n_rows)
            for name, column in values.items():
                if kinds.get(name) == "number" and column.kind == "integer":
                    _check_exact(name, column)
            own = range(first, first + n_rows) if shard.id is None else found[shard.id]
            yield checked_ids(own), values
            first += n_rows


def _held(block: FloatArray, metric: str, exact: bool, name: str) -> FloatArray:
    if exact:
        return as_held(block, metric, name)
    return SinglePrecision(metric == "cosine", None).apply(block, name, block.shape[1])


def _check_alike(shards: list[Shard]) -> None:
    """Require the same columns in all shards, and ids in all of them or in none."""
    first = shards[0]
    vector = next((shard.vector for shard in shards if shard.vector), ())
    for shard in shards:
        if shard.vector not in ((), vector):
            raise InputError(
                f"{shard} has the vector in {_listed(shard.vector)}, but others have it in "
                f"{_listed(vector)}; name its columns, in their order, with vector_columns."
            )
        if (shard.id is None) != (first.id is None):
            without, having = (shard, first) if shard.id is None else (first, shard)
            raise InputError(f"{having} has ids and {without} has none; give all shards ids.")
        if set(shard.payload) != set(first.payload):
            odd = sorted(set(shard.payload) ^ set(first.payload))
            raise InputError(
                f"{shard} and {first} have different columns ({_listed(odd)}); name "
                "those to keep with payload_columns."
            )


def _common_kind(name: str, kinds: set[str]) -> str:
    known = kinds - {UNKNOWN}
    if known == {"integer", "number"}:
        return "number"
    if len(known) > 1:
        raise InputError(
            f"column {name!r} holds {' and '.join(sorted(known))} values in different shards, but "
            "must hold one kind."
        )
    return known.pop() if known else UNKNOWN


def _check_exact(name: str, column: Values) -> None:
    for value in column.values:
        if isinstance(value, int) and abs(value) > EXACT_NUMBERS:
            raise too_large(name, value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _uneven(shard: str, width: int, other: str, expected: int) -> InputError:
    return InputError(
        f"{shard} has vectors of {width} numbers, but those of {other} have {expected}; "
        "all shards need as many."
    )
