"""One query to an index: what is asked, its results, and the reason of a place in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rankfold.check import (
    about,
    as_list,
    check_choice,
    check_count,
    check_examples,
    check_share,
    check_vectors,
    check_weights,
)
from rankfold.diversity import diverse, n_candidates
from rankfold.errors import InputError
from rankfold.explanation import Explanation, draw_explanation, explain
from rankfold.index.backend import FolderBackend
from rankfold.index.filters import Filter, no_ranking
from rankfold.index.ranker_cache import RankerCache, defaults_of
from rankfold.neighbors import Engine, VectorEngine
from rankfold.rankers import RANKERS, Distance, Ranker
from rankfold.storage import Store
from rankfold.types import FloatArray, IntArray, Query, Ranking


@dataclass(frozen=True, eq=False)
class IndexQuery:
    """A query in the words of the user; `Index.query` says what each field means.

    What can be checked without the index is checked at once.
    """

    ids: Any
    vectors: Any
    weights: Any
    negative: Any
    negative_vectors: Any
    where: Any
    top: int
    offset: int
    diversity: float
    method: str
    include_query: bool
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", as_list(self.ids))
        object.__setattr__(self, "negative", as_list(self.negative))
        check_examples(self.vectors, "query_batch")
        check_examples(self.negative_vectors, "query_batch", "negative_vectors")
        check_choice(self.method, "method", tuple(RANKERS))
        check_count(self.top, "top")
        check_count(self.offset, "offset", least=0)
        check_share(self.diversity, "diversity", zero=True, one=True)

    @property
    def wanted(self) -> int:
        """How many results are needed for those that are shown."""
        return self.offset + self.top

    def query(self, store: Store, n_features: int) -> Query:
        """Return the query in terms of slots: positive examples first, ids before vectors."""
        slots = np.concatenate(
            [_slots(store, self.ids, "ids"), _slots(store, self.negative, "negative")]
        )
        of_points, vectors, of_vectors = self.examples(slots, n_features)
        return Query(slots, vectors, [*of_points, *of_vectors])

    def examples(
        self, points: IntArray, n_features: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Check the examples; return weights of points, vectors, and weights of vectors.

        ``points`` are those of ids and negative, in this order. Negative ones come last.
        """
        found, counts = np.unique(points, return_counts=True)
        if len(found) < len(points):
            twice = [*self.ids, *self.negative][np.flatnonzero(points == found[counts.argmax()])[0]]
            raise InputError(
                f"{twice!r} is an example more than once, among ids and negative; name it once, "
                "and give it a larger weight to make it count more."
            )
        vectors = _vectors(self.vectors, n_features, "vectors")
        opposed = _vectors(self.negative_vectors, n_features, "negative_vectors")
        n_ids, n_positive = len(self.ids), len(self.ids) + len(vectors)
        if not n_positive:
            raise InputError(
                "the query has no example of what is looked for: give ids of points, vectors, "
                "or both."
            )
        given: FloatArray = np.ones(n_positive)
        if self.weights is not None:
            with about("weights"):
                given = check_weights(self.weights, n_positive)
        if not (given > 0).all():
            raise InputError(
                f"weights is {self.weights!r}, but those of ids and vectors must be above zero; "
                "name what is not looked for as negative.",
                "weights",
            )
        against = np.full(len(self.negative) + len(opposed), RANKERS[self.method].negative_weight)
        of_points = np.concatenate([given[:n_ids], against[: len(self.negative)]])
        of_vectors = np.concatenate([given[n_ids:], against[len(self.negative) :]])
        return of_points, np.concatenate([vectors, opposed]), of_vectors


def _slots(store: Store, ids: list[Any], argument: str) -> IntArray:
    if not ids:
        return np.empty(0, dtype=np.int64)
    with about(argument):
        return store.slots_of(ids)


def _vectors(vectors: Any, n_features: int, argument: str) -> FloatArray:
    if vectors is None:
        return np.empty((0, n_features))
    with about(argument):
        return check_vectors(vectors, n_features)


class Queryable(Protocol):
    """What answers queries and explains: an index or a collection."""

    def _ask(self, asked: IndexQuery) -> Results:
        """Answer a query."""

    def _reason(self, asked: IndexQuery, point: Any) -> Reason:
        """Explain the place of a point in the answer to a query."""


@dataclass(frozen=True, eq=False)
class Results:
    """The answer to a query, best first.

    Parameters
    ----------
    ids : list of str and int
    payload : dict of str to list
        Columns, a value for each id.
    ranking : Ranking
        Scores with their error bound; its ``ids`` are the slots of the points.
    query : IndexQuery
        What was asked.
    """

    ids: list[Any]
    payload: dict[str, list[Any]]
    ranking: Ranking
    query: IndexQuery
    index: Queryable

    @property
    def scores(self) -> FloatArray:
        """Scores of ``ids``; 0 for points that the graph does not connect to the query."""
        return self.ranking.scores

    def refine(self, right: Any = (), wrong: Any = ()) -> Results:
        """Ask again after marking some results as right, or as wrong.

        Right ones become examples of the query, wrong ones negative examples. What is marked
        again is what it was marked last.

        Parameters
        ----------
        right, wrong : id or list of ids
            Ids of results, or of other points of the index.
        """
        asked, liked, disliked = self.query, as_list(right), as_list(wrong)
        for one in liked:
            if one in disliked:
                raise InputError(f"{one!r} is marked as right and as wrong; mark it once.")
        kept = [place for place, one in enumerate(asked.ids) if one not in disliked]
        new = [one for one in liked if one not in asked.ids]
        weights = None
        if asked.weights is not None:
            given, n_ids = np.atleast_1d(asked.weights).tolist(), len(asked.ids)
            heaviest = [max(given)] * len(new)
            weights = [*(given[place] for place in kept), *heaviest, *given[n_ids:]]
        opposed = [one for one in asked.negative if one not in (*liked, *disliked)]
        again = replace(
            asked,
            ids=[*(asked.ids[place] for place in kept), *new],
            weights=weights,
            negative=[*opposed, *disliked],
            offset=0,
        )
        return self.index._ask(again)

    def explain(self, point: Any) -> Reason:
        """Explain why a point has its place; any point of the index but those of the query."""
        return self.index._reason(self.query, point)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for every result: rank, id, score, its parts, and payload.

        The parts are ``shape`` and ``distance``, where both were fused.
        """
        first = self.query.offset + 1
        columns = self.measured()
        return [
            {
                "rank": first + place,
                "id": name,
                **{column: float(values[place]) for column, values in columns.items()},
                "payload": {column: values[place] for column, values in self.payload.items()},
            }
            for place, name in enumerate(self.ids)
        ]

    def columns(self) -> dict[str, list[Any]]:
        """Return the results column by column: rank, id, score, its parts, and payload.

        A column of the payload that is called like one of the others, such as ``rank``, is
        ``payload.rank``.
        """
        first = self.query.offset + 1
        own = {
            "rank": list(range(first, first + len(self.ids))),
            "id": self.ids,
            **{name: values.tolist() for name, values in self.measured().items()},
        }
        taken = {*own, "shape", "distance"}
        payload = {
            f"payload.{name}" if name in taken else name: values
            for name, values in self.payload.items()
        }
        return {**own, **payload}

    def measured(self) -> dict[str, FloatArray]:
        """Return scores and, where they were fused, their parts: by shape, and distances."""
        found = self.ranking.solution
        if found.distances is None or found.shape is None:
            return {"score": found.scores}
        return {"score": found.scores, "shape": found.shape, "distance": found.distances}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids)

    def __repr__(self) -> str:
        pairs = zip(self.ids[:5], self.scores[:5], strict=True)
        best = ", ".join(f"{name!r}: {score:.3g}" for name, score in pairs)
        more = ", ..." if len(self) > 5 else ""
        return f"Results({len(self)} points, {{{best}{more}}})"


@dataclass(frozen=True, eq=False)
class Reason:
    """Why a point has its place, with the ids of an index.

    Parameters
    ----------
    explanation : Explanation
    names : dict of int to id
        Ids of the slots that it speaks of.
    """

    explanation: Explanation
    names: dict[int, Any]

    @classmethod
    def of(
        cls, ranker: Ranker, query: Query, slot: int, ids_of: Callable[[list[int]], list[Any]]
    ) -> Reason:
        """Explain the place of a point in the answer of a ranker."""
        if slot in query.ids:
            raise InputError(
                f"{ids_of([slot])[0]!r} is an example of the query, which is not ranked; ask for "
                "another."
            )
        found = explain(ranker, query, slot, negative_weight=Distance.negative_weight)
        slots = [slot, *(example.point for example in found.examples)]
        for step in found.path.steps if found.path else ():
            slots += [step.start, step.end]
        known = sorted({int(one) for one in slots if one is not None})
        return cls(found, dict(zip(known, ids_of(known), strict=True)))

    def to_text(self, width: int = 78) -> str:
        """Return it in words."""
        return self.explanation.to_text(self.names, width)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it, with ids in the place of row numbers."""
        found = self.explanation.to_dict()
        found["point"] = self._name(found["point"])
        for example in found["examples"]:
            example["point"] = self._name(example["point"])
        if found["path"] is not None:
            for step in found["path"]["steps"]:
                step["start"], step["end"] = self._name(step["start"]), self._name(step["end"])
        return found

    def draw(self, path: str | Path) -> None:
        """Draw it as a PNG."""
        if Path(path).suffix.lower() != ".png":
            raise InputError(f"{str(path)!r} is drawn as a PNG; name a file that ends in .png.")
        draw_explanation(self.explanation, Path(path), names=self.names)

    def _name(self, slot: int | None) -> Any:
        return None if slot is None else self.names[slot]

    def __str__(self) -> str:
        return self.to_text()


OF_A_QUERY = ("budget", "fusion")
"""Parameters that change nothing about what is fitted."""


class QueryExecutor:
    """Answers queries in the state that was committed last.

    Parameters
    ----------
    backend : FolderBackend
    """

    def __init__(self, backend: FolderBackend) -> None:
        self._backend, self._rankers = backend, RankerCache()

    def answer(self, asked: IndexQuery) -> tuple[list[Any], dict[str, list[Any]], Ranking]:
        """Return ids and payload of the results, and the ranking of their slots."""
        with self._backend.current() as engine:
            shown = self._ranking(asked, engine)
            if asked.offset:
                shown = _some(shown, slice(asked.offset, None))
            ids, payload = self._backend.store.points_of(shown.solution.points)
            return ids, payload, shown

    def answer_many(
        self, asked: Sequence[IndexQuery], n_jobs: int, progress: bool
    ) -> list[tuple[list[Any], dict[str, list[Any]], Ranking]]:
        """Return what `answer` does of many queries, which differ in their examples alone."""
        with self._backend.current() as engine:
            store, first = self._backend.store, asked[0]
            if first.where is not None or first.diversity or not engine.n_alive:
                rankings = [self._ranking(one, engine) for one in asked]
            else:
                ranker = self._fitted(first, engine)
                rankings = ranker.rank_many(
                    [one.query(store, engine.n_features) for one in asked],
                    top=first.wanted,
                    include_query=first.include_query,
                    n_jobs=n_jobs,
                    progress=progress,
                )
            shown = rankings
            if first.offset:
                shown = [_some(one, slice(first.offset, None)) for one in rankings]
            slots = [one.solution.points for one in shown]
            ends = np.cumsum([0, *map(len, slots)]).tolist()
            ids, payload = store.points_of(np.concatenate(slots))
            return [
                (ids[a:b], {name: values[a:b] for name, values in payload.items()}, one)
                for a, b, one in zip(ends, ends[1:], shown, strict=False)
            ]

    def reason(self, asked: IndexQuery, point: Any) -> Reason:
        """Explain the place of a point."""
        with self._backend.current() as engine:
            store = self._backend.store
            (slot,) = store.slots_of([point])
            query = asked.query(store, engine.n_features)
            return Reason.of(self._fitted(asked, engine), query, int(slot), store.ids_of)

    def _ranking(self, asked: IndexQuery, engine: VectorEngine) -> Ranking:
        store = self._backend.store
        matching = None
        if asked.where is not None:
            with about("where"):
                matching = Filter.of(store, asked.where)
        query = asked.query(store, engine.n_features)
        if not engine.n_alive:
            return no_ranking()
        length = n_candidates(asked.wanted) if asked.diversity else asked.wanted
        ranker = self._fitted(asked, engine)
        if matching is None:
            ranking = ranker.rank_query(query, top=length, include_query=asked.include_query)
        else:
            ranking = matching.best(ranker, query, length, asked.include_query)
        if not asked.diversity or not len(ranking):
            return ranking
        return with_diversity(engine, ranking, query, asked)

    def fitted(self, method: str, parameters: dict[str, Any], engine: VectorEngine) -> Ranker:
        """Return the ranker that answers queries by a method; inside of `FolderBackend.current`."""
        return self._rankers.fitted(method, parameters, engine, self._backend)

    def _fitted(self, asked: IndexQuery, engine: VectorEngine) -> Ranker:
        """Return a ranker; queries that differ in budget or fusion share what was fitted."""
        shared, known = dict(asked.parameters), defaults_of(asked.method)
        own = {name: shared.pop(name) for name in OF_A_QUERY if name in shared and name in known}
        with about("parameters"):
            ranker = self._rankers.fitted(asked.method, shared, engine, self._backend)
            if "budget" in own:
                ranker = ranker.with_budget(own["budget"])
            if "fusion" in own:
                ranker = ranker.with_fusion(own["fusion"])
        return ranker


def with_diversity(engine: Engine, ranking: Ranking, query: Query, asked: IndexQuery) -> Ranking:
    """Choose diverse results; the query's own points stay first or last, as they are by rule."""
    own = np.isin(ranking.ids, query.ids)
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
    return replace(ranking, solution=ranking.solution.take(places, certified=False))
