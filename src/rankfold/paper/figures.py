"""The figures of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfold.drawing import DPI, GREY, INK, LINE, RIGHT, WRONG, new_page, write
from rankfold.metrics import r_precision
from rankfold.paper.tables import (
    Datasets,
    Measurements,
    Picture,
    Pieces,
    PrintedRow,
    Section,
    Table,
    measure,
)
from rankfold.rankers import RAN, Distance, Ranker
from rankfold.types import Dataset, FloatArray, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MARGIN, TOP, BOTTOM = 72, 232, 132

CROSS = "#e11d48"

COLORS, PALEST, DARKEST = "viridis", 0.93, 0.02

SMALLEST, LARGEST = 9.0, 130.0

WIDTH, PATTERN_MARGIN, GAP, PATTERN_TOP, PATTERN_BOTTOM = 1760, 72, 72, 262, 132

PATTERN_NEIGHBORS = 10

PATTERNS: dict[str, tuple[str, str, float, Callable[[Dataset], int]]] = {
    # A query at an end, or at a side, has most to follow.
    "moons": ("Fig. 1: two moons", "moon", 1000.0, lambda data: int(np.argmin(data.X[:, 0]))),
    "rings": ("Fig. 2: three rings", "ring", 100.0, lambda data: 0),
}
"""Title, what a class is called, smoothness, and the row of the query."""

NEIGHBORS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100)

BEST_PRINTED = 15

QUERY, N_ALTERNATIONS = 0, 8

ROUNDING = 1e-12
"""Relative, of the objective."""

SETTINGS = RAN(10, 1.0, gamma="shared", guard=False, max_iter=N_ALTERNATIONS, fusion="none")


@dataclass(frozen=True)
class Curve:
    """A line with its name and look."""

    name: str
    x: Sequence[float]
    y: Sequence[float] | FloatArray
    color: str
    dashed: bool = False
    marks: bool = True
    line: bool = True


@dataclass(frozen=True)
class CurvePanel:
    """Curves over one axis, and levels that do not depend on it.

    Parameters
    ----------
    title : str
    curves : tuple of Curve
    levels : tuple of (name, value)
    remarks : tuple of (x, y, text)
        At most two; the left one stands to the left of its point.
    ticks : tuple of float
    logarithmic : bool
        Whether x is.
    least_span : float
        Least difference of the ends of the vertical axis.
    falling : bool
        Whether the curves fall towards zero, and y is logarithmic.
    """

    title: str
    curves: tuple[Curve, ...]
    levels: tuple[tuple[str, float], ...] = ()
    remarks: tuple[tuple[float, float, str], ...] = ()
    ticks: tuple[float, ...] = ()
    logarithmic: bool = False
    least_span: float = 0.0
    falling: bool = False


def draw(
    title: str,
    subtitle: str,
    panels: Sequence[CurvePanel],
    axis: str,
    *,
    names: int = 200,
    height: int = 640,
) -> Figure:
    """Draw panels side by side, with ``names`` pixels at the right of each for its labels."""
    width = 1760
    total = TOP + height + BOTTOM
    figure, page = new_page(width, total, title, subtitle, MARGIN)
    each = (width - 2 * MARGIN) / len(panels)
    for place, panel in enumerate(panels):
        left = MARGIN + place * each + 58
        inner = each - 58 - names
        axes = figure.add_axes((left / width, BOTTOM / total, inner / width, height / total))
        if panel.title:
            write(page, left, TOP - 34, panel.title, 28, weight="bold")
        _draw_panel(axes, panel, inner, height)
        write(page, left + inner / 2, total - 44, axis, 23, GREY, ha="center")
    return figure


def _draw_panel(axes: Axes, panel: CurvePanel, width: float, height: float) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(colors=GREY, length=0, labelsize=21 * 72 / DPI, pad=7)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
    if panel.falling:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    for curve in panel.curves:
        _draw_curve(axes, curve)
    if panel.ticks:
        axes.set_xticks(panel.ticks, [f"{tick:g}" for tick in panel.ticks])
    for _, level in panel.levels:
        axes.axhline(level, color=GREY, linewidth=1.1, dashes=(1, 3), dash_capstyle="round")
    if not panel.falling:
        _widen(axes, panel.least_span)
    for place, (x, y, text) in enumerate(sorted(panel.remarks)):
        axes.plot(x, y, "o", color=INK, markersize=9, markerfacecolor="white", markeredgewidth=2)
        axes.annotate(
            text,
            (x, y),
            (6, 13) if place else (-2, 13),
            textcoords="offset points",
            ha="left" if place else "right",
            color=INK,
            fontsize=22 * 72 / DPI,
            family="DejaVu Sans",
        )
    ends = [(curve.name, curve.y[-1], curve.color) for curve in panel.curves if curve.name]
    ends += [(name, level, GREY) for name, level in panel.levels]
    _name_lines(axes, ends, width, height)


def _widen(axes: Axes, least_span: float) -> None:
    low, high = axes.get_ylim()
    # Differences that do not matter must not look as if they did.
    slack = max(0.05 * (high - low), (least_span - (high - low)) / 2)
    axes.set_ylim(low - slack, high + slack)


def _draw_curve(axes: Axes, curve: Curve) -> None:
    style: dict[str, Any] = {"dashes": (4, 2.4)} if curve.dashed else {}
    if not curve.line:
        style = {"linestyle": "none"}
    if curve.marks and not curve.dashed:
        style |= {
            "marker": "o",
            "markersize": 5,
            "markeredgecolor": "white",
            "markeredgewidth": 0.8,
        }
    axes.plot(curve.x, curve.y, color=curve.color, linewidth=2.4, clip_on=False, **style)


def _name_lines(
    axes: Axes, ends: list[tuple[str, float, str]], width: float, height: float
) -> None:
    """Write every name beside the end of its line, moved apart where they would meet."""
    if not ends:
        return
    ends = sorted(ends, key=lambda end: end[1])
    to_axes = axes.transData + axes.transAxes.inverted()
    wanted = [float(to_axes.transform((axes.get_xlim()[0], value))[1]) for _, value, _ in ends]
    places = spread(wanted, 31 / height)
    for (name, _, color), at, place in zip(ends, wanted, places, strict=True):
        axes.plot(
            [1 + 8 / width, 1 + 24 / width],
            [at, place],
            color=color,
            linewidth=1,
            transform=axes.transAxes,
            clip_on=False,
        )
        where = {"transform": axes.transAxes, "va": "center"}
        weight = "normal" if color == GREY else "bold"
        write(axes, 1 + 31 / width, place, name, 22, color, weight=weight, **where)


def spread(wanted: Any, gap: float) -> Any:
    """Return ascending places at least ``gap`` apart, near the wanted ones.

    Places that would meet form a block around the mean of what its members want.

    Examples
    --------
    >>> spread([0.0, 1.0, 1.0, 5.0], 2.0).tolist()  # doctest: +ELLIPSIS
    [-1.333..., 0.666..., 2.666..., 5.0]
    """
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([float(value)])
        while len(blocks) > 1 and _first(blocks[-1], gap) < _last(blocks[-2], gap) + gap:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return np.concatenate([_first(block, gap) + gap * np.arange(len(block)) for block in blocks])


def _first(block: list[float], gap: float) -> float:
    return sum(block) / len(block) - gap * (len(block) - 1) / 2


def _last(block: list[float], gap: float) -> float:
    return sum(block) / len(block) + gap * (len(block) - 1) / 2


def pattern_work(datasets: Datasets) -> Pieces:
    """Return the scores of all points for every pattern there is."""
    return {
        ("figure", name): partial(scores, datasets[name], PATTERNS[name][2])
        for name in PATTERNS
        if name in datasets
    }


def scores(data: Dataset, smoothness: float) -> dict[str, FloatArray]:
    """Return the scores of all points by plain distance, from 1 to 0, and by RAN."""
    query = PATTERNS[data.name][3](data)
    distances = np.linalg.norm(data.X - data.X[query], axis=1)
    ranking = (
        RAN(PATTERN_NEIGHBORS, smoothness, fusion="none")
        .fit(data.X)
        .rank(query, include_query=True)
    )
    shape = np.empty(len(data.X))
    shape[ranking.indices] = ranking.scores
    return {"plain": 1 - distances / distances.max(), "shape": shape}


def pattern_section(datasets: Datasets, results: Measurements) -> Section | None:
    """Return the pictures of the patterns; None without any."""
    pictures = tuple(
        Picture(
            name, _caption(datasets[name]), draw_pattern(datasets[name], results["figure", name])
        )
        for name in PATTERNS
        if ("figure", name) in results
    )
    title = "Fig. 1 and 2: along the shape, or merely near"
    return Section(title, pictures=pictures) if pictures else None


def draw_pattern(data: Dataset, found: dict[str, FloatArray]) -> Figure:
    """Draw two panels: size and colour of a point are its score, the query is a red cross."""
    title, kind, smoothness, choose = PATTERNS[data.name]
    question = f"Which points belong to the {kind} of the query, the red cross?"
    query = choose(data)
    low, high = data.X.min(axis=0) - 0.18, data.X.max(axis=0) + 0.18
    side = (WIDTH - 2 * PATTERN_MARGIN - GAP) // 2
    height = int(side * (high[1] - low[1]) / (high[0] - low[0]))
    total = PATTERN_TOP + height + PATTERN_BOTTOM
    figure, page = new_page(WIDTH, total, title, question, PATTERN_MARGIN)
    rankers = {
        "plain": ("Plain distance", Distance()),
        "shape": (
            f"RAN, k = {PATTERN_NEIGHBORS}, λ = {smoothness:g}",
            RAN(PATTERN_NEIGHBORS, smoothness, fusion="none"),
        ),
    }
    for place, (key, (name, ranker)) in enumerate(rankers.items()):
        left = PATTERN_MARGIN + place * (side + GAP)
        write(page, left, 212, name, 28, weight="bold")
        write(page, left + side, 212, _success(ranker, data, query), 25, GREY, ha="right")
        axes = figure.add_axes((left / WIDTH, PATTERN_BOTTOM / total, side / WIDTH, height / total))
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set_axis_off()
        _scatter(axes, data.X, found[key], query)
    _draw_scale(page, PATTERN_TOP + height + 76)
    return figure


def _success(ranker: Ranker, data: Dataset, query: int) -> str:
    indices = ranker.fit(data.X).rank(query).indices
    same = data.labels[indices] == data.labels[query]
    n_same = int(same.sum())
    return f"{r_precision(same, n_same):.0%} of the first {n_same} are right"


def _scatter(axes: Axes, X: FloatArray, values: FloatArray, query: int) -> None:
    others = np.argsort(values, kind="stable")
    others = others[others != query]
    colors, sizes = _look(values[others])
    x, y = X[others].T
    axes.scatter(x, y, s=sizes, c=colors, linewidths=0.5, edgecolors="white", zorder=2)
    for color, width in (("white", 7.5), (CROSS, 4.0)):
        axes.plot(*X[query], "x", color=color, markersize=15, markeredgewidth=width, zorder=3)


def _look(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return colour and size: dark and large for 1, pale and small for 0."""
    from matplotlib import colormaps

    colors: FloatArray = colormaps[COLORS](PALEST + (DARKEST - PALEST) * values)
    return colors, SMALLEST + (LARGEST - SMALLEST) * values


def _draw_scale(page: Axes, y: float) -> None:
    """Show what sizes and colours mean, in a row of points."""
    write(page, PATTERN_MARGIN, y, "score 0", 22, GREY, va="center")
    values = np.linspace(0, 1, 9)
    colors, sizes = _look(values)
    places = PATTERN_MARGIN + 124 + 34 * np.arange(len(values))
    page.scatter(places, np.full(len(values), y), s=sizes, c=colors, edgecolors="white")
    write(page, places[-1] + 34, y, "1", 22, GREY, va="center")
    page.plot(places[-1] + 116, y, "x", color=CROSS, markersize=11, markeredgewidth=3)
    write(page, places[-1] + 142, y, "the query", 22, INK, va="center")


def _caption(data: Dataset) -> str:
    title, kind, *_ = PATTERNS[data.name]
    return (
        f"{title}, {len(data.X)} points. Size and colour of a point show its score. By plain "
        f"distance, the score is one minus the distance in proportion to the largest; RAN's falls "
        f"along the {kind} and is 0 where the graph does not lead."
    )


def neighbors_work(tables: Sequence[Table], datasets: Datasets) -> Pieces:
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


def neighbors_section(tables: Sequence[Table], results: Measurements) -> Section | None:
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
    panel = CurvePanel(
        "",
        (Curve(f"RAN, λ = {smoothness:g}", NEIGHBORS, values, RIGHT),),
        levels,
        remarks=remarks[1:] if best == BEST_PRINTED else remarks,
        ticks=(2, 3, 5, 8, 10, 15, 20, 30, 50, 100),
        logarithmic=True,
    )
    subtitle = "Precision of the first 50 results on USPS in per cent, the query counted."
    figure = draw(
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


def _usps(tables: Sequence[Table]) -> tuple[Table, PrintedRow] | None:
    """Return the table of USPS and its row of RAN."""
    for table in tables:
        for row in table.rows:
            if table.dataset == "usps" and row.settings["class"] == "RAN":
                return table, row
    return None


def objective_work(datasets: Datasets) -> Pieces:
    """Return the course of one query on USPS, if it is there."""
    return {("objective",): partial(trace, datasets["usps"])} if "usps" in datasets else {}


def trace(data: Dataset) -> Trace:
    """Return how graph and scores were learned for one query."""
    found = RAN(**SETTINGS.get_params()).fit(data.X).rank(QUERY).trace
    if found is None:
        raise RuntimeError("RAN did not say how it learned")
    return found


def objective_section(results: Measurements) -> Section | None:
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
    panel = CurvePanel(
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
    figure = draw(f"The objective {kept}", subtitle, (panel,), "alternation", names=250, height=520)
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
