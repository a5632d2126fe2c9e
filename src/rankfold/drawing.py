"""What all pictures share: colours, type, and files that are never half-written."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfold.check import MissingExtraError
from rankfold.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

DPI = 144
"""At 144 pixels per inch a pixel is half a point."""

INK, GREY, LINE = "#1d2433", "#667085", "#e4e7ec"
RIGHT, WRONG = "#0072b2", "#d55e00"  # apart for every kind of colour vision


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
