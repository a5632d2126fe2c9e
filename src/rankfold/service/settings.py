"""What the service allows, and how long it waits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from typing import Any, Self

from rankfold.check import InputError, check_count, check_positive

KEY_VARIABLE = "RANKFOLD_API_KEY"
SHORTEST_KEY = 16
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANY_HOST = "*"
NAME = r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]"
HOST = re.compile(NAME)
ORIGIN = re.compile(rf"https?://({NAME})(:[0-9]+)?")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Settings:
    """The limits of a service; what a single request may ask for is in its description.

    Parameters
    ----------
    api_key : str, optional
        Without, whoever reaches the service may read, and nobody may write.
    hosts : tuple of str
        Names under which it may be asked for, without port; "*" is any. Others are refused, so
        that a page from elsewhere cannot reach a service on this machine through a name of its own.
    origins : tuple of str
        Pages from elsewhere that may use the service, such as ``https://example.org``.
    body_bytes : int
        Longest body of a request.
    bodies, held_bytes : int
        Bodies kept in memory at a time, and how long they may be together; one is always allowed.
    read_bytes : int
        Longest body of a request that changes nothing: while it is parsed, nothing else happens.
    timeout, body_timeout : float
        Seconds for a request, and for each of its headers and its body to arrive.
    share : float
        Seconds after which work is stopped where others wait for its place.
    running, waiting : int
        Requests that are worked on at a time, half of them light ones, and that may wait for
        their turn.

    Examples
    --------
    >>> Settings(waiting=8).waiting
    8
    """

    api_key: str | None = field(default=None, repr=False)
    hosts: tuple[str, ...] = LOOPBACK
    origins: tuple[str, ...] = ()
    body_bytes: int = 8 * 2**20
    read_bytes: int = 2**20
    bodies: int = 128
    held_bytes: int = 32 * 2**20
    timeout: float = 30.0
    body_timeout: float = 10.0
    share: float = 2.0
    running: int = 4
    waiting: int = 64

    def __post_init__(self) -> None:
        if self.api_key is not None:
            _check_key(self.api_key)
        for host in self.hosts:
            _check_host(host)
        for origin in self.origins:
            _check_origin(origin)
        for limit in fields(self):
            if limit.type == "int":
                least = 0 if limit.name == "waiting" else 1
                check_count(getattr(self, limit.name), limit.name, least)
            elif limit.type == "float":
                check_positive(getattr(self, limit.name), limit.name, most=86_400)

    @classmethod
    def from_environment(cls, **limits: Any) -> Self:
        """Return settings with the key that the environment names, if it does."""
        return cls(api_key=os.environ.get(KEY_VARIABLE), **limits)


def _check_key(key: str) -> None:
    if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        raise InputError(
            f"{KEY_VARIABLE} has {len(key)} characters, but a key has at least {SHORTEST_KEY}: "
            "letters, digits and signs of ASCII without spaces. Make one with "
            "'python -c \"import secrets; print(secrets.token_urlsafe(32))\"', or unset the "
            "variable to allow reading only."
        )


def _check_host(host: str) -> None:
    if host != ANY_HOST and not HOST.fullmatch(host):
        raise InputError(
            f"{host!r} is no host that can be asked for; give its name alone, such as "
            "example.org, without 'https://', port and path; IPv6 in brackets, such as [::1].",
            "hosts",
        )


def _check_origin(origin: str) -> None:
    """Require an origin as browsers send it, since it is compared letter by letter."""
    found = ORIGIN.fullmatch(origin)
    scheme = origin.partition(":")[0]
    plain = found and origin == origin.lower() and found[2] != DEFAULT_PORTS[scheme]
    if origin != ANY_HOST and not plain:
        raise InputError(
            f"{origin!r} is no origin that a browser sends; give scheme and host, such as "
            "https://example.org, in small letters, without '/' at the end, with a port only "
            "where it is not the usual one.",
            "origins",
        )
