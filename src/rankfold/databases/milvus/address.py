"""Addresses of Milvus: ``milvus://host:19530`` and ``milvus:///file.db``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rankfold.check import InputError

PORT = 19530


@dataclass(frozen=True)
class Address:
    """Where a Milvus is: a file of Milvus Lite, or a server.

    Parameters
    ----------
    place : str
        For people: without a password.
    file : Path or None
        Milvus Lite's, which is a folder in truth.
    uri : str
        A server's, or empty.
    user, password, database : str
        Empty where they were not given.
    """

    place: str
    file: Path | None
    uri: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    database: str = ""

    @classmethod
    def of(cls, text: str) -> Address:
        """Read an address.

        Examples
        --------
        >>> Address.of("milvus://me:secret@db.example/shop").place
        'milvus://me@db.example:19530/shop'
        >>> Address.of("milvus:///./digits.db").file.name
        'digits.db'
        """
        try:
            parts = urlsplit(text)
            port = parts.port or PORT
        except ValueError:
            raise _wrong() from None
        if parts.scheme != "milvus" or parts.query or parts.fragment:
            raise _wrong()
        if not parts.hostname:
            return cls._of_file(unquote(parts.path))
        user, database = unquote(parts.username or ""), parts.path.strip("/")
        if "/" in database:
            raise _wrong()
        server = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        place = f"milvus://{user}@" if user else "milvus://"
        place += f"{server}:{port}" + (f"/{database}" if database else "")
        uri = f"http://{server}:{port}"
        return cls(place, None, uri, user, unquote(parts.password or ""), database)

    @classmethod
    def _of_file(cls, path: str) -> Address:
        if not path.endswith(".db"):
            raise _wrong()
        relative = path.startswith(("/./", "/../"))
        file = Path(path[1:] if relative else path).resolve()
        return cls(f"milvus://{file}", file)


def _wrong() -> InputError:
    return InputError(
        "the address of a Milvus must look like milvus://user:password@host:19530/database, where "
        "the user and the database may be left out, or like milvus:///folder/file.db for a file "
        "of Milvus Lite (milvus:///./file.db in this folder).",
        "engine",
    )
