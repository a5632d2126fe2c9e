"""A client of Dask: of a cluster that is there, or of one on this machine alone."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rankfold.check import InputError, MissingExtraError, check_count

PATIENCE = 30
"""Seconds to wait for a scheduler, and for its first worker."""

FAILURES = 10
"""How many workers may die while they do a task before it is given up; Dask's own default is 3."""

RESTART = "10 minutes"
"""How long a lost process may take to come back; Dask's own 15 s are few on a busy machine."""


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
            "give one of them."
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
            preload="rankfold.cluster.quiet",
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
