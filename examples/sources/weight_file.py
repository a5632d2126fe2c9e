"""Read a file of weights that was made by an old PyTorch, safely and without PyTorch."""

import pickletools
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rankfold.types import FloatArray

TENSORS, KEYS = 3, 4
"""The pickles at the start that say what the tensors are, and in which order they follow."""

Codes: TypeAlias = list[tuple[pickletools.OpcodeInfo, Any, int | None]]
Tensor: TypeAlias = tuple[str, list[int], list[int]]
"""A name, a shape, and the steps between numbers along every axis."""


def read_weights(path: str | Path) -> dict[str, FloatArray]:
    """Return the arrays of a file by name.

    The file starts with pickles of names and shapes; the numbers follow. The pickles are only
    looked through and never run, so nothing that they hold can do anything.
    """
    with Path(path).open("rb") as file:
        pickles = [list(pickletools.genops(file)) for _ in range(KEYS + 1)]
        described = dict(_tensors(pickles[TENSORS]))
        keys = [str(value) for code, value, _ in pickles[KEYS] if code.name == "BINUNICODE"]
        if not keys or set(keys) != set(described):
            raise ValueError(f"{path} is no file of weights that is understood here.")
        return dict(_read(file, *described[key]) for key in keys)


def _tensors(codes: Codes) -> Iterator[tuple[str, Tensor]]:
    """Yield the key of every tensor with its name, shape and steps between its numbers."""
    name, key = "", ""
    numbers: list[int] = []
    for code, value, _ in codes:
        if code.name == "BINUNICODE" and value.isdigit():
            key, numbers = value, []
        elif code.name == "BINUNICODE" and "." in value:
            name = value
        elif code.name.startswith("BININT"):
            numbers.append(value)
        elif code.name == "NEWFALSE":  # the tensor ends: count, offset, shape and steps
            n_axes = (len(numbers) - 2) // 2
            yield key, (name, numbers[2 : 2 + n_axes], numbers[2 + n_axes :])


def _read(file: BinaryIO, name: str, shape: list[int], steps: list[int]) -> tuple[str, FloatArray]:
    kind = np.dtype("<i8" if name.endswith("num_batches_tracked") else "<f4")
    count = int.from_bytes(file.read(8), "little")
    content = file.read(count * kind.itemsize)
    if len(content) < count * kind.itemsize:
        raise ValueError(f"{file.name} is cut off: {name} of shape {shape} is not all there.")
    # as_strided would read what lies before and after the numbers, without a word.
    last = sum((size - 1) * step for size, step in zip(shape, steps, strict=True))
    if min([*shape, *steps], default=1) < 1 or prod(shape) > count or last >= count:
        raise ValueError(f"{file.name} says that {name} lies outside of its own numbers.")
    strides = [kind.itemsize * step for step in steps]
    return name, np.ascontiguousarray(as_strided(np.frombuffer(content, kind), shape, strides))
