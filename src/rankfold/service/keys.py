"""The API key: who may read, and who may write."""

from __future__ import annotations

from hmac import compare_digest
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from rankfold.service.problems import Problem
from rankfold.service.settings import KEY_VARIABLE, Settings

OPEN = ("/", "/health", "/openapi.json")
OPEN_FOLDER = "/page/"

scheme = HTTPBearer(
    scheme_name="key",
    description=f"The key that the service was started with, in the variable {KEY_VARIABLE}.",
    auto_error=False,
)
"""For the description of routes only; `Gate` has checked the key before they run."""

Given = Annotated[HTTPAuthorizationCredentials | None, Security(scheme)]


class Gate:
    """Middleware that requires the key, where one is set, before the body of a request is read.

    Only the page, its files, ``/health`` and ``/openapi.json`` are open.

    Parameters
    ----------
    app : ASGI app
    settings : Settings
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._key = app, settings.api_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or raise a Problem."""
        if scope["type"] == "http" and self._key is not None and not _is_open(scope["path"]):
            check_key(Headers(scope=scope).get("authorization", ""), self._key)
        await self._app(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN_FOLDER)


def check_key(authorization: str, key: str) -> None:
    """Require the header ``Authorization: Bearer KEY``."""
    kind, _, given = authorization.partition(" ")
    # Compared whatever the kind is, in a time that does not depend on where they differ.
    same = compare_digest(given.strip().encode(), key.encode())
    if not same or kind.lower() != "bearer":
        raise Problem(
            401,
            "this needs the key of the service, in the header 'Authorization: Bearer KEY'.",
            headers={"WWW-Authenticate": "Bearer"},
            reason="key",
        )


async def reading_key(_: Given) -> None:
    """Say, of routes that read, that they need the key where one is set."""


async def writing_key(request: Request, _: Given) -> None:
    """Require, of routes that write, that the service has a key."""
    settings: Settings = request.app.state.settings
    if settings.api_key is None:
        raise Problem(
            403,
            "this service has no key, so that nothing can be changed through it; start it with "
            f"a key in the variable {KEY_VARIABLE}.",
            reason="read_only",
        )
