"""Work in blocks over threads: in order, with progress, and stopped by Ctrl-C."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Block = TypeVar("Block")
Answer = TypeVar("Answer")

AHEAD = 4
"""Blocks that may wait for each thread."""


def in_order(
    function: Callable[[Block], Answer],
    blocks: Sequence[Block],
    n_jobs: int,
    progress: bool,
    label: str = "queries",
) -> Iterator[Answer]:
    """Yield what the function makes of each block, in the order of the blocks.

    The threads run at once wherever the function releases the GIL, as compiled code and NumPy do.
    Only a few blocks are under way at any time.

    Examples
    --------
    >>> list(in_order(sum, [[1, 2], [3, 4]], n_jobs=2, progress=False))
    [3, 7]
    """
    answers: Iterable[Answer] = map(function, blocks)
    if n_jobs > 1 and len(blocks) > 1:
        answers = _threaded(function, blocks, n_jobs)
    if progress:
        console = Console(stderr=True)
        answers = track(answers, label, len(blocks), console=console, transient=True)
    yield from answers


def _threaded(
    function: Callable[[Block], Answer], blocks: Sequence[Block], n_jobs: int
) -> Iterator[Answer]:
    waiting = iter(blocks)
    with ThreadPoolExecutor(n_jobs) as threads:
        ahead = islice(waiting, AHEAD * n_jobs)
        under_way: deque[Future[Answer]] = deque(threads.submit(function, one) for one in ahead)
        try:
            while under_way:
                yield under_way.popleft().result()
                under_way.extend(threads.submit(function, one) for one in islice(waiting, 1))
        finally:
            for future in under_way:
                future.cancel()
