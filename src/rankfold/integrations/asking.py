"""What an index answers to a text that was embedded: texts with what is known about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankfold.check import InputError
from rankfold.index import Index


@dataclass(frozen=True)
class Passage:
    """A result of an index as other packages take it.

    Parameters
    ----------
    id : str
    text : str
        What stands in the column of texts.
    facts : dict
        All other columns.
    score : float
    """

    id: str
    text: str
    facts: dict[str, Any]
    score: float


def check_text_column(index: Index, column: str) -> None:
    """Require a column of texts in the payload."""
    if index.columns.get(column) != "text":
        found = ", ".join(f"{name!r} ({kind})" for name, kind in index.columns.items())
        raise InputError(
            f"text is {column!r}, but must name a column of texts in the payload of the index, "
            f"which has {found or 'no columns'}.",
            "text",
        )


def passages(
    index: Index, vector: Any, text: str, top: int, options: Mapping[str, Any]
) -> list[Passage]:
    """Return the best of an index for a vector; ``options`` are those of `Index.query`."""
    results = index.query(vectors=vector, top=top, **options)
    return [
        Passage(
            str(row["id"]),
            row["payload"][text] or "",
            {name: value for name, value in row["payload"].items() if name != text},
            row["score"],
        )
        for row in results.rows()
    ]
