"""From the body of a request to that of its answer; called in threads."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from rankfold.check import InputError, UnreachableError, about
from rankfold.index import Results
from rankfold.layout import kind_without_map
from rankfold.parallel import check_stopped
from rankfold.service.images import given_image, image_of, thumbnail
from rankfold.service.requests import Query, Question, Wanted
from rankfold.service.served import Served, version_of


def list_all(shelf: Iterable[Served]) -> dict[str, Any]:
    """Tell what there is to know about all indexes, but for those that are out of reach."""
    infos, unavailable = [], []
    for served in shelf:
        try:
            infos.append(served.info())
        except UnreachableError:
            unavailable.append(served.name)
    return {"indexes": infos, "unavailable": unavailable}


def answer_all(served: Served, queries: list[Query]) -> list[dict[str, Any]]:
    """Answer queries one after the other, for as long as somebody waits for them."""
    answers = []
    for place, query in enumerate(queries):
        check_stopped()
        with about(f"queries[{place}]"):
            answers.append(answer(ask(served, query), query))
    return answers


def ask(served: Served, query: Query) -> Results:
    """Ask an index."""
    if query.columns:
        check_columns(query.columns, served.index.columns)
    if query.where is not None and not served.index.outsiders_filter:
        raise InputError(
            "where is not offered here: over a collection it is the database's own language, in "
            "which more could be asked for than a filter; filter by your own service.",
            "where",
        )
    if query.parameters.n_neighbors is not None or query.method != "ran":
        check_within(served, query)
    return served.index.query(**query.arguments())


def check_within(served: Served, query: Query) -> None:
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


def answer(results: Results, query: Query) -> dict[str, Any]:
    """Return the answer to a query."""
    solution, trace = results.ranking.solution, results.ranking.trace
    payload = rows(results.payload, len(results), query.columns)
    nothing: list[float | None] = [None] * len(results)
    parts = {name: values.tolist() for name, values in results.parts().items()}
    shape, distances = parts.get("shape", nothing), parts.get("distance", nothing)
    columns = results.ids, results.scores.tolist(), shape, distances, payload
    names = "id", "score", "shape", "distance", "payload"
    return {
        "results": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
        "method": query.method,
        "fused": None if solution.fused is None else solution.fused._asdict(),
        "certified": bool(solution.certified),
        "converged": bool(solution.converged),
        "bound": float(solution.bound),
        "solver": solution.solver,
        "stopped": solution.stopped,
        "touched": int(solution.n_touched),
        "alternations": None if trace is None else trace.n_alternations,
        "collapsed": results.ranking.collapsed,
        "round_trips": solution.round_trips,
    }


def explain(served: Served, question: Question) -> dict[str, Any]:
    """Say why a point has its place."""
    with about("query"):
        results = ask(served, question.query.model_copy(update={"top": 1, "offset": 0}))
    with about("id"):
        reason = results.explain(question.id)
    return {**reason.to_dict(), "text": reason.to_text()}


def look_up(served: Served, wanted: Wanted) -> dict[str, Any]:
    """Return points."""
    index = served.index
    with index.reading():
        pixels = image_of(index.info())
        check_columns(wanted.columns, index.columns)
        with about("ids"):
            vectors = index.vectors(wanted.ids) if wanted.vectors or wanted.images else None
            payload = index.payload(wanted.ids)
    points: list[dict[str, Any]] = [
        {"id": name, "payload": values}
        for name, values in zip(
            wanted.ids, rows(payload, len(wanted.ids), wanted.columns), strict=True
        )
    ]
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
        values = None if column is None else index.payload(ids, [column])[column]
    return {
        "ids": ids,
        "places": b64encode(places.astype("<f4").tobytes()).decode(),
        "values": values,
        "points": known["points"],
        "layout": known["layout"] or kind_without_map(known["features"]),
        "version": version_of(known),
    }


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
