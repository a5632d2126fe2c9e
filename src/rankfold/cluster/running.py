"""Tasks on workers: a few at a time, with a bar, given up together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

from rich.console import Console
from rich.progress import Progress

from rankfold.check import InputError
from rankfold.cluster.connecting import connected

AHEAD = 4
"""Tasks that wait for each thread of the workers: none idles, and the scheduler stays small."""


class Work:
    """Runs functions on the workers of a client.

    A task must be a function of its arguments and of files that do not change. It is then run
    again where its worker was lost, and the result is the same.

    Parameters
    ----------
    client : Client
    progress : Progress
        Where bars are shown.
    """

    def __init__(self, client: Any, progress: Progress) -> None:
        self.client, self._progress = client, progress

    @property
    def n_threads(self) -> int:
        """How many tasks run at the same time, now."""
        return max(1, int(sum(self.client.nthreads().values())))

    def run(
        self, what: str, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Call a function with each set of arguments; return results in their order."""
        results: list[Any] = [None] * len(arguments)
        for place, result in self.shown(what, len(arguments), self._finished(function, arguments)):
            results[place] = result
        return results

    @contextmanager
    def showing(self, what: str) -> Iterator[None]:
        """Show that the caller itself is at work, for as long as nobody knows."""
        bar = self._progress.add_task(what, total=None)
        yield
        self._progress.remove_task(bar)

    def shown(self, what: str, total: int, steps: Iterable[Any]) -> Iterator[Any]:
        """Yield steps, and show how many are done."""
        bar = self._progress.add_task(what, total=total)
        for step in steps:
            yield step
            self._progress.advance(bar)
        self._progress.remove_task(bar)

    def _finished(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        import distributed

        waiting = iter(enumerate(arguments))
        places: dict[Any, int] = {}

        def submitted(count: int) -> list[Any]:
            futures = []
            for place, values in islice(waiting, count):
                future = self.client.submit(function, *values, pure=False)
                places[future] = place
                futures.append(future)
            return futures

        running: Any = distributed.as_completed(submitted(AHEAD * self.n_threads))
        with explained():
            try:
                for future in running:
                    result = future.result()
                    yield places.pop(future), result
                    running.update(submitted(1))
            finally:
                self.client.cancel(list(places))


@contextmanager
def working(
    scheduler: Any, n_workers: int | None, forget: Callable[[], None], progress: bool
) -> Iterator[Work]:
    """Connect to workers, and let them forget in the end what they have kept open.

    Parameters
    ----------
    scheduler, n_workers
        As for `connected`.
    forget : function
        What every worker does at the end.
    progress : bool
        Whether to show bars on standard error.
    """
    bars = Progress(console=Console(stderr=True), transient=True, disable=not progress)
    with connected(scheduler, n_workers) as client, bars:
        try:
            yield Work(client, bars)
        finally:
            with suppress(OSError):  # nobody is left who could forget
                client.run(forget)


@contextmanager
def explained() -> Iterator[None]:
    """Say in plain words why a cluster gave a task up."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise InputError(
            "the same task lost one worker after the other, most likely for lack of memory; give "
            "workers more memory, or take fewer of them on one machine."
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise InputError(
            "the Dask scheduler has gone, or gave the work up; see that it runs and start again."
        ) from error
