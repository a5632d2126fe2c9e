"""The objective of Algorithm 1, half-step by half-step."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from rankfold.drawing import GREY, RIGHT, WRONG
from rankfold.paper import curves
from rankfold.paper.curves import Curve, Panel
from rankfold.paper.measuring import Datasets, Pieces, Results
from rankfold.paper.section import Picture, Section
from rankfold.rankers import RAN
from rankfold.types import Dataset, Trace

QUERY, N_ALTERNATIONS = 0, 8
ROUNDING = 1e-12
"""Relative, of the objective."""
SETTINGS = RAN(10, 1.0, gamma="shared", guard=False, max_iter=N_ALTERNATIONS, fusion="none")


def work(datasets: Datasets) -> Pieces:
    """Return the course of one query on USPS, if it is there."""
    return {("objective",): partial(trace, datasets["usps"])} if "usps" in datasets else {}


def trace(data: Dataset) -> Trace:
    """Return how graph and scores were learned for one query."""
    found = RAN(**SETTINGS.get_params()).fit(data.X).rank(ids=QUERY).trace
    if found is None:
        raise RuntimeError("RAN did not say how it learned")
    return found


def section(results: Results) -> Section | None:
    """Return the objective after every half-step; None where USPS is left out."""
    if ("objective",) not in results:
        return None
    values = results["objective",].objective
    halves = [step / 2 + 0.5 for step in range(len(values))]
    above = [value - values[-1] for value in values]
    rises = sum(after - before > ROUNDING * values[0] for before, after in pairwise(values))
    # What is left at the end is rounding, which has no logarithm.
    n_shown = sum(value > ROUNDING * values[0] for value in above)
    halves, above = halves[:n_shown], above[:n_shown]
    panel = Panel(
        "",
        (
            Curve("", halves, above, GREY, marks=False),
            Curve("after the graph", halves[::2], above[::2], WRONG, line=False),
            Curve("after the scores", halves[1::2], above[1::2], RIGHT, line=False),
        ),
        ticks=tuple(range(1, N_ALTERNATIONS + 1)),
        falling=True,
    )
    kept = "never rises" if not rises else f"rises {rises} times"
    subtitle = (
        f"Eq. (5) above its last value, after every half-step, for query {QUERY} of USPS: "
        f"k = {SETTINGS.n_neighbors}, λ = {SETTINGS.smoothness:g}, one gamma for all points."
    )
    figure = curves.draw(
        f"The objective {kept}", subtitle, (panel,), "alternation", names=250, height=520
    )
    text = (
        f"With one gamma for all points both half-steps minimise the same objective, Eq. (5). For "
        f"query {QUERY} of USPS, in the natural unit, it {kept} over {len(values)} half-steps: "
        f"{values[0]:.4f} after the first graph, {values[1]:.4f} after the first scores, "
        f"{values[-1]:.4f} at the end. The first graph is the closed form, with a gamma for every "
        "point; most of the fall is the step from it to one gamma."
    )
    return Section(
        "Beyond the paper: the objective", (text,), (Picture("objective", subtitle, figure),)
    )
