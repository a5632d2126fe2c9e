"""The reading half of a store, and the snapshots that its threads read from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Lock, local
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from rankfold.check import about
from rankfold.errors import InputError, StorageError
from rankfold.storage.columns import (
    Column,
    Id,
    Slots,
    Value,
    checked_ids,
    checked_slots,
    held_among,
)
from rankfold.storage.conditions import translate
from rankfold.storage.database import (
    DATABASE,
    MEND,
    Manifest,
    Row,
    SqliteDatabase,
    SqlitePool,
    Version,
    check_tables,
    damaged,
    manifest_of,
    read_manifest,
    text_columns,
)
from rankfold.storage.points import (
    are_held,
    check_points,
    find_slots,
    ids_and_payload,
    largest_number,
    rows_of,
)
from rankfold.storage.segments import Array, read_changes, read_segments, size_of_changes
from rankfold.storage.words import check_words, find_words, match_of, searched_columns
from rankfold.types import FloatArray


def _where(condition: str | None, columns: Sequence[Column]) -> tuple[str, list[object]]:
    if condition is None:
        return "", []
    sql, values = translate(condition, columns)
    return f"WHERE ({sql})", values


class Snapshot(NamedTuple):
    """A state, and the connection by which it is held."""

    database: SqliteDatabase
    manifest: Manifest
    arrays: dict[str, Array]
    version: Version


class Snapshots:
    """The snapshots of all threads, and the arrays of the newest.

    Parameters
    ----------
    folder : Path
        Of the store.
    connections : SqlitePool
        To its database.
    """

    def __init__(self, folder: Path, connections: SqlitePool) -> None:
        self._folder, self._connections = folder, connections
        self._of_thread = local()
        self._loading = Lock()
        self._newest: tuple[list[Row], Snapshot] | None = None
        self._loaded: tuple[int, dict[str, Array]] = (0, {})

    @property
    def held(self) -> Snapshot | None:
        """What this thread holds on to."""
        return getattr(self._of_thread, "snapshot", None)

    @property
    def version(self) -> Version:
        """That of the state which this thread holds on to, or which was committed last."""
        if self.held is not None:
            return self.held.version
        with self._connections.borrowed() as database:
            return read_manifest(database).version

    def holding(self) -> AbstractContextManager[Snapshot]:
        """Hold on to the state that was committed last, or to the one that this thread has."""
        held = self.held
        return self._taken() if held is None else nullcontext(held)

    @contextmanager
    def _taken(self) -> Iterator[Snapshot]:
        snapshot = None
        while snapshot is None:
            database = self._connections.take()
            try:
                rows, known = database.begin(), self._newest
                if known is not None and known[0] == rows:  # it was checked before
                    snapshot = known[1]._replace(database=database)
                else:
                    snapshot = self._of(database, rows)
                if snapshot is not None:
                    self._of_thread.snapshot = snapshot
                    yield snapshot
            finally:
                self._of_thread.snapshot = None
                self._connections.give_back(database)

    def _of(self, database: SqliteDatabase, rows: list[Row]) -> Snapshot | None:
        """Return the snapshot that was begun; None where a merge has just replaced its arrays."""
        manifest = manifest_of(database, rows)
        try:
            arrays = self._arrays(database, manifest)
        except FileNotFoundError as error:
            if self.version.generation == manifest.generation:
                raise StorageError(f"{error.filename!r} is missing; {MEND}.") from error
            return None
        snapshot = Snapshot(database, manifest, arrays, manifest.version)
        self._newest = rows, snapshot
        return snapshot

    def _arrays(self, database: SqliteDatabase, manifest: Manifest) -> dict[str, Array]:
        with self._loading:  # every byte is read, so that one thread does it for all
            generation, arrays = self._loaded
            if generation != manifest.generation:
                check_tables(database, manifest.columns)
                arrays = read_segments(
                    self._folder, database, manifest.generation, manifest.segments
                )
                self._loaded = manifest.generation, arrays
            return arrays


class Reader:
    """What can be asked of an open store.

    Every method sees the state that was committed last; ``reading`` holds on to one state for
    several. Threads read at the same time, each by a connection and in a state of its own.
    What is returned of a point was compared with its checksum; `verify` looks at all the rest.
    """

    def __init__(self, folder: Path, mode: str) -> None:
        self.folder = folder
        self._connections = SqlitePool(folder / DATABASE, mode)
        self._snapshots = Snapshots(folder, self._connections)
        try:
            with self.reading():  # loads the arrays
                pass
        except BaseException:
            self._connections.close()
            raise

    def close(self) -> None:
        """Close the store; arrays that were taken from it stay valid.

        Threads inside of ``reading`` may finish.
        """
        self._connections.close()

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
        """Let all methods see one and the same state in this thread, and yield its version.

        The outermost block takes the state that was committed last. Old arrays stay
        valid, also when a merge has replaced them.
        """
        with self._snapshots.holding() as snapshot:
            yield snapshot.version

    @property
    def version(self) -> Version:
        """The generation of the arrays and the number of the last change; cheap to ask for."""
        return self._snapshots.version

    @property
    def n_points(self) -> int:
        """Number of points that were not removed."""
        with self._snapshots.holding() as (database, *_):
            ((count,),) = database.rows("SELECT count(*) FROM points")
            return int(count)

    @property
    def n_pending(self) -> int:
        """Number of changes that the arrays do not contain yet."""
        with self._snapshots.holding() as (_, manifest, *_):
            return manifest.sequence - manifest.merged

    def sizes(self) -> tuple[int, int, int]:
        """Return how many changes are pending, and the bytes of their arrays and of all others."""
        with self._snapshots.holding() as (database, manifest, arrays, _):
            stored = sum(array.nbytes for array in arrays.values())
            return manifest.sequence - manifest.merged, size_of_changes(database), stored

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were stored with the arrays."""
        with self._snapshots.holding() as (_, manifest, *_):
            settings: dict[str, Any] = json.loads(manifest.settings)
            return settings

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays, read-only and mapped into memory."""
        with self._snapshots.holding() as snapshot:
            return dict(snapshot.arrays)

    @property
    def columns(self) -> dict[str, str]:
        """Names of the payload's columns, and of what kind each is."""
        with self._snapshots.holding() as (_, manifest, *_):
            return {column.name: column.kind for column in manifest.columns}

    def changes(self, after: int = 0) -> Iterator[tuple[int, dict[str, Array]]]:
        """Yield number and arrays of the pending changes after a number; inside of `reading`.

        One change at a time is read, so that a long log needs little memory.
        """
        snapshot = self._snapshots.held
        if snapshot is None:
            raise InputError("changes are read inside of reading(); begin such a block.")
        manifest = snapshot.manifest
        none = manifest.sequence <= max(after, manifest.merged)
        return iter(()) if none else self._changes_of(snapshot, after)

    def _changes_of(self, snapshot: Snapshot, after: int) -> Iterator[tuple[int, dict[str, Array]]]:
        changes = read_changes(snapshot.database, snapshot.manifest, after)
        while True:
            if self._snapshots.held is not snapshot:
                raise InputError("changes were read on after reading() had ended.")
            change = next(changes, None)
            if change is None:
                return
            yield change

    def slots_of(self, ids: Sequence[Id]) -> Slots:
        """Return the slot of each id."""
        with self._snapshots.holding() as (database, manifest, *_):
            return find_slots(database, manifest.columns, checked_ids(ids))

    def holds(self, ids: Sequence[Any]) -> list[bool]:
        """Tell of each id whether a point has it."""
        with self._snapshots.holding() as (database, manifest, *_):
            return held_among(ids, partial(are_held, database, manifest.columns))

    @property
    def largest_number(self) -> int | None:
        """The largest id that is a number."""
        with self._snapshots.holding() as (database, *_):
            return largest_number(database)

    def ids_of(self, slots: Any) -> list[Id]:
        """Return the id at each slot."""
        with self._snapshots.holding() as (database, manifest, *_):
            checked = checked_slots(slots, "slots")
            return [row[0] for row in rows_of(database, manifest.columns, checked)]

    def payload_of(
        self, slots: Any, columns: Sequence[str] | None = None
    ) -> dict[str, list[Value]]:
        """Return the payload at some slots, column by column; all columns if none are named."""
        checked = checked_slots(slots, "slots")
        with self._snapshots.holding() as (database, manifest, *_):
            known = {column.name: column for column in manifest.columns}
            unknown = [name for name in columns or () if name not in known]
            if unknown:
                raise InputError(
                    f"there is no column {unknown[0]!r}; known are {', '.join(known) or 'none'}."
                )
            chosen = [known[name] for name in (known if columns is None else columns)]
            return ids_and_payload(database, manifest.columns, chosen, checked)[1]

    def points_of(self, slots: Any) -> tuple[list[Id], dict[str, list[Value]]]:
        """Return ids and payload at some slots."""
        with self._snapshots.holding() as (database, manifest, *_):
            checked = checked_slots(slots, "slots")
            return ids_and_payload(database, manifest.columns, manifest.columns, checked)

    def matching(self, condition: str) -> Slots:
        """Return the slots where a condition holds, ascending; see ``storage.conditions``."""
        with self._snapshots.holding() as (database, manifest, *_):
            sql, values = translate(condition, manifest.columns)
            rows = database.rows(
                f"SELECT slot FROM points WHERE {sql} ORDER BY slot",  # noqa: S608
                values,
            )
            return np.array([slot for (slot,) in rows], dtype=np.int64)

    def count(self, condition: str | None = None) -> int:
        """Return how many points meet a condition, or how many there are."""
        with self._snapshots.holding() as (database, manifest, *_):
            where, values = _where(condition, manifest.columns)
            ((count,),) = database.rows(f"SELECT count(*) FROM points {where}", values)  # noqa: S608
            return int(count)

    def ids_after(self, after: Id | None, condition: str | None, most: int) -> list[Id]:
        """Return ids that follow one in their order, numbers before texts, some at most."""
        with self._snapshots.holding() as (database, manifest, *_):
            where, values = _where(condition, manifest.columns)
            if after is not None:
                (after,) = checked_ids([after])
                where = f"{where} {'AND' if where else 'WHERE'} id > ?"
                values = [*values, after]
            rows = database.rows(
                f"SELECT id FROM points {where} ORDER BY id LIMIT ?",  # noqa: S608
                [*values, most],
            )
            return [name for (name,) in rows]

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns in which words can be found."""
        with self._snapshots.holding() as (_, manifest, *_):
            return [column.name for column in text_columns(manifest.columns)]

    def find(
        self,
        words: str,
        columns: Sequence[str] | None = None,
        condition: str | None = None,
        most: int = 10,
    ) -> tuple[Slots, FloatArray]:
        """Return slots of points that hold any of some words, best first, and their scores.

        Parameters
        ----------
        words : str
            Words, "phrases in quotes", and beginnings of words such as ``che*``.
        columns : list of str, optional
            Text columns to look in; all by default.
        condition : str, optional
            As for `matching`.
        most : int
            How many.
        """
        with self._snapshots.holding() as (database, manifest, *_):
            match = match_of(words, searched_columns(manifest.columns, columns))
            with about("where"):
                where = None if condition is None else translate(condition, manifest.columns)
            return find_words(database, match, where, most)

    def verify(self) -> None:
        """Check what opening does not: every page of the database, all points and changes."""
        with self._snapshots.holding() as (database, manifest, *_):
            found = database.rows("PRAGMA integrity_check(1)")
            if found != [("ok",)]:
                raise damaged(database, " ".join(str(found[0][0]).split()))
            check_points(database, manifest.columns)
            check_words(database, manifest.columns)
            for _ in self.changes():
                pass
