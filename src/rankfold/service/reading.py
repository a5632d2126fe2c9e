"""Routes that change nothing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse

from rankfold.service import answering, requests, responses
from rankfold.service.keys import reading_key
from rankfold.service.served import Chosen, Served
from rankfold.service.turns import Turn

router = APIRouter(prefix="/v1/indexes", dependencies=[Depends(reading_key)], tags=["read"])


@router.get("", response_model=responses.Infos)
async def list_indexes(request: Request, turn: Turn) -> JSONResponse:
    """List all indexes."""
    shelf: dict[str, Served] = request.app.state.served
    return await turn.answer("light", answering.list_all, shelf.values())


@router.get("/{name}", response_model=responses.Info)
async def info(served: Chosen, turn: Turn) -> JSONResponse:
    """Tell what there is to know about an index."""
    return await turn.answer("light", served.info)


@router.post("/{name}/query", response_model=responses.Answers)
async def query(
    served: Chosen, body: requests.Queries, turn: Turn, request: Request
) -> JSONResponse:
    """Rank the points of an index by their likeness to examples, once for each query."""

    def answered() -> tuple[JSONResponse, list[tuple[str, bool]]]:
        answers = answering.answer_all(served, body.queries)
        ranked = [(answer["method"], answer["certified"]) for answer in answers]
        return JSONResponse({"answers": answers}), ranked

    response, ranked = await turn.run("light" if body.is_light else "heavy", answered)
    for method, certified in ranked:
        request.app.state.metrics.ranked(method, certified)
    return response


@router.post("/{name}/explain", response_model=responses.Reason)
async def explain(served: Chosen, body: requests.Question, turn: Turn) -> JSONResponse:
    """Say why a point has its place in the answer to a query."""
    return await turn.answer("heavy", answering.explain, served, body)


@router.post("/{name}/points", response_model=responses.Points)
async def points(served: Chosen, body: requests.Wanted, turn: Turn) -> JSONResponse:
    """Look points up: payload, vectors, pictures."""
    return await turn.answer("light", answering.look_up, served, body)


@router.get("/{name}/map", response_model=responses.Map)
async def map_of(
    served: Chosen,
    turn: Turn,
    column: Annotated[
        str | None, Query(description="Of payload, to return with it.", max_length=1000)
    ] = None,
    limit: Annotated[
        int, Query(description="Most points to draw.", ge=1, le=requests.MOST_MAPPED)
    ] = requests.MOST_MAPPED,
) -> JSONResponse:
    """Tell where points are drawn in the plane."""
    return await turn.answer("heavy", answering.draw, served, column, limit)
