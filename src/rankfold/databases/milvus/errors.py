"""What Milvus raises, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rankfold.check import DatabaseError, InputError, MovedError, UnreachableError

NOT_FOUND = (4, 100)
"""Codes for a collection that is not there, old and new."""

GONE = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "Fail connecting", "Retry timeout")
CLOSED = ("should create connection first", "closed channel", "Channel closed")
TOO_LARGE = ("RESOURCE_EXHAUSTED", "larger than max", "too large")
REFUSED = ("UNAUTHENTICATED", "auth check failure", "PermissionDenied", "permission deny")


class TooLargeError(DatabaseError):
    """A message is larger than Milvus allows."""


def moved(place: str) -> MovedError:
    """Return the error for a session whose state is no longer to be had."""
    return MovedError(
        f"{place} was changed several times or replaced while it was being read; ask again to read "
        "what is there now."
    )


def damaged(place: str, reason: str) -> DatabaseError:
    """Return the error for collections that contradict themselves."""
    return DatabaseError(
        f"{place} is damaged: {reason}; restore it from a copy, or drop the index and build it "
        "again."
    )


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Turn errors of Milvus into ones that name the place and say what to do."""
    import grpc
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except InputError:
        raise
    except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, ValueError) as error:
        raise _in_words(place, error) from error


def _in_words(place: str, error: Exception) -> DatabaseError:
    details = getattr(error, "details", None)  # of gRPC, whose text is a report of many lines
    said = str(getattr(error, "message", "") or (details() if callable(details) else "") or error)
    text = f"{getattr(error, 'code', '')} {error} {said}"
    said = said.split("\n")[0][:300]
    if getattr(error, "code", None) in NOT_FOUND:
        return moved(place)
    if any(sign in text for sign in CLOSED):
        return DatabaseError(f"{place} was closed here; open it again.")
    if any(sign in text for sign in GONE):
        return UnreachableError(
            f"{place} does not answer ({said}): see that Milvus runs there, that the address is "
            "right, and that nothing between here and there is in the way."
        )
    if any(sign in text for sign in TOO_LARGE):
        return TooLargeError(
            f"{place} refuses a message for its size ({said}): raise the limits of the server "
            "(grpc.serverMaxRecvSize, quotaAndLimits.limits), or ask for less at once."
        )
    if any(sign in text for sign in REFUSED):
        return DatabaseError(
            f"{place} refuses the user ({said}): give milvus://user:password@host:port of one who "
            "may read and write collections."
        )
    return DatabaseError(f"{place} cannot do what it was asked ({said}).")
