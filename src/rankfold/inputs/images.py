"""A folder of images, through Pillow (extra ``images``): every image is a vector of its pixels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import track

from rankfold.check import check_count
from rankfold.errors import InputError, MissingExtraError
from rankfold.inputs.points import Points, checked_points, reading
from rankfold.inputs.tables import listed
from rankfold.types import FloatArray

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff"})
SIZE = (32, 32)
MAX_PIXELS = 2**26
"""An image of more pixels is refused before it is unpacked: a small file can claim any size."""


def read_images(
    path: Path, *, size: tuple[int, int] = SIZE, colour: bool = False, progress: bool = False
) -> Points:
    """Read all images of a folder and the folders in it, in the order of their names.

    The id of an image is its path within the folder, with slashes; the payload has it as
    ``image``, and as ``folder`` the folder it lies in, if any is in one. Hidden files are
    left out.
    """
    require_pillow()
    files = sorted(_images_in(path), key=lambda file: file.relative_to(path).as_posix())
    if not files:
        raise InputError(
            f"the folder {str(path)!r} has no images; those that are read end in "
            f"{', '.join(sorted(SUFFIXES))}."
        )
    width = _n_values(size, colour)
    vectors = np.empty((len(files), width), dtype=np.float32)
    names = [file.relative_to(path).as_posix() for file in files]
    unusable: dict[str, str] = {}
    console = Console(stderr=True)
    rows = track(range(len(files)), "images", console=console, transient=True, disable=not progress)
    for row in rows:
        try:
            vectors[row] = read_image(files[row], size=size, colour=colour)
        except InputError as error:
            unusable[names[row]] = str(error)
    if unusable:
        raise InputError(
            f"{next(iter(unusable.values()))} In all, {len(unusable)} of {len(files)} images "
            f"cannot be used: {listed([*unusable])}."
        )
    payload = {"image": names}
    if any("/" in name for name in names):
        payload["folder"] = [name.rpartition("/")[0] for name in names]
    return checked_points(path, vectors, list(names), payload)


def read_image(path: Path, *, size: tuple[int, int] = SIZE, colour: bool = False) -> FloatArray:
    """Return the pixels of one image, row by row, from 0 (black) to 1 (white).

    ``size`` is width and height. Grey, or red, green and blue of every pixel in turn.
    """
    require_pillow()
    from PIL import Image

    _n_values(size, colour)
    mode = "RGB" if colour else "L"
    with reading(path, "an image"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd metadata, which is not used
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                raise InputError(
                    f"{str(path)!r} has {image.width} x {image.height} pixels, but at most "
                    f"{MAX_PIXELS} are read; make it smaller."
                )
            image.draft(mode, (2 * size[0], 2 * size[1]))  # a large JPEG is unpacked smaller
            small = _upright(image, path).convert(mode).resize(size)
    pixels: FloatArray = np.asarray(small, dtype=np.float32).ravel() / np.float32(255)
    return pixels


def _upright(image: Image, path: Path) -> Image:
    """Turn an image as its camera says, on white where it is transparent, in 8 bits."""
    import PIL.Image
    from PIL import ImageOps

    if image.mode in ("I", "F"):
        raise InputError(
            f"{str(path)!r} has pixels of 32 bits, whose range is not known; save it with 8 or 16."
        )
    if image.mode.startswith("I;16"):
        image = PIL.Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    turned = ImageOps.exif_transpose(image)
    if not turned.has_transparency_data:
        return turned
    white = PIL.Image.new("RGBA", turned.size, "white")
    return PIL.Image.alpha_composite(white, turned.convert("RGBA"))


def _images_in(folder: Path) -> list[Path]:
    return [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]


def _n_values(size: Any, colour: bool) -> int:
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise InputError(f"size is {size!r}, but must be width and height, like (32, 32).")
    pixels = check_count(size[0], "the width in size") * check_count(size[1], "the height in size")
    if pixels > MAX_PIXELS:
        raise InputError(f"size is {tuple(size)!r}, but at most {MAX_PIXELS} pixels are read.")
    return pixels * (3 if colour else 1)


def require_pillow() -> None:
    """Raise MissingExtraError when Pillow is not installed."""
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("pillow", "images") from None
