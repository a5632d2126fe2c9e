"""A store and the engine that follows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankfold.neighbors import Change, LivingEngine
from rankfold.storage import Store, Version
from rankfold.types import IntArray

FEW_PENDING, POINTS_PER_PENDING = 100, 1000
"""Changes that may wait before they are merged: so many, and one more for so many points."""

NOWHERE = Version(0, 0)


class Keeper:
    """Keeps an engine in the state that its store has committed last.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.version = NOWHERE
        self._engine: LivingEngine
        self._changed: list[tuple[int, IntArray]] = []

    @contextmanager
    def current(self) -> Iterator[LivingEngine]:
        """Yield the engine in the state committed last; ids and payload stay at that state."""
        with self.store.reading() as version:
            if version != self.version:
                self._follow(version)
            yield self._engine

    def _follow(self, version: Version) -> None:
        known, self.version = self.version, NOWHERE  # until all is done, nothing is known
        if version.generation != known.generation:
            known, self._changed = NOWHERE, []
            self._engine = LivingEngine.restore(self.store.arrays, self.store.settings["engine"])
        for sequence, arrays in self.store.changes(known.sequence):
            change = Change.of(arrays)
            self._engine.apply(change)
            self._remember(sequence, change)
        self.version = version

    def _remember(self, sequence: int, change: Change) -> None:
        self._changed.append((sequence, np.union1d(change.rows, change.removed)))

    def changed_since(self, version: Version) -> IntArray | None:
        """Return the rows that have changed since a version; None where all may have."""
        if version.generation != self.version.generation:
            return None
        rows = [rows for sequence, rows in self._changed if sequence > version.sequence]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.intp)

    def change(
        self,
        make: Callable[[LivingEngine], Change],
        ids: Sequence[Any] = (),
        payload: dict[str, Any] | None = None,
    ) -> None:
        """Change the engine, and return once the change is on disk.

        Parameters
        ----------
        make : function of the engine
            Applies a change and returns it; nothing has happened if it fails.
        ids, payload
            Of the points that it adds.
        """
        with self.current() as engine:
            first = engine.n_points
        change = make(engine)
        generation, self.version = self.version.generation, NOWHERE
        sequence = self.store.append(
            change.arrays(),
            removed=change.removed,
            added_slots=range(first, first + len(change.added)),
            ids=ids,
            payload=payload,
        )
        self._remember(sequence, change)
        self.version = Version(generation, sequence)
        if self.store.n_pending > FEW_PENDING + engine.n_points / POINTS_PER_PENDING:
            self.merge()

    def merge(self) -> None:
        """Put everything that changed into fresh arrays, without removed points."""
        with self.current() as engine:
            arrays, settings, kept = engine.compacted()
            all_settings = {**self.store.settings, "engine": settings}
        self.store.merge(arrays, all_settings, kept)
