"""How images become vectors: decided when an index is built, then remembered by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankfold.databases import Collection
    from rankfold.index import Index


def source_of(file: Path, size: Any, colour: bool | None, **_: Any) -> dict[str, Any]:
    """Return what an index of images must know to read another one."""
    from rankfold.inputs.images import SIZE

    if not file.is_dir():
        return {}
    return {"images": {"size": list(size or SIZE), "colour": bool(colour)}}


def images_of(index: Index | Collection, file: Path) -> dict[str, Any]:
    """Return how images become vectors of an index; nothing for files that are none."""
    from rankfold.check import InputError
    from rankfold.inputs.images import SUFFIXES

    if not file.is_dir() and file.suffix.lower() not in SUFFIXES:
        return {}
    known = index.info()["source"].get("images")
    if known is None:
        raise InputError(
            f"{str(file)!r} is an image or a folder, but the index was not built from images and "
            "cannot tell how they become vectors; give vectors."
        )
    return {"size": tuple(known["size"]), "colour": known["colour"]}
