"""A Dask client, of a cluster that exists or of one on this machine, and tasks on its workers."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import Any

from rich.console import Console
from rich.progress import Progress

from rankfold.check import check_count
from rankfold.errors import InputError, MissingExtraError

PATIENCE = 30
"""Seconds to wait for a scheduler, and for its first worker."""

FAILURES = 10
"""How many workers may die while they do a task before it is given up; Dask's own default is 3."""

RESTART = "10 minutes"
"""How long a lost process may take to come back; Dask's own 15 s are few on a busy machine."""

AHEAD = 4
"""Tasks that wait for each thread of the workers: none idles, and the scheduler stays small."""


@contextmanager
def connected(scheduler: Any = None, n_workers: int | None = None) -> Iterator[Any]:
    """Yield a client of Dask.

    Parameters
    ----------
    scheduler : str or Client, optional
        The address of a scheduler, or a client, which stays open. Without, processes on this
        machine, each with one thread, that end with the block.
    n_workers : int, optional
        How many processes; as many as there are cores by default.
    """
    distributed = _distributed()
    if scheduler is not None and n_workers is not None:
        raise InputError(
            "n_workers is given together with scheduler, whose workers are there already; "
            "give one of them.",
            "n_workers",
        )
    if isinstance(scheduler, distributed.Client):
        _check_workers(scheduler)
        yield scheduler
    elif scheduler is not None:
        with _client_of(distributed, scheduler) as client:
            _check_workers(client)
            yield client
    else:
        count = os.cpu_count() or 1 if n_workers is None else check_count(n_workers, "n_workers")
        with own_cluster(count) as cluster, distributed.Client(cluster) as client:
            yield client


@contextmanager
def own_cluster(n_workers: int) -> Iterator[Any]:
    """Yield a cluster of processes on this machine, which ends with the block."""
    import dask

    distributed = _distributed()
    settings = {
        "distributed.scheduler.allowed-failures": FAILURES,
        "distributed.deploy.lost-worker-timeout": RESTART,
        "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
    }
    with dask.config.set(settings), _quiet("distributed"), ExitStack() as stack:
        with _interrupts_held():
            cluster = stack.enter_context(_started(distributed, n_workers))
        yield cluster


def _started(distributed: Any, n_workers: int) -> Any:
    try:
        return distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            # Any port, as another cluster may have the usual one; and for this machine alone.
            dashboard_address="127.0.0.1:0",
            preload=__name__,
            silence_logs=False,  # it would silence the handlers of everybody
        )
    except RuntimeError as error:
        raise InputError(
            f"the {n_workers} worker processes could not be started ({error}); try again, or "
            "give the address of a Dask scheduler."
        ) from error


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait until the block ends, and never reach processes that are started in it.

    Dask cannot be stopped cleanly while it starts. Processes inherit what is held back.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # not on Windows

    # The tracker lets signals through to the thread that starts it, and so to the processes that
    # this thread starts next; one that runs already does nothing.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Let a logger speak of nothing but disasters: a worker that is started again is no news."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _client_of(distributed: Any, address: Any) -> Any:
    try:
        return distributed.Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"there is no Dask scheduler at {address!r} ({str(error) or type(error).__name__}); "
            "give an address such as 'tcp://host:8786', or none to work on this machine."
        ) from error


def _check_workers(client: Any) -> None:
    """Require workers; some may still be on their way."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise InputError(
            f"the Dask scheduler at {client.scheduler.address!r} has no workers; start some with "
            "'dask worker ADDRESS'."
        ) from error


def _distributed() -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "dask") from None
    return distributed


class TaskRunner:
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
) -> Iterator[TaskRunner]:
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
            yield TaskRunner(client, bars)
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


def dask_setup(_worker: Any) -> None:
    """Leave Ctrl-C to the caller, which ends its workers; a terminal sends it to all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
