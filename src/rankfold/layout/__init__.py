"""Places of points in the plane: a map of an index."""

from rankfold.layout.map import (
    LAYOUTS,
    Layout,
    Map,
    check_layout,
    kind_without_map,
    lay_out,
    projected,
)

__all__ = ["LAYOUTS", "Layout", "Map", "check_layout", "kind_without_map", "lay_out", "projected"]
