"""The path of an explanation, drawn over the points in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankfold.drawing import DPI, INK, RIGHT, WRONG
from rankfold.explaining.explanation import Explanation, Names
from rankfold.explaining.panels import Panel, thickness
from rankfold.explaining.text import name_of
from rankfold.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = "#c3cad5"


def draw_map(
    panel: Panel,
    explanation: Explanation,
    names: Names | None,
    places: FloatArray,
    unseen: FloatArray | None,
) -> None:
    """Draw all points, the path, and the straight lines that plain distance goes along."""
    distance = f"dashed: plain distance, {explanation.distance:.3g}"
    if len(explanation.examples) > 1:
        distance += " on the average"
    panel.heading("The points" if explanation.path is None else "The path", distance)
    axes = panel.axes(0, 64, panel.width, panel.height - 84)
    axes.scatter(places[:, 0], places[:, 1], s=16, color=POINTS, linewidths=0, zorder=1)
    ids = [example.point for example in explanation.examples if example.point is not None]
    vectors = np.empty((0, 2)) if unseen is None else unseen
    examples, target = np.concatenate([places[ids], vectors]), places[explanation.point]
    for example in examples:
        line = np.array([example, target])
        axes.plot(*line.T, color=WRONG, linewidth=1.1, linestyle=(0, (4, 4)), zorder=2)
    if explanation.path is not None:
        lines = _lines(explanation, places, vectors, len(ids))
        steps = explanation.path.steps
        widths = thickness(np.array([step.weight for step in steps]))[len(steps) - len(lines) :]
        for line, width in zip(lines, widths, strict=True):
            axes.plot(*line.T, color=RIGHT, linewidth=width, solid_capstyle="round", zorder=3)
        on_path = places[[step.end for step in steps]]
        axes.scatter(
            on_path[:, 0],
            on_path[:, 1],
            s=34,
            color=RIGHT,
            edgecolors="white",
            linewidths=0.9,
            zorder=4,
        )
    axes.scatter(
        examples[:, 0],
        examples[:, 1],
        s=130,
        color=INK,
        edgecolors="white",
        linewidths=1.5,
        zorder=5,
    )
    axes.scatter(
        target[0], target[1], s=150, color="white", edgecolors=WRONG, linewidths=2.8, zorder=6
    )
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.margins(0.08)
    called = [(target, name_of(names, explanation.point, 24), WRONG)]
    called += [(example, "query", INK) for example in examples[: len(examples) == 1]]
    _label(axes, called, places)


def _lines(
    explanation: Explanation, places: FloatArray, vectors: FloatArray, n_ids: int
) -> list[FloatArray]:
    """Return the ends of every step; the first is left out where nobody knows its start."""
    path = explanation.path
    lines = []
    for step in path.steps if path is not None else ():
        if step.start is not None:
            lines.append(places[[step.start, step.end]])
        elif path is not None and path.example - n_ids < len(vectors):
            lines.append(np.array([vectors[path.example - n_ids], places[step.end]]))
    return lines


def _label(axes: Axes, called: list[tuple[FloatArray, str, str]], places: FloatArray) -> None:
    """Write names on the side where fewer points are, with a white rim to be read over them."""
    from matplotlib.patheffects import withStroke

    spread = places.max(axis=0) - places.min(axis=0)
    for place, text, color in called:
        away = (places - place) / np.where(spread > 0, spread, 1.0)
        near = away[np.abs(away).max(axis=1) < 0.15]
        side = -1 if np.count_nonzero(near[:, 1] > 0) >= np.count_nonzero(near[:, 1] < 0) else 1
        axes.annotate(
            text,
            (place[0], place[1]),
            (0, 13 * side),
            textcoords="offset points",
            ha="center",
            va="top" if side < 0 else "bottom",
            color=color,
            fontsize=23 * 72 / DPI,
            fontweight="bold",
            family="DejaVu Sans",
            path_effects=[withStroke(linewidth=4, foreground="white")],
            zorder=7,
        )
