"""Work in blocks over threads: in order, with progress, and stopped by Ctrl-C or a flag."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from threading import Event
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

Block = TypeVar("Block")
Answer = TypeVar("Answer")

AHEAD = 4
"""Blocks that may wait for each thread."""

NEVER: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)
"""The flag of work that nobody stops."""

STOP_FLAG: ContextVar[NDArray[np.uint8]] = ContextVar("stop_flag", default=NEVER)
"""The flag of the work at hand, for compiled code: not zero where it is stopped."""


class StoppedError(Exception):
    """Work was stopped from outside, because nobody waits for it any more."""

    def __init__(self) -> None:
        super().__init__("nobody waits for this any more")


class Stop:
    """Stops work from another thread, inside of compiled code as well.

    All long work looks at the flag: solvers with every step, alternations, diffusions and batches
    between two of theirs, SQLite after some thousand steps of its own. A factorisation and a search
    for neighbours run to their end.

    Examples
    --------
    >>> stop = Stop()
    >>> with stop.stoppable():
    ...     check_stopped()  # nobody has stopped it
    ...     stop.set()
    ...     check_stopped()
    Traceback (most recent call last):
    rankfold.parallel.StoppedError: nobody waits for this any more
    """

    def __init__(self) -> None:
        self.flag: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)

    def set(self) -> None:
        """Stop the work; it ends with a `StoppedError`."""
        self.flag[0] = 1

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Let this stop what is done inside."""
        token = STOP_FLAG.set(self.flag)
        try:
            yield
        finally:
            STOP_FLAG.reset(token)


def is_stopped() -> bool:
    """Tell whether the work at hand was stopped."""
    return bool(STOP_FLAG.get()[0])


def check_stopped() -> None:
    """Raise a `StoppedError` where the work at hand was stopped."""
    if is_stopped():
        raise StoppedError


def in_order(
    function: Callable[[Block], Answer],
    blocks: Sequence[Block],
    n_jobs: int,
    progress: bool,
    label: str = "queries",
    ended: Event | None = None,
) -> Iterator[Answer]:
    """Yield what the function makes of each block, in the order of the blocks.

    The threads run at once wherever the function releases the GIL, as compiled code and NumPy do.
    Only a few blocks are under way at any time. Where a block takes long, the function can look
    at ``ended``, which is set when nobody waits for an answer any more, as after Ctrl-C.

    Examples
    --------
    >>> list(in_order(sum, [[1, 2], [3, 4]], n_jobs=2, progress=False))
    [3, 7]
    """
    answers: Iterable[Answer] = map(function, blocks)
    if n_jobs > 1 and len(blocks) > 1:
        answers = _threaded(function, blocks, n_jobs, ended or Event())
    if progress:
        console = Console(stderr=True)
        answers = track(answers, label, len(blocks), console=console, transient=True)
    yield from answers


def _threaded(
    function: Callable[[Block], Answer], blocks: Sequence[Block], n_jobs: int, ended: Event
) -> Iterator[Answer]:
    waiting = iter(blocks)
    with ThreadPoolExecutor(n_jobs) as threads:
        ahead = islice(waiting, AHEAD * n_jobs)
        under_way: deque[Future[Answer]] = deque(
            threads.submit(copy_context().run, function, one) for one in ahead
        )
        try:
            while under_way:
                yield under_way.popleft().result()
                for one in islice(waiting, 1):
                    under_way.append(threads.submit(copy_context().run, function, one))
        finally:
            ended.set()
            for future in under_way:
                future.cancel()
