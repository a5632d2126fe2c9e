"""The reading half of a store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Self

import numpy as np

from rankfold.check import InputError, StorageError
from rankfold.storage.changes import read_changes, size_of_changes
from rankfold.storage.columns import Value
from rankfold.storage.conditions import translate
from rankfold.storage.database import MEND, Database, damaged
from rankfold.storage.ids import Id, Slots, checked_ids, checked_slots
from rankfold.storage.manifest import (
    DATABASE,
    Manifest,
    Version,
    check_tables,
    read_manifest,
)
from rankfold.storage.points import (
    check_points,
    find_slots,
    largest_number,
    payload_columns,
    rows_of,
)
from rankfold.storage.segments import Array, read_segments


class Reader:
    """What can be asked of an open store.

    Every method sees the state that was committed last; ``reading`` holds on to one state for
    several. Threads take turns.
    """

    def __init__(self, folder: Path, mode: str) -> None:
        self.folder = folder
        self._mode = mode
        self._turn = RLock()
        self._snapshot: Manifest | None = None
        self._generation = 0
        self._arrays: dict[str, Array] = {}
        self._database = Database(folder / DATABASE, mode)
        try:
            with self.reading():  # loads the arrays
                pass
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the store; arrays that were taken from it stay valid."""
        with self._turn:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def reading(self) -> Iterator[Version]:
        """Let all methods see one and the same state, and yield its version.

        The outermost block takes the state that was committed last. Old arrays stay
        valid, also when a merge has replaced them.
        """
        with self._state() as manifest:
            yield manifest.version

    @property
    def version(self) -> Version:
        """The generation of the arrays and the number of the last change; cheap to ask for."""
        with self._turn:
            if self._snapshot is not None:
                return self._snapshot.version
            self._thaw()
            return read_manifest(self._database).version

    @property
    def n_points(self) -> int:
        """Number of points that were not removed."""
        with self.reading():
            ((count,),) = self._database.rows("SELECT count(*) FROM points")
            return int(count)

    @property
    def n_pending(self) -> int:
        """Number of changes that the arrays do not contain yet."""
        with self._state() as manifest:
            return manifest.sequence - manifest.merged

    @property
    def pending_bytes(self) -> int:
        """Bytes of the arrays of these changes; cheap to ask for."""
        with self.reading():
            return size_of_changes(self._database)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were stored with the arrays."""
        with self._state() as manifest:
            settings: dict[str, Any] = json.loads(manifest.settings)
            return settings

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays, read-only and mapped into memory."""
        with self.reading():
            return dict(self._arrays)

    @property
    def columns(self) -> dict[str, str]:
        """Names of the payload's columns, and of what kind each is."""
        with self._state() as manifest:
            return {column.name: column.kind for column in manifest.columns}

    def changes(self, after: int = 0) -> Iterator[tuple[int, dict[str, Array]]]:
        """Yield number and arrays of the pending changes after a number; inside of `reading`.

        One change at a time is read, so that a long log needs little memory.
        """
        with self._turn:  # another thread's block is none of ours
            manifest = self._snapshot
        if manifest is None:
            raise InputError("changes are read inside of reading(); begin such a block.")
        return self._changes_of(manifest, after)

    def _changes_of(self, manifest: Manifest, after: int) -> Iterator[tuple[int, dict[str, Array]]]:
        changes = read_changes(self._database, manifest, after)
        while True:
            with self._turn:
                if self._snapshot is not manifest:
                    raise InputError("changes were read on after reading() had ended.")
                change = next(changes, None)
            if change is None:
                return
            yield change

    def slots_of(self, ids: Sequence[Id]) -> Slots:
        """Return the slot of each id."""
        checked = checked_ids(ids)
        with self.reading():
            return find_slots(self._database, checked)

    @property
    def largest_number(self) -> int | None:
        """The largest id that is a number."""
        with self.reading():
            return largest_number(self._database)

    def ids_of(self, slots: Any) -> list[Id]:
        """Return the id at each slot."""
        checked = checked_slots(slots, "slots")
        with self.reading():
            return [row[0] for row in rows_of(self._database, "id", checked)]

    def payload_of(
        self, slots: Any, columns: Sequence[str] | None = None
    ) -> dict[str, list[Value]]:
        """Return the payload at some slots, column by column; all columns if none are named."""
        checked = checked_slots(slots, "slots")
        with self._state() as manifest:
            known = {column.name: column for column in manifest.columns}
            unknown = [name for name in columns or () if name not in known]
            if unknown:
                raise InputError(
                    f"there is no column {unknown[0]!r}; known are {', '.join(known) or 'none'}."
                )
            chosen = [known[name] for name in (known if columns is None else columns)]
            return payload_columns(self._database, chosen, checked)

    def matching(self, condition: str) -> Slots:
        """Return the slots where a condition holds, ascending; see ``storage.conditions``."""
        with self._state() as manifest:
            sql, values = translate(condition, manifest.columns)
            rows = self._database.rows(
                f"SELECT slot FROM points WHERE {sql} ORDER BY slot",  # noqa: S608
                values,
            )
            return np.array([slot for (slot,) in rows], dtype=np.int64)

    def verify(self) -> None:
        """Check what opening does not: every page of the database, all points and changes."""
        with self._state() as manifest:
            found = self._database.rows("PRAGMA integrity_check(1)")
            if found != [("ok",)]:
                raise damaged(self._database, f"{found[0][0]}")
            check_points(self._database, manifest.columns)
            for _ in self.changes():
                pass

    @contextmanager
    def _state(self) -> Iterator[Manifest]:
        with self._turn:
            if self._snapshot is not None:
                yield self._snapshot
                return
            self._snapshot = self._begin()
            try:
                yield self._snapshot
            finally:
                self._snapshot = None
                self._database.end()

    def _begin(self) -> Manifest:
        """Begin a snapshot whose arrays are loaded."""
        self._thaw()
        while True:
            self._database.rows("BEGIN")
            try:
                manifest = read_manifest(self._database)
                if manifest.generation != self._generation:
                    check_tables(self._database, manifest.columns)
                    self._arrays = read_segments(self.folder, self._database, manifest.generation)
                    self._generation = manifest.generation
            except FileNotFoundError as error:
                self._database.end()
                if self.version.generation == manifest.generation:
                    raise StorageError(f"{error.filename!r} is missing; {MEND}.") from error
                continue  # a merge has just replaced it
            except BaseException:
                self._database.end()
                raise
            return manifest

    def _thaw(self) -> None:
        """Open the file anew where SQLite would not notice that it has changed."""
        if self._database.frozen:
            self._database.close()
            self._database = Database(self.folder / DATABASE, self._mode)
