"""An engine whose points come and go, and whose neighbour lists follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankfold.check import check_choice, check_count, check_indices, check_positive, check_share
from rankfold.errors import InputError
from rankfold.neighbors.distances import GIVEN_METRICS, merge_lists, sq_distances_between
from rankfold.neighbors.exact import EXACT_LIMIT, ExactEngine, choose_engine
from rankfold.neighbors.faiss_engine import FaissEngine
from rankfold.neighbors.faiss_indexes import INDEXES
from rankfold.neighbors.given import KeptGraph, Learned
from rankfold.neighbors.lists import (
    Patch,
    StoredLists,
    inserted,
    lengths,
    measured_entering,
    sought_entering,
    without,
)
from rankfold.neighbors.points import ExactPoints, FaissPoints
from rankfold.types import DEFAULT_RECALL, NOBODY, BoolArray, FloatArray, IntArray, Neighbors, Query

HeldPoints = ExactPoints | FaissPoints

SLACK = 0.5
"""Lists are stored this much longer than they are served, so that they can lose entries."""

KINDS: dict[str, type[HeldPoints]] = {"exact": ExactPoints, "faiss": FaissPoints}

SIZES = {"f": (4, 8), "i": (4, 8), "b": (1,)}
"""Bytes of the numbers of each kind that compiled code knows."""

MOST_EFFORT, LARGEST_SEED = 1024, 2**31 - 2
"""The effort of an index of few points, and what FAISS takes for a seed."""


@dataclass(frozen=True, eq=False)
class Change:
    """What came, what went, and the lists that are different now.

    Parameters
    ----------
    added : array, shape (n_added, n_features)
        New points as the engine holds them; their slots follow those that were there.
    removed : array of int
        Slots that went, ascending.
    rows : array of int
        Slots whose list is new or different, ascending.
    indices, sq_distances : array, shape (n_rows, stored width)
        Their lists.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.neighbors import DynamicEngine
    >>> engine = DynamicEngine.build(np.array([[0.0], [1.0], [3.0]]), "euclidean", width=2)
    >>> change = engine.remove([1])
    >>> Change.of(change.arrays()).rows
    array([0, 2])
    """

    added: FloatArray
    removed: IntArray
    rows: IntArray
    indices: IntArray
    sq_distances: FloatArray

    @property
    def lists(self) -> Neighbors:
        """The lists of ``rows``."""
        return Neighbors(self.indices, self.sq_distances)

    def arrays(self) -> dict[str, Any]:
        """Return the arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, arrays: dict[str, Any]) -> Change:
        """Make a change from its arrays."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})


class ChangePlanner(NamedTuple):
    """Finds out what a change will be, and leaves points and lists as they are.

    Parameters
    ----------
    points : ExactPoints or FaissPoints
    stored : StoredLists
    width : int
        Lists that would fall below this length are searched again.
    """

    points: HeldPoints
    stored: StoredLists
    width: int

    def change(self, removed: IntArray, added: FloatArray) -> Change:
        """Return what removing points and then adding others does to the lists."""
        self.points.bury(removed)
        try:
            patch = self._shortened(removed)
            if len(added):
                patch = self._lengthened(patch, added)
        finally:
            self.points.revive(removed)
        lists = self.stored.shaped(patch.lists)
        return Change(added, removed, patch.rows, lists.indices, lists.sq_distances)

    def _shortened(self, removed: IntArray) -> Patch:
        """Take removed points out of the lists of others."""
        if not len(removed):
            return Patch(removed, self.stored.nothing(0))
        rows = np.unique(self.stored.reverse.sources(removed))
        rows = rows[self.points.alive[rows]]
        before = self.stored.take(rows)
        after = without(before, self.points.alive)
        lost = lengths(after) < lengths(before)
        rows, after = rows[lost], after.take(np.flatnonzero(lost))
        short = lengths(after) < min(self.width, self.points.n_alive - 1)
        if short.any():
            found = self.points.rows(rows[short], self.stored.width)
            after.indices[short], after.sq_distances[short] = found.indices, found.sq_distances
        return Patch(rows, after)

    def _lengthened(self, patch: Patch, added: FloatArray) -> Patch:
        """Search the lists of new points, and put them into those of others."""
        first, width, own = self.points.n_points, self.stored.width, np.arange(len(added))

        def reaches(rows: IntArray) -> FloatArray:
            return self.stored.reaches(rows, patch, self.points.n_alive - 1)

        old = self.points.find(added, width)
        if isinstance(self.points, ExactPoints):
            live = np.flatnonzero(self.points.alive)
            entering = measured_entering(self.points.measured(added), reaches, live, first)
        else:
            around = (self.points.points, added, old.indices, reaches, self.stored.reverse)
            entering = sought_entering(*around, self.points.alive)
        fresh = old
        if len(added) > 1:
            new = self.points.among(added, width)
            named = np.where(new.indices == NOBODY, NOBODY, new.indices + first)
            fresh = merge_lists([old, Neighbors(named, new.sq_distances)], width)
        rows, places = np.unique(entering.lists, return_inverse=True)
        entered = Patch(rows, inserted(self.stored.present(rows, patch), places, entering))
        return patch.joined(entered).joined(Patch(first + own, self.stored.shaped(fresh)))


class DynamicEngine:
    """An engine whose points come and go, with stored lists that follow.

    A *slot* is the row number of a point. Slots ascend in order of arrival; a removed one stays
    empty until `compacted`. Lists of up to ``width`` are read, not searched; after any number of
    changes they are those of an engine that is built from scratch of the points that are left:
    exactly so over exact search, and to the asked recall over FAISS.

    A stored list holds the m nearest of its point for some m of at least ``width``, or all
    others. It is stored longer than it is served, and is searched again only after it has
    lost the difference. The cost of a change is that of searching the new points, and of writing
    the lists that change.

    Use `build` or `restore`.

    Examples
    --------
    >>> import numpy as np
    >>> engine = DynamicEngine.build(np.array([[0.0], [1.0], [3.0]]), "euclidean", width=1)
    >>> change = engine.remove([1])
    >>> engine.rows(np.array([0, 1, 2]), 1).indices.ravel()
    array([ 2, -1,  0], dtype=int32)
    >>> change = engine.add(np.array([[0.5]]))
    >>> engine.rows(np.array([0, 3]), 1).indices.ravel()
    array([3, 0], dtype=int32)
    """

    tie_order = None

    def __init__(
        self,
        points: HeldPoints,
        stored: StoredLists,
        width: int,
        recall: float,
        learned: Learned | None = None,
    ) -> None:
        self._points, self._stored, self.width, self.recall = points, stored, width, recall
        self.learned = learned
        self.graph: KeptGraph | None = None
        """The plain graph of the lists as they were when it was restored, if it is kept."""
        self._changed: list[IntArray] = []
        self.metric, self.n_features = points.metric, points.n_features
        self._note_points()

    @classmethod
    def build(
        cls,
        X: FloatArray,
        metric: str,
        width: int,
        *,
        recall: float = DEFAULT_RECALL,
        progress: bool = False,
        engine: ExactEngine | FaissEngine | None = None,
    ) -> DynamicEngine:
        """Search the lists of all points.

        Parameters
        ----------
        X : array, shape (n_points, n_features)
        metric : {"euclidean", "cosine"}
        width : int
            The length up to which lists are to be had without a search.
        recall : float
            For FAISS, which is taken for more than 20,000 points.
        progress : bool
            Whether FAISS shows a bar on stderr.
        engine : ExactEngine or FaissEngine, optional
            An engine of the same points, which is to be left alone from then on.
        """
        if str(metric) in GIVEN_METRICS:
            raise InputError(
                f"metric is {metric!r}, but points that come and go must be vectors; "
                "use metric='euclidean' or 'cosine'."
            )
        check_choice(metric, "metric", ("euclidean", "cosine"))
        width = check_count(width, "width")
        if engine is None:
            engine = choose_engine(X, metric, recall, progress)
        if engine.metric != metric:
            raise InputError(f"the engine measures {engine.metric!r}, but metric is {metric!r}.")
        found = engine.rows(np.arange(engine.n_points), stored_length(width))
        return cls.of_lists(engine, found, width, recall)

    @classmethod
    def of_lists(
        cls, engine: ExactEngine | FaissEngine, lists: Neighbors, width: int, recall: float
    ) -> DynamicEngine:
        """Let the points of an engine come and go, whose stored lists are there already."""
        points: HeldPoints = (
            FaissPoints.of(engine) if isinstance(engine, FaissEngine) else ExactPoints.of(engine)
        )
        named = Neighbors(lists.indices.astype(np.int32, copy=False), lists.sq_distances)
        return cls(points, StoredLists(named), width, recall)

    def _note_points(self) -> None:
        """Note which points there are; after every change of them."""
        self.points: FloatArray = self._points.points
        """All points as they are held, removed ones among them."""
        self.alive: BoolArray = self._points.alive
        """Which slots have a point."""
        self.n_points = len(self.points)
        """The number of slots, those of removed points among them."""
        self.n_alive = self._points.n_alive
        """The number of points that are left."""

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points of the database for vectors from anywhere."""
        return self._points.search(vectors, k)

    @property
    def exact(self) -> bool:
        """Whether a search looks at every point."""
        return self._points.exact

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Return the ``k`` nearest neighbours of points; searched only beyond ``width``."""
        indices = np.asarray(indices)
        if k > self.width:
            return self._points.rows(indices, k)
        if len(indices) == self.n_points and np.array_equal(indices, np.arange(self.n_points)):
            return self.lists(k)
        return self._stored.take(indices).head(k)

    def lists(self, k: int) -> Neighbors:
        """Return the lists of all points, up to ``width``; not copied, so that changes show."""
        return self._stored.lists.head(k)

    @property
    def changed_rows(self) -> IntArray:
        """Slots whose lists are not those of the kept graph any more."""
        return np.unique(np.concatenate([np.empty(0, dtype=np.intp), *self._changed]))

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query of several examples: one row."""
        return self._points.nearest(query, k)

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything; removed points are at distance inf."""
        return self._points.sq_distances(indices, vectors)

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Measure the squared distances of some points to each example of a checked query."""
        examples = self.points[query.indices]
        if len(query.vectors):
            examples = np.concatenate([examples, self._points.held(query.vectors)])
        return sq_distances_between(examples, self.points, points)

    def pairs(self, indices: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the database to each other."""
        return sq_distances_between(self.points[indices], self.points, indices)

    def vectors(self, slots: IntArray) -> FloatArray:
        """Return points as they were given; scaled to length one for cosine."""
        return self._points.given(self.points[slots])

    def new_vectors(self, change: Change) -> FloatArray:
        """Return the new points of a change, as `vectors` will once it is made."""
        return self._points.given(change.added)

    def add(self, vectors: FloatArray) -> Change:
        """Add points; their slots follow those that are there."""
        return self._made(self.plan((), vectors))

    def remove(self, slots: Any) -> Change:
        """Remove points."""
        return self._made(self.plan(slots))

    def update(self, slots: Any, vectors: FloatArray) -> Change:
        """Replace points: each is removed, and comes back in a new slot at the end."""
        change = self.plan(slots, vectors)
        if len(change.added) != len(change.removed):
            raise InputError(
                f"there are {len(change.removed)} slots to update and {len(change.added)} vectors; "
                "give one vector for each slot."
            )
        return self._made(change)

    def plan(self, slots: Any, vectors: FloatArray | None = None) -> Change:
        """Return the change that removes points and then adds others; `apply` makes it happen."""
        added = self.points[:0] if vectors is None else self._points.held(vectors)
        removed = np.sort(check_indices(slots, self.n_points, self.alive, "slots"))
        try:
            return ChangePlanner(self._points, self._stored, self.width).change(removed, added)
        finally:
            self._note_points()

    def apply(self, change: Change) -> None:
        """Make a change that was planned in the same state, here or elsewhere, without a search."""
        self._check_follows(change)
        self._points.append(change.added)
        self._points.bury(change.removed)
        self._note_points()
        patch = Patch(change.rows, change.lists)
        self._stored.apply(len(change.added), change.removed, patch)
        if self.graph is not None:
            self._changed.append(np.union1d(change.rows, change.removed))

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arrays, and settings that JSON can hold, from which `restore` makes it again."""
        arrays, _ = self._points.state()
        arrays |= self._stored.arrays()
        if self.learned is not None:
            arrays |= self.learned.arrays()
        return arrays, self.settings()

    def settings(self) -> dict[str, Any]:
        """Return the settings of the state alone."""
        settings = engine_settings(self._points, self.width, self.recall)
        if self.learned is not None:
            settings["learned"] = self.learned.settings()
        return settings

    @classmethod
    def restore(cls, arrays: dict[str, Any], settings: dict[str, Any]) -> DynamicEngine:
        """Make an engine from its state; nothing is searched.

        The arrays may be read-only maps of files. They are read as they lie until the first
        change, which copies points and lists once.
        """
        points = KINDS[settings["engine"]].restore(arrays, settings)
        stored, learned = StoredLists.restore(arrays), settings.get("learned")
        width, recall = int(settings["width"]), float(settings["recall"])
        if learned is not None:
            learned = Learned.restore(arrays, learned)
        return cls(points, stored, width, recall, learned)

    def compacted(self) -> tuple[dict[str, Any], dict[str, Any], IntArray]:
        """Return the state without removed slots, and the slots that were kept, in order.

        FAISS takes over from exact search here, and is trained again where its points doubled.
        """
        kept = np.flatnonzero(self.alive)
        if isinstance(self._points, ExactPoints) and len(kept) > EXACT_LIMIT:
            X = self.points[kept]
            fresh = DynamicEngine.build(X, self.metric, self.width, recall=self.recall)
        else:
            points, stored = self._points.kept(kept), self._stored.kept(kept)
            fresh = DynamicEngine(points, stored, self.width, self.recall)
        if self.learned is not None:
            fresh.learned = self.learned.kept(kept)
        return *fresh.state(), kept

    def _check_follows(self, change: Change) -> None:
        """Refuse what was made for an engine in another state, as far as it shows."""
        n_points = self.n_points + len(change.added)
        shapes = (change.added.shape[1:], change.indices.shape, change.sq_distances.shape)
        width = (len(change.rows), self._stored.width)
        numbered = all(kind_of(a) == "i" for a in (change.removed, change.rows, change.indices))
        measured = all(kind_of(a) == "f" for a in (change.added, change.sq_distances))
        fits = numbered and measured and shapes == ((self.n_features,), width, width)
        if fits:
            removed, rows = change.removed, change.rows
            fits = (
                _ascends(removed, self.n_points)
                and bool(self.alive[removed].all())
                and _ascends(rows, n_points)
                and change.indices.min(initial=0) >= NOBODY
                and change.indices.max(initial=-1) < n_points
                and bool((np.abs(change.added) <= np.finfo(self.points.dtype).max).all())
                and bool((change.sq_distances >= 0).all())
            )
        if not fits:
            raise InputError(
                f"the change does not follow from this engine of {self.n_points} slots; apply "
                "changes to the state they were made in, each once and in order."
            )

    def _made(self, change: Change) -> Change:
        self.apply(change)
        return change


def engine_settings(points: HeldPoints, width: int, recall: float) -> dict[str, Any]:
    """Return settings that JSON can hold, of an engine of these points."""
    return {**points.settings(), "engine": points.kind, "width": width, "recall": recall}


def _ascends(slots: IntArray, n_points: int) -> bool:
    """Tell whether slots are in order, each once, and those of so many points."""
    inside = slots.min(initial=0) >= 0 and slots.max(initial=-1) < n_points
    return slots.ndim == 1 and bool(inside) and bool((np.diff(slots) > 0).all())


def stored_length(width: int) -> int:
    """Return how long lists are stored, so that they can lose entries and still be served."""
    return width + max(2, int(SLACK * width))


def check_state(arrays: dict[str, Any], settings: dict[str, Any]) -> None:
    """Require arrays and settings as `DynamicEngine.state` returns them; anybody may write others.

    Compiled code reads and writes by the numbers in them without looking. So every slot must be one
    of the points, and every array as long as the others say.
    """
    points, indices = arrays["points"], arrays["list_indices"]
    n_points, width = len(points), indices.shape[-1]
    n_links, n_edges = int(np.count_nonzero(indices >= 0)), len(arrays.get("graph_indices", ()))
    forms: dict[str, tuple[str, tuple[int, ...]]] = {
        "points": ("f", (n_points, points.shape[-1])),
        "alive": ("b", (n_points,)),
        "origin": ("f", points.shape[1:]),
        "list_indices": ("i", (n_points, width)),
        "list_sq_distances": ("f", (n_points, width)),
        "list_counts": ("i", (n_points,)),
        "reverse_starts": ("i", (n_points + 1,)),
        "reverse_sources": ("i", (n_links,)),
        "cells": ("i", (n_points,)),
        "centres": ("f", (len(arrays.get("centres", ())), points.shape[-1])),
        "levels": ("i", (n_points,)),
        "links": ("i", (len(arrays.get("links", ())),)),
        "entry": ("i", (1,)),
        "graph_starts": ("i", (n_points + 1,)),
        "graph_indices": ("i", (n_edges,)),
        "graph_weights": ("f", (n_edges,)),
    }
    for name, (kind, shape) in forms.items():
        array = arrays.get(name)
        if array is not None and (kind_of(array), array.shape) != (kind, shape):
            raise InputError(f"array {name!r} holds {array.dtype} values of shape {array.shape}")
    for name, least, end in (
        ("list_indices", NOBODY, n_points),
        ("list_counts", 0, width + 1),
        ("reverse_sources", 0, n_points),
        ("cells", 0, len(arrays.get("centres", ()))),
        ("graph_indices", 0, n_points),
    ):
        _check_range(name, arrays.get(name), least, end)
    for name in ("points", "origin", "centres", "graph_weights"):
        _check_finite(name, arrays.get(name))
    _check_distances("list_sq_distances", arrays["list_sq_distances"])
    if "graph_starts" in arrays:
        _check_starts(arrays, "graph_starts", "graph_indices", n_edges)
        _check_distances("graph_weights", arrays["graph_weights"])
        KeptGraph.restore(arrays, n_neighbors=0).check()
    _check_starts(arrays, "reverse_starts", "reverse_sources", n_links)
    if not np.array_equal(arrays["list_counts"], np.count_nonzero(indices >= 0, axis=1)):
        raise InputError("array 'list_counts' does not count 'list_indices'")
    _check_learned(arrays, settings, n_points)
    _check_settings(settings, width, n_points)


def _check_settings(settings: dict[str, Any], width: int, n_points: int) -> None:
    check_choice(settings["metric"], "metric", ("euclidean", "cosine"))
    check_count(settings["width"], "width")
    check_share(settings["recall"], "recall", one=True)
    if settings["width"] > width:
        raise InputError(f"lists of {settings['width']} are stored with {width} entries")
    if settings["engine"] == "faiss":
        check_choice(settings["index"], "index", tuple(INDEXES))
        _check_up_to(settings["seed"], "seed", LARGEST_SEED, least=0)
        for plan in settings["plans"]:
            check_choice(plan["kind"], "kind", ("flat", settings["index"]))
            _check_up_to(plan["effort"], "effort", max(n_points, MOST_EFFORT))
            for name in ("width", "n_points", "n_alive"):
                check_count(plan[name], name, least=0)


def _check_up_to(value: Any, name: str, most: int, least: int = 1) -> None:
    if check_count(value, name, least) > most:
        raise InputError(f"{name} is {value}, but may be up to {most}")


def _check_learned(arrays: dict[str, Any], settings: dict[str, Any], n_points: int) -> None:
    if settings.get("learned") is None:
        return
    indices, distances = arrays["learned_indices"], arrays["learned_distances"]
    kinds = kind_of(indices), kind_of(distances)
    if kinds != ("i", "f") or indices.ndim != 2 or indices.shape != distances.shape:
        raise InputError("the learned lists are of another form")
    if len(indices) > n_points:
        raise InputError(f"there are {len(indices)} learned lists of {n_points} points")
    _check_range("learned_indices", indices, NOBODY, n_points)
    _check_distances("learned_distances", distances)
    for name in ("n_neighbors", "n_plain"):
        check_count(settings["learned"][name], name)
    check_positive(settings["learned"]["unit"], "unit")


def kind_of(array: NDArray[Any]) -> str:
    """Return the letter of a kind of numbers; that of a type for what compiled code cannot read."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    return kind if array.dtype.isnative and size in SIZES.get(kind, ()) else array.dtype.str


def _check_range(name: str, array: IntArray | None, least: int, end: int) -> None:
    if array is not None and array.size and not (least <= array.min() and array.max() < end):
        raise InputError(f"array {name!r} holds numbers beyond {least} to {end - 1}")


def _check_distances(name: str, array: FloatArray) -> None:
    if array.size and not array.min() >= 0:
        raise InputError(f"array {name!r} holds NaN or negative numbers")


def _check_starts(arrays: dict[str, Any], name: str, rows: str, length: int) -> None:
    starts = arrays[name]
    if starts[0] != 0 or starts[-1] != length or (starts[1:] < starts[:-1]).any():
        raise InputError(f"array {name!r} does not delimit the rows of {rows!r}")


def _check_finite(name: str, array: FloatArray | None) -> None:
    """Require finite numbers, without an array of the size of all points."""
    if array is not None and array.size and not np.isfinite([array.min(), array.max()]).all():
        raise InputError(f"array {name!r} holds NaN or infinity")
