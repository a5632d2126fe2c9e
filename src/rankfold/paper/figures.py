"""Fig. 1 and 2: what lies along the shape, beside what is merely near."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rankfold.drawing import GREY, INK, new_page, write
from rankfold.metrics import r_precision
from rankfold.paper.measuring import Datasets, Pieces, Results
from rankfold.paper.section import Picture, Section
from rankfold.rankers import RAN, Euclidean, Ranker
from rankfold.types import Dataset, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CROSS = "#e11d48"
COLORS, PALEST, DARKEST = "viridis", 0.93, 0.02
SMALLEST, LARGEST = 9.0, 130.0
WIDTH, MARGIN, GAP, TOP, BOTTOM = 1760, 72, 72, 262, 132

NEIGHBORS = 10
PATTERNS: dict[str, tuple[str, str, float, Callable[[Dataset], int]]] = {
    # A query at an end, or at a side, has most to follow.
    "moons": ("Fig. 1: two moons", "moon", 1000.0, lambda data: int(np.argmin(data.X[:, 0]))),
    "rings": ("Fig. 2: three rings", "ring", 100.0, lambda data: 0),
}
"""Title, what a class is called, smoothness, and the row of the query."""


def work(datasets: Datasets) -> Pieces:
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
        RAN(NEIGHBORS, smoothness, fusion="none").fit(data.X).rank(ids=query, include_query=True)
    )
    shape = np.empty(len(data.X))
    shape[ranking.ids] = ranking.scores
    return {"plain": 1 - distances / distances.max(), "shape": shape}


def section(datasets: Datasets, results: Results) -> Section | None:
    """Return the pictures of the patterns; None without any."""
    pictures = tuple(
        Picture(name, _caption(datasets[name]), draw(datasets[name], results["figure", name]))
        for name in PATTERNS
        if ("figure", name) in results
    )
    title = "Fig. 1 and 2: along the shape, or merely near"
    return Section(title, pictures=pictures) if pictures else None


def draw(data: Dataset, found: dict[str, FloatArray]) -> Figure:
    """Draw two panels: size and colour of a point are its score, the query is a red cross."""
    title, kind, smoothness, choose = PATTERNS[data.name]
    question = f"Which points belong to the {kind} of the query, the red cross?"
    query = choose(data)
    low, high = data.X.min(axis=0) - 0.18, data.X.max(axis=0) + 0.18
    side = (WIDTH - 2 * MARGIN - GAP) // 2
    height = int(side * (high[1] - low[1]) / (high[0] - low[0]))
    total = TOP + height + BOTTOM
    figure, page = new_page(WIDTH, total, title, question, MARGIN)
    rankers = {
        "plain": ("Plain distance", Euclidean()),
        "shape": (
            f"RAN, k = {NEIGHBORS}, λ = {smoothness:g}",
            RAN(NEIGHBORS, smoothness, fusion="none"),
        ),
    }
    for place, (key, (name, ranker)) in enumerate(rankers.items()):
        left = MARGIN + place * (side + GAP)
        write(page, left, 212, name, 28, weight="bold")
        write(page, left + side, 212, _success(ranker, data, query), 25, GREY, ha="right")
        axes = figure.add_axes((left / WIDTH, BOTTOM / total, side / WIDTH, height / total))
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes.set_axis_off()
        _scatter(axes, data.X, found[key], query)
    _draw_scale(page, TOP + height + 76)
    return figure


def _success(ranker: Ranker, data: Dataset, query: int) -> str:
    ids = ranker.fit(data.X).rank(ids=query).ids
    same = data.labels[ids] == data.labels[query]
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
    write(page, MARGIN, y, "score 0", 22, GREY, va="center")
    values = np.linspace(0, 1, 9)
    colors, sizes = _look(values)
    places = MARGIN + 124 + 34 * np.arange(len(values))
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
