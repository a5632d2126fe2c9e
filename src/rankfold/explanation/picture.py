"""Draw an explanation: two places, the path on the data, scores along it, shares of examples."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankfold.check import check_matrix
from rankfold.drawing import DPI, GREY, INK, LINE, RIGHT, WRONG, new_page, save_png, write
from rankfold.errors import InputError
from rankfold.explanation.explanation import (
    WITHOUT_PATH,
    Explanation,
    Names,
    moved,
    name_of,
    share_text,
)
from rankfold.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PALE = "#eef2f6"

POINTS = "#c3cad5"

FEW_STEPS = 9
"""Up to so many steps of a path have room for weights and names."""

LARGE_FALL = 30.0
"""Scores that fall by more than this factor are drawn on a logarithmic scale."""

WIDTH, MARGIN, TOP, GAP = 1760, 72, 216, 88
MAP_WIDTH, MAP_HEIGHT, PLACES, COURSE, BAR, HEADING = 900, 560, 246, 520, 40, 64


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
    indices = [example.point for example in explanation.examples if example.point is not None]
    vectors = np.empty((0, 2)) if unseen is None else unseen
    examples, target = np.concatenate([places[indices], vectors]), places[explanation.point]
    for example in examples:
        line = np.array([example, target])
        axes.plot(*line.T, color=WRONG, linewidth=1.1, linestyle=(0, (4, 4)), zorder=2)
    if explanation.path is not None:
        lines = _lines(explanation, places, vectors, len(indices))
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
    explanation: Explanation, places: FloatArray, vectors: FloatArray, n_indices: int
) -> list[FloatArray]:
    """Return the ends of every step; the first is left out where nobody knows its start."""
    path = explanation.path
    lines = []
    for step in path.steps if path is not None else ():
        if step.start is not None:
            lines.append(places[[step.start, step.end]])
        elif path is not None and path.example - n_indices < len(vectors):
            lines.append(np.array([vectors[path.example - n_indices], places[step.end]]))
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


def draw_explanation(
    explanation: Explanation,
    path: str | FilePath,
    X2: Any = None,
    names: Names | None = None,
    vectors2: Any = None,
) -> None:
    """Write a PNG: how far the point moved, the path that led there, and who sent it.

    Parameters
    ----------
    explanation : Explanation
    path : str or Path
        The file; it is either written completely or left as it was.
    X2 : array, shape (n_points, 2), optional
        Coordinates of all points in the plane; the path is then drawn over them.
    names : mapping or sequence of str, optional
        What points are called.
    vectors2 : array, shape (n_vectors, 2), optional
        Coordinates of the unseen vectors of the query, for the same picture.
    """
    several = len(explanation.examples) > 1
    shares = HEADING + BAR * min(5, len(explanation.examples)) + 24 if several else 0
    on_map = X2 is not None
    body = max(MAP_HEIGHT + shares, PLACES + COURSE) if on_map else PLACES + COURSE + shares
    title = f"Why is {name_of(names, explanation.point, 48)} here?"
    height = TOP + body + MARGIN // 2
    figure, page = new_page(WIDTH, height, title, _subtitle(explanation), MARGIN)
    left, shares_top = MARGIN, TOP + body - shares
    if on_map:
        panel = Panel(figure, page, MARGIN, TOP, MAP_WIDTH, body - shares)
        places = _check_places(X2, "X2", explanation.point + 1)
        n_unseen = sum(example.point is None for example in explanation.examples)
        unseen = None if vectors2 is None else _check_places(vectors2, "vectors2", n_unseen)
        draw_map(panel, explanation, names, places, unseen)
        left += MAP_WIDTH + GAP
    width = WIDTH - MARGIN - left
    draw_places(Panel(figure, page, left, TOP, width, PLACES), explanation)
    course = body - PLACES - (0 if on_map else shares)
    draw_course(Panel(figure, page, left, TOP + PLACES, width, course), explanation, names)
    if several:
        across = MAP_WIDTH if on_map else width
        panel = Panel(figure, page, MARGIN, shares_top, across, shares)
        draw_shares(panel, explanation, names, HEADING, BAR)
    save_png(figure, FilePath(path))


def _subtitle(explanation: Explanation) -> str:
    place = f"{explanation.method}: place {explanation.score_rank} of {explanation.n_ranked}"
    if not explanation.shift:
        return f"{place}, the same as by plain distance"
    return f"{place}, {moved(explanation)} from plain distance"


def _check_places(X2: Any, name: str, least: int) -> FloatArray:
    places = check_matrix(X2, name)
    if places.shape[1] != 2 or len(places) < least:
        raise InputError(
            f"{name} has shape {places.shape}, but must have a row of two coordinates for "
            f"every point, {least} at least."
        )
    return places
