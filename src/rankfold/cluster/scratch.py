"""The folder through which the caller and the workers hand arrays to each other."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from time import sleep
from typing import Any

import numpy as np
import numpy.typing as npt

from rankfold.check import InputError
from rankfold.files import check_folder, replacing

INDEX = "cells.faiss"
ATTEMPTS, PAUSE = 20, 0.25
"""How often, and after how many seconds each, a folder is deleted into which others write."""

Array = npt.NDArray[Any]


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

    def create(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.memmap[Any, Any]:
        """Make an array in a file, mapped into memory to be filled."""
        return np.lib.format.open_memmap(self._path(name), "w+", dtype, shape)

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
