"""Places of points in the plane: a map of an index."""

from rankfold.layout.making import (
    LAYOUTS,
    Layout,
    check_layout,
    kind_without_map,
    lay_out,
    projected,
)
from rankfold.layout.map import Map

__all__ = ["LAYOUTS", "Layout", "Map", "check_layout", "kind_without_map", "lay_out", "projected"]
