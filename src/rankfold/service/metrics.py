"""What the service measures about itself, as Prometheus reads it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from functools import cache
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankfold.errors import RankfoldError
from rankfold.service.limits import Limiter, Settings
from rankfold.service.logs import PLACE, RequestRecord, TraceContext
from rankfold.service.problems import ProblemError

METHODS = ("GET", "HEAD", "POST", "OPTIONS")
OTHER = "other"
PATIENCE = 1.0
"""Seconds to wait for the indexes to tell how many points they have."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
}

SENT = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
"""The same as a server takes them; nothing else in the service sets any of these."""

PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")

UNMATCHED = "unmatched"

GONE = "gone"
"""The status, in metrics, of a request whose client did not wait for the answer."""

log = logging.getLogger("rankfold.service")


class ServiceMetrics:
    """Numbers of one app, in a registry of its own.

    Parameters
    ----------
    limiters : sequence of Limiter
    indexes : mapping of names to indexes
        Read when the metrics are asked for, in a thread of their own: the metrics are needed most
        when all others are busy.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, limiters: Sequence[Limiter], indexes: Mapping[str, Sized]) -> None:
        registry = CollectorRegistry(auto_describe=True)
        self._registry = registry
        self._requests = Counter(
            "rankfold_requests",
            "Requests that were answered.",
            ["route", "method", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "rankfold_request_seconds",
            "Seconds until the answer was sent.",
            ["route", "method"],
            buckets=SECONDS,
            registry=registry,
        )
        self._rejected = Counter(
            "rankfold_rejected",
            "Requests that a limit has turned away.",
            ["reason"],
            registry=registry,
        )
        self._queries = Counter(
            "rankfold_queries", "Queries that were answered.", ["method"], registry=registry
        )
        self._certified = Counter(
            "rankfold_certified",
            "Answers proven to be those of the whole graph.",
            ["method"],
            registry=registry,
        )
        # Looking a series up takes longer than counting; routes, methods and statuses are few.
        self._requests_of, self._seconds_of = (
            cache(self._requests.labels),
            cache(self._seconds.labels),
        )
        running = Gauge("rankfold_running", "Requests that are worked on.", registry=registry)
        running.set_function(lambda: sum(one.running for one in limiters))
        waiting = Gauge("rankfold_waiting", "Requests that wait.", registry=registry)
        waiting.set_function(lambda: sum(one.waiting for one in limiters))
        self._points = Gauge("rankfold_points", "Points of an index.", ["index"], registry=registry)
        self._indexes = indexes
        patience = Settings(running=1, timeout=PATIENCE)
        self._counting = {name: Limiter(patience) for name in indexes}

    def answered(self, route: str, method: str, status: str, seconds: float) -> None:
        """Count a request."""
        known = method if method in METHODS else OTHER
        self._requests_of(route, known, status).inc()
        self._seconds_of(route, known).observe(seconds)

    def rejected(self, reason: str) -> None:
        """Count a request that a limit has turned away."""
        self._rejected.labels(reason).inc()

    def ranked(self, method: str, certified: bool) -> None:
        """Count a query by its method, one of RANKERS."""
        self._queries.labels(method).inc()
        if certified:
            self._certified.labels(method).inc()

    async def text(self) -> bytes:
        """Return all as text; of an index that does not answer soon, the points known last."""
        await asyncio.gather(*map(self._count, self._indexes))
        return generate_latest(self._registry)

    async def _count(self, name: str) -> None:
        with suppress(ProblemError, RankfoldError):
            n_points = await self._counting[name].run("light", len, self._indexes[name])
            self._points.labels(name).set(n_points)


class Recorder:
    """Middleware that gives each request an id, and each answer its headers, metrics and log line.

    Parameters
    ----------
    app : ASGI app
    metrics : ServiceMetrics
    """

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics) -> None:
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
                message["headers"] = [*message.get("headers", ()), *SENT, *_named(record)]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._note(scope, record, status, perf_counter() - start)

    def _note(
        self, scope: Scope, record: RequestRecord, status: int | None, seconds: float
    ) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED)
        self._metrics.answered(route, scope["method"], str(status or GONE), seconds)
        if record.reason:
            self._metrics.rejected(record.reason)
        fields = {
            **record.names(),
            "method": scope["method"],
            "route": route,
            "status": status,
            "milliseconds": round(1000 * seconds, 1),
        }
        log.log(record.level, "request" if status else GONE, extra=fields)


def _named(record: RequestRecord) -> list[tuple[bytes, bytes]]:
    """Return the headers by which a client finds its request in the log."""
    named = [(b"x-request-id", record.request_id.encode())]
    if record.trace is not None:
        named.append((b"traceparent", record.trace.header.encode()))
    return named


def _new_record(scope: Scope) -> RequestRecord:
    """Begin the notes; a client's own id is kept where it is short and plain."""
    found: dict[bytes, list[str]] = {b"x-request-id": [], b"traceparent": []}
    for name, value in scope["headers"]:
        if name in found:
            found[name].append(value.decode("latin-1"))
    given, parents = found.values()
    record = RequestRecord(given[0]) if given and PLAIN.fullmatch(given[0]) else RequestRecord()
    record.trace = TraceContext.of(parents[0]) if len(parents) == 1 else None
    return record
