"""The folder behind an index: a store on disk, and the engine that follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock, get_ident, local
from typing import Any

import numpy as np

from rankfold.check import (
    check_count,
    check_flag,
)
from rankfold.errors import InputError
from rankfold.index.build import (
    EmbedderSettings,
    learned_graph,
    mapped,
    plain_graph,
    sweep,
)
from rankfold.layout import Layout, Map, check_layout, projected
from rankfold.neighbors import (
    Change,
    DynamicEngine,
    KeptGraph,
    Learned,
    check_state,
)
from rankfold.storage import Store, Version
from rankfold.storage.database import understood
from rankfold.types import FloatArray, IntArray

FEW_PENDING, POINTS_PER_PENDING = 100, 1000
"""Changes that may wait before they are merged: so many, and one more for so many points."""

FEW_BYTES, PENDING_SHARE = 2**24, 0.25
"""Size that they may have: so many bytes, and this share of all arrays."""

State = tuple[dict[str, Any], dict[str, Any], list[Any], dict[str, list[Any]]]
"""All of an index without removed points: arrays, settings, ids and payload."""

NOWHERE = Version(0, 0)

MOST_FOLLOWED = 3
"""How often a reader follows another process that changes again at once, before it stays alone."""


class ReadWriteLock:
    """Lets threads in together, or one alone; whoever wants to be alone goes first.

    Each thread has a lock of its own, which it holds for as long as it is inside or wants to be
    alone, and which all others can see. There is nothing else to know, and others wait by these
    locks only; so an exception in any place, also that of Ctrl-C, leaves nobody waiting.

    1. Who comes to be together locks and shows its lock, then looks for those who want to be alone.
       If there are any, it unlocks, waits for them and tries again; else it is inside.
    2. Who wants to be alone locks and shows its lock, waits for its turn among those who want the
       same, then looks for those who are together and waits for each of them.

    Both show before they look, so of two at least one sees the other. If who comes together is not
    seen, it has shown its lock after the other has looked, hence looks later, sees the
    other and stays outside. So nobody is inside with one who is alone. Who waits in step 1 holds
    nothing, so nobody waits in a circle. After somebody has shown that it wants to be alone, nobody
    comes in, so it waits only for those inside and for others who want to be alone.

    A thread that is inside may enter again; one that is together with others cannot become
    alone, for two that tried would wait for each other.

    Examples
    --------
    >>> lock = ReadWriteLock()
    >>> with lock.writing(), lock.reading():
    ...     pass
    """

    def __init__(self) -> None:
        self.together: dict[int, Lock] = {}
        """The locks of threads that read, by thread."""
        self.alone: dict[int, Lock] = {}
        """The locks of threads that write or wait for their turn to."""
        self._writers = Lock()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock for reading, together with others."""
        me = get_ident()
        if _holds(me, self.together) or _holds(me, self.alone):
            yield
            return
        mine = Lock()
        try:
            while True:
                with mine:
                    self.together[me] = mine
                    before = [lock for lock in list(self.alone.values()) if lock.locked()]
                    if not before:
                        yield
                        return
                for lock in before:
                    _wait_for(lock)
        finally:
            self.together.pop(me, None)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock for writing, alone."""
        me = get_ident()
        if _holds(me, self.together):
            raise InputError("this cannot be done while the same thread reads; let it end first.")
        if _holds(me, self.alone):
            yield
            return
        mine = Lock()
        try:
            with mine:
                self.alone[me] = mine
                with self._writers:
                    for lock in list(self.together.values()):
                        _wait_for(lock)
                    yield
        finally:
            self.alone.pop(me, None)


def _holds(thread: int, locks: dict[int, Lock]) -> bool:
    """Tell whether a thread is there; its lock knows, also where it was stopped half-way."""
    lock = locks.get(thread)
    return lock is not None and lock.locked()


def _wait_for(lock: Lock) -> None:
    with lock:
        pass


class FolderBackend:
    """Keeps an engine in the state that its store has committed last.

    Threads read at the same time, inside of `current`. Whoever changes the engine or its store, or
    replaces or closes them, is alone: it waits for those who read, and those who come later wait
    for it; see `ReadWriteLock`.

    *What is read belongs to one state.* Inside of `current` ids and payload are those of one
    snapshot of the store, held by a connection that no other thread uses; what others commit, here
    or in another process, does not show in it. The engine has the version of that snapshot when
    the block begins, and nobody can change it before the block ends.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.version = NOWHERE
        self._engine: DynamicEngine
        self.n_neighbors: int
        """Neighbours in the graph where a query does not ask for another number."""
        self._map: Map | None = None
        self._drawn: tuple[Version, Map] | None = None
        self._not_learned: tuple[Version, int] | None = None
        self.lock = ReadWriteLock()
        self._changed: list[tuple[int, IntArray]] = []
        self._restored = 0
        self._inside = local()

    def current(self) -> AbstractContextManager[DynamicEngine]:
        """Yield the engine in the state committed last; ids and payload stay at that state."""
        inside = getattr(self._inside, "current", False)
        return nullcontext(self._engine) if inside else self._entered()

    @contextmanager
    def _entered(self) -> Iterator[DynamicEngine]:
        for attempt in range(MOST_FOLLOWED + 1):
            alone = attempt == MOST_FOLLOWED
            lock = self.lock.writing() if alone else self.lock.reading()
            with lock, self.store.reading() as version:
                if alone:
                    self._follow(version)
                if version == self.version:
                    self._inside.current = True
                    try:
                        yield self._engine
                    finally:
                        self._inside.current = False
                    return
            self.follow()

    def follow(self) -> None:
        """Bring the engine to the state committed last."""
        with self.lock.writing(), self.store.reading() as version:
            self._follow(version)

    def _follow(self, version: Version) -> None:
        """Bring the engine to a version, that of the snapshot; alone."""
        if version == self.version:
            return
        known, self.version = self.version, NOWHERE  # until all is done, nothing is known
        with understood(self.store.folder):
            if version.generation != known.generation:
                known, self._changed, self._restored = NOWHERE, [], version.sequence
                self._drawn = self._not_learned = None
                self._restore(self.store.arrays, self.store.settings)
            for sequence, arrays in self.store.changes(known.sequence):
                self._apply(sequence, Change.of(arrays), arrays.get("places"))
            if known == NOWHERE and self._engine.n_alive != self.store.n_points:
                raise InputError(
                    f"there are {self._engine.n_alive} vectors of {self.store.n_points} points"
                )
        self.version = version

    def _restore(self, arrays: dict[str, Any], settings: dict[str, Any]) -> None:
        """Make engine and map from their state, after checking all of it."""
        check_state(arrays, settings["engine"])
        check_count(settings["n_neighbors"], "n_neighbors")
        check_flag(settings["numbered"], "numbered")
        EmbedderSettings.of(settings)
        self._engine = DynamicEngine.restore(arrays, settings["engine"])
        self.n_neighbors = int(settings["n_neighbors"])
        if "graph_starts" in arrays:
            self._engine.graph = KeptGraph.restore(arrays, self.n_neighbors)
        self._map = Map.restore(arrays, settings.get("layout"))

    def _apply(self, sequence: int, change: Change, places: FloatArray | None) -> None:
        if self._map is not None:
            if places is None:  # whoever made the change knew of no map
                places = self._map.places_of_new(self._engine, change)
            self._map.append(places, len(change.added))
        self._engine.apply(change)
        self._changed.append((sequence, np.union1d(change.rows, change.removed)))

    @contextmanager
    def changing(self) -> Iterator[DynamicEngine]:
        """Be alone while a change is prepared and made; merge before if it is time.

        A merge that fails then leaves no doubt whether the change was made: it was not. Nobody
        else can change anything meanwhile, so the engine stays in the state committed last.
        """
        with self.lock.writing():
            self.store.check_writable()
            with self.store.reading() as version:
                self._follow(version)
                merge = self._merge_is_due()
            if merge:
                self.merge()
                self.follow()
            yield self._engine

    def _merge_is_due(self) -> bool:
        """Tell whether following all changes would take an opening process too long."""
        n_pending, pending, stored = self.store.sizes()
        most = FEW_PENDING + self._engine.n_points / POINTS_PER_PENDING
        return n_pending >= most or pending >= FEW_BYTES + PENDING_SHARE * stored

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
        engine = self._engine
        first = engine.n_points
        try:
            change = engine.plan(removed, vectors)
            places = None if self._map is None else self._map.places_of_new(engine, change)
        except InputError:
            raise
        except BaseException:
            self.version = NOWHERE  # planning may have been interrupted half-way
            raise
        sequence = self.store.append(
            change.arrays() if places is None else {**change.arrays(), "places": places},
            removed=change.removed,
            added_slots=range(first, first + len(change.added)),
            ids=ids,
            payload=payload,
        )
        generation, self.version = self.version.generation, NOWHERE
        self._apply(sequence, change, places)
        self.version = Version(generation, sequence)

    def compacted(self) -> tuple[dict[str, Any], dict[str, Any], IntArray]:
        """Return arrays and settings without removed points, and the slots that were kept."""
        with self.current() as engine:
            arrays, settings, kept = engine.compacted()
            everything = {**self.store.settings, "engine": settings}
            return {**arrays, **self._places(kept)}, everything, kept

    def _places(self, kept: IntArray) -> dict[str, Any]:
        return {} if self._map is None else self._map.arrays(kept)

    def merge(self) -> None:
        """Put everything that changed into fresh arrays, without removed points."""
        with self.lock.writing():
            self.store.check_writable()
            self._renew(*self.compacted())

    def _renew(self, arrays: dict[str, Any], settings: dict[str, Any], kept: IntArray) -> None:
        """Begin a new generation; a learning that was stopped belongs to an older one then."""
        graph = plain_graph(arrays, settings["n_neighbors"])
        self.store.merge({**arrays, **graph}, settings, kept)
        sweep(self.store.folder)

    @property
    def layout(self) -> str | None:
        """The kind of the map that is kept; inside of `current`."""
        return None if self._map is None else self._map.kind

    def places(self, slots: IntArray) -> FloatArray:
        """Return the places of points; inside of `current`.

        Where no map is kept, it is drawn by principal components, and kept for this version.
        """
        if self._map is not None:
            return self._map.places[slots]
        if self._drawn is None or self._drawn[0] != self.version:
            self._drawn = self.version, projected(self._engine)
        return self._drawn[1].places[slots]

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it."""
        with self.current() as engine:
            settings = self.store.settings
            return {
                "path": str(self.store.folder),
                "points": engine.n_alive,
                "features": engine.n_features,
                "metric": engine.metric,
                "n_neighbors": settings["n_neighbors"],
                "list_width": engine.width,
                "engine": settings["engine"]["engine"],
                "columns": self.store.columns,
                "text_columns": self.store.text_columns,
                "embedder": settings.get("embedder"),
                "layout": self.layout,
                "learned": self._learned_facts(engine),
                "source": settings.get("source", {}),
                "pending_changes": self.store.n_pending,
                "removed_slots": engine.n_points - engine.n_alive,
                "generation": self.version.generation,
            }

    def _learned_facts(self, engine: DynamicEngine) -> dict[str, Any] | None:
        learned = engine.learned
        if learned is None:
            return None
        if self._not_learned is None or self._not_learned[0] != self.version:
            known = int(learned.known(engine.alive).sum())
            self._not_learned = self.version, engine.n_alive - known if learned.n_rounds else 0
        return {
            "n_neighbors": learned.n_neighbors,
            "rounds": learned.n_rounds,
            "reach": learned.reach,
            "not_learned": self._not_learned[1],
        }

    def state(self) -> State:
        """Return all of it without removed points."""
        with self.current():
            arrays, settings, kept = self.compacted()
            graph = plain_graph(arrays, settings["n_neighbors"])
            return {**arrays, **graph}, settings, *self.store.points_of(kept)

    def lay_out(self, layout: Layout, progress: bool) -> None:
        """Give all points new places, and merge what has changed with them."""
        with self.lock.writing():
            self.store.check_writable()
            with self.current() as engine:
                check_layout(layout, engine.n_features)
                arrays, settings, kept = engine.compacted()
                everything = {**self.store.settings, "engine": settings}
            fresh = DynamicEngine.restore(arrays, settings)
            places, chosen = mapped(fresh, layout, everything["n_neighbors"], progress)
            self._renew({**arrays, **places}, {**everything, **chosen}, kept)

    def learn(self, smoothness: float, progress: bool = False) -> Learned:
        """Learn one graph for all queries, and merge what has changed with it."""
        learned = self._relearn(smoothness, progress)
        assert learned is not None  # noqa: S101
        return learned

    def unlearn(self) -> None:
        """Forget the learned graph."""
        self._relearn(None, False)

    def _relearn(self, smoothness: float | None, progress: bool) -> Learned | None:
        with self.lock.writing():
            self.store.check_writable()
            with self.current() as engine:
                arrays, settings, kept = engine.compacted()
                places, everything, version = self._places(kept), self.store.settings, self.version
            fresh = DynamicEngine.restore(arrays, settings)
            fresh.learned = None
            if smoothness is not None:
                k, folder = everything["n_neighbors"], self.store.folder
                fresh.learned = learned_graph(fresh, k, smoothness, folder, version, progress)
            arrays, settings = fresh.state()
            self._renew({**arrays, **places}, {**everything, "engine": settings}, kept)
            return fresh.learned

    def move(self, path: str | Path, *, replace: bool) -> None:
        """Copy everything to another folder and go on there; no change can come in between."""
        with self.lock.writing():
            Store.create(path, *self.state(), replace=replace)
            there = Store.open(path, write=True)
            self.store.close()
            self.store, self.version = there, NOWHERE

    def close(self) -> None:
        """Close the store, once nobody reads."""
        with self.lock.writing():
            self.store.close()
