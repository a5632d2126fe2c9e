"""Vectors of grey values as images again, and large enough for a network."""

import numpy as np
from scipy.ndimage import zoom

from rankfold.types import Dataset, FloatArray

SIDE = 128
"""Larger than the images are, smaller than the 224 that the network was trained on: a third
of the time."""


def images_of(dataset: Dataset) -> FloatArray:
    """Return square images of grey values from 0 to 255."""
    side = round(dataset.X.shape[1] ** 0.5)
    images = dataset.X.reshape(-1, side, side)
    if dataset.name != "usps":
        images = images.transpose(0, 2, 1)  # these files hold an image column by column
    grey: FloatArray = 255 * (images - images.min()) / np.ptp(images)
    return grey


def enlarged(images: FloatArray) -> FloatArray:
    """Return images in three colours with sides of ``SIDE``."""
    factor = SIDE / images.shape[1]
    large = zoom(images.astype(np.float32), (1, factor, factor), order=1)
    return np.repeat(large[..., None], 3, axis=-1)
