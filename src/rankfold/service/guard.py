"""What a request must be before anything reads it: addressed to us, JSON, short and in time."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from rankfold.service.leaving import answer_unless_gone
from rankfold.service.problems import Problem
from rankfold.service.settings import ANY_HOST, Settings


class Guard:
    """Middleware that reads the bodies of requests, within their limits, before the app runs.

    Parameters
    ----------
    app : ASGI app
    settings : Settings
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._hosts = {host.lower() for host in settings.hosts}
        self._n_bodies = self._n_held = 0
        # Otherwise the longest body could never arrive.
        self._most_held = max(settings.held_bytes, settings.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or raise what is wrong with it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._check_host(headers.get("host", ""))
        if not _has_body(headers):
            await answer_unless_gone(self._app, scope, b"", receive, send)
            return
        _check_kind(headers.get("content-type", ""))
        self._check_length(headers.get("content-length", "0"))
        if self._n_bodies >= self._settings.bodies:
            raise _busy()
        self._n_bodies += 1
        body = bytearray()
        try:
            if await self._read(receive, body):
                await answer_unless_gone(self._app, scope, bytes(body), receive, send)
        finally:
            self._n_bodies -= 1
            self._n_held -= len(body)

    def _check_host(self, host: str) -> None:
        name = without_port(host.lower())
        if ANY_HOST not in self._hosts and name not in self._hosts:
            raise Problem(
                421,
                f"the request is for the host {host[:100]!r}, but this service answers to "
                f"{', '.join(sorted(self._hosts))}.",
                reason="host",
            )

    def _check_length(self, length: str) -> None:
        if not (length.isascii() and length.isdigit()):
            raise Problem(400, "Content-Length must be a whole number.")
        # A number of that many digits is too large whatever it is, and slow to read.
        if len(length) > 18 or int(length) > self._settings.body_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive, body: bytearray) -> bool:
        """Read a body; return whether the client is still there."""
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return False
                    part = message.get("body", b"")
                    body += part
                    self._n_held += len(part)
                    if len(body) > self._settings.body_bytes:
                        raise self._too_large()
                    if self._n_held > self._most_held:
                        raise _busy()
                    if not message.get("more_body", False):
                        return True
        except TimeoutError:
            raise Problem(
                408,
                f"the body did not arrive within {self._settings.body_timeout:g} seconds.",
                headers={"Connection": "close"},
                reason="slow_body",
            ) from None

    def _too_large(self) -> Problem:
        return Problem(
            413,
            f"the body is longer than {self._settings.body_bytes} bytes; send less at a time.",
            reason="large_body",
        )


def _busy() -> Problem:
    return Problem(
        503,
        "too many requests arrive at this moment; try again.",
        headers={"Retry-After": "1"},
        reason="busy",
    )


def without_port(host: str) -> str:
    """Return a host without its port.

    Examples
    --------
    >>> without_port("localhost:80"), without_port("[::1]:80"), without_port("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _check_kind(content_type: str) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(
            415,
            f"the body is of the type {kind[:100]!r}, but must be application/json; say so in the "
            "header Content-Type.",
            reason="content_type",
        )
