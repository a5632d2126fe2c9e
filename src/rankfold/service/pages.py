"""The page: files of the package, read once."""

from __future__ import annotations

import logging
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from rankfold.service.problems import Problem
from rankfold.service.records import record_of

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
            raise Problem(404, "the page has no such file.")
        # One look at the page asks for all of them, which would hide what matters in the log.
        record_of(request.scope).level = logging.DEBUG
        return _sent(page[name], request)

    return router


def _sent(file: File, request: Request) -> Response:
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)
