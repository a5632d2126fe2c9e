"""What every answer carries, and what is noted about it."""

from __future__ import annotations

import logging
import re
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankfold.service.metrics import Metrics
from rankfold.service.records import PLACE, Record

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
}
PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
UNMATCHED = "unmatched"
GONE = "gone"
"""The status, in metrics, of a request whose client did not wait for the answer."""

log = logging.getLogger("rankfold.service")


class Recorder:
    """Middleware that gives each request an id, and each answer its headers, metrics and log line.

    Parameters
    ----------
    app : ASGI app
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = perf_counter()
        scope[PLACE] = record = _new_record(scope)
        status: int | None = None

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update({**HEADERS, "X-Request-ID": record.request_id})
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._note(scope, record, status, perf_counter() - start)

    def _note(self, scope: Scope, record: Record, status: int | None, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED)
        self._metrics.answered(route, scope["method"], str(status or GONE), seconds)
        if record.reason:
            self._metrics.rejected(record.reason)
        fields = {
            "request_id": record.request_id,
            "method": scope["method"],
            "route": route,
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
        }
        log.log(record.level, "request" if status else GONE, extra=fields)


def _new_record(scope: Scope) -> Record:
    """Begin the notes; a client's own id is kept where it is short and plain."""
    given = Headers(scope=scope).get("x-request-id", "")
    return Record(given) if PLAIN.fullmatch(given) else Record()
