"""Fig. 3: precision over the number of neighbours, on USPS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rankfold.drawing import RIGHT
from rankfold.paper import curves
from rankfold.paper.curves import Curve, Panel
from rankfold.paper.measuring import Datasets, Pieces, Results, measure
from rankfold.paper.section import Picture, Section
from rankfold.paper.tables import Row, Table

NEIGHBORS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100)
BEST_PRINTED = 15


def work(tables: Sequence[Table], datasets: Datasets) -> Pieces:
    """Return a measurement for every number of neighbours."""
    found = _usps(tables)
    if found is None:
        return {}
    table, row = found
    return {
        ("neighbors", str(k)): partial(
            measure,
            row.ranker(**{**row.as_printed, "n_neighbors": k}),
            datasets["usps"],
            table.cutoff,
        )
        for k in NEIGHBORS
    }


def section(tables: Sequence[Table], results: Results) -> Section | None:
    """Return the figure; None where USPS is left out."""
    found = _usps(tables)
    if found is None:
        return None
    table, row = found
    values = [results["neighbors", str(k)].precision for k in NEIGHBORS]
    best = max(NEIGHBORS, key=lambda k: float(results["neighbors", str(k)].precision))
    at_best, at_printed = (results["neighbors", str(k)].precision for k in (best, BEST_PRINTED))
    rivals = tuple(
        (f"{other.method} {results[table.name, other.method].precision:.2f}", other.method)
        for other in table.rows
        if other.method != row.method
    )
    levels = tuple((label, results[table.name, method].precision) for label, method in rivals)
    smoothness = row.ranker(**row.as_printed).get_params()["smoothness"]
    remarks = (
        (best, at_best, f"best at k = {best}: {at_best:.2f}"),
        (BEST_PRINTED, at_printed, f"the paper's best, k = {BEST_PRINTED}: {at_printed:.2f}"),
    )
    panel = Panel(
        "",
        (Curve(f"RAN, λ = {smoothness:g}", NEIGHBORS, values, RIGHT),),
        levels,
        remarks=remarks[1:] if best == BEST_PRINTED else remarks,
        ticks=(2, 3, 5, 8, 10, 15, 20, 30, 50, 100),
        logarithmic=True,
    )
    subtitle = "Precision of the first 50 results on USPS in per cent, the query counted."
    figure = curves.draw(
        "Fig. 3: how many neighbours?", subtitle, (panel,), "neighbours k", names=330, height=760
    )
    return Section(
        "Fig. 3: the number of neighbours",
        (
            f"With lambda = {smoothness:g}, as stated, our curve is highest at k = {best}, of "
            f"those tried, with {at_best:.2f}; the paper finds its best at k = {BEST_PRINTED}, "
            f"where ours is {at_printed:.2f}. The lines are the other methods as in {table.name}.",
        ),
        (Picture("neighbors", subtitle, figure),),
    )


def _usps(tables: Sequence[Table]) -> tuple[Table, Row] | None:
    """Return the table of USPS and its row of RAN."""
    for table in tables:
        for row in table.rows:
            if table.dataset == "usps" and row.settings["class"] == "RAN":
                return table, row
    return None
