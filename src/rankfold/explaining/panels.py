"""The parts of a picture of an explanation that need no coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankfold.drawing import DPI, GREY, LINE, RIGHT, WRONG, write
from rankfold.explaining.explanation import Explanation, Names
from rankfold.explaining.text import name_of, share_text
from rankfold.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALE = "#eef2f6"


class Panel(NamedTuple):
    """A part of the page, in pixels from its upper left corner."""

    figure: Figure
    page: Axes
    left: float
    top: float
    width: float
    height: float

    def heading(self, text: str, remark: str = "") -> None:
        """Write what the panel shows."""
        write(self.page, self.left, self.top, text, 28, weight="bold")
        for row, line in enumerate(remark.splitlines()):
            write(self.page, self.left, self.top + 38 + 30 * row, line, 21, GREY)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return bare axes over a part of the panel."""
        across, down = self.figure.get_size_inches() * DPI
        x, y = self.left + left, self.top + top
        axes = self.figure.add_axes(
            (x / across, 1 - (y + height) / down, width / across, height / down)
        )
        axes.set_facecolor("none")
        for side in axes.spines.values():
            side.set_visible(False)
        size = 19 * 72 / DPI
        axes.tick_params(length=0, labelsize=size, labelcolor=GREY, labelfontfamily="DejaVu Sans")
        return axes


def thickness(weights: FloatArray) -> FloatArray:
    """Return widths of lines: the area of a line's cross-section grows with the weight."""
    heaviest = max(float(np.max(weights, initial=0.0)), np.finfo(float).tiny)
    widths: FloatArray = 1.2 + 4.8 * np.sqrt(weights / heaviest)
    return widths


def draw_places(panel: Panel, explanation: Explanation) -> None:
    """Draw both places on one line from the first to the last."""
    panel.heading("Its place")
    page, left, right, line = (
        panel.page,
        panel.left + 8,
        panel.left + panel.width - 8,
        panel.top + 88,
    )
    page.plot([left, right], [line, line], color=LINE, linewidth=6, solid_capstyle="round")
    write(page, left - 8, line + 84, "first", 20, GREY)
    write(page, right + 8, line + 84, f"last of {explanation.n_ranked}", 20, GREY, ha="right")
    span = max(1, explanation.n_ranked - 1)
    by_score, by_distance = (
        left + (right - left) * (place - 1) / span
        for place in (explanation.score_rank, explanation.distance_rank)
    )
    page.plot([by_distance, by_score], [line, line], color=RIGHT, linewidth=3)
    ring: dict[str, Any] = {"color": "white", "markeredgecolor": WRONG, "markeredgewidth": 2.6}
    page.plot(by_distance, line, "o", markersize=11, **ring)
    page.plot(by_score, line, "o", color=RIGHT, markersize=11, markeredgecolor="white")
    labels = (
        (by_score, line - 28, f"{explanation.score_rank} by {explanation.method}", RIGHT),
        (by_distance, line + 46, f"{explanation.distance_rank} by plain distance", WRONG),
    )
    for x, y, text, color in labels:
        share = (x - left) / (right - left)
        side = "left" if share < 0.3 else "right" if share > 0.7 else "center"
        x += {"left": -8, "right": 8, "center": 0}[side]
        write(page, x, y, text, 22, color, ha=side, weight="bold")


def draw_shares(
    panel: Panel, explanation: Explanation, names: Names | None, heading: int, step: int
) -> None:
    """Draw a bar for what each example adds, the largest first."""
    whole = "distance" if explanation.path_state == "no graph" else "score"
    panel = panel._replace(top=panel.top + 40)
    panel.heading(f"What each example adds to the {whole}")
    examples = sorted(explanation.examples, key=lambda example: -abs(example.share or 0.0))
    begin, full = panel.left + 230, panel.width - 230 - 150
    for row, example in enumerate(examples[: int((panel.height - heading) // step)]):
        y = panel.top + heading - 14 + step * row
        write(panel.page, panel.left, y, name_of(names, example.point, 20), 20)
        bar: dict[str, Any] = {"linewidth": 8, "solid_capstyle": "butt"}
        panel.page.plot([begin, begin + full], [y - 7, y - 7], color=PALE, **bar)
        share = example.share or 0.0
        ends = [begin, begin + full * min(1.0, abs(share))]
        panel.page.plot(ends, [y - 7, y - 7], color=RIGHT if share > 0 else WRONG, **bar)
        right = panel.left + panel.width
        write(panel.page, right, y, share_text(example.share), 20, GREY, ha="right")
