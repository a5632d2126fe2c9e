"""Draw answers as strips of small images: what was asked, what was found, what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankfold.drawing import DPI, GREY, INK, LINE, RIGHT, WRONG, new_figure, save_png, write
from rankfold.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGIN, TILE, STEP, QUERY = 72, 64, 82, 168
STRIP_LEFT, STRIP_TOPS, BOTTOM = MARGIN + QUERY + 72, (266, 470), 636
SHARE_LEFT = STRIP_LEFT + 20 * STEP + 24
WIDTH, HEIGHT = SHARE_LEFT + 184 + MARGIN, 756


@dataclass(frozen=True, eq=False)
class Strip:
    """One method's results, best first; at most 20 fit into the picture.

    Parameters
    ----------
    name, explanation : str
        The method, and how it ranks in a few words.
    images : array, shape (n_results, height, width)
    labels : array of int, shape (n_results,)
    right : array of bool, shape (n_results,)
    """

    name: str
    explanation: str
    images: FloatArray
    labels: IntArray
    right: BoolArray


def draw_strips(
    path: Path,
    title: str,
    subtitle: str,
    query: tuple[FloatArray, str],
    strips: tuple[Strip, Strip],
    footnotes: tuple[str, str],
) -> None:
    """Write a PNG with the query at the left and two strips of results beside it.

    Parameters
    ----------
    path : Path
        The file; it is either written completely or left as it was.
    title, subtitle : str
    query : tuple of an image and its caption
    strips : tuple of two Strip
        Drawn one above the other.
    footnotes : tuple of two str
    """
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    write(axes, MARGIN, 106, title, 52, weight="bold")
    write(axes, MARGIN, 156, subtitle, 26, GREY)
    _draw_query(axes, *query)
    for strip, top in zip(strips, STRIP_TOPS, strict=True):
        _draw_strip(axes, strip, top)
    axes.plot([MARGIN, WIDTH - MARGIN], [BOTTOM, BOTTOM], color=LINE, linewidth=1)
    for line, footnote in enumerate(footnotes):
        write(axes, MARGIN, BOTTOM + 42 + 34 * line, footnote, 23, GREY)
    # One unit of the axes is one pixel, counted from the top, so images stay crisp.
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), aspect="auto")
    save_png(figure, path)


def _draw_image(
    axes: Axes, image: FloatArray, left: float, top: float, size: float, color: str, frame: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.imshow(
        image,
        cmap="gray_r",
        interpolation="nearest",
        origin="upper",
        extent=(left, left + size, top + size, top),
    )
    shape = f"round,pad={frame / 2 + 3},rounding_size=6"
    outline = FancyBboxPatch((left, top), size, size, boxstyle=shape, facecolor="none")
    outline.set(edgecolor=color, linewidth=frame * 72 / DPI)
    axes.add_patch(outline)


def _draw_query(axes: Axes, image: FloatArray, caption: str) -> None:
    top = (STRIP_TOPS[0] + STRIP_TOPS[1] + TILE - QUERY) // 2
    write(axes, MARGIN, top - 24, "Query", 28, weight="bold")
    _draw_image(axes, image, MARGIN + 5, top, QUERY, INK, 3)
    write(axes, MARGIN, top + QUERY + 38, caption, 21, GREY)


def _draw_strip(axes: Axes, strip: Strip, top: float) -> None:
    name = write(axes, STRIP_LEFT - 4, top - 24, strip.name, 28, weight="bold")
    end = name.get_window_extent().width
    write(axes, STRIP_LEFT + end + 14, top - 24, strip.explanation, 28, GREY)
    below = top + TILE + 34
    results = zip(strip.images, strip.labels, strip.right, strict=True)
    for place, (image, label, right) in enumerate(results):
        left = STRIP_LEFT + STEP * place
        _draw_image(axes, image, left, top, TILE, RIGHT if right else WRONG, 2 if right else 3)
        color, weight = (GREY, "normal") if right else (WRONG, "bold")
        write(axes, left + TILE / 2, below, str(label), 22, color, ha="center", weight=weight)
        if not right:
            corner = (left + TILE + 2, top - 2)
            axes.plot(*corner, "o", color=WRONG, markersize=12, markeredgecolor="white")
            axes.plot(*corner, "x", color="white", markersize=4.5, markeredgewidth=1.4)
    share, count = f"{strip.right.mean():.0%}", int(strip.right.sum())
    write(axes, SHARE_LEFT, top + TILE / 2 + 22, share, 60, weight="bold")
    write(axes, SHARE_LEFT + 3, below, f"{count} of {len(strip.right)} right", 22, GREY)
