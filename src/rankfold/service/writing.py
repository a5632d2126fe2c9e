"""Routes that change an index; a change is on disk when they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from rankfold.check import InputError
from rankfold.index import Index
from rankfold.service import requests, responses
from rankfold.service.faults import naming_ids, naming_points
from rankfold.service.keys import writing_key
from rankfold.service.problems import Problem
from rankfold.service.served import Chosen, Served
from rankfold.service.turns import Turn

router = APIRouter(prefix="/v1/indexes", dependencies=[Depends(writing_key)], tags=["write"])


@router.post("/{name}/add", response_model=responses.Changed)
async def add(served: Chosen, body: requests.NewPoints, turn: Turn) -> JSONResponse:
    """Add points, all or none of them."""
    return await turn.answer("change", add_points, served, body.points)


@router.post("/{name}/update", response_model=responses.Changed)
async def update(served: Chosen, body: requests.ChangedPoints, turn: Turn) -> JSONResponse:
    """Give points other vectors, another payload, or both: all of them or none."""
    return await turn.answer("change", update_points, served, body.points)


@router.post("/{name}/remove", response_model=responses.Changed)
async def remove(served: Chosen, body: requests.Removed, turn: Turn) -> JSONResponse:
    """Remove points, all or none of them."""
    return await turn.answer("change", remove_points, served, body.ids)


def add_points(served: Served, points: Sequence[requests.NewPoint]) -> dict[str, Any]:
    """Add points."""
    ids = all_or_none(
        [point.id for point in points],
        "some points have an id and some have none; give all one, or none.",
    )
    columns = {name: None for point in points for name in point.payload}
    payload = {name: [point.payload.get(name) for point in points] for name in columns}
    index = changeable(served)
    with naming_points(index, points, new=True):
        added = index.add([point.vector for point in points], ids, payload)
    return {"ids": added, "points": len(index)}


def update_points(served: Served, points: Sequence[requests.ChangedPoint]) -> dict[str, Any]:
    """Change points."""
    vectors = all_or_none(
        [point.vector for point in points],
        "some points have a vector and some have none; send them in two requests.",
    )
    columns = list(points[0].payload)
    if any(point.payload.keys() != points[0].payload.keys() for point in points):
        raise InputError(
            "points name different columns of payload; send them in several requests.", "points"
        )
    payload = {name: [point.payload[name] for point in points] for name in columns}
    ids = [point.id for point in points]
    index = changeable(served)
    with naming_points(index, points, new=False):
        index.update(ids, vectors, payload)
    return {"ids": ids, "points": len(index)}


def remove_points(served: Served, ids: list[Any]) -> dict[str, Any]:
    """Remove points."""
    index = changeable(served)
    with naming_ids(index, ids):
        index.remove(ids)
    return {"ids": ids, "points": len(index)}


def all_or_none(values: list[Any], mixed: str) -> list[Any] | None:
    """Return what all points have, or None where no point has it."""
    n_missing = sum(value is None for value in values)
    if 0 < n_missing < len(values):
        raise InputError(mixed, "points")
    return None if n_missing else values


def changeable(served: Served) -> Index:
    """Return an index that may be changed; a collection is changed by its own means."""
    if not served.writable:
        raise Problem(403, f"the index {served.name!r} is served for reading only.")
    return cast(Index, served.index)
