"""Reads a folder of images."""

from pathlib import Path

import numpy as np
from PIL import Image

from rankfold.inputs import read_points

Path("images").mkdir()
for shade in (0, 255):
    Image.fromarray(np.full((4, 4), shade, dtype=np.uint8)).save(f"images/{shade}.png")
points = read_points("images")
assert points.ids == ["0.png", "255.png"]
assert points.vectors[0].max() < points.vectors[1].min()
