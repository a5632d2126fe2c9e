"""Points that come and go in an index of FAISS."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np

from rankfold.neighbors.approximate import BLOCK_BYTES, FaissEngine
from rankfold.neighbors.growing import Growing
from rankfold.neighbors.index import FEW_QUERIES, Index, threads
from rankfold.neighbors.indexes import INDEXES, FlatIndex, GraphIndex
from rankfold.neighbors.inverted import CELLS_PER_ROOT, InvertedIndex
from rankfold.neighbors.measure import measure_all
from rankfold.neighbors.recall import Plan
from rankfold.neighbors.vectors import SinglePrecision
from rankfold.types import BoolArray, FloatArray, IntArray, Neighbors

FEW_NEW = 1000
"""So many new vectors are compared with each other without an index."""

SETTINGS = ("metric", "recall", "seed")

MOST_GROWTH = 2
"""An index is trained again when this many times the points would have had its cells."""


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
        self._alive, self.n_alive = Growing(alive), int(np.count_nonzero(alive))
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
    def _living(self) -> Growing:
        assert self._alive is not None  # noqa: S101 - set by `of`
        return self._alive

    def given(self, held: FloatArray) -> FloatArray:
        """Return points that are held as they were given; scaled to length one for cosine."""
        origin = self._form.origin
        return held if origin is None else held + origin

    def among(self, held: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest of each of some new vectors among themselves."""
        ids = np.arange(len(held))
        if len(held) > FEW_NEW:
            return FaissEngine(held, "euclidean", self.recall, n_threads=self.n_threads).rows(
                ids, k
            )
        return measure_all(held, held, k, ids, BLOCK_BYTES)

    def append(self, held: FloatArray) -> None:
        """Add points."""
        if not len(held):
            return
        self._held.append(held)
        self._living.append(np.ones(len(held), dtype=bool))
        self.n_alive += len(held)
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
        """Make it from its state: nothing is trained or searched.

        ``faiss`` may be an inverted file of FAISS that is open, such as one that it maps from a
        file; it is then taken as it is.
        """
        engine = FaissEngine.__new__(FaissEngine)
        for name in SETTINGS:
            setattr(engine, name, settings[name])
        engine.progress, engine.n_threads = False, None  # matters of a process, not of the points
        engine._form = SinglePrecision(settings["metric"] == "cosine", arrays.get("origin"))
        engine._held = Growing(arrays["points"])
        engine.n_features = engine._points.shape[1]
        engine._kind = settings["index"]
        engine._plans = [Plan(**plan) for plan in settings["plans"]]
        engine._indexes = _with_flat(_restored(engine._kind, arrays), engine)
        return cls.of(engine, np.asarray(arrays["alive"]))

    def kept(self, slots: IntArray) -> Self:
        """Return some of the points alone; cells stay as they are while they suit the number."""
        engine = FaissEngine.__new__(FaissEngine)
        engine.__dict__.update(self.__dict__)
        engine._held = Growing(self._points[slots])
        index = self._indexes[self._kind]
        n_cells = getattr(index, "n_cells", np.inf)
        fits = len(slots) <= MOST_GROWTH * (n_cells / CELLS_PER_ROOT) ** 2
        if fits and isinstance(index, InvertedIndex):
            index = index.of_some(self._points, slots)
        else:
            with threads(self.n_threads):
                index = INDEXES[self._kind](engine._points, self.seed)
        # An index that is trained anew has its effort measured anew, when it is first searched.
        most = len(slots) if fits else 0
        engine._plans = [replace(plan, n_points=min(plan.n_points, most)) for plan in self._plans]
        engine._indexes = _with_flat(index, engine)
        return type(self).of(engine)


def _with_flat(index: Index, engine: FaissEngine) -> dict[str, Index]:
    """Return the indexes that the plans of an engine ask for."""
    indexes = {index.kind: index}
    if any(plan.kind not in indexes for plan in engine._plans):
        indexes["flat"] = FlatIndex(engine._points, engine.seed)
    return indexes


def _restored(kind: str, arrays: dict[str, Any]) -> Index:
    points = arrays["points"]
    if kind == "flat":
        return FlatIndex(points, 0)
    if kind == "hnsw":
        return GraphIndex.restore(points, arrays["levels"], arrays["links"], arrays["entry"])
    if "faiss" in arrays:
        return InvertedIndex.over(arrays["faiss"], arrays["cells"])
    return InvertedIndex.restore(points, arrays["centres"], arrays["cells"])
