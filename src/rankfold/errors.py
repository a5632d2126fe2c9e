"""The errors of rankfold; the message of each says what is wrong and how to mend it."""

from __future__ import annotations


class RankfoldError(Exception):
    """The root of all errors that rankfold raises on purpose."""


class InputError(RankfoldError, ValueError):
    """Something handed to rankfold cannot be used; the message says what and why.

    ``argument`` is what it was handed in as, where that is known, such as ``where``.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


class StorageError(RankfoldError, OSError):
    """What is stored on disk is missing, damaged, foreign or in use; the message says which."""


class DatabaseError(StorageError):
    """A database refuses, lacks something or does not answer; the message says which."""


class UnreachableError(DatabaseError, ConnectionError):
    """A database does not answer, or no longer; the same may work later."""


class EmbedderError(RankfoldError):
    """A model that makes vectors of texts has failed; the message says how."""


class MissingExtraError(RankfoldError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'rankfold[{extra}]'"
        )
