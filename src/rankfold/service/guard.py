"""What a request must be before anything reads it: addressed to us, JSON, short and in time."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from rankfold.service.leaving import answer_unless_gone
from rankfold.service.problems import Problem
from rankfold.service.settings import ANY_HOST, Settings

LONG_BODY, BYTES_PER_BRACKET, BETWEEN_LONG_BODIES = 2**16, 64, 0.05
"""Bodies above so many bytes have a bracket in so many, and come at least so many seconds apart."""

CHANGES = ("/add", "/update", "/remove")
"""How the addresses of changes end."""


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
        self._long_bodies = asyncio.Lock()
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
        most = self._most_bytes(scope["path"])
        self._check_length(headers.get("content-length", "0"), most)
        if self._n_bodies >= self._settings.bodies:
            raise _busy()
        self._n_bodies += 1
        body = bytearray()
        try:
            if await self._read(receive, body, most):
                await self._meter(body, most)
                await answer_unless_gone(self._app, scope, bytes(body), receive, send)
        finally:
            self._n_bodies -= 1
            self._n_held -= len(body)

    async def _meter(self, body: bytearray, most: int) -> None:
        """Let long bodies through one by one: nothing else happens while they are parsed.

        In another thread parsing would hold the interpreter as well. So a body must not have more
        lists and objects than a request of its length needs, and there is time between two.
        """
        if len(body) <= LONG_BODY:
            return
        if body.count(b"[") + body.count(b"{") > most // BYTES_PER_BRACKET:
            raise Problem(
                413,
                f"the body has more than {most // BYTES_PER_BRACKET} lists and objects; send less "
                "at a time.",
                reason="large_body",
            )
        async with self._long_bodies:
            await asyncio.sleep(BETWEEN_LONG_BODIES)

    def _check_host(self, host: str) -> None:
        name = without_port(host.lower())
        if ANY_HOST not in self._hosts and name not in self._hosts:
            raise Problem(
                421,
                f"the request is for the host {host[:100]!r}, but this service answers to "
                f"{', '.join(sorted(self._hosts))}.",
                reason="host",
            )

    def _most_bytes(self, path: str) -> int:
        """Return how long the body of a request may be; where there is no key, nobody changes."""
        changes = self._settings.api_key is not None and path.endswith(CHANGES)
        longest = self._settings.body_bytes
        return longest if changes else min(longest, self._settings.read_bytes)

    def _check_length(self, length: str, most: int) -> None:
        if not (length.isascii() and length.isdigit()):
            raise Problem(400, "Content-Length must be a whole number.")
        # A number of that many digits is too large whatever it is, and slow to read.
        if len(length) > 18 or int(length) > most:
            raise _too_large(most)

    async def _read(self, receive: Receive, body: bytearray, most: int) -> bool:
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
                    if len(body) > most:
                        raise _too_large(most)
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


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        f"the body is longer than {most} bytes; send less at a time.",
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
