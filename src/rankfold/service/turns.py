"""Requests take turns: a few are worked on, some wait, the others are told to come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import Depends, Request

from rankfold.service.problems import Problem
from rankfold.service.settings import Settings

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Turns:
    """Runs functions in threads, so many at a time.

    A thread cannot be stopped. One whose request was given up keeps its place until its function
    ends, so that there are never more at work than allowed.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.running, "rankfold-turn")
        self._lock = Lock()
        self._n_under_way = 0

    @property
    def running(self) -> int:
        """How many are worked on."""
        return min(self._n_under_way, self._settings.running)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._n_under_way - self.running

    async def run(
        self, function: Callable[Given, Answer], *args: Given.args, **named: Given.kwargs
    ) -> Answer:
        """Return what a function returns; a Problem where it would take too long to wait for it."""
        future = self._begin(function, args, named)
        timeout = self._settings.timeout
        try:
            async with asyncio.timeout(timeout) as limit:
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

    def _begin(
        self, function: Callable[..., Answer], args: tuple[Any, ...], named: dict[str, Any]
    ) -> Future[Answer]:
        with self._lock:
            if self._n_under_way >= self._settings.running + self._settings.waiting:
                raise Problem(
                    503,
                    f"{self._settings.waiting} requests wait already; try again.",
                    headers={"Retry-After": "1"},
                    reason="busy",
                )
            self._n_under_way += 1
        future = self._threads.submit(copy_context().run, function, *args, **named)
        future.add_done_callback(self._leave)
        return future

    def _leave(self, _: Future[Any]) -> None:
        with self._lock:
            self._n_under_way -= 1


async def turns_of(request: Request) -> Turns:
    """Return the turns of the app that a request is for."""
    turns: Turns = request.app.state.turns
    return turns


Turn = Annotated[Turns, Depends(turns_of)]
