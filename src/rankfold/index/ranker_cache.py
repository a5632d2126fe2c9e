"""Rankers by name, fitted to an index on demand and kept for the next query."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cache
from inspect import signature
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from rankfold.check import called_here
from rankfold.errors import InputError
from rankfold.graph import AdaptiveGraph
from rankfold.index.backend import FolderBackend
from rankfold.neighbors import DynamicEngine, VectorEngine
from rankfold.rankers import RANKERS, Ranker

MOST_FITTED = 4
"""Rankers that are kept; those asked for longest ago are dropped."""

MOST_BYTES = 2**29
"""What they may hold together, beside the points; the last one is kept in any case."""

OF_THE_INDEX = ("metric",)
"""Parameters that an index decides for all methods."""


class RankerCache:
    """Fitted rankers, which follow the index as it changes or are fitted again.

    Many threads may ask at the same time, each inside of `FolderBackend.current`, so that the
    index does not change in between. The first to ask after a change lets all rankers follow
    before anybody gets one; whoever had one before has left, so no ranker changes in use.
    Each ranker is fitted once; who asks for others need not wait for that.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._fitting: dict[str, Lock] = {}
        self._version: Any = None
        self._engine: VectorEngine | None = None
        self._fitted: OrderedDict[str, Ranker] = OrderedDict()

    def fitted(
        self,
        method: str,
        parameters: dict[str, Any],
        engine: VectorEngine,
        backend: FolderBackend,
    ) -> Ranker:
        """Return a ranker for a state of the engine.

        Parameters
        ----------
        method : str
            A name of RANKERS.
        parameters : dict
            Its parameters; those left out have their defaults.
        engine : VectorEngine
        backend : FolderBackend
            Of the engine.
        """
        chosen = min(backend.n_neighbors, max(1, engine.n_alive - 2))
        parameters = adapted(method, parameters, engine, chosen)
        key = f"{method} {chosen} {sorted(parameters.items())!r}"
        with self._lock:
            if self._version != backend.version or self._engine is not engine:
                self._follow(backend, engine)
            if key in self._fitted:
                return self._known(key)
            fitting = self._fitting.setdefault(key, Lock())
        with fitting:
            with self._lock:
                if key in self._fitted:
                    return self._known(key)
            try:
                ranker = make_ranker(method, parameters, engine.metric, chosen).fit(engine)
                with self._lock:
                    self._fitted[key] = ranker
                    if len(self._fitted) > 1:
                        self._drop_old()
            finally:
                self._fitting.pop(key, None)
        return ranker

    def _known(self, key: str) -> Ranker:
        self._fitted.move_to_end(key)
        return self._fitted[key]

    def _drop_old(self) -> None:
        """Drop the rankers asked for longest ago, where there are too many or too large ones."""
        sizes = {key: bytes_of(ranker) for key, ranker in self._fitted.items()}
        while len(sizes) > 1 and (len(sizes) > MOST_FITTED or sum(sizes.values()) > MOST_BYTES):
            key, _ = self._fitted.popitem(last=False)
            del sizes[key]

    def _follow(self, backend: FolderBackend, engine: VectorEngine) -> None:
        known, self._version = self._version, None  # what is interrupted is fitted again
        rows = None if known is None else backend.changed_since(known)
        before, self._fitted = self._fitted, OrderedDict()
        if rows is not None and engine is self._engine:
            for key, ranker in before.items():
                if ranker.follow(rows, engine.width):
                    self._fitted[key] = ranker
        self._engine, self._version = engine, backend.version


def bytes_of(ranker: Ranker) -> int:
    """Return how many bytes of arrays a fitted ranker holds, those of its engine left out.

    Examples
    --------
    >>> from rankfold import RAN, datasets
    >>> 10_000 < bytes_of(RAN(n_neighbors=5).fit(datasets.load("moons").X)) < 1_000_000
    True
    """
    shared = _held(ranker.engine_, {})
    return sum(_held(ranker, shared).values())


def _held(one: Any, known: dict[int, int]) -> dict[int, int]:
    """Return the sizes of the arrays that an object holds, besides those that are known."""
    found: dict[int, int] = {}
    seen, waiting = set(known), [one]
    while waiting:
        one = waiting.pop()
        while isinstance(one, np.ndarray) and isinstance(one.base, np.ndarray):
            one = one.base
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(size := getattr(one, "nbytes", None), int):
            found[id(one)] = size
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        elif type(one).__module__.startswith(("rankfold.", "scipy.sparse.")):
            waiting += getattr(one, "__dict__", {}).values()
    return found


def adapted(
    method: str, parameters: dict[str, Any], engine: VectorEngine, n_neighbors: int
) -> dict[str, Any]:
    """Let RAN start from the graph that an index has learned, where nothing else is asked for."""
    if method != "ran" or not isinstance(engine, DynamicEngine):
        return parameters
    learned, most = engine.learned, max(1, engine.n_alive - 2)
    wanted = parameters.get("n_neighbors", n_neighbors)
    if "adapt" not in parameters:
        used = learned is not None and learned.n_rounds and learned.fits(wanted, engine.n_alive)
        return {**parameters, "adapt": "collective"} if used else parameters
    known = () if learned is None else (learned.n_plain, min(learned.n_plain, most))
    if parameters["adapt"] == "collective" and wanted not in known:
        raise InputError(
            "adapt is 'collective', but the index has not learned a graph for "
            f"n_neighbors={wanted!r}; learn() of the index, or `rankfold index learn`, learns one "
            "of as many as it was built with; or leave adapt out.",
            "adapt",
        )
    return parameters


@cache
def defaults_of(method: str) -> Mapping[str, Any]:
    """Return the parameters that queries may give to a method, with their defaults."""
    parameters = signature(RANKERS[method]).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.name not in OF_THE_INDEX}
    return MappingProxyType(defaults)


def check_names(method: str, parameters: Iterable[str]) -> None:
    """Require names of parameters that a method has."""
    known = defaults_of(method)
    for name in parameters:
        if name not in known:
            raise InputError(
                f"method {method!r} has no parameter {name!r} here; it has "
                f"{', '.join(known) or 'none'}.{called_here(name)}",
                name,
            )


def make_ranker(method: str, parameters: dict[str, Any], metric: str, n_neighbors: int) -> Ranker:
    """Return a ranker by its name.

    Examples
    --------
    >>> make_ranker("ran", {"smoothness": 3.0}, "euclidean", 7)
    RAN(n_neighbors=7, smoothness=3.0)
    """
    check_names(method, parameters)
    settings, defaults = dict(parameters), defaults_of(method)
    if defaults.get("n_neighbors", 0) in (None, "auto"):  # other methods have a number of their own
        settings.setdefault("n_neighbors", n_neighbors)
    if "graph" in defaults:
        settings.setdefault("graph", AdaptiveGraph(n_neighbors))
    ranker: Ranker = RANKERS[method](metric=metric, **settings)
    return ranker
