"""What is evaluated: queries, and which points are relevant to each.

A labelled data set asks for points like one of its own; a search collection asks questions that
are not in it, and people have judged the answers. Both become a `Task`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from rankfold.check import check_choice, check_count, check_indices, check_matrix
from rankfold.errors import InputError
from rankfold.evaluation.measures import (
    Measure,
    depth_of,
    measure_all,
    parse_measures,
    usual_measures,
)
from rankfold.evaluation.results import depth_measures
from rankfold.neighbors import METRICS
from rankfold.types import BoolArray, Dataset, FloatArray, IntArray, Query, SearchCollection

MANY_POINTS = 5_000
"""Beyond, some queries are drawn instead of asking all, and no measure needs a whole ranking."""

N_DRAWN = 500
"""Queries that are drawn then."""

UNLABELLED = -1
"""The code of points without a label."""

Metrics = str | Sequence[str] | None


class Relevance(Protocol):
    """What results are worth to the query at a place of the task."""

    def gains(self, place: int, points: IntArray) -> FloatArray:
        """Return what each of these results is worth, zero where it is not relevant."""

    def ideal(self, place: int) -> FloatArray:
        """Return what each relevant point is worth, whether it can be found or not."""


class SameLabel:
    """Points that share the label of the query are relevant.

    Parameters
    ----------
    labels : array of int, shape (n_points,)
        Codes; `UNLABELLED` is relevant to nobody.
    queries : array of int
        The points that are asked for.
    include_query : bool
        Whether a query is one of its own results.
    """

    def __init__(self, labels: IntArray, queries: IntArray, include_query: bool = False) -> None:
        self._labels, self._asked = labels, labels[queries]
        self._sizes = class_sizes(labels)[queries] - (not include_query)

    def gains(self, place: int, points: IntArray) -> FloatArray:
        """Return 1 for results with the label of the query, 0 for others."""
        alike: FloatArray = (self._labels[points] == self._asked[place]).astype(np.float64)
        return alike

    def ideal(self, place: int) -> FloatArray:
        """Return 1 for every point with the label of the query."""
        return np.ones(self._sizes[place])


@dataclass(frozen=True, eq=False)
class Judged:
    """Points are worth the grades that they were given; a grade above zero is relevant.

    Parameters
    ----------
    grades : list of dict
        For each query, the grade of every relevant point that can be found, by its row.
    ideals : list of array
        For each query, the grades of all relevant points, found or not.
    """

    grades: list[dict[int, int]]
    ideals: list[FloatArray]

    def gains(self, place: int, points: IntArray) -> FloatArray:
        """Return the grade of every result."""
        known = self.grades[place]
        return np.array([known.get(point, 0) for point in points.tolist()], dtype=np.float64)

    def ideal(self, place: int) -> FloatArray:
        """Return the grades of all relevant points."""
        return self.ideals[place]


@dataclass(frozen=True, eq=False)
class Task:
    """Queries to a set of points, and how their answers are measured.

    Parameters
    ----------
    name : str
    X : array or None
        The points that rankers are fitted to; None where they are fitted already.
    metric : str
    n_points : int
        Points that can be results.
    queries : list of int or Query
        As rankers take them.
    names : tuple
        What the queries are called in the outcome.
    relevance : Relevance
    metrics : tuple of Measure
        What is reported.
    include_query : bool
        Whether a query is one of its own results, and relevant.
    notes : tuple of str
        What a reader of the outcome should know.
    """

    name: str
    X: Any
    metric: str
    n_points: int
    queries: list[Any]
    names: tuple[Any, ...]
    relevance: Relevance
    metrics: tuple[Measure, ...]
    include_query: bool = False
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is reported, and the precision at several depths."""
        n_results = self.n_points if self.include_query else self.n_points - 1
        return tuple(dict.fromkeys((*self.metrics, *depth_measures(n_results))))

    def top(self) -> int:
        """Return how many results the measures look at."""
        most = max(len(self.relevance.ideal(place)) for place in range(len(self.queries)))
        return depth_of(self.measures, most, self.n_points)

    def measured(self, places: IntArray, answers: Sequence[IntArray]) -> dict[str, FloatArray]:
        """Measure the answers to the queries at these places."""
        measures, relevance = self.measures, self.relevance
        rows = [
            measure_all(measures, relevance.gains(place, points), relevance.ideal(place))
            for place, points in zip(places.tolist(), answers, strict=True)
        ]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def make_task(
    source: Dataset | SearchCollection,
    metrics: Metrics,
    queries: Any,
    include_query: bool,
    seed: int,
) -> Task:
    """Return the task that a data set or a search collection poses."""
    if isinstance(source, SearchCollection):
        if include_query:
            raise InputError(
                "include_query is True, but the queries of a search collection are not among its "
                "documents; leave it out."
            )
        return search_task(source, metrics, queries, seed)
    dataset = check_dataset(source)
    return labelled_task(dataset, metrics, queries, include_query, seed)


def labelled_task(
    dataset: Dataset,
    metrics: Metrics,
    queries: Any,
    include_query: bool = False,
    seed: int = 0,
    n_points: int | None = None,
) -> Task:
    """Return the task of finding the points that share a label.

    Parameters
    ----------
    dataset : Dataset
        With labels as `label_codes` gives them.
    metrics, queries, include_query, seed
        As for `evaluate`.
    n_points : int, optional
        Points that can be results; all by default.
    """
    n_points = len(dataset.labels) if n_points is None else n_points
    if queries is None:
        queries = N_DRAWN if n_points > MANY_POINTS else "all"
    rows = choose_queries(dataset, queries, include_query, seed)
    n_eligible = len(choose_queries(dataset, "all", include_query, seed))
    n_unlabelled = int((dataset.labels == UNLABELLED).sum()) - (len(dataset.labels) - n_points)
    notes = []
    if n_unlabelled:
        notes.append(
            f"Points without a label, which are neither queries nor relevant: {n_unlabelled:,}."
        )
    if np.ndim(queries) == 0 and len(rows) < n_eligible:
        notes.append(_drawn(len(rows), n_eligible, seed))
    return Task(
        dataset.name,
        dataset.X,
        dataset.metric,
        n_points,
        rows.tolist(),
        tuple(rows.tolist()),
        SameLabel(dataset.labels, rows, include_query),
        _reported(metrics, "labels", n_points),
        include_query,
        tuple(notes),
    )


def search_task(collection: SearchCollection, metrics: Metrics, queries: Any, seed: int) -> Task:
    """Return the task of finding what was judged relevant to questions."""
    name = collection.name
    check_choice(collection.metric, "collection.metric", METRICS)
    X = check_matrix(collection.X, f"X of {name!r}")
    vectors = check_matrix(collection.queries, f"queries of {name!r}")
    if X.shape[1] != vectors.shape[1]:
        raise InputError(
            f"queries of {name!r} have {vectors.shape[1]} numbers, but the documents have "
            f"{X.shape[1]}; make both in the same way."
        )
    ids = _names(collection.ids, len(X), f"ids of {name!r}")
    query_ids = _names(collection.query_ids, len(vectors), f"query_ids of {name!r}")
    has_direction, notes = _with_directions(X, collection.metric)
    X, ids = X[has_direction], [ids[row] for row in np.flatnonzero(has_direction)]
    task = judged_task(
        name, X, collection.metric, ids, vectors, query_ids, collection.qrels, metrics, queries,
        seed,
    )  # fmt: skip
    return replace(task, notes=(*notes, *task.notes))


def judged_task(
    name: str,
    X: Any,
    metric: str,
    ids: Sequence[str],
    vectors: FloatArray,
    query_ids: Sequence[str],
    qrels: Mapping[Any, Mapping[Any, int]],
    metrics: Metrics,
    queries: Any,
    seed: int,
    rows: IntArray | None = None,
) -> Task:
    """Return the task of finding what was judged relevant to some vectors.

    Parameters
    ----------
    name, metric : str
    X : array or None
        None where rankers are fitted already.
    ids : sequence of str
        Of the documents that can be results.
    vectors : array, shape (n_queries, n_features)
    query_ids : sequence of str
    qrels : dict of dict
        ``qrels[query][document]`` is a grade.
    metrics, queries, seed
        As for `evaluate`.
    rows : array of int, optional
        What rankers call each document; by default they count from zero.
    """
    grades_of = check_qrels(qrels)
    row_of = dict(zip(ids, range(len(ids)) if rows is None else rows.tolist(), strict=True))
    useful = _with_directions(vectors, metric)[0]
    relevant = {
        query: {point: grade for point, grade in grades_of.get(query, {}).items() if grade > 0}
        for query in query_ids
    }
    kept = [place for place, query in enumerate(query_ids) if relevant[query] and useful[place]]
    if not kept:
        raise InputError(
            f"no query of {name!r} has a relevant document: the queries are {few(query_ids)}, "
            f"those of qrels with a grade above zero {few(_answered(grades_of))}; give both the "
            "same ids."
        )
    if not any(point in row_of for place in kept for point in relevant[query_ids[place]]):
        raise InputError(
            f"none of the relevant documents is there: the documents of {name!r} are {few(ids)}, "
            f"those of qrels {few([*relevant[query_ids[kept[0]]]])}; give both the same ids."
        )
    notes = _judged_notes(query_ids, grades_of, relevant, kept, row_of)
    chosen = _choose_judged(kept, query_ids, queries, len(ids), seed)
    if len(chosen) < len(kept) and (queries is None or np.ndim(queries) == 0):
        notes.append(_drawn(len(chosen), len(kept), seed))
    judged = [relevant[query_ids[place]] for place in chosen]
    return Task(
        name,
        X,
        metric,
        len(ids),
        [Query(vectors=vectors[place]) for place in chosen],
        tuple(query_ids[place] for place in chosen),
        Judged(
            [{row_of[point]: grade for point, grade in found.items() if point in row_of}
             for found in judged],
            [np.array([*found.values()], dtype=np.float64) for found in judged],
        ),
        _reported(metrics, "judgements", len(ids)),
        notes=tuple(notes),
    )  # fmt: skip


def choose_queries(dataset: Dataset, queries: Any, include_query: bool, seed: int) -> IntArray:
    """Return the rows to ask for: all that have something to find, some of them, or those given."""
    found = np.maximum(class_sizes(dataset.labels) - (not include_query), 0)
    eligible: IntArray = np.flatnonzero(found)
    if not len(eligible):
        raise InputError(
            f"no two points of {dataset.name!r} share a label, so no query has anything to find."
        )
    if isinstance(queries, str) and queries == "all":
        return eligible
    if np.ndim(queries) == 0:
        number = check_count(queries, "queries")
        if number > len(eligible):
            raise InputError(
                f"queries is {number}, but only {len(eligible)} points of {dataset.name!r} "
                "have another one with their label."
            )
        rng = np.random.default_rng(seed)
        return np.sort(rng.choice(eligible, number, replace=False)).astype(np.intp)
    rows = check_indices(queries, len(dataset.labels), name="queries")
    if not len(rows):
        raise InputError("queries is empty; give at least one row number, or 'all'.")
    alone = rows[found[rows] == 0]
    if len(alone):
        raise InputError(
            f"query {alone[0]} has nothing to find: no other point of {dataset.name!r} has its "
            "label. Leave it out, or pass include_query=True."
        )
    return rows


def check_dataset(dataset: object) -> Dataset:
    """Require a Dataset of finite numbers; return it with codes for labels."""
    if not isinstance(dataset, Dataset):
        raise InputError(
            f"dataset is {type(dataset).__name__}, but must be a rankfold.Dataset: "
            "Dataset(name, X, labels), or datasets.load(name)."
        )
    check_choice(dataset.metric, "dataset.metric", METRICS)
    X, labels = np.asarray(dataset.X), np.asarray(dataset.labels)
    if X.ndim != 2 or X.dtype.kind not in "fiu" or not np.isfinite(X).all():
        raise InputError(
            f"X of {dataset.name!r} has shape {X.shape} and type {X.dtype}, but must have rows "
            "and columns of finite numbers."
        )
    if labels.shape != X.shape[:1]:
        raise InputError(
            f"labels of {dataset.name!r} has shape {labels.shape}, but there are "
            f"{len(X)} points: give one label for each."
        )
    return replace(dataset, X=X, labels=label_codes(labels))


def label_codes(labels: Any) -> IntArray:
    """Return a number for every label, and `UNLABELLED` for None and NaN.

    Examples
    --------
    >>> label_codes(["cat", None, "dog", "cat"])
    array([ 0, -1,  1,  0])
    """
    values = np.asarray(labels).tolist()
    codes: dict[Any, int] = {}
    found = [
        UNLABELLED if value is None or value != value else codes.setdefault(value, len(codes))
        for value in values
    ]
    return np.array(found, dtype=np.intp)


def class_sizes(labels: IntArray) -> IntArray:
    """Return for every point how many have its label, itself among them; 0 without a label.

    Examples
    --------
    >>> import numpy as np
    >>> class_sizes(np.array([7, 3, -1, 7]))
    array([2, 1, 0, 2])
    """
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    sizes: IntArray = np.where(labels == UNLABELLED, 0, counts[place])
    return sizes


def check_qrels(qrels: object) -> dict[str, dict[str, int]]:
    """Require judgements; ids become text, as TREC files have them."""
    if not isinstance(qrels, Mapping) or not all(isinstance(g, Mapping) for g in qrels.values()):
        raise InputError(
            f"qrels is {type(qrels).__name__}, but must map queries to the grades of documents, "
            "{query: {document: grade}}, as read_qrels gives them."
        )
    checked = {
        str(query): {str(point): grade for point, grade in grades.items()}
        for query, grades in qrels.items()
    }
    for query, grades in checked.items():
        for point, grade in grades.items():
            if isinstance(grade, bool) or not isinstance(grade, int | np.integer):
                raise InputError(
                    f"qrels[{query!r}][{point!r}] is {grade!r}, but grades are whole numbers."
                )
    return checked


def few(names: Any) -> str:
    """Return some names for a message."""
    shown = [repr(name) for name in list(names)[:3]]
    return ", ".join(shown) + (" ..." if len(names) > 3 else "") if shown else "none"


def distinct_texts(names: Sequence[Any], what: str) -> list[str]:
    """Return names as text, as TREC files have them, and require that they differ as such."""
    texts = [str(name) for name in names]
    counts = Counter(texts)
    if len(counts) < len(texts):
        ((twice, _),) = counts.most_common(1)
        raise InputError(f"{what} holds {twice!r} more than once; judgements need ids that differ.")
    return texts


def _names(ids: Sequence[Any] | None, number: int, what: str) -> list[str]:
    """Return ids as text, all different; row numbers where none are given."""
    names = range(number) if ids is None else ids
    if len(names) != number:
        raise InputError(f"{what} are {len(names)}, but there are {number} vectors; give one each.")
    return distinct_texts(names, what)


def _with_directions(vectors: FloatArray, metric: str) -> tuple[BoolArray, list[str]]:
    """Return which vectors can be compared, and a note if some cannot."""
    if metric != "cosine":
        return np.ones(len(vectors), dtype=bool), []
    useful: BoolArray = np.asarray(vectors.any(axis=1))
    n_zero = int((~useful).sum())
    note = f"Documents left out because their vectors are all zeros: {n_zero:,}."
    return useful, [note] if n_zero else []


def _answered(grades_of: Mapping[str, Mapping[str, int]]) -> list[str]:
    return [query for query, grades in grades_of.items() if any(g > 0 for g in grades.values())]


def _judged_notes(
    query_ids: Sequence[str],
    grades_of: Mapping[str, Mapping[str, int]],
    relevant: Mapping[str, Mapping[str, int]],
    kept: Sequence[int],
    row_of: Mapping[str, int],
) -> list[str]:
    n_nothing = sum(not relevant[query] for query in query_ids)
    n_zero = len(query_ids) - n_nothing - len(kept)
    n_unasked = len(set(_answered(grades_of)) - set(query_ids))
    n_absent = sum(point not in row_of for place in kept for point in relevant[query_ids[place]])
    counts = {
        "Queries left out because no document is relevant to them": n_nothing,
        "Queries left out because their vectors are all zeros": n_zero,
        "Queries of the judgements that have no vector": n_unasked,
        "Relevant documents that are not there and count as not found": n_absent,
    }
    return [f"{what}: {number:,}." for what, number in counts.items() if number]


def _choose_judged(
    kept: Sequence[int], query_ids: Sequence[str], queries: Any, n_points: int, seed: int
) -> list[int]:
    """Return the places of the queries to ask."""
    if queries is None:
        some = n_points > MANY_POINTS and len(kept) > N_DRAWN
        queries = N_DRAWN if some else "all"
    if isinstance(queries, str) and queries == "all":
        return list(kept)
    if np.ndim(queries) == 0:
        number = check_count(queries, "queries")
        if number > len(kept):
            raise InputError(
                f"queries is {number}, but only {len(kept)} queries have a relevant document."
            )
        rng = np.random.default_rng(seed)
        return sorted(rng.choice(kept, number, replace=False).tolist())
    place_of = {query_ids[place]: place for place in kept}
    asked = [str(query) for query in queries]
    unknown = [query for query in asked if query not in place_of]
    if unknown or not asked:
        raise InputError(
            f"queries holds {few(unknown)}, but those with a relevant document are "
            f"{few([*place_of])}; give ids of these, a number, or 'all'."
        )
    return [place_of[query] for query in distinct_texts(asked, "queries")]


def _reported(metrics: Metrics, says: str, n_points: int) -> tuple[Measure, ...]:
    usual = usual_measures(says, n_points > MANY_POINTS)
    return parse_measures(usual if metrics is None else metrics)


def _drawn(number: int, total: int, seed: int) -> str:
    return f"Queries drawn at random: {number:,} of {total:,} (seed {seed})."
