"""Files that are written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile

from rankfold.errors import InputError


def check_folder(folder: Path) -> None:
    """Require that files can be written into a folder, or that it can be made; make nothing.

    Long work asks this first, so that it is not lost in the end.
    """
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        with TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise InputError(
            f"nothing can be written into {str(folder)!r} ({error.strerror}); name another folder."
        ) from error


def check_parent(path: Path) -> None:
    """Require that a file can be written into the folder that it names."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {str(path.parent)!r} does not exist; make it first.")
    check_folder(path.absolute().parent)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield another name to write to; the file takes the place of ``path`` when all went well.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "greeting.txt"
    ...     with replacing(path) as partial:
    ...         _ = partial.write_text("hello")
    ...         before = path.exists()
    ...     print(before, path.read_text(), len(list(Path(folder).iterdir())))
    False hello 1
    """
    # Another machine that shares the folder may have a process of the same number.
    partial = path.with_name(f".{path.name}.{os.getpid()}-{token_hex(4)}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
