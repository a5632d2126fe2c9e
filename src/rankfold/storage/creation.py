"""How a store comes to be: made under another name, then renamed."""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from rankfold.check import InputError, StorageError
from rankfold.storage.database import Database
from rankfold.storage.locking import WriterLock, is_locked
from rankfold.storage.manifest import DATABASE, Manifest, check_format, make_tables
from rankfold.storage.segments import Array, record_segments, sync_folder, write_segments

STALE = ".stale.partial"
LEFTOVER = re.compile(rf"\.(\d+)\.[0-9a-f]{{8}}\.partial(?:{re.escape(STALE)})*")


def check_store(folder: Path) -> None:
    """Require a folder with a database of ours; touch nothing."""
    if not folder.exists():
        raise StorageError(f"there is no index at {str(folder)!r}; name the folder of one.")
    if not folder.is_dir():
        raise StorageError(f"{str(folder)!r} is a file, but an index is a folder; name that.")
    if not (folder / DATABASE).is_file():
        raise StorageError(
            f"{str(folder)!r} holds no {DATABASE!r}, so it is no index; name the folder of one."
        )
    database = Database(folder / DATABASE, "ro")
    try:
        check_format(database)
    finally:
        database.close()


def check_absent(folder: Path) -> None:
    """Require a path at which nothing is, in a folder that is there."""
    if folder.exists() or folder.is_symlink():
        raise InputError(
            f"{str(folder)!r} exists already; name another folder, or give replace=True to put an "
            "index into the place of one."
        )
    if not folder.absolute().parent.is_dir():
        raise InputError(f"the folder {str(folder.parent)!r} does not exist; make it first.")


def create_folder(
    folder: Path,
    arrays: Mapping[str, Array],
    manifest: Manifest,
    fill: Callable[[Database], None],
) -> None:
    """Write a whole store next to its place, durably, then rename it."""
    folder = folder.absolute()
    _remove_leftovers(folder)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    partial.mkdir()
    try:
        lock = WriterLock(partial)
        try:
            _write(partial, arrays, manifest, fill)
            sync_folder(partial)
            if os.name != "posix":  # Windows renames no folder of which a file is open
                lock.release()
            _rename(partial, folder)
        finally:
            lock.release()
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _rename(partial: Path, folder: Path) -> None:
    try:
        partial.rename(folder)
    except OSError as error:
        raise InputError(f"{str(folder)!r} was made by someone else meanwhile.") from error
    sync_folder(folder.parent)


def _write(
    folder: Path,
    arrays: Mapping[str, Array],
    manifest: Manifest,
    fill: Callable[[Database], None],
) -> None:
    segments = write_segments(folder, arrays, manifest.generation)
    database = Database(folder / DATABASE, "rwc")
    try:
        with database.transaction():
            make_tables(database)
            fill(database)
            record_segments(database, segments)
            manifest.write(database)
    finally:
        database.close()


def _remove_leftovers(folder: Path) -> None:
    """Delete what interrupted attempts left behind: their process is gone, and so is its lock.

    The new name comes first: nobody can then rename into place what is half deleted.
    """
    for partial in folder.parent.glob(f".{glob.escape(folder.name)}.*.partial"):
        found = LEFTOVER.fullmatch(partial.name.removeprefix(f".{folder.name}"))
        if found and not _is_running(int(found[1])) and not is_locked(partial):
            stale = partial.with_name(f"{partial.name}{STALE}")
            with suppress(OSError):
                partial.rename(stale)
                shutil.rmtree(stale)


def _is_running(process: int) -> bool:
    """Tell whether there is a process of this number; Windows has no harmless way to ask."""
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is someone else's
        return True
    return True
