"""The address of a PostgreSQL database, and what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any
from urllib.parse import quote, unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from rankfold.check import InputError
from rankfold.databases.postgresql.arguments import teach_arrays

TIMEOUT = 30.0
"""Seconds that a question to the database may take; ``?timeout=...`` says otherwise."""

CONNECT_TIMEOUT = "10"
EXAMPLE = "postgresql://user:password@host:5432/database?timeout=30"


@dataclass(frozen=True)
class Address:
    """How to connect; ``place`` is how people are told, without the password.

    Examples
    --------
    >>> address = Address.of("postgresql://me:secret@host/db?timeout=5")
    >>> address.place, address.timeout
    ('postgresql://me@host/db', 5.0)
    """

    parameters: dict[str, Any] = field(repr=False)  # the password is among them
    timeout: float

    @classmethod
    def of(cls, address: str) -> Address:
        """Read an address as libpq does, which knows further options."""
        start, _, options = address.partition("?")
        if "@" in start.partition("@")[2] or "@" in start.partition("://")[2].partition("/")[2]:
            raise _unreadable()  # libpq would take part of a password for a host, which is shown
        pairs = [option.partition("=") for option in options.split("&")]
        rest = "&".join("".join(pair) for pair in pairs if pair[0] != "timeout")
        try:
            parameters = conninfo_to_dict(f"{start}?{rest}" if rest else start)
        except psycopg.ProgrammingError:  # whose message may quote the password
            raise _unreadable() from None
        seconds = {name: unquote(value) for name, _, value in pairs}.get("timeout")
        return cls(parameters, _seconds(seconds))

    @property
    def place(self) -> str:
        """Where it is."""
        part = self.parameters.get
        user = f"{part('user')}@" if part("user") else ""
        host = part("host") or part("hostaddr") or ""
        port = f":{part('port')}" if part("port") else ""
        database = quote(part("dbname") or "", safe="")
        if host.startswith("/"):  # the folder of a socket
            return f"postgresql://{user}{port}/{database}?host={host}"
        return f"postgresql://{user}{host}{port}/{database}"

    def connect(self) -> psycopg.Connection[Any]:
        """Connect."""
        parameters = {
            "connect_timeout": CONNECT_TIMEOUT,
            "fallback_application_name": "rankfold",
            "keepalives_idle": "10",  # a server that vanished is missed after half a minute
            "keepalives_interval": "5",
            "keepalives_count": "4",
            "tcp_user_timeout": str(int(1000 * self.timeout)),
            **self.parameters,
            "client_encoding": "utf8",
        }
        connection = psycopg.connect(autocommit=True, **parameters)
        teach_arrays(connection)
        return connection


def _unreadable() -> InputError:
    return InputError(
        f"the address of the database cannot be read; it is written like {EXAMPLE}, where "
        "characters such as @ : / % in a password are written as %40 %3A %2F %25. Options are "
        "those of libpq, and timeout."
    )


def _seconds(text: str | None) -> float:
    if text is None:
        return TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (seconds > 0 and isfinite(seconds)):
        raise InputError(
            f"timeout in the address of the database is {text!r}, but must be a number of seconds "
            "above zero."
        )
    return seconds
