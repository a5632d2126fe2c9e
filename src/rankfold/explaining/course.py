"""The path of an explanation as a chain of points whose scores fall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankfold.drawing import GREY, INK, LINE, RIGHT, WRONG, write
from rankfold.explaining.explanation import Explanation, Names
from rankfold.explaining.panels import Panel, thickness
from rankfold.explaining.text import WITHOUT_PATH, name_of, share_text
from rankfold.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW_STEPS = 9
"""Up to so many steps of a path have room for weights and names."""

LARGE_FALL = 30.0
"""Scores that fall by more than this factor are drawn on a logarithmic scale."""


def draw_course(panel: Panel, explanation: Explanation, names: Names | None) -> None:
    """Draw the path as a chain of points whose scores fall; thick where edges are strong."""
    path = explanation.path
    if path is None:
        gave_up = f"No path was found within {explanation.n_visited} points."
        text = WITHOUT_PATH.get(explanation.path_state, gave_up)
        panel.heading("Scores along the path", text.replace(": the", ":\nthe"))
        return
    count = f"{len(path.steps)} steps" if len(path.steps) > 1 else "1 step"
    remark = f"{count}; it alone brings {share_text(path.share)}, all paths add up"
    if path.share is None:
        remark = f"{count}; an illustration, the score is no sum over paths"
    panel.heading("Scores along the path", remark)
    few = len(path.steps) <= FEW_STEPS
    axes = panel.axes(78, 66, panel.width - 86, panel.height - 66 - 88)
    start = [] if path.start_score is None else [path.start_score]
    scores = np.array([*start, *(step.score for step in path.steps)])
    x = np.arange(float(len(scores))) + (1 - len(start))
    weights = np.array([step.weight for step in path.steps])[1 - len(start) :]
    for place, width in enumerate(thickness(weights)):
        ends = slice(place, place + 2)
        axes.plot(x[ends], scores[ends], color=RIGHT, linewidth=width, solid_capstyle="round")
    axes.scatter(x, scores, s=42, color=RIGHT, edgecolors="white", linewidths=1, zorder=3)
    if start:
        axes.scatter(x[0], scores[0], s=110, color=INK, edgecolors="white", zorder=4)
    axes.scatter(
        x[-1], scores[-1], s=110, color="white", edgecolors=WRONG, linewidths=2.6, zorder=4
    )
    _scale(axes, scores)
    beside = 0.5 if few else 0.03 * len(x)  # half a step, so that names have room
    axes.set_xlim(x[0] - beside, x[-1] + beside)
    axes.grid(axis="y", color=LINE, linewidth=1)
    axes.set_axisbelow(True)
    axes.set_xticks([])
    _name_places(panel, axes, explanation, names, x, few)


def _scale(axes: Axes, scores: FloatArray) -> None:
    least, most = float(scores.min()), float(scores.max())
    if least > 0 and most > LARGE_FALL * least:
        room = (most / least) ** 0.06
        axes.set_yscale("log")
        axes.set_ylim(least / room, most * room)
    else:
        room = 0.08 * (most - min(0.0, least)) or 1.0
        axes.set_ylim(min(0.0, least) - (room if least < 0 else 0.0), most + room)
    axes.minorticks_off()


def _name_places(
    panel: Panel,
    axes: Axes,
    explanation: Explanation,
    names: Names | None,
    x: FloatArray,
    few: bool,
) -> None:
    path = explanation.path
    if path is None:
        return
    page, low = panel.page, panel.top + panel.height - 50
    inner, (begin, end) = panel.width - 86, axes.get_xlim()
    at = panel.left + 78 + inner * (x - begin) / (end - begin)
    if not few:
        write(page, at[0] - 8, low, "query", 20, INK, weight="bold")
        write(page, at[-1] + 8, low, "point", 20, WRONG, ha="right", weight="bold")
        write(page, (at[0] + at[-1]) / 2, low, "thick lines: strong edges", 20, GREY, ha="center")
        return
    room = int((at[1] - at[0]) / 10.5) if len(at) > 1 else 18
    who = [path.steps[0].start] * (len(x) - len(path.steps)) + [step.end for step in path.steps]
    for place, (where, point) in enumerate(zip(at, who, strict=True)):
        called = "vector" if point is None else name_of(names, point, max(5, room))
        color = INK if place == 0 and len(who) > len(path.steps) else GREY
        color = WRONG if place == len(who) - 1 else color
        write(page, where, low, called.removeprefix("point "), 19, color, ha="center")
    offset = len(who) - len(path.steps)
    for place, step in enumerate(path.steps[1 - offset :]):
        middle = (at[place] + at[place + 1]) / 2
        write(page, middle, low + 28, f"{step.weight:.2g}", 17, RIGHT, ha="center")
    write(page, panel.left + 60, low + 28, "weight", 17, RIGHT, ha="right")
