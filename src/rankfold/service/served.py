"""The indexes of a service, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from rankfold.databases import Collection
from rankfold.index import Index
from rankfold.neighbors.choice import EXACT_LIMIT
from rankfold.rankers import RANKERS
from rankfold.service.images import image_of
from rankfold.service.problems import Problem
from rankfold.service.requests import MOST_NEIGHBORS
from rankfold.service.responses import Limits

TOLD = ("points", "features", "metric", "n_neighbors", "list_width", "columns", "layout", "learned")
"""What clients may know of `Index.info`: nothing of the machine."""


@dataclass(frozen=True, eq=False)
class Served:
    """An index that is served."""

    name: str
    index: Index | Collection
    example: bool
    writable: bool

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it."""
        known = self.index.info()
        pixels = image_of(known)
        return {
            "name": self.name,
            **{key: known.get(key) for key in TOLD},
            "image": None if pixels is None else asdict(pixels),
            "query": self._first_query(known),
            "example": self.example,
            "writable": self.writable,
            "version": version_of(known),
            "methods": self.methods(known),
            "limits": self.limits(known).model_dump(),
        }

    def methods(self, known: Mapping[str, Any]) -> list[str]:
        """Return the methods that may be asked for; a collection says which it has."""
        return list(known.get("methods", RANKERS))

    def limits(self, known: Mapping[str, Any]) -> Limits:
        """Return the most that may be asked for."""
        if "methods" in known:  # the graph of a collection is as it is
            return Limits(n_neighbors=int(known["n_neighbors"]), max_iter=1)
        return Limits(n_neighbors=most_neighbors(known))

    def _first_query(self, known: Mapping[str, Any]) -> str | int | None:
        """Return the point that whoever built the index wants to be asked with at first."""
        point = known["source"].get("query")
        return point if isinstance(point, str | int) and point in self.index else None


def version_of(known: Mapping[str, Any]) -> str:
    """Return what changes whenever the points of an index do."""
    return f"{known['generation']}.{known['pending_changes']}"


def most_neighbors(known: Mapping[str, Any]) -> int:
    """Return how many neighbours a query may ask for without a search for all points."""
    if known["points"] <= EXACT_LIMIT:
        return MOST_NEIGHBORS
    return max(int(known["n_neighbors"]), int(known["list_width"]) // 2 - 1)


async def named(request: Request, name: Annotated[str, Path(description="Of an index.")]) -> Served:
    """Return the index that a request is about."""
    shelf: dict[str, Served] = request.app.state.served
    if name not in shelf:
        raise Problem(404, f"there is no index of this name; there are {', '.join(shelf)}.")
    return shelf[name]


Chosen = Annotated[Served, Depends(named)]
