"""A store: named arrays, ids, payload and a log of changes in one folder."""

from __future__ import annotations

import glob
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace as replaced
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from rankfold.errors import InputError, StorageError
from rankfold.files import check_folder
from rankfold.storage.columns import (
    Column,
    Id,
    checked_payload,
    distinct_ids,
    distinct_slots,
    extended,
    new_columns,
    widened,
)
from rankfold.storage.database import (
    DATABASE,
    LOCK,
    Manifest,
    SqliteDatabase,
    WriterLock,
    check_format,
    is_locked,
    make_tables,
    read_manifest,
    settings_text,
)
from rankfold.storage.points import (
    PointBatch,
    add_columns,
    change_points,
    check_new,
    delete_points,
    insert_points,
    last_slot,
    make_points,
    renumber_points,
    widen,
)
from rankfold.storage.reader import Reader
from rankfold.storage.segments import (
    FILE,
    FOLDER,
    Array,
    announce_segments,
    checked_arrays,
    clear_changes,
    log_change,
    make_folder,
    own_folder,
    record_segments,
    remove_segments,
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
    database = SqliteDatabase(folder / DATABASE, "ro")
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
                "show in a copy, too; copy the folder again, with files of its own."
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
    fill: Callable[[SqliteDatabase], None],
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
    fill: Callable[[SqliteDatabase], None],
) -> None:
    make_folder(folder)
    segments = write_segments(folder, arrays, manifest.generation)
    database = SqliteDatabase(folder / DATABASE, "rwc")
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


class Store(Reader):
    """An open store; made by ``Store.open``.

    One process at a time may write, any number may read. Every method sees the state that was
    committed last; ``reading`` holds on to one state for several. Threads read at the same time,
    and take turns to write.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit"
    ...     Store.create(path, {"x": np.eye(2)}, {}, ["apple", 7], {"price": [3, None]})
    ...     with Store.open(path, write=True) as store:
    ...         _ = store.append({"row": np.ones(2)}, added_slots=[2], ids=["fig"])
    ...         print(store.version, store.ids_of([2, 1]), store.matching("price < 5"))
    Version(generation=1, sequence=1) ['fig', 7] [0]
    """

    def __init__(self, folder: Path, lock: WriterLock | None) -> None:
        super().__init__(folder, "ro" if lock is None else "rw")
        self._lock = lock
        self._writers = RLock()

    @classmethod
    def create(
        cls,
        path: str | Path,
        arrays: Mapping[str, Any],
        settings: Mapping[str, Any],
        ids: Sequence[Id],
        payload: Mapping[str, Any] | None = None,
        *,
        replace: bool = False,
    ) -> None:
        """Make a store, completely or not at all.

        Parameters
        ----------
        path : str or Path
            The folder to make.
        arrays : dict of str to array
            Any numbers in any shapes.
        settings : dict
            Anything that JSON can hold.
        ids : sequence of str and int
            One for each point; they get the slots 0, 1, 2, ...
        payload : dict of str to column, optional
            Columns of int, float, bool or str, with None for what is missing.
        replace : bool
            Put all this into a store that is there already, in one step; its readers follow.
        """
        names = distinct_ids(ids)
        values = checked_payload(payload, len(names))
        columns = new_columns(values)
        cls.create_in_batches(path, arrays, settings, columns, [(names, values)], replace=replace)

    @classmethod
    def create_in_batches(
        cls,
        path: str | Path,
        arrays: Mapping[str, Any],
        settings: Mapping[str, Any],
        columns: tuple[Column, ...],
        batches: Iterable[PointBatch],
        *,
        replace: bool = False,
    ) -> None:
        """Make a store like `create`, of checked ids and payload that are never all in memory.

        Arrays may be maps of files. The columns must be able to hold every batch.
        """
        folder = Path(path)
        checked = checked_arrays(arrays)
        text = settings_text(settings)

        def fill(database: SqliteDatabase) -> None:
            make_points(database, columns, batches)

        if replace and folder.exists():
            with cls.open(folder, write=True) as store:
                store._renew(checked, text, columns, fill)
        else:
            check_absent(folder)
            create_folder(folder, checked, Manifest(1, 0, 0, 0, text, columns), fill)

    @staticmethod
    def check_place(path: str | Path, *, replace: bool = False) -> None:
        """Require that ``create`` may write to a folder, before work is done for it."""
        folder = Path(path)
        if replace and folder.exists():
            check_store(folder, write=True)
            check_folder(folder)
            WriterLock(folder).release()
        else:
            check_absent(folder)
            check_folder(folder)

    @classmethod
    def open(cls, path: str | Path, write: bool = False) -> Store:
        """Open a store after checking all of it that is small, and every byte of its arrays.

        Parameters
        ----------
        path : str or Path
        write : bool
            Whether changes are to be made. One process at a time may; others get an error.
        """
        folder = Path(path)
        check_store(folder, write=write)
        if not write:
            return cls(folder, None)
        lock = WriterLock(folder)
        try:
            store = cls(folder, lock)
        except BaseException:
            lock.release()
            raise
        try:
            store._remove_segments()  # left behind by an interrupted merge
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the store and let others write; arrays that were taken from it stay valid."""
        super().close()
        if self._lock is not None:
            self._lock.release()

    def append(
        self,
        arrays: Mapping[str, Any],
        *,
        removed: Any = (),
        added_slots: Any = (),
        ids: Sequence[Id] = (),
        payload: Mapping[str, Any] | None = None,
    ) -> int:
        """Log a change and apply it to the points, in one step; return its number.

        When it returns, the change is on disk.

        Parameters
        ----------
        arrays : dict of str to array
            The change, for whoever follows.
        removed : array of int
            Slots of points to remove.
        added_slots : array of int
            New slots, ascending, above all in use.
        ids : sequence of str and int
            One for each new slot; a removed point's id is free again.
        payload : dict of str to column, optional
            Columns that the store has; those left out are missing values.
        """
        checked = checked_arrays(arrays)
        gone = distinct_slots(removed, "removed")
        slots = distinct_slots(added_slots, "added_slots")
        names = distinct_ids(ids)
        if len(names) != len(slots):
            raise InputError(f"there are {len(slots)} added_slots, but {len(names)} ids.")
        values = checked_payload(payload, len(names))
        with self._writing() as database:
            manifest = read_manifest(database)
            columns = widened(manifest.columns, values)
            last = last_slot(database)
            delete_points(database, manifest.columns, gone)
            check_new(database, manifest.columns, last, slots, names)
            widen(database, manifest.columns, columns)
            insert_points(database, columns, slots, names, values)
            manifest = replaced(manifest, sequence=manifest.sequence + 1, columns=columns)
            log_change(database, manifest.version, checked)
            manifest.write(database)
        return manifest.sequence

    def change_payload(self, slots: Any, payload: Mapping[str, Any]) -> None:
        """Give points other values in some columns, in one step; the arrays are not concerned.

        When it returns, the values are on disk. The version stays as it is.

        Parameters
        ----------
        slots : array of int
        payload : dict of str to column
            Columns that the store has; the others stay as they are.
        """
        chosen = distinct_slots(slots, "slots")
        values = checked_payload(payload, len(chosen))
        with self._writing() as database:
            manifest = read_manifest(database)
            columns = widened(manifest.columns, values)
            widen(database, manifest.columns, columns)
            change_points(database, columns, chosen, values)
            replaced(manifest, columns=columns).write(database)

    def add_columns(self, slots: Any, payload: Mapping[str, Any]) -> None:
        """Add columns, with values for some points and none for all others, in one step.

        When it returns, they are on disk. The version stays as it is.

        Parameters
        ----------
        slots : array of int
        payload : dict of str to column
            Columns that the store does not have.
        """
        chosen = distinct_slots(slots, "slots")
        values = checked_payload(payload, len(chosen))
        with self._writing() as database:
            manifest = read_manifest(database)
            columns = extended(manifest.columns, values)
            add_columns(database, manifest.columns, columns)
            change_points(database, columns, chosen, values)
            replaced(manifest, columns=columns).write(database)

    def merge(self, arrays: Mapping[str, Any], settings: Mapping[str, Any], kept: Any) -> None:
        """Put arrays that contain all changes in the place of arrays and changes, in one step.

        Parameters
        ----------
        arrays, settings
            As for ``create``.
        kept : array of int
            The slots of all points, ascending; they become 0, 1, 2, ...
        """
        slots = np.array(distinct_slots(kept, "kept"), dtype=np.int64)
        with self._snapshots.holding() as snapshot:
            columns = snapshot.manifest.columns
        self._renew(
            checked_arrays(arrays),
            settings_text(settings),
            columns,
            lambda database: renumber_points(database, columns, slots),
        )

    def _renew(
        self,
        arrays: Mapping[str, Array],
        settings: str,
        columns: tuple[Column, ...],
        renew_points: Callable[[SqliteDatabase], None],
    ) -> None:
        """Begin a new generation; until all is written, the old one stays as it is."""
        with self._writers:
            version = self.version
            self.check_writable()
            generation, sequence = version.generation + 1, version.sequence
            with self._writing() as database:
                announce_segments(self.folder, database, arrays, generation)
            try:
                segments = write_segments(self.folder, arrays, generation)
                with self._writing() as database:
                    renew_points(database)
                    clear_changes(database)
                    known = record_segments(database, segments)
                    numbers = (generation, sequence, sequence, known)
                    Manifest(*numbers, settings, columns).write(database)
            finally:
                self._remove_segments()

    def _remove_segments(self) -> None:
        with self._connections.borrowed() as database:
            remove_segments(self.folder, database)

    @contextmanager
    def _writing(self) -> Iterator[SqliteDatabase]:
        with self._writers:
            self.check_writable()
            with self._connections.borrowed() as database, database.transaction():
                yield database

    def check_writable(self) -> None:
        """Require that changes may be made, here and now."""
        if self._lock is None:
            raise InputError(f"{str(self.folder)!r} is open for reading; open it with write=True.")
        if self._snapshots.held is not None:
            raise InputError("a change cannot be made inside of reading(); leave its block first.")
