"""What an index holds, in words."""

from __future__ import annotations

from typing import Any

from rankfold.cli.tables import counted


def map_of(known: dict[str, Any]) -> str:
    """Name the map of an index.

    Examples
    --------
    >>> map_of({"layout": "graph"}), map_of({"layout": None})
    ('graph map', 'no map')
    """
    return f"{known['layout'] or 'no'} map"


def summary(known: dict[str, Any]) -> str:
    """Say in one line what an index holds."""
    columns = known["columns"]
    named = f" ({', '.join(columns)})" if 0 < len(columns) <= 5 else ""
    return ", ".join(
        [
            counted(known["points"], "point"),
            counted(known["features"], "feature"),
            counted(len(columns), "column") + named,
            known["metric"],
            f"{known['n_neighbors']} neighbours",
            map_of(known),
        ]
    )
