"""From an app to a server that listens, and ends in order."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from errno import EADDRINUSE
from ipaddress import ip_address
from math import ceil

import uvicorn

from rankfold.check import InputError
from rankfold.index import Index
from rankfold.service.allocating import keep_memory_together
from rankfold.service.app import create_app
from rankfold.service.logs import write_logs
from rankfold.service.settings import ANY_HOST, KEY_VARIABLE, LOOPBACK, Settings

HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104, where these are reached from this machine


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
    indexes: Mapping[str, Index],
    settings: Settings,
    place: socket.socket,
    level: str = "info",
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that run are finished before.

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
    config = uvicorn.Config(
        create_app(indexes, settings),
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=ceil(settings.timeout + settings.body_timeout),
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
