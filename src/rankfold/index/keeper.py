"""A store and the engine that follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.neighbors import Change, LivingEngine
from rankfold.storage import Store, Version
from rankfold.types import FloatArray, IntArray

FEW_PENDING, POINTS_PER_PENDING = 100, 1000
"""Changes that may wait before they are merged: so many, and one more for so many points."""

FEW_BYTES, PENDING_SHARE = 2**24, 0.25
"""Size that they may have: so many bytes, and this share of all arrays."""

NOWHERE = Version(0, 0)


class Keeper:
    """Keeps an engine in the state that its store has committed last. Threads take turns.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.version = NOWHERE
        self._engine: LivingEngine
        self._turn = RLock()
        self._changed: list[tuple[int, IntArray]] = []
        self._restored = 0

    @contextmanager
    def current(self) -> Iterator[LivingEngine]:
        """Yield the engine in the state committed last; ids and payload stay at that state."""
        with self._turn, self.store.reading() as version:
            if version != self.version:
                self._follow(version)
            yield self._engine

    def _follow(self, version: Version) -> None:
        known, self.version = self.version, NOWHERE  # until all is done, nothing is known
        if version.generation != known.generation:
            known, self._changed, self._restored = NOWHERE, [], version.sequence
            self._engine = LivingEngine.restore(self.store.arrays, self.store.settings["engine"])
        for sequence, arrays in self.store.changes(known.sequence):
            change = Change.of(arrays)
            self._engine.apply(change)
            self._remember(sequence, change)
        self.version = version

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Keep other threads out while a change is prepared and made; merge before if it is time.

        A merge that fails then leaves no doubt whether the change was made: it was not.
        """
        with self._turn:
            self.store.check_writable()
            if self._merge_is_due():
                self.merge()
            yield

    def _merge_is_due(self) -> bool:
        """Tell whether following all changes would take an opening process too long."""
        with self.current() as engine:
            most = FEW_PENDING + engine.n_points / POINTS_PER_PENDING
            size = sum(array.nbytes for array in self.store.arrays.values())
            too_large = self.store.pending_bytes >= FEW_BYTES + PENDING_SHARE * size
            return too_large or self.store.n_pending >= most

    def _remember(self, sequence: int, change: Change) -> None:
        self._changed.append((sequence, np.union1d(change.rows, change.removed)))

    def changed_since(self, version: Version) -> IntArray | None:
        """Return the rows that have changed since a version; None where it was another engine."""
        if version.generation != self.version.generation or version.sequence < self._restored:
            return None
        rows = [rows for sequence, rows in self._changed if sequence > version.sequence]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.intp)

    def change(
        self,
        removed: Any = (),
        vectors: FloatArray | None = None,
        ids: Sequence[Any] = (),
        payload: dict[str, Any] | None = None,
    ) -> None:
        """Remove points, add others, and return once that is on disk; inside of `changing`.

        Parameters
        ----------
        removed : array of int
            Slots.
        vectors, ids, payload
            Of the points to add.
        """
        with self.current() as engine:
            first = engine.n_points
            try:
                change = engine.plan(removed, vectors)
            except InputError:
                raise
            except BaseException:
                self.version = NOWHERE  # planning may have been interrupted half-way
                raise
        sequence = self.store.append(
            change.arrays(),
            removed=change.removed,
            added_slots=range(first, first + len(change.added)),
            ids=ids,
            payload=payload,
        )
        generation, self.version = self.version.generation, NOWHERE
        engine.apply(change)
        self._remember(sequence, change)
        self.version = Version(generation, sequence)

    def compacted(self) -> tuple[dict[str, Any], dict[str, Any], IntArray]:
        """Return arrays and settings without removed points, and the slots that were kept."""
        with self.current() as engine:
            arrays, settings, kept = engine.compacted()
            return arrays, {**self.store.settings, "engine": settings}, kept

    def merge(self) -> None:
        """Put everything that changed into fresh arrays, without removed points."""
        with self._turn:
            self.store.check_writable()
            self.store.merge(*self.compacted())

    def move(self, path: str | Path, *, replace: bool) -> None:
        """Copy everything to another folder and go on there; no change can come in between."""
        with self._turn:
            with self.current():
                arrays, settings, kept = self.compacted()
                ids, payload = self.store.ids_of(kept), self.store.payload_of(kept)
            Store.create(path, arrays, settings, ids, payload, replace=replace)
            there = Store.open(path, write=True)
            self.store.close()
            self.store, self.version = there, NOWHERE

    def close(self) -> None:
        """Close the store."""
        with self._turn:
            self.store.close()
