"""Points that come and go: under exact search, and in an index of FAISS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from rankfold.check import check_matrix, check_single_precision
from rankfold.neighbors.distances import SinglePrecision, measure_all
from rankfold.neighbors.exact import ExactEngine, as_held
from rankfold.neighbors.faiss_engine import BLOCK_BYTES, FaissEngine, Plan
from rankfold.neighbors.faiss_indexes import (
    CELLS_PER_ROOT,
    FEW_QUERIES,
    INDEXES,
    GraphIndex,
    InvertedIndex,
    stored,
    threads,
)
from rankfold.neighbors.lists import GrowableArray
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors, Query

FEW_NEW = 1000
"""So many new vectors are compared with each other without an index."""

SETTINGS = ("metric", "recall", "seed")

MOST_GROWTH = 2
"""An index is trained again when this many times the points would have had its cells."""


class ExactPoints:
    """An exact engine of the points that are left, made again after a change.

    That copies them, which costs less than the first search through all of them.

    Parameters
    ----------
    points : array, shape (n_points, n_features)
        As an exact engine holds them.
    alive : array of bool, shape (n_points,)
    metric : {"euclidean", "cosine"}
    """

    kind = "exact"

    def __init__(self, points: FloatArray, alive: BoolArray, metric: str) -> None:
        self.metric = metric
        self._held, self._alive = GrowableArray(points), GrowableArray(alive)
        self.n_alive = 0
        self._changed(int(np.count_nonzero(alive)))
        self.n_features: int = points.shape[1]

    @classmethod
    def of(cls, engine: ExactEngine) -> ExactPoints:
        """Let the points of an engine come and go."""
        return cls(engine.points, np.ones(engine.n_points, dtype=bool), engine.metric)

    @property
    def n_points(self) -> int:
        """The number of points, removed ones among them."""
        return len(self._held.rows)

    @cached_property
    def _live(self) -> IntArray:
        return np.flatnonzero(self.alive)

    @cached_property
    def _engine(self) -> ExactEngine:
        engine = ExactEngine(self.points[self._live], "euclidean")
        engine.metric = self.metric  # the points have their length already
        return engine

    def held(self, vectors: FloatArray) -> FloatArray:
        """Check vectors and bring them into the form in which the points are held."""
        vectors = check_matrix(vectors, "vectors", self.n_features)
        if self.metric == "euclidean" and self.points.dtype == np.float32:
            check_single_precision(vectors, "vectors")
        return as_held(vectors, self.metric, "vectors").astype(self.points.dtype, copy=False)

    exact = True

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points for vectors from anywhere."""
        return self.find(self.held(vectors), k)

    def find(self, held: FloatArray, k: int) -> Neighbors:
        """Search like `search` for vectors in the form in which the points are held."""
        if not self.n_alive or not len(held):
            return _nobody(len(held), k)
        return self._named(self._engine.find(held, k))

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Find the ``k`` nearest neighbours of points; removed ones have none."""
        lists = _nobody(len(indices), k)
        left = self.alive[indices]
        if left.any():
            places = np.searchsorted(self._live, np.asarray(indices)[left])
            found = self._named(self._engine.rows(places, k))
            lists.indices[left], lists.sq_distances[left] = found.indices, found.sq_distances
        return lists

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out."""
        if not self.n_alive:
            return _nobody(1, k)
        placed = replace(query, indices=np.searchsorted(self._live, query.indices))
        return self._named(self._engine.nearest(placed, k))

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything; removed points are at distance inf."""
        vectors = self.held(vectors)
        for index in indices:
            left = bool(self.alive[index])
            yield self._row(self.points[index]) if left else np.full(self.n_points, np.inf)
        for vector in vectors:
            yield self._row(vector)

    def given(self, held: FloatArray) -> FloatArray:
        """Return points that are held as they were given; scaled to length one for cosine."""
        return held

    def among(self, held: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest of each of some new vectors among themselves."""
        return ExactEngine(held, "euclidean").rows(np.arange(len(held)), k)

    def measured(self, held: FloatArray) -> Iterator[FloatArray]:
        """Yield the squared distances of all points to each of some vectors."""
        return (self._row(vector) for vector in held)

    def append(self, held: FloatArray) -> None:
        """Add points."""
        if len(held):
            self._held.append(held)
            self._alive.append(np.ones(len(held), dtype=bool))
            self._changed(len(held))

    def bury(self, slots: IntArray) -> None:
        """Remove points."""
        if len(slots):
            self._alive.write(slots, False)
            self._changed(-len(slots))

    def revive(self, slots: IntArray) -> None:
        """Bring removed points back."""
        if len(slots):
            self._alive.write(slots, True)
            self._changed(len(slots))

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arrays and settings from which `restore` makes the same again."""
        return {"points": self.points, "alive": self.alive.copy()}, self.settings()

    def settings(self) -> dict[str, Any]:
        """Return the settings of the state, as JSON can hold them."""
        return {"metric": self.metric}

    @classmethod
    def restore(cls, arrays: dict[str, Any], settings: dict[str, Any]) -> ExactPoints:
        """Make it from its state."""
        return cls(arrays["points"], arrays["alive"], settings["metric"])

    def kept(self, slots: IntArray) -> ExactPoints:
        """Return some of the points alone."""
        return ExactPoints(self.points[slots], np.ones(len(slots), dtype=bool), self.metric)

    def _changed(self, by: int) -> None:
        """Note which points there are, and that so many more are left."""
        self.n_alive += by
        self.points: FloatArray = self._held.rows
        """All points as they are held."""
        self.alive: BoolArray = self._alive.rows
        """Which points are left."""
        self.__dict__.pop("_live", None)
        self.__dict__.pop("_engine", None)

    def _named(self, found: Neighbors) -> Neighbors:
        """Turn places among the points that are left into slots."""
        names = np.where(found.indices == NOBODY, NOBODY, self._live[found.indices])
        return Neighbors(names.astype(np.int32), found.sq_distances)

    def _row(self, query: FloatArray) -> FloatArray:
        row = np.full(self.n_points, np.inf)
        if self.n_alive:
            row[self._live] = self._engine.measured(query)
        return row


def _nobody(n_rows: int, k: int) -> Neighbors:
    return Neighbors(np.full((n_rows, k), NOBODY, dtype=np.int32), np.full((n_rows, k), np.inf))


class FaissPoints(FaissEngine):
    """A FAISS engine whose points come and go.

    New points enter the index as it was trained; removed ones stay in it and are passed over.
    The effort is measured again when there are a quarter more points, or a fifth is gone.
    """

    kind = "faiss"

    @classmethod
    def of(cls, engine: FaissEngine, alive: BoolArray | None = None) -> Self:
        """Let the points of an engine come and go; the engine itself is to be left alone."""
        self = cls.__new__(cls)
        self.__dict__.update(engine.__dict__)
        alive = np.ones(engine.n_points, dtype=bool) if alive is None else alive
        self._alive, self.n_alive = GrowableArray(alive), int(np.count_nonzero(alive))
        return self

    @property
    def points(self) -> FloatArray:
        """All points as they are held."""
        return self._points

    @property
    def alive(self) -> BoolArray:
        """Which points are left."""
        return self._living.rows

    @property
    def _living(self) -> GrowableArray:
        assert self._alive is not None  # noqa: S101 - set by `of`
        return self._alive

    def given(self, held: FloatArray) -> FloatArray:
        """Return points that are held as they were given; scaled to length one for cosine."""
        origin = self._form.origin
        return held if origin is None else held + origin

    def among(self, held: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest of each of some new vectors among themselves."""
        indices = np.arange(len(held))
        if len(held) > FEW_NEW:
            return FaissEngine(held, "euclidean", self.recall, n_threads=self.n_threads).rows(
                indices, k
            )
        return measure_all(held, held, k, indices, BLOCK_BYTES)

    def append(self, held: FloatArray) -> None:
        """Add points."""
        if not len(held):
            return
        self._held.append(held)
        self._living.append(np.ones(len(held), dtype=bool))
        self.n_alive += len(held)
        if self._stored_index is None:  # else it is made with all of them
            with threads(1 if len(held) < FEW_QUERIES else self.n_threads):
                for index in self._indexes.values():
                    index.add(self._points, len(held))

    def bury(self, slots: IntArray) -> None:
        """Remove points."""
        self._living.write(slots, False)
        self.n_alive -= len(slots)

    def revive(self, slots: IntArray) -> None:
        """Bring removed points back."""
        self._living.write(slots, True)
        self.n_alive += len(slots)

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return arrays and settings from which `restore` makes the same again."""
        arrays: dict[str, Any] = {"points": self._points, "alive": self.alive.copy()}
        if self._form.origin is not None:
            arrays["origin"] = self._form.origin
        index = self._indexes[self._kind]
        if isinstance(index, InvertedIndex | GraphIndex):
            arrays.update(index.state())
        return arrays, self.settings()

    def settings(self) -> dict[str, Any]:
        """Return the settings of the state, as JSON can hold them."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        return {**settings, "index": self._kind, "plans": [*map(asdict, self._plans)]}

    @classmethod
    def restore(cls, arrays: dict[str, Any], settings: dict[str, Any]) -> Self:
        """Make it from its state: nothing is trained or searched, and its index is made later.

        ``faiss`` may be an inverted file of FAISS that is open, such as one that it maps from a
        file; it is then taken as it is.
        """
        engine = FaissEngine.__new__(FaissEngine)
        for name in SETTINGS:
            setattr(engine, name, settings[name])
        engine.progress, engine.n_threads = False, None  # matters of a process, not of the points
        engine._form = SinglePrecision(settings["metric"] == "cosine", arrays.get("origin"))
        engine._held = GrowableArray(arrays["points"])
        engine.n_features = engine._points.shape[1]
        engine._kind = settings["index"]
        engine._plans = [Plan(**plan) for plan in settings["plans"]]
        engine._stored_index = stored(engine._kind, arrays)
        return cls.of(engine, np.asarray(arrays["alive"]))

    def kept(self, slots: IntArray) -> Self:
        """Return some of the points alone; cells stay as they are while they suit the number."""
        engine = FaissEngine.__new__(FaissEngine)
        engine.__dict__.update(self.__dict__)
        engine._held = GrowableArray(self._points[slots])
        index = self._indexes[self._kind]
        n_cells = getattr(index, "n_cells", np.inf)
        fits = len(slots) <= MOST_GROWTH * (n_cells / CELLS_PER_ROOT) ** 2
        if fits and isinstance(index, InvertedIndex):
            index = index.of_some(self._points, slots)
        else:
            with threads(self.n_threads):
                index = INDEXES[self._kind](engine._points, self.seed, self._shown)
        # An index that is trained again has its effort measured again, when it is first searched.
        most = len(slots) if fits else 0
        engine._plans = [replace(plan, n_points=min(plan.n_points, most)) for plan in self._plans]
        engine._indexes = {index.kind: index}
        return type(self).of(engine)
