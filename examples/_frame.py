"""What the examples share: where a picture goes, its frame, and the colours of places."""

import argparse
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from PIL import Image

from rankfold.drawing import GREY, INK, LINE, WRONG, new_page, png_bytes, write
from rankfold.files import replacing
from rankfold.types import BoolArray, FloatArray, IntArray

WIDTH, MARGIN, GAP, TOP, BOTTOM = 1400, 56, 64, 256, 48
FIRST, LAST, REST = (0.0, 0.22, 0.40), (0.45, 0.72, 0.87), "#d3d8e0"


def run(main: Callable[[Path], object]) -> None:
    """Call an example with the folder of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("out/examples"), help="folder to write to")
    main(parser.parse_args().out)


def new_panels(
    title: str, subtitle: str, headings: Sequence[tuple[str, str]], height: int = 800
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a title, and bare axes side by side, each below its two headings."""
    figure, page = new_page(WIDTH, height, title, subtitle, MARGIN)
    across = (WIDTH - 2 * MARGIN - GAP * (len(headings) - 1)) / len(headings)
    panels = []
    for place, (heading, remark) in enumerate(headings):
        left = MARGIN + place * (across + GAP)
        write(page, left, 200, heading, 29, weight="bold")
        write(page, left, 236, remark, 24, GREY)
        down = (height - TOP - BOTTOM) / height
        panels.append(figure.add_axes((left / WIDTH, BOTTOM / height, across / WIDTH, down)))
        panels[-1].set_axis_off()
    return figure, panels


def open_chart(axes: Axes, xlabel: str, left: float = 0.0) -> None:
    """Turn a bare panel into a chart with light lines, ``left`` of its width kept for labels."""
    box = axes.get_position()
    across = box.width * (1 - left)
    axes.set_position((box.x0 + box.width * left, box.y0 + 0.07, across, box.height - 0.09))
    axes.set_axis_on()
    axes.spines[:].set_visible(False)
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=11, labelcolor=GREY)
    axes.set_xlabel(xlabel, fontsize=12, color=GREY)


def draw_answer(
    axes: Axes, points: FloatArray, ids: IntArray, right: BoolArray, size: float = 42
) -> None:
    """Draw results from dark to pale blue, wrong ones in orange, and all other points in grey."""
    look: dict[str, Any] = {"s": size, "edgecolors": "white", "linewidths": 0.5}
    axes.scatter(points[:, 0], points[:, 1], c=REST, zorder=3, **look)
    colors = np.where(right[:, None], np.linspace(FIRST, LAST, len(ids)), to_rgb(WRONG))
    axes.scatter(points[ids, 0], points[ids, 1], c=colors, zorder=4, **look)
    axes.set_aspect("equal")
    axes.margins(0.06)


def mark_query(axes: Axes, place: FloatArray, shift: tuple[float, float] = (0, 15)) -> None:
    """Draw the query as a black star, and its name so many points away from it."""
    look: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 1.5, "zorder": 6}
    axes.plot(place[0], place[1], "*", color=INK, markersize=22, **look)
    axes.annotate(
        "query", (place[0], place[1]), shift, textcoords="offset points", ha="center",
        color=INK, fontsize=13, fontweight="bold", zorder=7,
        path_effects=[withStroke(linewidth=4, foreground="white")],
    )  # fmt: skip


def draw_tile(
    page: Axes, image: FloatArray, left: float, top: float, size: float, color: str = INK
) -> None:
    """Draw a small image with a coloured frame on a page that counts pixels."""
    box = (left, left + size, top + size, top)
    page.imshow(image, cmap="gray_r", interpolation="nearest", extent=box, aspect="auto")
    frame = Rectangle((left - 2, top - 2), size + 4, size + 4, fill=False, linewidth=2.2)
    frame.set_edgecolor(color)
    page.add_patch(frame)


def save(figure: Figure, out: Path, name: str) -> None:
    """Write the picture as ``name.png`` and say where it is."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    with Image.open(BytesIO(png_bytes(figure))) as drawn, replacing(path) as partial:
        # 96 colours are enough here, and make a third of the size.
        drawn.convert("RGB").quantize(96).save(partial, format="PNG", optimize=True)
    print(f"Picture: {path}")
