"""What the service measures about itself, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from rankfold.check import StorageError
from rankfold.service.problems import Problem
from rankfold.service.settings import Settings
from rankfold.service.turns import Turns

METHODS = ("GET", "HEAD", "POST", "OPTIONS")
OTHER = "other"
PATIENCE = 1.0
"""Seconds to wait for the indexes to tell how many points they have."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Numbers of one app, in a registry of its own.

    Parameters
    ----------
    turns : Turns
    indexes : mapping of names to indexes
        Read when the metrics are asked for, in a thread of their own: the metrics are needed most
        when all others are busy.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, turns: Turns, indexes: Mapping[str, Sized]) -> None:
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
        running = Gauge("rankfold_running", "Requests that are worked on.", registry=registry)
        running.set_function(lambda: turns.running)
        waiting = Gauge("rankfold_waiting", "Requests that wait.", registry=registry)
        waiting.set_function(lambda: turns.waiting)
        self._points = Gauge("rankfold_points", "Points of an index.", ["index"], registry=registry)
        self._indexes = indexes
        self._counting = Turns(Settings(running=1, timeout=PATIENCE))

    def answered(self, route: str, method: str, status: str, seconds: float) -> None:
        """Count a request."""
        known = method if method in METHODS else OTHER
        self._requests.labels(route, known, status).inc()
        self._seconds.labels(route, known).observe(seconds)

    def rejected(self, reason: str) -> None:
        """Count a request that a limit has turned away."""
        self._rejected.labels(reason).inc()

    def ranked(self, method: str, certified: bool) -> None:
        """Count a query by its method, one of RANKERS."""
        self._queries.labels(method).inc()
        if certified:
            self._certified.labels(method).inc()

    async def text(self) -> bytes:
        """Return all as text; where the indexes do not answer soon, with the points known last."""
        with suppress(Problem):
            counts = await self._counting.run("light", counted, self._indexes)
            self._points.clear()
            for name, n_points in counts.items():
                self._points.labels(name).set(n_points)
        return generate_latest(self._registry)


def counted(indexes: Mapping[str, Sized]) -> dict[str, int]:
    """Return the number of points of each index; one that cannot be read is left out."""
    counts = {}
    for name, index in indexes.items():
        with suppress(StorageError):
            counts[name] = len(index)
    return counts
