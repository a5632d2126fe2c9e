"""One query: what is asked, of which points, and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    check_query,
    check_share,
    check_vectors,
    check_weights,
)
from rankfold.errors import InputError, MissingExtraError
from rankfold.explanation import Explanation, draw_explanation, explain
from rankfold.index.scores import (
    Contribution,
    Threshold,
    scaled_explanation,
)
from rankfold.neighbors import Engine, plain_sq_distances
from rankfold.rankers import RANKERS, Distance, Ranker
from rankfold.rankers.ordering import Fusion, reordered, with_unreached
from rankfold.storage import Store
from rankfold.types import FloatArray, IntArray, Query, Ranking, changed

FIRST_SURPLUS, GROWTH = 2.0, 4
"""How many more points are ranked at first than should do, and how many more after that."""


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
    wanted: int = field(init=False, repr=False)
    """How many results are needed for those that are shown."""
    is_one_id: bool = field(init=False, repr=False)
    """Whether a point of the index is all that is asked for, as is most usual."""

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
        object.__setattr__(self, "wanted", self.offset + self.top)
        others = (self.vectors, self.text_vectors, self.negative_vectors, self.weights)
        alone = not self.negative and all(one is None for one in others)
        object.__setattr__(self, "is_one_id", alone and len(self.ids) == 1)

    def of_each(self, ids: list[Any]) -> list[IndexQuery]:
        """Return a query for each of some points; this one has no examples, and is checked."""
        given = map(as_list, ids)
        return [changed(self, ids=some, is_one_id=len(some) == 1) for some in given]

    def query(self, store: Store, n_features: int) -> Query:
        """Return the query in terms of slots: positive examples first, ids before vectors."""
        if self.is_one_id:
            return Query(slots_of(store, self.ids, "ids"), np.empty((0, n_features)), np.ones(1))
        slots = np.concatenate(
            [slots_of(store, self.ids, "ids"), slots_of(store, self.negative, "negative")]
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


def slots_of(store: Store, ids: list[Any], argument: str) -> IntArray:
    """Return the slots of ids; an error names the argument."""
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


class Filter:
    """Finds the best of the points that meet a condition; the graph has all points.

    More and more points are ranked until enough of them match, all that do are found, or points
    come that the query does not reach; these are ordered by plain distance. The answer is
    certified where the ranking is, and no matching point that was left out can be better.
    Reciprocal ranks are counted among the points that match, as lists by words are.

    Parameters
    ----------
    matching : array of int
        Slots of all points that meet the condition.
    """

    def __init__(self, matching: IntArray) -> None:
        self._matching = matching

    @classmethod
    def of(cls, store: Store, where: Any) -> Filter:
        """Return what finds the points of a store that meet a condition."""
        if not isinstance(where, str):
            raise InputError(f"where is {where!r}, but must be a text such as 'price < 10'.")
        return cls(store.matching(where))

    def best(self, ranker: Ranker, query: Query, top: int, include_query: bool) -> Ranking:
        """Return the best matching points."""
        if ranker.fusion == "reciprocal_rank":
            return self._by_ranks(ranker, query, top, include_query)
        engine: Any = ranker.engine_
        no_score_is_negative = min(query.weights) > 0
        length, enough = self._expected(engine, query, top, include_query)
        while True:
            length = max(1, min(length, engine.n_alive))
            ranking = ranker.rank_query(query, top=length, include_query=include_query)
            places = self._places(ranking.indices)
            if len(places) >= enough or length == engine.n_alive:
                return _shortened(ranking, places, top)
            if no_score_is_negative and ranking.scores[-1] == 0:
                return self._filled_up(ranker, query, ranking, places, enough)
            length *= GROWTH

    def _by_ranks(self, ranker: Ranker, query: Query, top: int, include_query: bool) -> Ranking:
        """Fuse the orders of the best matching points by shape and by distance."""
        engine, fusion = ranker.engine_, Fusion.of(ranker.fusion)
        length, _ = self._expected(engine, query, top, include_query)
        by_shape = ranker.with_fusion("none").with_budget(ranker.budget_for(length))
        found = self.best(by_shape, query, fusion.n_candidates(top), include_query)
        checked = check_query(query, engine.n_points, engine.n_features)
        hood = ranker.hood(checked)
        return replace(found, solution=reordered(engine, checked, hood, found.solution, top))

    def _filled_up(
        self, ranker: Ranker, query: Query, ranking: Ranking, places: IntArray, enough: int
    ) -> Ranking:
        """Let matching points that the query does not reach follow by plain distance."""
        engine = ranker.engine_
        checked = check_query(query, engine.n_points, engine.n_features)
        shown = places[ranking.scores[places] > 0]
        reached = ranking.indices[shown]
        nearest = self._nearest(engine, checked, reached, enough - len(reached))
        answer = ranking.solution.take(shown, certified=False)
        return replace(ranking, solution=with_unreached(engine, checked, answer, nearest))

    def _expected(
        self, engine: Engine, query: Query, top: int, include_query: bool
    ) -> tuple[int, int]:
        """Return how many points to rank at first, and how many are to match."""
        self._allowed = np.zeros(engine.n_points, dtype=bool)
        self._allowed[self._matching] = True
        if not include_query:
            self._allowed[query.indices] = False
        n_allowed = int(np.count_nonzero(self._allowed))
        enough = min(top, n_allowed)
        length = int(FIRST_SURPLUS * enough * engine.n_alive / max(1, n_allowed))
        return length, enough

    def _places(self, indices: IntArray) -> IntArray:
        return np.flatnonzero(self._allowed[indices])

    def _nearest(self, engine: Engine, query: Query, reached: IntArray, count: int) -> IntArray:
        others = self._allowed.copy()
        others[reached] = False
        (rest,) = np.nonzero(others)
        near = plain_sq_distances(engine, query)[rest]
        return rest[np.argsort(near, kind="stable")][:count]


def _shortened(ranking: Ranking, places: IntArray, top: int) -> Ranking:
    """Return the first of some results; certified if none that is left out can be better."""
    solution = ranking.solution
    kept, left_out = ranking.scores[places[:top]], ranking.scores[places[top:]]
    by_rank = solution.fused is not None and solution.fused.kind == "reciprocal_rank"
    # The bound is that of shape scores, and says nothing of ranks.
    clear = not len(left_out) or (not by_rank and kept.min() - left_out.max() > 2 * solution.bound)
    certified = solution.certified and bool(clear)
    return replace(ranking, solution=solution.take(places[:top], certified=certified))
