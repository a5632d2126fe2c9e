"""The look of all plots: few lines, labels beside what they name, the colours of the library."""

from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kit.report import DOCS, OUT
from rankfold.drawing import DPI, GREY, INK, LINE, RIGHT, WRONG, png_bytes
from rankfold.files import replacing

__all__ = [
    "GREEN",
    "GREY",
    "INK",
    "LINE",
    "RIGHT",
    "WRONG",
    "keep",
    "label_ends",
    "plot",
    "pretty",
]

GREEN = "#009e73"


def plot(title, subtitle, n_panels=1, size=(9.0, 5.0)):
    """Return a figure with a headline and its axes."""
    figure = Figure(figsize=size, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, n_panels, squeeze=False)[0]
    figure.text(0.03, 0.94, title, color=INK, fontsize=15, weight="bold", va="center")
    figure.text(0.03, 0.875, subtitle, color=GREY, fontsize=10, va="center")
    figure.subplots_adjust(left=0.09, right=0.95, top=0.79, bottom=0.13, wspace=0.3)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LINE)
        axes.tick_params(colors=GREY, labelsize=9, which="both", length=0)
        axes.grid(axis="both", color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.xaxis.label.set_color(GREY)
        axes.yaxis.label.set_color(GREY)
    return figure, panels


def label_ends(axes, x, labels):
    """Write (value, text, colour) beside the ends of lines on a logarithmic axis, never over it."""
    low, high = axes.get_ylim()
    apart, previous = (high / low) ** 0.055, 0.0
    for value, text, color in sorted(labels):
        place = max(value, apart * previous)
        previous = place
        axes.annotate(text, (x, place), (9, -3), textcoords="offset points", color=color,
                      fontsize=9, annotation_clip=False)  # fmt: skip


def pretty(seconds):
    """Return a time in a unit that reads well."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s"


def keep(figure, name, docs):
    """Write a picture into the folder of results or of the docs, with few colours to stay small."""
    from PIL import Image

    folder = DOCS / "images" if docs else OUT
    folder.mkdir(parents=True, exist_ok=True)
    picture = (
        Image.open(BytesIO(png_bytes(figure)))
        .convert("RGB")
        .quantize(200, method=Image.Quantize.MAXCOVERAGE, dither=0)
    )
    with replacing(folder / name) as partial:
        picture.save(partial, format="PNG", optimize=True)
    print(f"wrote {folder / name}")
