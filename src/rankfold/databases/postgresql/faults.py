"""What PostgreSQL complains about, in words that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from rankfold.check import DatabaseError, UnreachableError
from rankfold.databases.postgresql.address import Address

LOST = "see that the server runs and can be reached, then try again"
LATER = "try again later"
PASSWORD = "give the right user in the address, and the password in PGPASSWORD or ~/.pgpass"  # noqa: S105
TRANSIENT = {
    "40001": LATER,
    "40P01": LATER,
    "53300": "too many clients use the server; try again later, or let it accept more",
    "57P01": LOST,
    "57P02": LOST,
    "57P03": LOST,
    "57P05": LOST,
}
ADVICE = {
    "25006": "this server may only be read, like a standby; changes need the address of the "
    "primary server",
    "42501": "ask an administrator for the rights to read, and for changes to create tables, in "
    "this schema; another one is chosen by ?options=-csearch_path%3Dname in the address",
    "53100": "make room on the disk of the server; what was stored is unharmed",
    "53200": "give the server more memory, or let it use less for each client",
    "55P03": "others are using the index just now; try again later",
}
REFUSED = {
    "password": PASSWORD,
    "authentication": PASSWORD,
    "pg_hba": "ask an administrator to let this user connect from here",
    "role": "give a user in the address that the server knows",
    "database": "create the database, or give the name of one there is",
}
"""Words by which a server that refuses a connection says why; it sends no codes then."""


def refused(error: psycopg.Error, address: Address) -> DatabaseError:
    """Return the error for a connection that did not come about."""
    message = _said(error)
    fatal = "FATAL:" in str(error)
    if fatal and not any(word in message for word in ("starting up", "shutting down", "too many")):
        for word, advice in REFUSED.items():
            if word in message:
                return DatabaseError(
                    f"{address.place} refuses the connection ({message}): {advice}."
                )
    return UnreachableError(f"{address.place} cannot be reached ({message}): {LOST}.")


def explain(error: psycopg.Error, address: Address) -> DatabaseError:
    """Return the error for a statement that failed."""
    code, place = error.sqlstate, address.place
    if code == "57014":
        return UnreachableError(
            f"{place} took longer than {address.timeout:g} seconds: try again when it has less to "
            "do, or allow it more by ?timeout=... in the address."
        )
    if code is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return UnreachableError(f"the connection to {place} was lost ({_said(error)}): {LOST}.")
    if code in TRANSIENT:
        return UnreachableError(f"{place} gave up ({_said(error)}): {TRANSIENT[code]}.")
    advice = ADVICE.get(code or "", "nothing was changed")
    return DatabaseError(f"{place} refuses ({_said(error)}): {advice}.")


@contextmanager
def explained(address: Address) -> Iterator[None]:
    """Turn errors of PostgreSQL into ones that name the place and say what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise explain(error, address) from error


def _said(error: psycopg.Error) -> str:
    """Return the first thing that the server said, without where it listens."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    return said.rsplit("FATAL:", 1)[-1].strip() if "FATAL:" in said else said
