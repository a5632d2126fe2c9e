"""The places of points that come and go."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankfold.check import InputError, check_choice
from rankfold.layout.arriving import among_neighbors
from rankfold.layout.projection import Projection
from rankfold.neighbors import Change, LivingEngine
from rankfold.neighbors.growing import Growing
from rankfold.types import FloatArray, IntArray

KINDS = ("graph", "pca", "plane")


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
        _check_plane("places", places, len(places))
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
        """Make it from its arrays, which are checked; None where there is no map."""
        if kind is None:
            return None
        check_choice(kind, "layout", KINDS)
        points, places = arrays["points"], arrays["places"]
        _check_plane("places", places, len(points))
        if "places_axes" not in arrays:
            return cls(kind, places)
        origin, axes = arrays["places_origin"], arrays["places_axes"]
        _check_plane("places_axes", axes, points.shape[1])
        if origin.shape != points.shape[1:] or not np.isfinite(origin).all():
            raise InputError("array 'places_origin' is no point")
        return cls(kind, places, Projection(origin, axes))


def _check_plane(name: str, array: FloatArray, length: int) -> None:
    if array.dtype.kind != "f" or array.shape != (length, 2) or not np.isfinite(array).all():
        raise InputError(f"array {name!r} does not hold {length} pairs of finite numbers")
