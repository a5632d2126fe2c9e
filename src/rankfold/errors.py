"""The errors of rankfold; the message of each says what is wrong and how to mend it."""

from __future__ import annotations

import re


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
    """An optional package is not installed; the message names the extra, and how to install it."""

    def __init__(self, package: str, extra: str) -> None:
        wanted = " ".join(f"'{one}'" for one in requirements_of(extra)) or package
        super().__init__(
            f"this needs the package {package!r}, which is not installed; the extra {extra!r} "
            f"brings it: pip install {wanted}"
        )


def requirements_of(extra: str) -> list[str]:
    """Return what an extra of rankfold requires, as pip takes it.

    Packages are named, not the extra, so that the command works wherever rankfold came from.

    Examples
    --------
    >>> requirements_of("images")
    ['pillow>=11.0']
    """
    from importlib.metadata import PackageNotFoundError, requires  # not for every command

    marker = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    try:
        known = requires("rankfold") or []
    except PackageNotFoundError:
        return []
    found: list[str] = []
    for name, _, condition in (one.partition(";") for one in known):
        inner = re.fullmatch(r"rankfold\[([\w,-]+)\]", name.strip())
        if marker.search(condition) is None:
            continue
        if inner is None:
            found.append(name.strip())
        else:
            found += [one for other in inner[1].split(",") for one in requirements_of(other)]
    return found
