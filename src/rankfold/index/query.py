"""One query to an index: what is asked, its results, and the reason of a place in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    check_number,
    check_share,
    check_vectors,
    check_weights,
)
from rankfold.diversity import diverse, n_candidates
from rankfold.errors import InputError, MissingExtraError
from rankfold.explanation import Explanation, draw_explanation, explain
from rankfold.index.backend import FolderBackend
from rankfold.index.filters import Filter, no_ranking
from rankfold.index.ranker_cache import RankerCache, defaults_of
from rankfold.index.scores import (
    BY_DISTANCE,
    Contribution,
    RankedList,
    Threshold,
    contributions,
    fuse,
    list_depth,
    scaled,
    scaled_explanation,
)
from rankfold.neighbors import Engine, VectorEngine
from rankfold.parallel import in_order
from rankfold.rankers import RANKERS, Distance, Ranker
from rankfold.storage import Store
from rankfold.types import FloatArray, IntArray, Query, Ranking, changed


@dataclass(frozen=True, eq=False)
class IndexQuery:
    """A query in the words of the user; `Index.query` says what each field means.

    What can be checked without the index is checked at once.
    """

    ids: Any = None
    vectors: Any = None
    weights: Any = None
    text: Any = None
    text_vectors: FloatArray | None = None
    """Vectors of the texts, once they are made."""
    words: str | None = None
    negative: Any = None
    negative_vectors: Any = None
    where: Any = None
    top: int = 10
    offset: int = 0
    diversity: float = 0.0
    method: str = "ran"
    include_query: bool = False
    min_score: float | None = None
    group_by: str | None = None
    per_group: int = 1
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", as_list(self.ids))
        object.__setattr__(self, "text", as_list(self.text))
        object.__setattr__(self, "negative", as_list(self.negative))
        check_examples(self.vectors, "query_batch")
        check_examples(self.negative_vectors, "query_batch", "negative_vectors")
        check_choice(self.method, "method", tuple(RANKERS))
        check_count(self.top, "top")
        check_count(self.offset, "offset", least=0)
        check_share(self.diversity, "diversity", zero=True, one=True)
        check_count(self.per_group, "per_group")
        if self.min_score is not None:
            check_number(self.min_score, "min_score")
        if self.group_by is not None and (self.diversity or self.min_score is not None):
            raise InputError(
                "group_by is given beside diversity or min_score; ask for one of them.", "group_by"
            )
        if self.words is not None and "fusion" in self.parameters:
            raise InputError(
                "words and fusion are both given, but words are fused with distance and shape by "
                "reciprocal ranks; leave fusion out.",
                "words",
            )

    @property
    def wanted(self) -> int:
        """How many results are needed for those that are shown."""
        return self.offset + self.top

    @property
    def is_one_id(self) -> bool:
        """Whether a point of the index is all that is asked for, as is most usual."""
        others = (self.vectors, self.text_vectors, self.negative_vectors, self.weights)
        return len(self.ids) == 1 and not self.negative and all(one is None for one in others)

    def query(self, store: Store, n_features: int) -> Query:
        """Return the query in terms of slots: positive examples first, ids before vectors."""
        if self.is_one_id:
            return Query(_slots(store, self.ids, "ids"), np.empty((0, n_features)), np.ones(1))
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
        vectors = np.concatenate(
            [
                _vectors(self.vectors, n_features, "vectors"),
                _vectors(self.text_vectors, n_features, "text"),
            ]
        )
        opposed = _vectors(self.negative_vectors, n_features, "negative_vectors")
        n_ids, n_positive = len(self.ids), len(self.ids) + len(vectors)
        if not n_positive:
            raise InputError(
                "the query has no example of what is looked for: give ids of points, vectors or a "
                "text. Words alone are looked for by find."
            )
        given: FloatArray = np.ones(n_positive)
        if self.weights is not None:
            with about("weights"):
                given = check_weights(self.weights, n_positive)
        if not (given > 0).all():
            raise InputError(
                f"weights is {self.weights!r}, but those of examples must be above zero; "
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


class ResultRows:
    """What all lists of results can be turned into: rows, columns, a frame."""

    ids: list[Any]
    payload: dict[str, list[Any]]

    @property
    def offset(self) -> int:
        """How many results were skipped before these."""
        raise NotImplementedError

    def measured(self) -> dict[str, FloatArray]:
        """Return scores and, where there are any, their parts."""
        raise NotImplementedError

    @property
    def proven(self) -> list[bool] | None:
        """Of which results it is proven that they score ``min_score``; None without one."""
        return None

    def contributions(self, place: int) -> dict[str, dict[str, Any]]:
        """Return what each of several lists added to one result; nothing where there is one."""
        return {}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for every result: rank, id, score, its parts, and payload.

        The parts are ``shape`` and ``distance``, where both were fused; ``lists`` says what each
        list of a hybrid query added.
        """
        first = self.offset + 1
        columns = self.measured()
        lists = [self.contributions(place) for place in range(len(self.ids))]
        proven = self.proven
        return [
            {
                "rank": first + place,
                "id": name,
                **{column: float(values[place]) for column, values in columns.items()},
                **({} if proven is None else {"proven": proven[place]}),
                **({"lists": lists[place]} if lists[place] else {}),
                "payload": {column: values[place] for column, values in self.payload.items()},
            }
            for place, name in enumerate(self.ids)
        ]

    def columns(self) -> dict[str, list[Any]]:
        """Return the results column by column: rank, id, score, its parts, and payload.

        Of a hybrid query, ``words_rank``, ``distance_rank`` and ``shape_rank`` are places in its
        lists. A column of the payload that is called like one of the others, such as ``rank``, is
        ``payload.rank``.
        """
        first = self.offset + 1
        lists = [self.contributions(place) for place in range(len(self.ids))]
        own = {
            "rank": list(range(first, first + len(self.ids))),
            "id": self.ids,
            **{name: values.tolist() for name, values in self.measured().items()},
            **({} if self.proven is None else {"proven": self.proven}),
            **{
                f"{name}_rank": [one[name]["rank"] for one in lists]
                for name in (lists[0] if lists else ())
            },
        }
        taken = {*own, "shape", "distance"}
        payload = {
            f"payload.{name}" if name in taken else name: values
            for name, values in self.payload.items()
        }
        return {**own, **payload}

    def to_frame(self) -> Any:
        """Return the results as a frame of pandas, a row for each: the columns of `columns`."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        return pd.DataFrame(self.columns())

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids)


@dataclass(frozen=True, eq=False)
class Matches(ResultRows):
    """Points that were found by words, best first.

    Parameters
    ----------
    ids : list of str and int
    payload : dict of str to list
        Columns, a value for each id.
    scores : array of float
        Of BM25: they compare results of the same words, not of others.
    offset : int
        How many results were skipped before these.
    """

    ids: list[Any]
    payload: dict[str, list[Any]]
    scores: FloatArray
    offset: int = 0

    def measured(self) -> dict[str, FloatArray]:
        """Return the scores."""
        return {"score": self.scores}

    def __repr__(self) -> str:
        return f"Matches({len(self)} points, {_first_few(self)})"


def _first_few(results: Matches | Results) -> str:
    pairs = zip(results.ids[:5], results.scores[:5], strict=True)
    best = ", ".join(f"{name!r}: {score:.3g}" for name, score in pairs)
    return f"{{{best}{', ...' if len(results) > 5 else ''}}}"


@dataclass(frozen=True, eq=False)
class Results(ResultRows):
    """The answer to a query, best first.

    Parameters
    ----------
    ids : list of str and int
    payload : dict of str to list
        Columns, a value for each id.
    ranking : Ranking
        Scores with their error bound; its ``indices`` are the slots of the points.
    query : IndexQuery
        What was asked.
    lists : dict of str to list of Contribution
        For a query with ``words``: what the lists "words", "distance" and "shape" added to the
        score of each result; else empty.
    threshold : Threshold or None
        For a query with ``min_score``: of which results it is proven that they score as much, and
        whether that no other point does.
    """

    ids: list[Any]
    payload: dict[str, list[Any]]
    ranking: Ranking
    query: IndexQuery
    index: Queryable
    lists: dict[str, list[Contribution]] = field(default_factory=dict)
    threshold: Threshold | None = None

    @property
    def offset(self) -> int:
        """How many results were skipped before these."""
        return self.query.offset

    @property
    def proven(self) -> list[bool] | None:
        """Of which results it is proven that they score ``min_score``; None without one."""
        return None if self.threshold is None else self.threshold.proven.tolist()

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

    def measured(self) -> dict[str, FloatArray]:
        """Return scores and, where they were fused, their parts: by shape, and distances."""
        found = self.ranking.solution
        if found.distances is None or found.shape is None:
            return {"score": found.scores}
        return {"score": found.scores, "shape": found.shape, "distance": found.distances}

    def contributions(self, place: int) -> dict[str, dict[str, Any]]:
        """Return what each list added to one result, as JSON can hold it."""
        return {name: parts[place]._asdict() for name, parts in self.lists.items()}

    def __repr__(self) -> str:
        return f"Results({len(self)} points, {_first_few(self)})"


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
        if slot in query.indices:
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

    def scaled(self, method: str, metric: str) -> Reason:
        """Return it with score and distance on the scale that an index shows."""
        return replace(self, explanation=scaled_explanation(self.explanation, method, metric))

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


GROUP_GROWTH = 4
"""How many more points are ranked than are wanted in groups, and how many more after that."""

OF_A_QUERY = ("budget", "fusion")
"""Parameters that change nothing about what is fitted."""

OF_AN_INDEX = {"distance": {"budget": "auto"}}
"""Where an index has defaults of its own: plain distance need not measure a million points."""


class QueryExecutor:
    """Answers queries in the state that was committed last.

    Parameters
    ----------
    backend : FolderBackend
    """

    def __init__(self, backend: FolderBackend) -> None:
        self._backend, self._rankers = backend, RankerCache()

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
            slots: list[int] = _slots(store, [one.ids[0] for one in asked], "ids").tolist()
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
        return self._rankers.fitted(method, parameters, engine, self._backend)

    def _fitted(self, asked: IndexQuery, engine: VectorEngine) -> Ranker:
        """Return a ranker; queries that differ in budget or fusion share what was fitted."""
        shared = {**OF_AN_INDEX.get(asked.method, {}), **asked.parameters}
        known = defaults_of(asked.method)
        own = {name: shared.pop(name) for name in OF_A_QUERY if name in shared and name in known}
        with about("parameters"):
            ranker = self._rankers.fitted(asked.method, shared, engine, self._backend)
            if "budget" in own:
                ranker = ranker.with_budget(own["budget"])
            if "fusion" in own:
                ranker = ranker.with_fusion(own["fusion"])
        return ranker


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
