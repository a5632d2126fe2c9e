"""How a store comes to be: made under another name, then renamed."""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace as replaced
from pathlib import Path

from rankfold.check import InputError, StorageError
from rankfold.storage.database import Database
from rankfold.storage.locking import LOCK, WriterLock, is_locked
from rankfold.storage.manifest import DATABASE, Manifest, check_format, make_tables
from rankfold.storage.segments import (
    FILE,
    FOLDER,
    Array,
    announce_segments,
    make_folder,
    own_folder,
    record_segments,
    sync_folder,
    write_segments,
)

STALE = ".stale.partial"
LEFTOVER = re.compile(rf"\.(\d+)\.[0-9a-f]{{8}}\.partial(?:{re.escape(STALE)})*")

LOCK_JOURNAL, JOURNAL = f"{LOCK}-journal", f"{DATABASE}-journal"
OWN = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", LOCK, LOCK_JOURNAL)
"""Names that files of a store may have, beside its segments."""


def check_store(folder: Path, *, write: bool = False) -> None:
    """Require a folder with a database of ours, and no links out of it; touch nothing."""
    if not folder.exists():
        raise StorageError(f"there is no index at {str(folder)!r}; name the folder of one.")
    if not folder.is_dir():
        raise StorageError(f"{str(folder)!r} is a file, but an index is a folder; name that.")
    if not (folder / DATABASE).is_file():
        raise StorageError(
            f"{str(folder)!r} holds no {DATABASE!r}, so it is no index; name the folder of one."
        )
    _check_files(folder, write)
    own_folder(folder)
    database = Database(folder / DATABASE, "ro")
    try:
        check_format(database)
    finally:
        database.close()


def _check_files(folder: Path, write: bool) -> None:
    """Refuse files through which SQLite would read, write or delete elsewhere.

    It follows links, and where it finds a journal it undoes what that says, and deletes the file
    that the journal names as the one above it.
    """
    for name in OWN:
        path = folder / name
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(found.st_mode):
            raise StorageError(
                f"{str(path)!r} is a link or no file, but an index reads and writes only in its "
                "own folder; put the file itself there. A link to the whole folder is fine."
            )
        if write and found.st_nlink > 1:
            raise StorageError(
                f"{str(path)!r} has {found.st_nlink} names (hard links), so that a change would "
                "show in a copy, too; copy the folder anew, with files of its own."
            )
        if name == LOCK and found.st_size:
            raise StorageError(f"{str(path)!r} holds something, but must be empty; delete it.")
    if os.path.lexists(folder / JOURNAL):
        raise StorageError(
            f"{str(folder / JOURNAL)!r} is no file of an index, and SQLite would follow it; delete "
            "it, and look for damage with: rankfold index check."
        )


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
    make_folder(folder)
    segments = write_segments(folder, arrays, manifest.generation)
    database = Database(folder / DATABASE, "rwc")
    try:
        with database.transaction():
            make_tables(database)
            fill(database)
            announce_segments(folder, database, arrays, manifest.generation)
            known = record_segments(database, segments)
            replaced(manifest, segments=known).write(database)
    finally:
        database.close()


def _remove_leftovers(folder: Path) -> None:
    """Delete what interrupted attempts left behind: their process is gone, and so is its lock.

    Nothing else may be in it: somebody may have put it there, or given it that name. The new name
    comes first: nobody can then rename into place what is half deleted.
    """
    for partial in folder.parent.glob(f".{glob.escape(folder.name)}.*.partial"):
        found = LEFTOVER.fullmatch(partial.name.removeprefix(f".{folder.name}"))
        if not found or _is_running(int(found[1])) or not _holds_own_alone(partial):
            continue
        if not is_locked(partial):
            stale = partial.with_name(f"{partial.name}{STALE}")
            with suppress(OSError):
                partial.rename(stale)
                shutil.rmtree(stale)


def _holds_own_alone(folder: Path) -> bool:
    """Tell whether a folder, which is no link, holds no more than files of a store."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    segments = folder / FOLDER
    if segments.is_symlink():
        return False
    beside = {path.name: path for path in folder.iterdir() if path.name != FOLDER}
    within = {path.name: path for path in segments.iterdir()} if segments.is_dir() else {}
    known = {*OWN, JOURNAL}.issuperset(beside) and all(map(FILE.fullmatch, within))
    return known and all(
        stat.S_ISREG(path.lstat().st_mode) for path in (*beside.values(), *within.values())
    )


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
