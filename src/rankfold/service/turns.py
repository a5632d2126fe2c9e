"""Requests take turns: a few are worked on, some wait, the others are told to come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Annotated, Literal, ParamSpec, TypeVar

from fastapi import Depends, Request
from fastapi.responses import JSONResponse

from rankfold.parallel import Stop, StoppedError
from rankfold.service.problems import Problem
from rankfold.service.settings import Settings

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

Work = Literal["light", "heavy", "change"]
"""What a request asks for: little by all that it says, perhaps much, or a change of an index."""


@dataclass(eq=False)
class _Turn:
    """What is worked on, since when, and whether it was stopped to make room for others."""

    work: Work
    begun: float = field(default_factory=monotonic)
    stop: Stop = field(default_factory=Stop)
    gave_way: bool = False


class Turns:
    """Runs functions in threads, so many at a time; of one event loop.

    Half of the places are kept for light work, unless there is only one at all: what is heavy never
    takes them. Work that nobody waits for any more is stopped, see `Stop`, and so is work that has
    had its share of time while others wait for a place, or while an index is to change, which
    nobody may read meanwhile. A change is never stopped. Whatever was stopped keeps its place until
    its thread has ended, so that there are never more at work than allowed. Who waits holds a place
    in a queue and nothing else: whoever is given up there is gone, with all that was sent.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.running, "rankfold-turn")
        self._places = asyncio.Semaphore(settings.running)
        self._for_heavy = asyncio.Semaphore(max(1, settings.running // 2))
        self._turns: set[_Turn] = set()
        self._n_waiting = 0

    @property
    def running(self) -> int:
        """How many are worked on."""
        return len(self._turns)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._n_waiting

    async def run(
        self,
        work: Work,
        function: Callable[Given, Answer],
        *args: Given.args,
        **named: Given.kwargs,
    ) -> Answer:
        """Return what a function returns; a Problem where it would take too long to wait for it."""
        timeout, turn = self._settings.timeout, _Turn(work)
        try:
            async with asyncio.timeout(timeout) as limit:
                await self._take_place(work)
                future = self._begin(partial(function, *args, **named), turn)
                return await asyncio.wrap_future(future)
        except StoppedError:
            raise Problem(
                503,
                f"this took longer than {self._settings.share:g} seconds while others waited, and "
                "was stopped; ask for less at a time, or again when there is less to do.",
                headers={"Retry-After": "5"},
                reason="share",
            ) from None
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
            turn.stop.set()

    async def answer(
        self,
        work: Work,
        function: Callable[Given, object],
        *args: Given.args,
        **named: Given.kwargs,
    ) -> JSONResponse:
        """Return what a function returns as JSON, which is written in the same turn."""
        return await self.run(work, lambda: JSONResponse(function(*args, **named)))

    async def _take_place(self, work: Work) -> None:
        """Wait for a place; only so many may."""
        heavy = work != "light"
        full = self._places.locked() or (heavy and self._for_heavy.locked())
        if full and self._n_waiting >= self._settings.waiting:
            raise Problem(
                503,
                f"{self._settings.waiting} requests wait already; try again.",
                headers={"Retry-After": "1"},
                reason="busy",
            )
        self._n_waiting += 1
        try:
            if full:
                self._make_room()
            if heavy:
                await self._for_heavy.acquire()
            try:
                await self._places.acquire()
            except BaseException:
                if heavy:
                    self._for_heavy.release()
                raise
        finally:
            self._n_waiting -= 1

    def _begin(self, function: Callable[[], Answer], turn: _Turn) -> Future[Answer]:
        """Let a thread, one of which is free, work in the place that was taken."""
        turn.begun = monotonic()
        self._turns.add(turn)
        loop, context = asyncio.get_running_loop(), copy_context()

        def work() -> Answer:
            if turn.work == "change":
                return function()
            with turn.stop.stoppable():
                return function()

        def ended(_: Future[Answer]) -> None:
            with suppress(RuntimeError):  # of a loop that was closed, where nobody waits any more
                loop.call_soon_threadsafe(self._leave, turn)

        future = self._threads.submit(context.run, work)
        future.add_done_callback(ended)
        loop.call_later(self._settings.share, self._make_room)
        if turn.work == "change":
            self._make_room()
        return future

    def _make_room(self) -> None:
        """Stop work that has had its share: one for each that waits, all where an index changes."""
        changing = any(turn.work == "change" for turn in self._turns)
        wanted = len(self._turns) if changing else self._n_waiting
        wanted -= sum(turn.gave_way for turn in self._turns)
        before = monotonic() - 0.99 * self._settings.share
        had_it = [
            turn
            for turn in self._turns
            if turn.work != "change" and not turn.gave_way and turn.begun <= before
        ]
        for turn in sorted(had_it, key=lambda turn: turn.begun)[: max(0, wanted)]:
            turn.gave_way = True
            turn.stop.set()

    def _leave(self, turn: _Turn) -> None:
        self._turns.discard(turn)
        self._places.release()
        if turn.work != "light":
            self._for_heavy.release()


async def turns_of(request: Request) -> Turns:
    """Return the turns of the app that a request is for."""
    turns: Turns = request.app.state.turns
    return turns


Turn = Annotated[Turns, Depends(turns_of)]
