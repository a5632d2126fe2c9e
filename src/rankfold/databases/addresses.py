"""From an address to the database that is there."""

from __future__ import annotations

import re

from rankfold.check import InputError
from rankfold.databases.contract import Database

EXAMPLES = "postgresql://user@host/database, milvus://host:19530 or milvus:///path/of/file.db"


def database_of(address: str | Database) -> Database:
    """Return the database at an address; nothing is asked of it yet.

    Parameters
    ----------
    address : str or Database
        Such as ``postgresql://user@host/database``, ``milvus://host:19530`` or
        ``milvus:///path/of/file.db``, a file of Milvus Lite.

    Examples
    --------
    >>> database_of("mysql://localhost")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    rankfold.check.InputError: the engine is 'mysql://localhost', which names no database that ...
    """
    if not isinstance(address, str) and hasattr(address, "check_place"):
        return address
    if not isinstance(address, str):
        raise InputError(f"the engine is {address!r}, but must be an address such as {EXAMPLES}.")
    scheme, mark, _ = address.partition("://")
    if mark and scheme in ("postgresql", "postgres"):
        from rankfold.databases.postgresql import PostgreSQL

        return PostgreSQL(address)
    if mark and scheme == "milvus":
        from rankfold.databases.milvus import Milvus

        return Milvus(address)
    raise InputError(
        f"the engine is {without_password(address)!r}, which names no database that can hold "
        f"an index; give an address such as {EXAMPLES}.",
        "engine",
    )


def without_password(address: str) -> str:
    """Return an address as it may be shown: whatever may belong to a password is left out.

    Examples
    --------
    >>> without_password("postgresql://ann:secret@host:5432/db?password=secret&sslmode=require")
    'postgresql://ann@host:5432/db?sslmode=require'
    """
    shown = re.sub(r"(?<=:)([^/@:]*|//[^/@:]*):.*@", r"\1@", address)
    shown = re.sub(r"(?<=[?&])(?:ssl)?password=[^&]*&?", "", shown)
    return shown.rstrip("?&")
