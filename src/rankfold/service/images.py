"""Thumbnails: vectors that are pixels, and pictures that come with the points."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np

from rankfold.inputs.images import require_pillow
from rankfold.types import FloatArray

LONGEST_SIDE = 128
"""Larger pictures are made smaller: a page shows many of them, each in little space."""

LONGEST_TEXT = 2**16
GIVEN = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
"""Pictures of pixels only: SVG is a document that can hold scripts and addresses."""


@dataclass(frozen=True)
class Pixels:
    """How the vectors of an index are pictures, row by row, grey or red, green and blue.

    ``white`` is the value of white; without, it is the largest value of each vector.
    """

    width: int
    height: int
    colour: bool
    white: float | None = 1.0

    @property
    def n_values(self) -> int:
        """Length of the vectors."""
        return self.width * self.height * (3 if self.colour else 1)


def image_of(facts: Mapping[str, Any]) -> Pixels | None:
    """Read from ``Index.info()`` how the vectors are pictures; None if they are none.

    Whoever built the index may have noted anything: what does not fit is no picture.

    Examples
    --------
    >>> source = {"images": {"size": [8, 8], "colour": False, "scale": 16}}
    >>> image_of({"source": source, "features": 64, "metric": "euclidean"})
    Pixels(width=8, height=8, colour=False, white=16.0)
    >>> image_of({"source": source, "features": 3, "metric": "euclidean"}) is None
    True
    """
    match facts["source"]:
        case {"images": {"size": [int(width), int(height)], **rest}} if min(width, height) > 0:
            colour, white = rest.get("colour", False), rest.get("scale", 1)
        case _:
            return None
    if not isinstance(colour, bool) or not isinstance(white, int | float):
        return None
    if not 0 < white <= sys.float_info.max:
        return None
    # Cosine keeps vectors of length one: how bright they were is lost.
    pixels = Pixels(width, height, colour, None if facts["metric"] == "cosine" else float(white))
    return pixels if pixels.n_values == facts["features"] else None


def thumbnail(vector: FloatArray, pixels: Pixels) -> str:
    """Return a vector as a PNG in a data URI."""
    require_pillow()
    from PIL import Image

    shape = (pixels.height, pixels.width, 3) if pixels.colour else (pixels.height, pixels.width)
    white = float(vector.max()) if pixels.white is None else pixels.white
    with np.errstate(over="ignore"):  # what is beyond white is white
        bright = np.clip(vector.astype(np.float64) / (white if white > 0 else 1.0), 0.0, 1.0)
    image = Image.fromarray(np.rint(255 * bright).astype(np.uint8).reshape(shape))
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = BytesIO()
    image.save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode('ascii')}"


def given_image(value: object) -> str | None:
    """Return a picture that came in the payload as a data URI; None for anything else.

    Examples
    --------
    >>> given_image("data:image/gif;base64,R0lGODlh")
    'data:image/gif;base64,R0lGODlh'
    >>> given_image("data:image/svg+xml;base64,PHN2Zz4=") is None
    True
    """
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return None
    return value if GIVEN.fullmatch(value) else None
