"""What a report is made of; how it is written down is up to each format."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from rankfold.drawing import png_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    The first ``n_words`` columns are words, the others numbers; the last may hold code.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_words: int = 1
    title: str = ""
    code: bool = False


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure under the name of its files, with what it shows in words."""

    name: str
    caption: str
    figure: Figure

    def png(self) -> bytes:
        """Return the content of a PNG file."""
        return png_bytes(self.figure)

    def svg(self) -> bytes:
        """Return the content of an SVG file; the same figure gives the same bytes."""
        import matplotlib as mpl

        content = BytesIO()
        with mpl.rc_context({"svg.hashsalt": self.name}):
            self.figure.savefig(content, format="svg", metadata={"Date": None})
        return content.getvalue()


@dataclass(frozen=True, eq=False)
class Section:
    """A heading with paragraphs, pictures and tables, in this order."""

    title: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    grids: tuple[Grid, ...] = ()
