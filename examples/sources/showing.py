"""How both examples start, and how their pictures are saved."""

import argparse
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from rankfold.drawing import png_bytes
from rankfold.files import replacing


def run(main: Callable[[Path], object]) -> None:
    """Call an example with the folder of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("out/examples"), help="folder to write to")
    main(parser.parse_args().out)


def save(figure: Figure, out: Path, name: str) -> None:
    """Write a picture with few colours, which makes a third of the size, and say where it is."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    with Image.open(BytesIO(png_bytes(figure))) as drawn, replacing(path) as partial:
        drawn.convert("RGB").quantize(96).save(partial, format="PNG", optimize=True)
    print(f"Picture: {path}")
