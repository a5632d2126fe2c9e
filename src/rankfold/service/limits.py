"""What the service allows: settings, how many requests are worked on, and when work is stopped."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, fields
from functools import partial
from time import monotonic
from typing import Annotated, Any, Literal, ParamSpec, Self, TypeVar

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankfold.check import check_count, check_positive
from rankfold.errors import InputError
from rankfold.parallel import Stop, StoppedError
from rankfold.service.problems import ProblemError
from rankfold.service.responses import PiecewiseResponse

KEY_VARIABLE = "RANKFOLD_API_KEY"
SHORTEST_KEY = 16
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANY_HOST = "*"
NAME = r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]"
HOST = re.compile(NAME)
ORIGIN = re.compile(rf"https?://({NAME})(:[0-9]+)?")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

WorkKind = Literal["light", "heavy", "change"]
"""What a request asks for: little by all that it says, perhaps much, or a change of an index."""


@dataclass(frozen=True)
class Settings:
    """The limits of a service; what a single request may ask for is in its description.

    Parameters
    ----------
    api_key : str, optional
        Without, whoever reaches the service may read, and nobody may write.
    hosts : tuple of str
        Names under which it may be asked for, without port; "*" is any. Others are refused, so
        that a page from elsewhere cannot reach a service on this machine through a name of its own.
    origins : tuple of str
        Pages from elsewhere that may use the service, such as ``https://example.org``.
    body_bytes : int
        Longest body of a request.
    bodies : int
        Bodies that may take their time to arrive, at a time; further ones have half a second.
    held_bytes : int
        How long all bodies in memory may be together; one is always allowed, and so are short ones.
    read_bytes : int
        Longest body of a request that changes nothing.
    connections : int
        Connections at a time; beyond that, those without a request are closed, the oldest first.
    unsent_bytes : int
        Bytes of answers that wait to be taken by their clients; beyond that, those that have waited
        longest are given up.
    timeout, body_timeout, send_timeout : float
        Seconds for a request, for each of its headers and its body to arrive, and for the answer to
        be taken by the client.
    share : float
        Seconds after which work is stopped where others wait for its place, and bodies that have
        not arrived are given up where others wait for theirs.
    running, waiting : int
        Requests that are worked on at the same time: half of the places are for light ones, of
        which more would wait for each other, and half for all others. And requests that may
        queue.

    Examples
    --------
    >>> Settings(waiting=8).waiting
    8
    """

    api_key: str | None = field(default=None, repr=False)
    hosts: tuple[str, ...] = LOOPBACK
    origins: tuple[str, ...] = ()
    body_bytes: int = 8 * 2**20
    read_bytes: int = 2**20
    bodies: int = 128
    held_bytes: int = 32 * 2**20
    connections: int = 512
    unsent_bytes: int = 64 * 2**20
    timeout: float = 30.0
    body_timeout: float = 10.0
    send_timeout: float = 30.0
    share: float = 2.0
    running: int = 4
    waiting: int = 64

    def __post_init__(self) -> None:
        if self.api_key is not None:
            _check_key(self.api_key)
        for host in self.hosts:
            _check_host(host)
        for origin in self.origins:
            _check_origin(origin)
        for limit in fields(self):
            if limit.type == "int":
                least = 0 if limit.name == "waiting" else 1
                check_count(getattr(self, limit.name), limit.name, least)
            elif limit.type == "float":
                check_positive(getattr(self, limit.name), limit.name, most=86_400)

    @classmethod
    def from_environment(cls, **limits: Any) -> Self:
        """Return settings with the key that the environment names, if it does."""
        return cls(api_key=os.environ.get(KEY_VARIABLE), **limits)


def _check_key(key: str) -> None:
    if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        raise InputError(
            f"{KEY_VARIABLE} has {len(key)} characters, but a key has at least {SHORTEST_KEY}: "
            "letters, digits and signs of ASCII without spaces. Make one with "
            "'python -c \"import secrets; print(secrets.token_urlsafe(32))\"', or unset the "
            "variable to allow reading only."
        )


def _check_host(host: str) -> None:
    if host != ANY_HOST and not HOST.fullmatch(host):
        raise InputError(
            f"{host!r} is no host that can be asked for; give its name alone, such as "
            "example.org, without 'https://', port and path; IPv6 in brackets, such as [::1].",
            "hosts",
        )


def _check_origin(origin: str) -> None:
    """Require an origin as browsers send it, since it is compared letter by letter."""
    found = ORIGIN.fullmatch(origin)
    scheme = origin.partition(":")[0]
    plain = found and origin == origin.lower() and found[2] != DEFAULT_PORTS[scheme]
    if origin != ANY_HOST and not plain:
        raise InputError(
            f"{origin!r} is no origin that a browser sends; give scheme and host, such as "
            "https://example.org, in small letters, without '/' at the end, with a port only "
            "where it is not the usual one.",
            "origins",
        )


async def answer_unless_gone(
    app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send
) -> None:
    """Let an app answer a request whose body was read, and stop it if the client leaves before.

    A page that asks again with every move of a slider leaves many requests behind; those that
    wait for their turn then make room, and those that have begun are stopped, but for a change.
    """
    started = False
    gone = asyncio.create_task(_gone(receive))
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return parts.pop() if parts else await asyncio.shield(gone)

    async def watched(message: Message) -> None:
        nonlocal started
        started = True
        await send(message)

    answering = asyncio.ensure_future(app(scope, next_message, watched))
    try:
        await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answering.done() or started:
            await answering
    finally:
        gone.cancel()
        if answering.cancel():
            await asyncio.wait({answering})


async def _gone(receive: Receive) -> Message:
    while (message := await receive())["type"] != "http.disconnect":
        pass
    return message


class _Places:
    """Places for one kind of work, and how many requests wait for one."""

    def __init__(self, count: int) -> None:
        self.free, self.n_waiting = asyncio.Semaphore(count), 0


@dataclass(eq=False)
class _Job:
    """What is worked on, since when, and whether it was stopped to make room for others."""

    work: WorkKind
    begun: float = field(default_factory=monotonic)
    stop: Stop = field(default_factory=Stop)
    gave_way: bool = False


class Limiter:
    """Runs functions in threads, so many at a time; of one event loop.

    Half of the places are for light work and half for all other, unless there is only one at all:
    neither takes those of the other. Work that nobody waits for any more is stopped, see `Stop`,
    and so is work that has had its share of time while others wait for its place, or while an index
    is to change, which nobody may read meanwhile. A change is never stopped. Whatever was stopped
    keeps its place until its thread has ended, so that there are never more at work than allowed.
    Who waits holds a place in a queue and nothing else: whoever is given up there is gone, with all
    that was sent.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.running, "rankfold-work")
        n_heavy = settings.running // 2
        self._for_light = _Places(settings.running - n_heavy)
        self._for_others = _Places(n_heavy) if n_heavy else self._for_light
        self._jobs: set[_Job] = set()

    @property
    def running(self) -> int:
        """How many are worked on."""
        return len(self._jobs)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(places.n_waiting for places in {self._for_light, self._for_others})

    def _places(self, work: WorkKind) -> _Places:
        return self._for_light if work == "light" else self._for_others

    async def run(
        self,
        work: WorkKind,
        function: Callable[Given, Answer],
        *args: Given.args,
        **named: Given.kwargs,
    ) -> Answer:
        """Return what a function returns; a ProblemError where the wait would be too long.

        A change that has begun goes on to its end: nobody is told to ask for it again.
        """
        timeout, job, begun = self._settings.timeout, _Job(work), False
        try:
            async with asyncio.timeout(timeout) as limit:
                await self._take_place(work)
                future = self._begin(partial(function, *args, **named), job)
                begun = True
                return await asyncio.wrap_future(future)
        except StoppedError:
            raise ProblemError(
                503,
                f"this took longer than {self._settings.share:g} seconds while others waited, and "
                "was stopped; ask for less at a time, or again when there is less to do.",
                headers={"Retry-After": "5"},
                reason="share",
            ) from None
        except TimeoutError:
            if not limit.expired():
                raise
            if begun and work == "change":
                raise ProblemError(
                    503,
                    f"this took longer than {timeout:g} seconds, and is still running; check "
                    "whether it was made before you send it again, and send less at a time.",
                    reason="timeout",
                ) from None
            raise ProblemError(
                503,
                f"this took longer than {timeout:g} seconds and was given up; ask for less at a "
                "time, or again when there is less to do.",
                headers={"Retry-After": "5"},
                reason="timeout",
            ) from None
        finally:
            job.stop.set()

    async def answer(
        self,
        work: WorkKind,
        function: Callable[Given, object],
        *args: Given.args,
        **named: Given.kwargs,
    ) -> JSONResponse:
        """Return what a function returns as JSON, which is written in the same thread."""
        return await self.run(work, lambda: PiecewiseResponse(function(*args, **named)))

    async def _take_place(self, work: WorkKind) -> None:
        """Wait for a place; only so many may."""
        places = self._places(work)
        full = places.free.locked()
        if full and self.waiting >= self._settings.waiting:
            raise ProblemError(
                503,
                f"{self._settings.waiting} requests wait already; try again.",
                headers={"Retry-After": "1"},
                reason="busy",
            )
        places.n_waiting += 1
        try:
            if full:
                self._make_room()
            await places.free.acquire()
        finally:
            places.n_waiting -= 1

    def _begin(self, function: Callable[[], Answer], job: _Job) -> Future[Answer]:
        """Let a thread, one of which is free, work in the place that was taken."""
        job.begun = monotonic()
        self._jobs.add(job)
        loop, context = asyncio.get_running_loop(), copy_context()

        def work() -> Answer:
            if job.work == "change":
                return function()
            with job.stop.stoppable():
                return function()

        def ended(_: Future[Answer]) -> None:
            with suppress(RuntimeError):  # of a loop that was closed, where nobody waits any more
                loop.call_soon_threadsafe(self._leave, job)

        future = self._threads.submit(context.run, work)
        future.add_done_callback(ended)
        loop.call_later(self._settings.share, self._make_room)
        if job.work == "change":
            self._make_room()
        return future

    def _make_room(self) -> None:
        """Stop work that has had its share: one for each that waits, all where an index changes."""
        changing = any(job.work == "change" for job in self._jobs)
        before = monotonic() - 0.99 * self._settings.share
        for places in {self._for_light, self._for_others}:
            there = [job for job in self._jobs if self._places(job.work) is places]
            wanted = len(there) if changing else places.n_waiting
            wanted -= sum(job.gave_way for job in there)
            had_it = [
                job
                for job in there
                if job.work != "change" and not job.gave_way and job.begun <= before
            ]
            for job in sorted(had_it, key=lambda job: job.begun)[: max(0, wanted)]:
                job.gave_way = True
                job.stop.set()

    def _leave(self, job: _Job) -> None:
        self._jobs.discard(job)
        self._places(job.work).free.release()


async def limiter_of(request: Request) -> Limiter:
    """Return the limiter of the index that a request is for.

    A collection has one of its own: a database that does not answer holds up nobody else.
    """
    own: Mapping[str, Limiter] = request.app.state.limiters
    return own.get(request.path_params.get("name", ""), request.app.state.limiter)


Limited = Annotated[Limiter, Depends(limiter_of)]
