"""Requests take turns: a few are worked on, some wait, the others are told to come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Event
from typing import Annotated, ParamSpec, TypeVar

from fastapi import Depends, Request
from fastapi.responses import JSONResponse

from rankfold.service.problems import Problem
from rankfold.service.settings import Settings

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


_given_up: ContextVar[Event] = ContextVar("given_up")


class GivenUpError(Exception):
    """Nobody waits any more for what a function would return."""


def check_wanted() -> None:
    """Stop, between two parts of long work, where the request was given up."""
    event = _given_up.get(None)
    if event is not None and event.is_set():
        raise GivenUpError


class Turns:
    """Runs functions in threads, so many at a time; of one event loop.

    A thread cannot be stopped. One whose request was given up keeps its place until its function
    ends, so that there are never more at work than allowed; a function of many parts calls
    `check_wanted` between them. Who waits holds a place in a queue and nothing else: whoever is
    given up there is gone, with all that was sent.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.running, "rankfold-turn")
        self._places = asyncio.Semaphore(settings.running)
        self._n_running = self._n_waiting = 0

    @property
    def running(self) -> int:
        """How many are worked on."""
        return self._n_running

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._n_waiting

    async def run(
        self, function: Callable[Given, Answer], *args: Given.args, **named: Given.kwargs
    ) -> Answer:
        """Return what a function returns; a Problem where it would take too long to wait for it."""
        timeout, given_up = self._settings.timeout, Event()
        try:
            async with asyncio.timeout(timeout) as limit:
                await self._take_place()
                future = self._begin(partial(function, *args, **named), given_up)
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if not limit.expired():
                raise
            raise Problem(
                503,
                f"this took longer than {timeout:g} seconds and was given up; ask for less at a "
                "time, or again when there is less to do. A change may still be made.",
                headers={"Retry-After": "5"},
                reason="timeout",
            ) from None
        finally:
            given_up.set()

    async def answer(
        self, function: Callable[Given, object], *args: Given.args, **named: Given.kwargs
    ) -> JSONResponse:
        """Return what a function returns as JSON, which is written in the same turn."""
        return await self.run(lambda: JSONResponse(function(*args, **named)))

    async def _take_place(self) -> None:
        """Wait for a place; only so many may."""
        if self._places.locked() and self._n_waiting >= self._settings.waiting:
            raise Problem(
                503,
                f"{self._settings.waiting} requests wait already; try again.",
                headers={"Retry-After": "1"},
                reason="busy",
            )
        self._n_waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._n_waiting -= 1

    def _begin(self, function: Callable[[], Answer], given_up: Event) -> Future[Answer]:
        """Let a thread, one of which is free, work in the place that was taken."""
        self._n_running += 1
        loop, context = asyncio.get_running_loop(), copy_context()
        context.run(_given_up.set, given_up)

        def ended(_: Future[Answer]) -> None:
            with suppress(RuntimeError):  # of a loop that was closed, where nobody waits any more
                loop.call_soon_threadsafe(self._leave)

        future = self._threads.submit(context.run, function)
        future.add_done_callback(ended)
        return future

    def _leave(self) -> None:
        self._n_running -= 1
        self._places.release()


async def turns_of(request: Request) -> Turns:
    """Return the turns of the app that a request is for."""
    turns: Turns = request.app.state.turns
    return turns


Turn = Annotated[Turns, Depends(turns_of)]
