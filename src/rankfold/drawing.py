"""What all pictures share, and answers drawn as strips of small images."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfold.errors import MissingExtraError
from rankfold.files import replacing
from rankfold.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


DPI = 144
"""At 144 pixels per inch a pixel is half a point."""

INK, GREY, LINE = "#1d2433", "#667085", "#e4e7ec"
RIGHT, WRONG = "#0072b2", "#d55e00"  # apart for every kind of colour vision

MARGIN, TILE, STEP, QUERY = 72, 64, 82, 168
STRIP_LEFT, STRIP_TOPS, BOTTOM = MARGIN + QUERY + 72, (266, 470), 636
SHARE_LEFT = STRIP_LEFT + 20 * STEP + 24
WIDTH, HEIGHT = SHARE_LEFT + 184 + MARGIN, 756


def require_matplotlib() -> None:
    """Raise MissingExtraError when matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None


def new_figure(width: int, height: int) -> Figure:
    """Return an empty white figure of so many pixels, apart from any figure of the user."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def new_page(
    width: int, height: int, title: str, subtitle: str, margin: int
) -> tuple[Figure, Axes]:
    """Return a figure with a heading, and axes over all of it that count pixels from the top."""
    figure = new_figure(width, height)
    page = figure.add_axes((0, 0, 1, 1))
    page.set(xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    write(page, margin, 92, title, 44, weight="bold")
    write(page, margin, 136, subtitle, 25, GREY)
    return figure, page


def write(
    axes: Axes, x: float, y: float, text: str, pixels: float, color: str = INK, **style: Any
) -> Text:
    """Write text of so many pixels at a place of the axes."""
    return axes.text(
        x,
        y,
        text,
        color=color,
        fontsize=pixels * 72 / DPI,
        family="DejaVu Sans",
        usetex=False,
        parse_math=False,
        **style,
    )


def png_bytes(figure: Figure) -> bytes:
    """Return the content of a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    content = BytesIO()
    FigureCanvasAgg(figure).print_png(content)  # type: ignore[no-untyped-call]
    return content.getvalue()


def save_png(figure: Figure, path: Path) -> None:
    """Write the figure as PNG, completely or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(png_bytes(figure))


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
