"""Figures of lines: few axes, no legends, every line named where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfold.drawing import DPI, GREY, INK, LINE, new_page, write
from rankfold.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARGIN, TOP, BOTTOM = 72, 232, 132


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
class Panel:
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
    panels: Sequence[Panel],
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


def _draw_panel(axes: Axes, panel: Panel, width: float, height: float) -> None:
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
