"""From an app to a server that listens, and shuts down in order."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from errno import EADDRINUSE
from ipaddress import ip_address
from math import ceil
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rankfold.databases import Collection
from rankfold.errors import InputError
from rankfold.index import Index
from rankfold.service.app import create_app
from rankfold.service.limits import ANY_HOST, KEY_VARIABLE, LOOPBACK, Settings
from rankfold.service.logs import write_logs

log = logging.getLogger("rankfold.service")

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Options of glibc's ``mallopt``."""

CHOSEN = {ARENA_MAX: 1, MMAP_THRESHOLD: 2**18, TRIM_THRESHOLD: 2**22}

SWITCH_SECONDS = 0.001
"""After which a thread passes on the interpreter: a light query asks for it many times."""

GRACE = 5.0
"""Seconds in which requests may end after SIGTERM; supervisors commonly kill after ten."""

HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104, where these are reached from this machine

NOT_TAKEN = "an answer was not taken in time; its connection was closed"

RESET = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""Lets a socket forget what was not sent when it is closed (SO_LINGER)."""


def keep_memory_together() -> bool:
    """Let arrays that are freed leave the process, where the C library is glibc; return whether.

    By itself, glibc gives every thread a heap of its own, and comes to take arrays of up to 32 MB
    from it. Queries and changes that take turns in threads then leave holes in each of
    them, and a service grows for as long as it meets new mixtures of requests.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library, such as musl
        return False
    return all(mallopt(option, value) == 1 for option, value in CHOSEN.items())


def bind(host: str, port: int) -> socket.socket:
    """Take a port; connections are accepted later, when all is ready.

    Parameters
    ----------
    host : str
    port : int
        0 takes a free one.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        taken = socket.socket(family, kind, protocol)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(address)
        except BaseException:
            taken.close()
            raise
    except OSError as error:
        if error.errno == EADDRINUSE:
            message = f"port {port} of {host} is in use; choose another one, or 0 for a free one."
        else:
            message = f"cannot listen on port {port} of {host!r}: {error.strerror}."
        raise InputError(message) from error
    return taken


def reachable(
    settings: Settings, place: socket.socket, hosts: Sequence[str] = (), without_key: bool = False
) -> Settings:
    """Return settings that answer to the right hosts; refuse to be open to others unawares.

    Parameters
    ----------
    settings : Settings
    place : socket
        Made by `bind`.
    hosts : sequence of str
        Further names under which the service may be asked for.
    without_key : bool
        Whether others on the network may read without a key.
    """
    address = place.getsockname()[0]
    if ip_address(address).is_loopback:
        return replace(settings, hosts=(*LOOPBACK, _in_url(address), *hosts))
    if settings.api_key is None and not without_key:
        raise InputError(
            f"listening on {address} lets others on the network read all that is served; set a "
            f"key in the variable {KEY_VARIABLE}, or permit it with without_key=True."
        )
    return replace(settings, hosts=(*LOOPBACK, *hosts) if hosts else (ANY_HOST,))


def run(
    indexes: Mapping[str, Index | Collection],
    settings: Settings,
    place: socket.socket,
    level: str = "info",
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that run are finished before, if they soon are.

    Whatever runs `GRACE` seconds later is stopped; a change that has begun is finished in any case.

    Parameters
    ----------
    indexes : dict of str to Index
    settings : Settings
    place : socket
        Made by `bind`.
    level : str
        Of what is logged.
    ready : callable
        Called with the address of the page when it can be opened.
    """
    write_logs(level)
    keep_memory_together()
    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(
        create_app(indexes, settings),
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=patient_for(settings),
        timeout_graceful_shutdown=ceil(min(settings.timeout, GRACE)),
    )
    server = _Server(config, lambda: ready(address_of(place)))
    # uvicorn raises the signal once more when it has ended, which would end us before our indexes.
    signal.signal(signal.SIGTERM, server.handle_exit)
    server.run(sockets=[place])


def address_of(place: socket.socket) -> str:
    """Return the address of a page that is served here."""
    host, port = place.getsockname()[:2]
    return f"http://{_in_url(HERE.get(host, host))}:{port}/"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Server(uvicorn.Server):
    """Tells when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def patient_for(settings: Settings) -> type[H11Protocol]:
    """Return connections that wait for their clients, but not for ever.

    An app sees a request when its headers are there. It may answer before the body is, and nobody
    would wait for the end of that. Once an app has answered, nobody would wait for the client to
    take the answer. So a connection is closed where headers, or then a body, take longer to arrive
    than ``body_timeout``, and where what was written takes longer to leave than ``send_timeout``.
    Where there are too many connections, or too much waits to be sent, those that have had most
    time go first.

    Parameters
    ----------
    settings : Settings
    """
    idle: dict[Connection, None] = {}  # those without a request, in the order of their last one
    unsent: dict[Connection, None] = {}  # those with something to send, in the order of waiting

    class Connection(H11Protocol):
        _late: asyncio.TimerHandle | None = None
        _state: Any = None
        _slow: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            transport.set_write_buffer_limits(high=0)  # tells of the first byte that has to wait
            self._wait()
            self._rest()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            state = self.conn.their_state
            if self._is_working():
                idle.pop(self, None)
            if state not in (h11.IDLE, h11.SEND_BODY):
                self._wait_no_more()
            elif self._late is None or state is not self._state:
                self._wait(state)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self._is_working():
                self._rest()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._slow = self.loop.call_later(settings.send_timeout, self._give_up)
            unsent[self] = None
            while len(unsent) > 1 and self._too_much():
                next(iter(unsent))._give_up()

        def resume_writing(self) -> None:
            self._all_is_sent()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait_no_more()
            self._all_is_sent()
            idle.pop(self, None)
            super().connection_lost(exc)

        def _is_working(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _rest(self) -> None:
            """Be the last to go of all that have no request."""
            idle.pop(self, None)
            if self.transport.is_closing():
                return
            idle[self] = None
            if len(self.connections) > settings.connections:
                oldest = next(iter(idle))
                idle.pop(oldest)
                oldest.transport.close()

        def _wait(self, state: Any = h11.IDLE) -> None:
            self._wait_no_more()
            # Of a body the app says that it is late, which takes a moment.
            patience = settings.body_timeout + (0 if state is h11.IDLE else 1)
            self._late, self._state = self.loop.call_later(patience, self.transport.close), state

        def _wait_no_more(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _too_much(self) -> bool:
            n_bytes = sum(one.transport.get_write_buffer_size() for one in unsent)
            return n_bytes > settings.unsent_bytes or len(unsent) > settings.bodies

        def _all_is_sent(self) -> None:
            unsent.pop(self, None)
            if self._slow is not None:
                self._slow.cancel()
                self._slow = None

        def _give_up(self) -> None:
            """Forget what was not sent; what the kernel holds of it, too."""
            self._all_is_sent()
            log.info(NOT_TAKEN)
            taken = self.transport.get_extra_info("socket")
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.transport.abort()

    return Connection
