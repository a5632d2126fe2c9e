"""The routes: reading, writing, and the page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any, NamedTuple, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from rankfold.errors import InputError
from rankfold.index import Index
from rankfold.service import handlers, requests, responses
from rankfold.service.handlers import Chosen, Served, naming_ids, naming_points
from rankfold.service.limits import Limited, Limiter
from rankfold.service.logs import record_of
from rankfold.service.middleware import ParsingRoute, reading_key, writing_key
from rankfold.service.problems import ProblemError

SOON = 5.0
"""Seconds in which a database has to answer for its collection to be listed."""

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str
    tag: str


def read_page() -> dict[str, File]:
    """Read all files of the page."""
    found = {}
    for file in files("rankfold.service").joinpath("page").iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            found[file.name] = File(content, kind, f'"{sha256(content).hexdigest()[:32]}"')
    return found


def page_router() -> APIRouter:
    """Return routes for the page; they serve these files and no others."""
    page = read_page()
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return _sent(page["index.html"], request)

    @router.api_route("/page/{name}", methods=["GET", "HEAD"])
    async def part(name: str, request: Request) -> Response:
        if name not in page:
            raise ProblemError(404, "the page has no such file.")
        # One look at the page asks for all of them, which would hide what matters in the log.
        record_of(request.scope).level = logging.DEBUG
        return _sent(page[name], request)

    return router


def _sent(file: File, request: Request) -> Response:
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


read_router = APIRouter(
    prefix="/v1/indexes",
    dependencies=[Depends(reading_key)],
    tags=["read"],
    route_class=ParsingRoute,
)


@read_router.get("", response_model=responses.Infos)
async def list_indexes(request: Request, limiter: Limited) -> JSONResponse:
    """List all indexes; of those that cannot be read, or do not answer soon, only names."""
    served: dict[str, Served] = request.app.state.served
    own: dict[str, Limiter] = request.app.state.limiters

    async def listed(by: Limiter, some: Sequence[Served]) -> list[dict[str, Any]]:
        return await by.run("light", handlers.list_all, some)

    async def soon(name: str) -> list[dict[str, Any]]:
        with suppress(TimeoutError, ProblemError):
            async with asyncio.timeout(SOON):
                return await listed(own[name], [served[name]])
        return []

    here = [one for name, one in served.items() if name not in own]
    parts = await asyncio.gather(listed(limiter, here), *map(soon, own))
    known = {info["name"]: info for part in parts for info in part}
    answer = {
        "indexes": [known[name] for name in served if name in known],
        "unavailable": [name for name in served if name not in known],
    }
    return responses.PiecewiseResponse(answer)


@read_router.get("/{name}", response_model=responses.Info)
async def info(served: Chosen, limiter: Limited) -> JSONResponse:
    """Tell what there is to know about an index."""
    return await limiter.answer("light", served.info)


@read_router.post("/{name}/query", response_model=responses.QueriesResponse)
async def query(
    served: Chosen, body: requests.QueriesRequest, limiter: Limited, request: Request
) -> JSONResponse:
    """Rank the points of an index by their likeness to examples, once for each query."""

    def answered() -> tuple[JSONResponse, list[tuple[str, bool]]]:
        answers = handlers.answer_all(served, body.queries)
        ranked = [(answer["method"], answer["certified"]) for answer in answers]
        return responses.PiecewiseResponse({"answers": answers}), ranked

    response, ranked = await limiter.run("light" if body.is_light else "heavy", answered)
    for method, certified in ranked:
        request.app.state.metrics.ranked(method, certified)
    return response


@read_router.post("/{name}/rerank", response_model=responses.RerankResponse)
async def rerank(served: Chosen, body: requests.RerankRequest, limiter: Limited) -> JSONResponse:
    """Put candidates in order for a query, by the shape that they have among each other."""
    return await limiter.answer("heavy", handlers.rerank, served, body)


@read_router.post("/{name}/find", response_model=responses.FindResponse)
async def find(served: Chosen, body: requests.FindRequest, limiter: Limited) -> JSONResponse:
    """Find points by words in the texts of their payload."""
    return await limiter.answer("heavy", handlers.find, served, body)


@read_router.post("/{name}/count", response_model=responses.CountResponse)
async def count(served: Chosen, body: requests.CountRequest, limiter: Limited) -> JSONResponse:
    """Count the points that meet a condition."""
    return await limiter.answer("heavy", handlers.count, served, body)


@read_router.post("/{name}/scroll", response_model=responses.PointsResponse)
async def scroll(served: Chosen, body: requests.ScrollRequest, limiter: Limited) -> JSONResponse:
    """List points in the order of their ids, some at a time."""
    return await limiter.answer("heavy", handlers.scroll, served, body)


@read_router.post("/{name}/explain", response_model=responses.ExplainResponse)
async def explain(served: Chosen, body: requests.ExplainRequest, limiter: Limited) -> JSONResponse:
    """Say why a point has its place in the answer to a query."""
    return await limiter.answer("heavy", handlers.explain, served, body)


@read_router.post("/{name}/points", response_model=responses.PointsResponse)
async def points(served: Chosen, body: requests.LookupRequest, limiter: Limited) -> JSONResponse:
    """Look points up: payload, vectors, pictures."""
    return await limiter.answer("light", handlers.look_up, served, body)


@read_router.get("/{name}/map", response_model=responses.MapResponse)
async def map_of(
    served: Chosen,
    limiter: Limited,
    column: Annotated[
        str | None, Query(description="Of payload, to return with it.", max_length=1000)
    ] = None,
    limit: Annotated[
        int, Query(description="Most points to draw.", ge=1, le=requests.MOST_MAPPED)
    ] = requests.MOST_MAPPED,
) -> JSONResponse:
    """Tell where points are drawn in the plane."""
    return await limiter.answer("heavy", handlers.draw, served, column, limit)


write_router = APIRouter(
    prefix="/v1/indexes",
    dependencies=[Depends(writing_key)],
    tags=["write"],
    route_class=ParsingRoute,
)


@write_router.post("/{name}/add", response_model=responses.Changed)
async def add(served: Chosen, body: requests.AddRequest, limiter: Limited) -> JSONResponse:
    """Add points, all or none of them."""
    return await limiter.answer("change", add_points, served, body.points)


@write_router.post("/{name}/update", response_model=responses.Changed)
async def update(served: Chosen, body: requests.ChangeRequest, limiter: Limited) -> JSONResponse:
    """Give points other vectors, another payload, or both: all of them or none."""
    return await limiter.answer("change", update_points, served, body.points)


@write_router.post("/{name}/remove", response_model=responses.Changed)
async def remove(served: Chosen, body: requests.RemoveRequest, limiter: Limited) -> JSONResponse:
    """Remove points, all or none of them."""
    return await limiter.answer("change", remove_points, served, body.ids)


def add_points(served: Served, points: Sequence[requests.NewPoint]) -> dict[str, Any]:
    """Add points."""
    ids = all_or_none(
        [point.id for point in points],
        "some points have an id and some have none; give all one, or none.",
    )
    columns = {name: None for point in points for name in point.payload}
    payload = {name: [point.payload.get(name) for point in points] for name in columns}
    index = changeable(served)
    vectors, texts = vectors_or_texts(points)
    with naming_points(index, points, new=True):
        added = index.add(vectors, ids, payload, texts=texts)
    return {"ids": added, "points": len(index)}


def update_points(served: Served, points: Sequence[requests.ChangedPoint]) -> dict[str, Any]:
    """Change points."""
    vectors, texts = vectors_or_texts(points)
    columns = list(points[0].payload)
    if any(point.payload.keys() != points[0].payload.keys() for point in points):
        raise InputError(
            "points name different columns of payload; send them in several requests.", "points"
        )
    payload = {name: [point.payload[name] for point in points] for name in columns}
    ids = [point.id for point in points]
    index = changeable(served)
    with naming_points(index, points, new=False):
        index.update(ids, vectors, payload, texts=texts)
    return {"ids": ids, "points": len(index)}


def remove_points(served: Served, ids: list[Any]) -> dict[str, Any]:
    """Remove points."""
    index = changeable(served)
    with naming_ids(index, ids):
        index.remove(ids)
    return {"ids": ids, "points": len(index)}


def vectors_or_texts(
    points: Sequence[requests.NewPoint | requests.ChangedPoint],
) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the vectors of points, or the texts that they are made of."""
    mixed = "some points have a {} and some have none; send them in two requests."
    vectors = all_or_none([point.vector for point in points], mixed.format("vector"))
    texts = all_or_none([point.text for point in points], mixed.format("text"))
    if vectors is not None and texts is not None:
        raise InputError("points have both a vector and a text; give one of them.", "points")
    return vectors, texts


def all_or_none(values: list[Any], mixed: str) -> list[Any] | None:
    """Return what all points have, or None where no point has it."""
    n_missing = sum(value is None for value in values)
    if 0 < n_missing < len(values):
        raise InputError(mixed, "points")
    return None if n_missing else values


def changeable(served: Served) -> Index:
    """Return an index that may be changed; a collection is changed by its own means."""
    if not served.writable:
        raise ProblemError(403, f"the index {served.name!r} is served for reading only.")
    return cast(Index, served.index)
