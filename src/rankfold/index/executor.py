"""Answers queries: with rankers that are fitted once and kept, and under conditions."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from inspect import signature
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from rankfold.check import about, called_here
from rankfold.diversity import diverse, n_candidates
from rankfold.errors import InputError
from rankfold.graph import AdaptiveGraph
from rankfold.index.backend import FolderBackend
from rankfold.index.query import (
    Filter,
    IndexQuery,
    Queryable,
    Reason,
    Results,
    slots_of,
)
from rankfold.index.scores import (
    BY_DISTANCE,
    RankedList,
    Threshold,
    contributions,
    fuse,
    list_depth,
    scaled,
)
from rankfold.neighbors import DynamicEngine, Engine, VectorEngine
from rankfold.parallel import in_order
from rankfold.rankers import RANKERS, Ranker
from rankfold.types import IntArray, Query, Ranking, Solution, changed

MOST_FITTED = 4
"""Rankers that are kept; those asked for longest ago are dropped."""

MOST_BYTES = 2**29
"""What they may hold together, beside the points; the last one is kept in any case."""

OF_THE_INDEX = ("metric",)
"""Parameters that an index decides for all methods."""

OF_A_QUERY = ("budget", "fusion")
"""Parameters that change nothing about what is fitted."""

OF_AN_INDEX = {"distance": {"budget": "auto"}}
"""Where an index has defaults of its own: plain distance need not measure a million points."""

GROUP_GROWTH = 4
"""How many more points are ranked than are wanted in groups, and how many more after that."""


class QueryExecutor:
    """Answers queries in the state that was committed last.

    Parameters
    ----------
    backend : FolderBackend
    """

    def __init__(self, backend: FolderBackend) -> None:
        self._backend, self.rankers = backend, RankerCache()

    def answer(self, asked: IndexQuery, index: Queryable) -> Results:
        """Return the results of a query."""
        with self._backend.current() as engine:
            lists: dict[str, RankedList] = {}
            shown, threshold = self._ranking(asked, engine, self._filter(asked), lists)
            if asked.offset:
                kept = slice(asked.offset, None)
                shown = _some(shown, kept)
                threshold = None if threshold is None else threshold.take(kept)
            points = shown.solution.points
            ids, payload = self._backend.store.points_of(points)
            parts = contributions(lists, points) if lists else {}
            return Results(ids, payload, shown, asked, index, parts, threshold)

    def answer_many(
        self, asked: Sequence[IndexQuery], index: Queryable, n_jobs: int, progress: bool
    ) -> list[Results]:
        """Return what `answer` does of many queries, which differ in their examples alone."""
        with self._backend.current() as engine:
            store, first = self._backend.store, asked[0]
            if first.where is not None or first.diversity or not engine.n_alive:
                matching = self._filter(first)
                rankings: Iterable[Ranking] = in_order(
                    lambda one: self._ranking(one, engine, matching, {})[0], asked, 1, progress
                )
            else:
                ranker = self._fitted(first, engine)
                found = ranker.rank_many(
                    self._queries(asked, engine),
                    top=first.wanted,
                    include_query=first.include_query,
                    n_jobs=n_jobs,
                    progress=progress,
                )
                rankings = (scaled(one, first.method, engine.metric) for one in found)
            shown = list(rankings)
            if first.offset:
                shown = [_some(one, slice(first.offset, None)) for one in shown]
            slots = [one.solution.points for one in shown]
            ends = np.cumsum([0, *map(len, slots)]).tolist()
            ids, payload = store.points_of(np.concatenate(slots))
            return [
                Results(
                    ids[a:b],
                    {name: values[a:b] for name, values in payload.items()},
                    ranking,
                    one,
                    index,
                )
                for a, b, ranking, one in zip(ends, ends[1:], shown, asked, strict=False)
            ]

    def _queries(
        self, asked: Sequence[IndexQuery], engine: VectorEngine
    ) -> list[Query] | list[int]:
        """Return many queries in terms of slots; those of ids are looked up at once."""
        store = self._backend.store
        if all(one.is_one_id for one in asked):
            slots: list[int] = slots_of(store, [one.ids[0] for one in asked], "ids").tolist()
            return slots
        return [one.query(store, engine.n_features) for one in asked]

    def reason(self, asked: IndexQuery, point: Any) -> Reason:
        """Explain the place of a point."""
        with self._backend.current() as engine:
            store = self._backend.store
            (slot,) = store.slots_of([point])
            query = asked.query(store, engine.n_features)
            reason = Reason.of(self._fitted(asked, engine), query, int(slot), store.ids_of)
            return reason.scaled(asked.method, engine.metric)

    def _filter(self, asked: IndexQuery) -> Filter | None:
        """Find the points that meet the query's condition, if it has one."""
        if asked.where is None:
            return None
        with about("where"):
            return Filter.of(self._backend.store, asked.where)

    def _ranking(
        self,
        asked: IndexQuery,
        engine: VectorEngine,
        matching: Filter | None,
        lists: dict[str, RankedList],
    ) -> tuple[Ranking, Threshold | None]:
        """Rank points, on the scale that is shown; what ``min_score`` left is told beside them.

        The lists of a hybrid query are put into ``lists``.
        """
        store = self._backend.store
        query = asked.query(store, engine.n_features)
        if not engine.n_alive:
            return no_ranking(), None

        def ranked(length: int) -> Ranking:
            if asked.words is None:
                return self._ranked(asked, engine, query, matching, length)
            return self._hybrid(asked, engine, query, matching, length, lists)

        def values_of(points: IntArray, column: str) -> list[Any]:
            return store.payload_of(points, [column])[column]

        return arranged(asked, engine, query, ranked, values_of)

    def _ranked(
        self,
        asked: IndexQuery,
        engine: VectorEngine,
        query: Query,
        matching: Filter | None,
        length: int,
    ) -> Ranking:
        one = int(query.indices[0]) if asked.is_one_id else query
        ranker = self._fitted(asked, engine)
        if matching is None:
            return ranker.rank_query(one, top=length, include_query=asked.include_query)
        return matching.best(ranker, query, length, asked.include_query)

    def _hybrid(
        self,
        asked: IndexQuery,
        engine: VectorEngine,
        query: Query,
        matching: Filter | None,
        length: int,
        lists: dict[str, RankedList],
    ) -> Ranking:
        """Fuse lists by words, by plain distance, and by the shape that a method sees."""
        store, depth = self._backend.store, max(list_depth(asked.wanted), length)
        own = np.empty(0, dtype=np.intp) if asked.include_query else query.indices
        with about("words"):
            found = store.find(str(asked.words), None, asked.where, depth + len(own))
        lists["words"] = RankedList(*found).without(own, depth)
        plain = replace(asked, method="distance", parameters={})
        ranking = self._ranked(
            plain, engine, plain.query(store, engine.n_features), matching, depth
        )
        near = scaled(ranking, "distance", engine.metric)
        lists["distance"] = RankedList(near.indices, near.scores)
        if asked.method != "distance":
            fusion = {"fusion": "none"} if "fusion" in defaults_of(asked.method) else {}
            bent = replace(asked, words=None, parameters={**asked.parameters, **fusion})
            ranking = self._ranked(bent, engine, query, matching, depth)
            values = scaled(ranking, asked.method, engine.metric).scores
            reached = np.flatnonzero((ranking.scores > 0) | (asked.method in BY_DISTANCE))
            lists["shape"] = RankedList(ranking.indices[reached], values[reached])
        points, scores = fuse(lists)
        solution = replace(
            ranking.solution, points=points[:length], scores=scores[:length], certified=False
        )
        return replace(ranking, solution=solution)

    def fitted(self, method: str, parameters: dict[str, Any], engine: VectorEngine) -> Ranker:
        """Return the ranker that answers queries by a method; inside of `FolderBackend.current`."""
        return self.rankers.fitted(method, parameters, engine, self._backend)

    def _fitted(self, asked: IndexQuery, engine: VectorEngine) -> Ranker:
        """Return a ranker; queries that differ in budget or fusion share what was fitted."""
        shared = {**OF_AN_INDEX.get(asked.method, {}), **asked.parameters}
        known = defaults_of(asked.method)
        own = {name: shared.pop(name) for name in OF_A_QUERY if name in shared and name in known}
        with about("parameters"):
            ranker = self.rankers.fitted(asked.method, shared, engine, self._backend)
            if "budget" in own:
                ranker = ranker.with_budget(own["budget"])
            if "fusion" in own:
                ranker = ranker.with_fusion(own["fusion"])
        return ranker


def no_ranking() -> Ranking:
    """Return the answer of an index without points, which no method can be fitted to."""
    solution = Solution(np.empty(0, dtype=np.intp), np.empty(0), 0.0, certified=True)
    return Ranking(solution)


def arranged(
    asked: IndexQuery,
    engine: Engine,
    query: Query,
    ranked: Callable[[int], Ranking],
    values_of: Callable[[IntArray, str], list[Any]],
) -> tuple[Ranking, Threshold | None]:
    """Rank as few or as many points as a query needs: in groups, from a score on, or diverse.

    Parameters
    ----------
    asked : IndexQuery
    engine : Engine
    query : Query
        The same in terms of points.
    ranked : callable
        Returns a ranking of so many points.
    values_of : callable
        Returns the values of some points in a column of the payload.

    Returns
    -------
    ranking : Ranking
        On the scale that is shown.
    threshold : Threshold or None
        What is known of the results of a query with ``min_score``.
    """
    by_rank, threshold = asked.words is not None, None

    def shown(ranking: Ranking) -> Ranking:
        return ranking if by_rank else scaled(ranking, asked.method, engine.metric)

    if asked.group_by is not None:
        return shown(_grouped(asked, engine.n_alive, ranked, values_of)), None
    length = n_candidates(asked.wanted) if asked.diversity else asked.wanted
    if asked.min_score is None:
        ranking = ranked(length)
    else:

        def cut(most: int, least: float = asked.min_score) -> tuple[Ranking, Threshold]:
            found = ranked(most + 1)  # one more says whether there are others
            there = len(found) <= most
            return Threshold.cut(found, shown(found), least, most, all_there=there, by_rank=by_rank)

        ranking, threshold = cut(length)
        if not threshold.complete and len(ranking) < length:
            ranking, threshold = cut(len(ranking))  # a shorter list is proven more often
    if asked.diversity and len(ranking):
        chosen = _with_diversity(engine, ranking, query, asked)
        if threshold is not None:
            sure = np.isin(chosen.indices, ranking.indices[threshold.proven])
            threshold = Threshold(sure, complete=False)
        ranking = chosen
    return shown(ranking), threshold


def _grouped(
    asked: IndexQuery,
    n_alive: int,
    ranked: Callable[[int], Ranking],
    values_of: Callable[[IntArray, str], list[Any]],
) -> Ranking:
    """Return the best results of which no more than some have one value of a column.

    Points without a value are left out. More and more are ranked until there are enough.
    """
    length = asked.wanted
    while True:
        length = min(GROUP_GROWTH * length, n_alive)
        ranking = ranked(length)
        with about("group_by"):
            values = values_of(ranking.indices, str(asked.group_by))
        counts: Counter[Any] = Counter()
        places = []
        for place, value in enumerate(values):
            if value is not None and counts[value] < asked.per_group:
                counts[value] += 1
                places.append(place)
        if len(places) >= asked.wanted or length >= n_alive or len(ranking) < length:
            return _some(ranking, places[: asked.wanted])


def _with_diversity(engine: Engine, ranking: Ranking, query: Query, asked: IndexQuery) -> Ranking:
    """Choose diverse results; the query's own points stay first or last, as they are by rule."""
    own = np.isin(ranking.indices, query.indices)
    leading = own & (np.cumsum(~own) == 0)
    if own.all():
        return _some(ranking, slice(0, asked.wanted))
    wanted = max(1, asked.wanted - int(leading.sum()))
    chosen = diverse(engine, _some(ranking, ~own), wanted, asked.diversity)
    first, last = (ranking.solution.take(places) for places in (leading, own & ~leading))
    whole = first.joined(chosen.solution).joined(last).take(slice(0, asked.wanted))
    return replace(chosen, solution=replace(whole, certified=False))


def _some(ranking: Ranking, places: Any) -> Ranking:
    """Return some results, which are then not proven to be the best."""
    return changed(ranking, solution=ranking.solution.take(places, certified=False))


class RankerCache:
    """Fitted rankers, which follow the index as it changes or are fitted again.

    Many threads may ask at the same time, each inside of `FolderBackend.current`, so that the
    index does not change in between. The first to ask after a change lets all rankers follow
    before anybody gets one; whoever had one before has left, so no ranker changes in use.
    Each ranker is fitted once; who asks for others need not wait for that.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.fitting: dict[str, Lock] = {}
        """A lock for each ranker that is being fitted; empty where none is."""
        self._version: Any = None
        self._engine: VectorEngine | None = None
        self.kept: OrderedDict[str, Ranker] = OrderedDict()
        """By method and parameters, the one asked for longest ago first."""

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
            if key in self.kept:
                return self._known(key)
            fitting = self.fitting.setdefault(key, Lock())
        with fitting:
            with self._lock:
                if key in self.kept:
                    return self._known(key)
            try:
                ranker = make_ranker(method, parameters, engine.metric, chosen).fit(engine)
                with self._lock:
                    self.kept[key] = ranker
                    if len(self.kept) > 1:
                        self._drop_old()
            finally:
                self.fitting.pop(key, None)
        return ranker

    def _known(self, key: str) -> Ranker:
        self.kept.move_to_end(key)
        return self.kept[key]

    def _drop_old(self) -> None:
        """Drop the rankers asked for longest ago, where there are too many or too large ones."""
        sizes = {key: bytes_of(ranker) for key, ranker in self.kept.items()}
        while len(sizes) > 1 and (len(sizes) > MOST_FITTED or sum(sizes.values()) > MOST_BYTES):
            key, _ = self.kept.popitem(last=False)
            del sizes[key]

    def _follow(self, backend: FolderBackend, engine: VectorEngine) -> None:
        known, self._version = self._version, None  # what is interrupted is fitted again
        rows = None if known is None else backend.changed_since(known)
        before, self.kept = self.kept, OrderedDict()
        if rows is not None and engine is self._engine:
            for key, ranker in before.items():
                if ranker.follow(rows, engine.width):
                    self.kept[key] = ranker
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
                f"method {method!r} has no parameter {name!r} here.{called_here(name)} Its own "
                f"are {', '.join(known) or 'none'}.",
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
