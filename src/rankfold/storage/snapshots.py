"""States of a store that threads hold on to, each one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, local
from typing import NamedTuple

from rankfold.check import StorageError
from rankfold.storage.connections import Connections
from rankfold.storage.database import MEND, Database
from rankfold.storage.manifest import Manifest, Version, check_tables, read_manifest
from rankfold.storage.segments import Array, read_segments


class Snapshot(NamedTuple):
    """A state, and the connection by which it is held."""

    database: Database
    manifest: Manifest
    arrays: dict[str, Array]


class Snapshots:
    """The snapshots of all threads, and the arrays of the newest.

    Parameters
    ----------
    folder : Path
        Of the store.
    connections : Connections
        To its database.
    """

    def __init__(self, folder: Path, connections: Connections) -> None:
        self._folder, self._connections = folder, connections
        self._of_thread = local()
        self._loading = Lock()
        self._loaded: tuple[int, dict[str, Array]] = (0, {})

    @property
    def held(self) -> Snapshot | None:
        """What this thread holds on to."""
        return getattr(self._of_thread, "snapshot", None)

    @property
    def version(self) -> Version:
        """That of the state which this thread holds on to, or which was committed last."""
        if self.held is not None:
            return self.held.manifest.version
        with self._connections.borrowed() as database:
            return read_manifest(database).version

    @contextmanager
    def holding(self) -> Iterator[Snapshot]:
        """Hold on to the state that was committed last, or to the one that this thread has."""
        if self.held is not None:
            yield self.held
            return
        while True:
            with self._connections.borrowed() as database:
                snapshot = self._begun(database)
                if snapshot is not None:
                    try:
                        self._of_thread.snapshot = snapshot
                        yield snapshot
                    finally:
                        self._of_thread.snapshot = None
                    return

    def _begun(self, database: Database) -> Snapshot | None:
        """Begin a snapshot whose arrays are loaded; None where a merge has just replaced them."""
        database.rows("BEGIN")
        manifest = read_manifest(database)
        try:
            return Snapshot(database, manifest, self._arrays(database, manifest))
        except FileNotFoundError as error:
            if self.version.generation == manifest.generation:
                raise StorageError(f"{error.filename!r} is missing; {MEND}.") from error
            return None

    def _arrays(self, database: Database, manifest: Manifest) -> dict[str, Array]:
        with self._loading:  # every byte is read, so that one thread does it for all
            generation, arrays = self._loaded
            if generation != manifest.generation:
                check_tables(database, manifest.columns)
                arrays = read_segments(
                    self._folder, database, manifest.generation, manifest.segments
                )
                self._loaded = manifest.generation, arrays
            return arrays
