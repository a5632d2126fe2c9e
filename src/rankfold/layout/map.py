"""The places of points that come and go."""

from __future__ import annotations

from typing import Any

from rankfold.layout.arriving import among_neighbors
from rankfold.layout.projection import Projection
from rankfold.neighbors import Change, LivingEngine
from rankfold.neighbors.growing import Growing
from rankfold.types import FloatArray, IntArray


class Map:
    """A place in the plane for every slot of an engine.

    A point keeps its place for as long as it stays. A new one is put where its vector lies if the
    map is a projection, else among its neighbours.

    Parameters
    ----------
    kind : {"graph", "pca", "plane"}
    places : array of float32, shape (n_points, 2)
    projection : Projection, optional
        That of "pca" and "plane".
    """

    def __init__(self, kind: str, places: FloatArray, projection: Projection | None = None) -> None:
        self.kind, self._places, self._projection = kind, Growing(places), projection

    @property
    def places(self) -> FloatArray:
        """All places, those of removed points among them; later changes may show in it."""
        return self._places.rows

    def places_of_new(self, engine: LivingEngine, change: Change) -> FloatArray:
        """Return places for the new points of a change that was not made yet."""
        if self._projection is not None:
            return self._projection.places(engine.new_vectors(change))
        return among_neighbors(self.places, engine, change)

    def append(self, places: FloatArray) -> None:
        """Add the places of new points."""
        self._places.append(places)

    def arrays(self, kept: IntArray) -> dict[str, Any]:
        """Return arrays of some slots alone, from which `restore` makes it again."""
        arrays = {"places": self.places[kept]}
        if self._projection is not None:
            arrays["places_origin"] = self._projection.origin
            arrays["places_axes"] = self._projection.axes
        return arrays

    @classmethod
    def restore(cls, arrays: dict[str, Any], kind: str | None) -> Map | None:
        """Make it from its arrays; None where there are no places, as in older indexes."""
        if kind is None or "places" not in arrays:
            return None
        if "places_axes" not in arrays:
            return cls(kind, arrays["places"])
        projection = Projection(arrays["places_origin"], arrays["places_axes"])
        return cls(kind, arrays["places"], projection)
