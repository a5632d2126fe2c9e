"""The folder behind an index: a store on disk, and the engine that follows it."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

import numpy as np

from rankfold.check import (
    InputError,
    check_choice,
    check_count,
    check_flag,
    check_matrix,
    check_share,
)
from rankfold.files import replacing
from rankfold.graph.adaptive import choose_from_sample, stored_width
from rankfold.graph.collective import Learning, Stage, learning_of
from rankfold.inputs import Points, as_columns
from rankfold.layout import Layout, Map, check_layout, lay_out, projected
from rankfold.locks import ReadWriteLock
from rankfold.neighbors import Change, DynamicEngine, Learned, Round, check_state, choose_engine
from rankfold.storage import Store, Version
from rankfold.storage.columns import checked_payload, distinct_ids
from rankfold.storage.database import understood
from rankfold.types import FloatArray, IntArray, Neighbors


def checked_input(
    X: Any, ids: Any, payload: Any, metric: str, recall: float, layout: str
) -> Points:
    """Check everything before any work is done with it."""
    check_choice(metric, "metric", ("euclidean", "cosine"))
    check_share(recall, "recall", one=True)
    vectors = check_matrix(X, "X")
    check_layout(layout, vectors.shape[1])
    if not len(vectors):
        raise InputError("X has no rows; give at least one point.")
    names = None if ids is None else distinct_ids(ids)
    if names is not None:
        check_as_many(vectors, names)
    columns = as_columns(payload, len(vectors))
    checked_payload(columns, len(vectors))
    return Points(vectors, names, columns)


def check_as_many(vectors: FloatArray, ids: Sized) -> None:
    """Require an id for every vector."""
    if len(vectors) != len(ids):
        raise InputError(f"there are {len(vectors)} vectors and {len(ids)} ids; give as many.")


def built(
    points: Points,
    metric: str,
    n_neighbors: int | Literal["auto"],
    recall: float,
    layout: Layout,
    progress: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Search the lists of all points and draw their map; return arrays and settings."""
    engine = choose_engine(points.vectors, metric, recall, progress)
    chosen = choose_from_sample(engine, n_neighbors)
    width = stored_width(chosen, np.iinfo(np.int32).max)
    living = DynamicEngine.build(
        points.vectors, metric, width, recall=recall, progress=progress, engine=engine
    )
    arrays, settings = living.state()
    places, drawn = mapped(living, layout, chosen, progress)
    everything = {
        "engine": settings,
        "n_neighbors": chosen,
        "numbered": points.ids is None,
        **drawn,
    }
    return {**arrays, **places}, everything


def mapped(
    engine: DynamicEngine, layout: Layout, n_neighbors: int, progress: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a map of points of which none was removed; return its arrays and settings."""
    drawn = lay_out(engine, layout, n_neighbors, progress)
    if drawn is None:
        return {}, {"layout": None}
    return drawn.arrays(np.arange(engine.n_points)), {"layout": drawn.kind}


STAGE = "learning.npz"
"""The file beside the store that a stopped learning goes on from."""

PARTIAL = re.compile(rf"\.{re.escape(STAGE)}\.\d+-[0-9a-f]{{8}}\.partial")
"""What `replacing` calls it while it is written."""

ROOM = 2**16
"""Bytes that its description and the frame of the file may take."""


def learned_graph(
    engine: DynamicEngine,
    n_neighbors: int,
    smoothness: float,
    folder: Path,
    version: Version,
    progress: bool,
) -> Learned:
    """Learn a graph for all points of an engine; go on where the same was stopped before.

    Parameters
    ----------
    engine : DynamicEngine
        Without removed slots.
    n_neighbors : int
        Neighbours in the plain graph.
    smoothness : float
        That of the queries that will be asked.
    folder : Path
        Of the store, where stages are kept.
    version : Version
        The state of the store that the engine holds.
    progress : bool
        Whether to show a bar on stderr.
    """
    chosen = min(n_neighbors, max(1, engine.n_alive - 2))
    learning = learning_of(engine, chosen, smoothness, progress=progress)
    stages = Stages.of(folder, learning, version)
    return replace(learning, keep=stages.write).run(stages.read())


@dataclass(frozen=True)
class Stages:
    """Keeps the last stage of a learning in a file, which nobody else writes meanwhile.

    Parameters
    ----------
    path : Path
    state : dict
        What a stage belongs to, as JSON can hold it; stages of another are ignored.
    shape : tuple of int
        That of the candidates.
    """

    path: Path
    state: dict[str, Any]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path, learning: Learning, version: Version) -> Stages:
        """Return the stages of a learning in a state of a store."""
        state = {
            "generation": version.generation,
            "sequence": version.sequence,
            "n_neighbors": learning.n_neighbors,
            "smoothness": float(learning.smoothness),
            "attempts": [list(attempt) for attempt in learning.attempts],
            "weight": learning.weight,
            "profile_smoothness": learning.profile_smoothness,
            "profile_tol": learning.profile_tol,
            "candidates": _checksum(learning.candidates),
        }
        return cls(folder / STAGE, state, learning.candidates.indices.shape)

    def write(self, stage: Stage) -> None:
        """Put a stage into the place of the one before."""
        rounds = [asdict(made) for made in stage.rounds]
        text = json.dumps({"state": self.state, "attempt": stage.attempt, "rounds": rounds})
        described = np.frombuffer(text.encode(), dtype=np.uint8)
        with replacing(self.path) as partial, partial.open("wb") as file:
            np.savez(file, described=described, lifted=stage.lifted)

    def read(self) -> Stage | None:
        """Return the stage to go on from; sweep what is left of any other."""
        try:
            stage = self._read()
        except Exception:  # a file that is damaged or not ours raises almost anything
            stage = None
        if stage is None:
            sweep(self.path.parent)
        return stage

    def _read(self) -> Stage | None:
        found = self.path.lstat()  # a link is none of ours, and what is no file may never end
        if not S_ISREG(found.st_mode) or found.st_size > 8 * int(np.prod(self.shape)) + ROOM:
            return None
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            described = json.loads(archive["described"].tobytes())
            if described["state"] != self.state:
                return None
            lifted = archive["lifted"]
        attempt = described["attempt"]
        rounds = tuple(Round(**made) for made in described["rounds"])
        fits = lifted.shape == self.shape and lifted.dtype == np.float64 and (lifted >= 0).all()
        known = isinstance(attempt, int) and attempt in range(len(self.state["attempts"]))
        if not (fits and known):
            return None
        return Stage(attempt, lifted, rounds)


def _checksum(lists: Neighbors) -> int:
    """Sum up lists: a search that is not exact may find others in the same state of a store."""
    found = zlib.crc32(np.ascontiguousarray(lists.indices).data)
    return zlib.crc32(np.ascontiguousarray(lists.sq_distances).data, found)


def sweep(folder: Path) -> None:
    """Delete a stage, and what a process that was killed left behind while it wrote one.

    Folders, links and files of other names are left alone.
    """
    for left in (folder / STAGE, *folder.glob(f".{STAGE}.*.partial")):
        named = left.name == STAGE or PARTIAL.fullmatch(left.name)
        if named and left.is_file() and not left.is_symlink():
            left.unlink(missing_ok=True)


FEW_PENDING, POINTS_PER_PENDING = 100, 1000
"""Changes that may wait before they are merged: so many, and one more for so many points."""

FEW_BYTES, PENDING_SHARE = 2**24, 0.25
"""Size that they may have: so many bytes, and this share of all arrays."""

State = tuple[dict[str, Any], dict[str, Any], list[Any], dict[str, list[Any]]]
"""All of an index without removed points: arrays, settings, ids and payload."""

NOWHERE = Version(0, 0)

MOST_FOLLOWED = 3
"""How often a reader follows another process that changes again at once, before it stays alone."""


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
        self._map: Map | None = None
        self._drawn: tuple[Version, Map] | None = None
        self._not_learned: tuple[Version, int] | None = None
        self._lock = ReadWriteLock()
        self._changed: list[tuple[int, IntArray]] = []
        self._restored = 0

    @contextmanager
    def current(self) -> Iterator[DynamicEngine]:
        """Yield the engine in the state committed last; ids and payload stay at that state."""
        for _ in range(MOST_FOLLOWED):
            with self._lock.reading(), self.store.reading() as version:
                if version == self.version:
                    yield self._engine
                    return
            with self._lock.writing(), self.store.reading() as version:
                self._follow(version)
        with self._lock.writing(), self.store.reading() as version:
            self._follow(version)
            yield self._engine

    def _follow(self, version: Version) -> None:
        """Bring the engine to a version, that of the snapshot; alone."""
        if version == self.version:
            return
        known, self.version = self.version, NOWHERE  # until all is done, nothing is known
        if version.generation != known.generation:
            known, self._changed, self._restored = NOWHERE, [], version.sequence
            self._drawn = self._not_learned = None
            with understood(self.store.folder):
                self._restore(self.store.arrays, self.store.settings)
        with understood(self.store.folder):
            for sequence, arrays in self.store.changes(known.sequence):
                self._apply(sequence, Change.of(arrays), arrays.get("places"))
            if known == NOWHERE and self._engine.n_alive != self.store.n_points:
                raise InputError(
                    f"there are {self._engine.n_alive} vectors of {self.store.n_points} points"
                )
        self.version = version

    def _restore(self, arrays: dict[str, Any], settings: dict[str, Any]) -> None:
        """Make engine and map from their state, after checking all of it."""
        check_count(settings["n_neighbors"], "n_neighbors")
        check_flag(settings["numbered"], "numbered")
        check_state(arrays, settings["engine"])
        self._engine = DynamicEngine.restore(arrays, settings["engine"])
        self._map = Map.restore(arrays, settings.get("layout"))

    def _apply(self, sequence: int, change: Change, places: FloatArray | None) -> None:
        if self._map is not None:
            if places is None:  # whoever made the change knew of no map
                places = self._map.places_of_new(self._engine, change)
            self._map.append(places)
        self._engine.apply(change)
        self._changed.append((sequence, np.union1d(change.rows, change.removed)))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be alone while a change is prepared and made; merge before if it is time.

        A merge that fails then leaves no doubt whether the change was made: it was not.
        """
        with self._lock.writing():
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
        with self._lock.writing():
            self.store.check_writable()
            self._renew(*self.compacted())

    def _renew(self, arrays: dict[str, Any], settings: dict[str, Any], kept: IntArray) -> None:
        """Begin a new generation; a learning that was stopped belongs to an older one then."""
        self.store.merge(arrays, settings, kept)
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
            return arrays, settings, *self.store.points_of(kept)

    def lay_out(self, layout: Layout, progress: bool) -> None:
        """Give all points new places, and merge what has changed with them."""
        with self._lock.writing():
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
        with self._lock.writing():
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
        with self._lock.writing():
            Store.create(path, *self.state(), replace=replace)
            there = Store.open(path, write=True)
            self.store.close()
            self.store, self.version = there, NOWHERE

    def close(self) -> None:
        """Close the store, once nobody reads."""
        with self._lock.writing():
            self.store.close()
