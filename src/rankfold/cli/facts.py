"""What an index holds, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankfold.cli.tables import counted

if TYPE_CHECKING:
    from rankfold.neighbors import Learned, Round


def map_of(known: dict[str, Any]) -> str:
    """Name the map of an index.

    Examples
    --------
    >>> map_of({"layout": "graph"}), map_of({"layout": None})
    ('graph map', 'no map')
    """
    return f"{known['layout'] or 'no'} map"


def outcome_of(learned: Learned) -> str:
    """Say in one line what came of learning a graph."""
    if not learned.rounds:
        return "kept the plain graph: there are too few points to choose neighbours from"
    if not learned.n_rounds:
        return f"kept the plain graph: {'; '.join(map(_refusal, learned.rounds))}"
    rounds, reach = counted(learned.n_rounds, "round"), f"{learned.reach:.2f}"
    return (
        f"learned a graph of {learned.n_neighbors} neighbours in {rounds}; queries reach {reach} "
        "times as many points as on the graph it began from"
    )


def _refusal(made: Round) -> str:
    k = made.n_neighbors
    reached = f"with {k} neighbours queries would reach {made.reach:.2f} times as many points"
    if made.share == made.reach:  # as many neighbours as in the plain graph
        return reached
    return f"{reached}, {made.share:.2f} times those of a plain graph with {k}"


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
