"""From the body of a request to that of its answer, on one of the indexes; called in threads."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Annotated, Any, cast

import numpy as np
from fastapi import Depends, Path, Request

from rankfold.check import about
from rankfold.databases import Collection
from rankfold.errors import InputError, RankfoldError
from rankfold.index import Index, Results
from rankfold.inputs.images import require_pillow
from rankfold.layout import kind_without_map
from rankfold.neighbors.exact import EXACT_LIMIT
from rankfold.parallel import check_stopped
from rankfold.rankers import RANKERS
from rankfold.service.problems import LONGEST_NAME, ProblemError
from rankfold.service.requests import (
    MOST_NEIGHBORS,
    ChangedPoint,
    CountRequest,
    ExplainRequest,
    FindRequest,
    LookupRequest,
    NewPoint,
    QueryRequest,
    RerankRequest,
    ScrollRequest,
)
from rankfold.service.responses import Limits
from rankfold.storage.columns import KINDS, UNKNOWN
from rankfold.types import FloatArray

LONGEST_SIDE = 128
"""Larger pictures are made smaller: a page shows many of them, each in little space."""

LONGEST_TEXT = 2**16
GIVEN = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
"""Pictures of pixels only: SVG is a document that can hold scripts and addresses."""


MOST_CHARACTERS, MOST_NUMBERS = 2**25, 2**21
"""Characters of payload, and numbers of vectors, that an answer may hold."""

COUNTED_AT_ONCE = 2000
"""Points whose values in a column are read before they are counted."""

TOLD = (
    "points", "features", "metric", "n_neighbors", "list_width", "columns", "text_columns",
    "embedder", "layout", "learned",
)  # fmt: skip
"""What clients may know of `Index.info`: nothing of the machine."""

NUMBERS = {"integer", "number"}


@dataclass(frozen=True)
class Pixels:
    """How the vectors of an index are pictures, row by row, grey or red, green and blue.

    ``white`` is the value of white; without, it is the largest value of each vector.
    """

    width: int
    height: int
    colour: bool
    white: float | None = 1.0

    @property
    def n_values(self) -> int:
        """Length of the vectors."""
        return self.width * self.height * (3 if self.colour else 1)


def image_of(facts: Mapping[str, Any]) -> Pixels | None:
    """Read from ``Index.info()`` how the vectors are pictures; None if they are none.

    Whoever built the index may have noted anything: what does not fit is no picture.

    Examples
    --------
    >>> source = {"images": {"size": [8, 8], "colour": False, "scale": 16}}
    >>> image_of({"source": source, "features": 64, "metric": "euclidean"})
    Pixels(width=8, height=8, colour=False, white=16.0)
    >>> image_of({"source": source, "features": 3, "metric": "euclidean"}) is None
    True
    """
    match facts["source"]:
        case {"images": {"size": [int(width), int(height)], **rest}} if min(width, height) > 0:
            colour, white = rest.get("colour", False), rest.get("scale", 1)
        case _:
            return None
    if not isinstance(colour, bool) or not isinstance(white, int | float):
        return None
    if not 0 < white <= sys.float_info.max:
        return None
    # Cosine keeps vectors of length one: how bright they were is lost.
    pixels = Pixels(width, height, colour, None if facts["metric"] == "cosine" else float(white))
    return pixels if pixels.n_values == facts["features"] else None


def thumbnail(vector: FloatArray, pixels: Pixels) -> str:
    """Return a vector as a PNG in a data URI."""
    require_pillow()
    from PIL import Image

    shape = (pixels.height, pixels.width, 3) if pixels.colour else (pixels.height, pixels.width)
    white = float(vector.max()) if pixels.white is None else pixels.white
    with np.errstate(over="ignore"):  # what is beyond white is white
        bright = np.clip(vector.astype(np.float64) / (white if white > 0 else 1.0), 0.0, 1.0)
    image = Image.fromarray(np.rint(255 * bright).astype(np.uint8).reshape(shape))
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = BytesIO()
    image.save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode('ascii')}"


def given_image(value: object) -> str | None:
    """Return a picture that came in the payload as a data URI; None for anything else.

    Examples
    --------
    >>> given_image("data:image/gif;base64,R0lGODlh")
    'data:image/gif;base64,R0lGODlh'
    >>> given_image("data:image/svg+xml;base64,PHN2Zz4=") is None
    True
    """
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return None
    return value if GIVEN.fullmatch(value) else None


@dataclass(frozen=True, eq=False)
class Served:
    """An index that is served."""

    name: str
    index: Index | Collection
    example: bool
    writable: bool

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it."""
        known = self.index.info()
        pixels = image_of(known)
        return {
            "name": self.name,
            **{key: known.get(key) for key in TOLD},
            "image": None if pixels is None else asdict(pixels),
            "query": self._first_query(known),
            "example": self.example,
            "writable": self.writable,
            "version": version_of(known),
            "methods": self.methods(known),
            "limits": self.limits(known).model_dump(),
        }

    def methods(self, known: Mapping[str, Any]) -> list[str]:
        """Return the methods that may be asked for; a collection says which it has."""
        return list(known.get("methods", RANKERS))

    def limits(self, known: Mapping[str, Any]) -> Limits:
        """Return the most that may be asked for."""
        if "methods" in known:  # the graph of a collection is as it is
            return Limits(n_neighbors=int(known["n_neighbors"]), max_iter=1)
        return Limits(n_neighbors=most_neighbors(known))

    def _first_query(self, known: Mapping[str, Any]) -> str | int | None:
        """Return the point that whoever built the index wants to be asked with at first."""
        point = known["source"].get("query")
        return point if isinstance(point, str | int) and point in self.index else None


def version_of(known: Mapping[str, Any]) -> str:
    """Return what changes whenever the points of an index do."""
    return f"{known['generation']}.{known['pending_changes']}"


def most_neighbors(known: Mapping[str, Any]) -> int:
    """Return how many neighbours a query may ask for without a search for all points."""
    if known["points"] <= EXACT_LIMIT:
        return MOST_NEIGHBORS
    return max(int(known["n_neighbors"]), int(known["list_width"]) // 2 - 1)


async def named(request: Request, name: Annotated[str, Path(description="Of an index.")]) -> Served:
    """Return the index that a request is about."""
    indexes: dict[str, Served] = request.app.state.served
    if name not in indexes:
        raise ProblemError(404, f"there is no index of this name; there are {', '.join(indexes)}.")
    return indexes[name]


Chosen = Annotated[Served, Depends(named)]


@contextmanager
def naming_points(
    index: Index, points: Sequence[NewPoint | ChangedPoint], *, new: bool
) -> Iterator[None]:
    """Let the error of a change name the field of the first point that is wrong.

    The index says what is wrong; points are looked at one by one only when it has refused them.

    Parameters
    ----------
    index : Index
    points : sequence of NewPoint or ChangedPoint
    new : bool
        Whether they are added, so that their ids must be free.
    """
    try:
        with about("points"):
            yield
    except InputError as error:
        with index.reading():
            _check_ids(index, [point.id for point in points], "points[{}].id", new=new)
            known = index.info()
            for place, point in enumerate(points):
                with about(f"points[{place}]"):
                    _check_vector(point.vector, known)
                    _check_payload(point.payload, known["columns"])
        raise error


@contextmanager
def naming_ids(index: Index, ids: Sequence[Any]) -> Iterator[None]:
    """Let the error of a change name the first id that is wrong."""
    try:
        with about("ids"):
            yield
    except InputError as error:
        with index.reading():
            _check_ids(index, ids, "ids[{}]", new=False)
        raise error


def _check_ids(index: Index, ids: Sequence[Any], field: str, *, new: bool) -> None:
    seen, held = set(), index.holds(list(ids))
    for place, name in enumerate(ids):
        if name is None:
            continue
        with about(field.format(place)):
            if name in seen:
                raise InputError(f"the id {name!r} is given more than once; name a point once.")
            if new and held[place]:
                raise InputError(f"the id {name!r} is in use already; remove or update this point.")
            if not new and not held[place]:
                raise InputError(f"there is no point with the id {name!r}.")
        seen.add(name)


def _check_vector(vector: Sequence[float] | None, known: Mapping[str, Any]) -> None:
    if vector is not None and len(vector) != known["features"]:
        raise InputError(
            f"the vector has {len(vector)} numbers, but those of the index have "
            f"{known['features']}.",
            "vector",
        )
    if vector is not None and known["metric"] == "cosine" and not any(vector):
        raise InputError(
            "the vector is all zeros, which has no direction; leave the point out.", "vector"
        )


def _check_payload(payload: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    for name, value in payload.items():
        with about(f"payload.{name[:LONGEST_NAME]}"):
            if name not in columns:
                raise InputError(
                    f"the index has no column {name!r}; it has {', '.join(columns) or 'none'}."
                )
            if value is None or columns[name] == UNKNOWN:
                continue
            kind = KINDS[type(value)]
            if kind != columns[name] and {kind, columns[name]} != NUMBERS:
                raise InputError(
                    f"column {name!r} holds {columns[name]} values, but this one is {kind}."
                )


def list_all(indexes: Iterable[Served]) -> list[dict[str, Any]]:
    """Tell what there is to know about some indexes, but for those that cannot be read now."""
    infos = []
    for served in indexes:
        with suppress(RankfoldError):
            infos.append(served.info())
    return infos


def answer_all(served: Served, queries: list[QueryRequest]) -> list[dict[str, Any]]:
    """Answer queries one after the other, for as long as somebody waits for them."""
    answers, n_characters = [], 0
    for place, query in enumerate(queries):
        check_stopped()
        with about(f"queries[{place}]"):
            found = answer(ask(served, query), query)
            n_characters = check_characters(
                (hit["payload"].values() for hit in found["results"]), n_characters
            )
        answers.append(found)
    return answers


def ask(served: Served, query: QueryRequest) -> Results:
    """Ask an index."""
    if query.columns:
        check_columns(query.columns, served.index.columns)
    if query.where is not None and not served.index.outsiders_filter:
        raise InputError(
            "where is not offered here: over a collection it is the database's own language, in "
            "which more could be asked for than a filter; filter by your own service.",
            "where",
        )
    if (query.text is not None or query.words is not None) and not served.index.has_words:
        raise InputError(
            "text and words are not offered here: a collection has no embedder, and is searched by "
            "its own means; make the vector of the text yourself.",
            "words" if query.text is None else "text",
        )
    if query.parameters.n_neighbors is not None or query.method != "ran":
        check_within(served, query)
    return served.index.query(**query.arguments())


def check_within(served: Served, query: QueryRequest) -> None:
    """Require a method and neighbours that the index can give without reading all of it."""
    known = served.index.info()
    methods, most = served.methods(known), served.limits(known).n_neighbors
    if query.method not in methods:
        raise InputError(
            f"method is {query.method!r}, which reads all {known['points']} points; here, use one "
            f"of {', '.join(methods)}.",
            "method",
        )
    wanted = query.parameters.n_neighbors
    if wanted is not None and wanted > most:
        raise InputError(
            f"n_neighbors is {wanted}, but this index can give up to {most} without a new "
            "search for all points; build or attach it with more.",
            "parameters.n_neighbors",
        )


def answer(results: Results, query: QueryRequest) -> dict[str, Any]:
    """Return the answer to a query."""
    solution = results.ranking.solution
    payload = rows(results.payload, len(results), query.columns)
    nothing: list[float | None] = [None] * len(results)
    measured = {name: values.tolist() for name, values in results.measured().items()}
    parts = [measured.get(name, nothing) for name in ("score", "shape", "distance")]
    lists = [results.contributions(place) or None for place in range(len(results))]
    columns = results.ids, *parts, results.proven or nothing, lists, payload
    names = "id", "score", "shape", "distance", "proven", "lists", "payload"
    return {
        "results": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
        "method": query.method,
        "fused": None if solution.fused is None else solution.fused._asdict(),
        "certified": bool(solution.certified),
        "complete": None if results.threshold is None else results.threshold.complete,
        "converged": bool(solution.converged),
        "bound": float(solution.bound),
        "solver": solution.solver,
        "stopped": solution.stopped,
        "touched": int(solution.n_touched),
        "alternations": _alternations(results, query.method),
        "collapsed": results.ranking.collapsed,
        "round_trips": solution.round_trips,
    }


def _alternations(results: Results, method: str) -> int | None:
    """Return how often RAN has learned graph and scores."""
    if method != "ran":
        return None
    trace = results.ranking.trace
    return 1 if trace is None else trace.n_alternations


def rerank(served: Served, wanted: RerankRequest) -> dict[str, Any]:
    """Put candidates in order, on the graph of these alone."""
    index, texts = served.index, wanted.texts
    candidates = "documents" if texts else "ids"
    with index.reading(), about(candidates):
        metric = index.info()["metric"]
        points = _embedded(served, texts) if texts else index.vectors(wanted.ids)
    with about("query"):
        asked = _embedded(served, [wanted.query]) if isinstance(wanted.query, str) else wanted.query
    check_stopped()
    with about(candidates):
        ranker = RANKERS[wanted.model](metric=metric).fit(points)
    with about("query"):
        ranking = ranker.rank(vectors=asked, top=min(wanted.top_n or len(points), len(points)))
    found = zip(ranking.indices.tolist(), ranking.scores.tolist(), strict=True)
    return {
        "model": wanted.model,
        "results": [
            {
                "index": place,
                "relevance_score": score,
                "id": None if wanted.ids is None else wanted.ids[place],
                "document": {"text": texts[place]} if texts and wanted.return_documents else None,
            }
            for place, score in found
        ],
    }


def _embedded(served: Served, texts: list[str]) -> FloatArray:
    """Return the vectors of texts, where the index has an embedder."""
    if not served.index.has_words:
        raise InputError(
            "texts are not offered here: a collection has no embedder; send ids, and the vector of "
            "the query."
        )
    return cast(Index, served.index).text_vectors(texts)


def find(served: Served, wanted: FindRequest) -> dict[str, Any]:
    """Find points by words."""
    index = required_index(served)
    with index.reading():
        check_columns(wanted.columns, index.columns)
        try:
            found = index.find(
                wanted.words,
                wanted.text_columns,
                where=wanted.where,
                top=wanted.top,
                offset=wanted.offset,
            )
        except InputError as error:
            error.argument = "text_columns" if error.argument == "columns" else error.argument
            raise
    payload = rows(found.payload, len(found), wanted.columns)
    check_characters(row.values() for row in payload)
    listed = zip(found.ids, found.scores.tolist(), payload, strict=True)
    names = "id", "score", "payload"
    return {"results": [dict(zip(names, row, strict=True)) for row in listed]}


def count(served: Served, wanted: CountRequest) -> dict[str, Any]:
    """Count points."""
    return {"count": required_index(served).count(wanted.where)}


def scroll(served: Served, wanted: ScrollRequest) -> dict[str, Any]:
    """List points by their ids."""
    index = required_index(served)
    with index.reading():
        check_columns(wanted.columns, index.columns)
        if wanted.vectors:
            check_numbers(min(wanted.top, len(index)), index, "top")
        found = index.scroll(
            wanted.where, top=wanted.top, after=wanted.after, vectors=wanted.vectors
        )
    for point in found:
        if wanted.columns is not None:
            point["payload"] = {name: point["payload"][name] for name in wanted.columns}
        if wanted.vectors:
            point["vector"] = point["vector"].tolist()
    check_characters(point["payload"].values() for point in found)
    return {"points": found}


def required_index(served: Served) -> Index:
    """Return an index in a folder; a collection is asked by its own means for what it has not."""
    if not served.index.has_words:
        raise InputError("this is not offered here: a collection is searched by its own means.")
    return cast(Index, served.index)


def explain(served: Served, question: ExplainRequest) -> dict[str, Any]:
    """Say why a point has its place."""
    with about("query"):
        results = ask(served, question.query.model_copy(update={"top": 1, "offset": 0}))
    with about("id"):
        reason = results.explain(question.id)
    return {**reason.to_dict(), "text": reason.to_text()}


def look_up(served: Served, wanted: LookupRequest) -> dict[str, Any]:
    """Return points."""
    index = served.index
    with index.reading():
        pixels = image_of(index.info())
        check_columns(wanted.columns, index.columns)
        if wanted.vectors:
            check_numbers(len(wanted.ids), index, "ids")
        with about("ids"):
            vectors = index.vectors(wanted.ids) if wanted.vectors or wanted.images else None
            payload = index.payload(wanted.ids)
    points: list[dict[str, Any]] = [
        {"id": name, "payload": values}
        for name, values in zip(
            wanted.ids, rows(payload, len(wanted.ids), wanted.columns), strict=True
        )
    ]
    check_characters(point["payload"].values() for point in points)
    if wanted.vectors and vectors is not None:
        for point, vector in zip(points, vectors.tolist(), strict=True):
            point["vector"] = vector
    if wanted.images and vectors is not None:
        given = payload.get("image", [None] * len(points))
        for point, vector, value in zip(points, vectors, given, strict=True):
            own = None if pixels is None else thumbnail(vector, pixels)
            point["image"] = given_image(value) or own
    return {"points": points}


def draw(served: Served, column: str | None, limit: int) -> dict[str, Any]:
    """Return where points are drawn: all of them, or some spread evenly over the index."""
    index = served.index
    with index.reading():
        known = index.info()
        if column is not None:
            check_columns([column], known["columns"], "column")
        ids, places = index.places(limit)
        values = None if column is None else _column(index, ids, column)
    return {
        "ids": ids,
        "places": b64encode(places.astype("<f4").tobytes()).decode(),
        "values": values,
        "points": known["points"],
        "layout": known["layout"] or kind_without_map(known["features"]),
        "version": version_of(known),
    }


def _column(index: Index | Collection, ids: list[Any], column: str) -> list[Any]:
    """Return the values of a column, unless they are too much for an answer."""
    values: list[Any] = []
    n_characters = 0
    for start in range(0, len(ids), COUNTED_AT_ONCE):
        check_stopped()
        found = index.payload(ids[start : start + COUNTED_AT_ONCE], [column])[column]
        with about("column"):
            n_characters = check_characters([found], n_characters)
        values += found
    return values


def check_characters(values: Iterable[Iterable[Any]], before: int = 0) -> int:
    """Return how many characters of texts an answer holds, with those before; require few."""
    texts = (value for some in values for value in some if isinstance(value, str))
    total = before + sum(map(len, texts))
    if total > MOST_CHARACTERS:
        raise InputError(
            f"the answer would hold more than {MOST_CHARACTERS:,} characters of payload; name the "
            "columns that you need, or ask for less at a time."
        )
    return total


def check_numbers(n_points: int, index: Index | Collection, argument: str) -> None:
    """Require no more numbers of vectors than an answer may hold."""
    most = max(1, MOST_NUMBERS // int(index.info()["features"]))
    if n_points > most:
        raise InputError(
            f"the answer would hold the vectors of {n_points} points, but may hold those of "
            f"{most}; ask for fewer at a time.",
            argument,
        )


def rows(
    payload: Mapping[str, list[Any]], n_rows: int, columns: Iterable[str] | None
) -> list[dict[str, Any]]:
    """Return payload row by row."""
    wanted = list(payload) if columns is None else list(columns)
    return [{name: payload[name][row] for name in wanted} for row in range(n_rows)]


def check_columns(
    wanted: list[str] | None, known: Mapping[str, str], argument: str = "columns"
) -> None:
    """Require columns that the index has."""
    for column in wanted or ():
        if column not in known:
            raise InputError(
                f"the index has no column {column!r}; it has {', '.join(known) or 'none'}.",
                argument,
            )
