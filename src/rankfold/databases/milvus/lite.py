"""Files of Milvus Lite: a server inside this process, shared by all who use the file."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock, RLock
from typing import Any, NamedTuple

from rankfold.check import DatabaseError, MissingExtraError, UnreachableError

LOG = "milvus_lite.server_manager"


class _Served(NamedTuple):
    uri: str
    lock: AbstractContextManager[Any]
    n_users: int


_served: dict[Path, _Served] = {}
_guard = Lock()


def serve(file: Path) -> tuple[str, AbstractContextManager[Any]]:
    """Open a file; return where it is served, and the lock for every call to it.

    Milvus Lite does not keep a reader apart from a writer that just moves data to disk, so
    calls take turns. It is Python in this process, so this costs little.
    """
    with _guard:
        served = _served.get(file) or _Served(_start(file), RLock(), 0)
        _served[file] = served._replace(n_users=served.n_users + 1)
        return served.uri, served.lock


def leave(file: Path) -> None:
    """Close a file once nobody uses it; another process may then open it."""
    with _guard:
        served = _served[file]
        if served.n_users > 1:
            _served[file] = served._replace(n_users=served.n_users - 1)
            return
        del _served[file]
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(str(file))


class _Overheard(logging.Filter):
    """Keeps the reason to itself which Milvus Lite writes to the log in place of raising it."""

    reason: object = "no reason is given"

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info is None:
            return True
        self.reason = record.exc_info[1]
        return False


def _start(file: Path) -> str:
    try:
        from milvus_lite.server_manager import server_manager_instance
    except ImportError:
        raise MissingExtraError("milvus-lite", "milvus") from None
    if not file.parent.is_dir():
        raise DatabaseError(
            f"there is no folder {str(file.parent)!r} for the file of Milvus Lite; make it first."
        )
    overheard = _Overheard()
    logger = logging.getLogger(LOG)
    logger.addFilter(overheard)
    try:
        uri = server_manager_instance.start_and_get_uri(str(file))
    finally:
        logger.removeFilter(overheard)
    if uri is not None:
        return str(uri)
    if "lock" in str(overheard.reason):
        raise UnreachableError(
            f"{str(file)!r} is open in another process, and a file of Milvus Lite is used by one "
            "at a time: close the other one, or run a Milvus server, which many share."
        )
    raise DatabaseError(
        f"{str(file)!r} cannot be opened by Milvus Lite ({overheard.reason}): see that it is a "
        "folder which Milvus Lite made, and that it may be read and written to."
    )
