"""What the state of an engine may hold; anybody may have written another one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankfold.check import check_choice, check_count, check_positive, check_share
from rankfold.errors import InputError
from rankfold.neighbors.faiss_indexes import INDEXES
from rankfold.types import NOBODY, FloatArray, IntArray

SIZES = {"f": (4, 8), "i": (4, 8), "b": (1,)}
"""Bytes of the numbers of each kind that compiled code knows."""

MOST_EFFORT, LARGEST_SEED = 1024, 2**31 - 2
"""The effort of an index of few points, and what FAISS takes for a seed."""


def check_state(arrays: dict[str, Any], settings: dict[str, Any]) -> None:
    """Require arrays and settings as `DynamicEngine.state` returns them; anybody may write others.

    Compiled code reads and writes by the numbers in them without looking. So every slot must be one
    of the points, and every array as long as the others say.
    """
    points, indices = arrays["points"], arrays["list_indices"]
    n_points, width = len(points), indices.shape[-1]
    n_links, n_edges = int(np.count_nonzero(indices >= 0)), len(arrays.get("graph_indices", ()))
    forms: dict[str, tuple[str, tuple[int, ...]]] = {
        "points": ("f", (n_points, points.shape[-1])),
        "alive": ("b", (n_points,)),
        "origin": ("f", points.shape[1:]),
        "list_indices": ("i", (n_points, width)),
        "list_sq_distances": ("f", (n_points, width)),
        "list_counts": ("i", (n_points,)),
        "reverse_starts": ("i", (n_points + 1,)),
        "reverse_sources": ("i", (n_links,)),
        "cells": ("i", (n_points,)),
        "centres": ("f", (len(arrays.get("centres", ())), points.shape[-1])),
        "levels": ("i", (n_points,)),
        "links": ("i", (len(arrays.get("links", ())),)),
        "entry": ("i", (1,)),
        "graph_starts": ("i", (n_points + 1,)),
        "graph_indices": ("i", (n_edges,)),
        "graph_weights": ("f", (n_edges,)),
    }
    for name, (kind, shape) in forms.items():
        array = arrays.get(name)
        if array is not None and (kind_of(array), array.shape) != (kind, shape):
            raise InputError(f"array {name!r} holds {array.dtype} values of shape {array.shape}")
    for name, least, end in (
        ("list_indices", NOBODY, n_points),
        ("list_counts", 0, width + 1),
        ("reverse_sources", 0, n_points),
        ("cells", 0, len(arrays.get("centres", ()))),
        ("graph_indices", 0, n_points),
    ):
        _check_range(name, arrays.get(name), least, end)
    for name in ("points", "origin", "centres", "graph_weights"):
        _check_finite(name, arrays.get(name))
    _check_distances("list_sq_distances", arrays["list_sq_distances"])
    if "graph_starts" in arrays:
        _check_starts(arrays, "graph_starts", "graph_indices", n_edges)
        _check_distances("graph_weights", arrays["graph_weights"])
    _check_starts(arrays, "reverse_starts", "reverse_sources", n_links)
    if not np.array_equal(arrays["list_counts"], np.count_nonzero(indices >= 0, axis=1)):
        raise InputError("array 'list_counts' does not count 'list_indices'")
    _check_learned(arrays, settings, n_points)
    _check_settings(settings, width, n_points)


def _check_settings(settings: dict[str, Any], width: int, n_points: int) -> None:
    check_choice(settings["metric"], "metric", ("euclidean", "cosine"))
    check_count(settings["width"], "width")
    check_share(settings["recall"], "recall", one=True)
    if settings["width"] > width:
        raise InputError(f"lists of {settings['width']} are stored with {width} entries")
    if settings["engine"] == "faiss":
        check_choice(settings["index"], "index", tuple(INDEXES))
        _check_up_to(settings["seed"], "seed", LARGEST_SEED, least=0)
        for plan in settings["plans"]:
            check_choice(plan["kind"], "kind", ("flat", settings["index"]))
            _check_up_to(plan["effort"], "effort", max(n_points, MOST_EFFORT))
            for name in ("width", "n_points", "n_alive"):
                check_count(plan[name], name, least=0)


def _check_up_to(value: Any, name: str, most: int, least: int = 1) -> None:
    if check_count(value, name, least) > most:
        raise InputError(f"{name} is {value}, but may be up to {most}")


def _check_learned(arrays: dict[str, Any], settings: dict[str, Any], n_points: int) -> None:
    if settings.get("learned") is None:
        return
    indices, distances = arrays["learned_indices"], arrays["learned_distances"]
    kinds = kind_of(indices), kind_of(distances)
    if kinds != ("i", "f") or indices.ndim != 2 or indices.shape != distances.shape:
        raise InputError("the learned lists are of another form")
    if len(indices) > n_points:
        raise InputError(f"there are {len(indices)} learned lists of {n_points} points")
    _check_range("learned_indices", indices, NOBODY, n_points)
    _check_distances("learned_distances", distances)
    for name in ("n_neighbors", "n_plain"):
        check_count(settings["learned"][name], name)
    check_positive(settings["learned"]["unit"], "unit")


def kind_of(array: NDArray[Any]) -> str:
    """Return the letter of a kind of numbers; that of a type for what compiled code cannot read."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    return kind if array.dtype.isnative and size in SIZES.get(kind, ()) else array.dtype.str


def _check_range(name: str, array: IntArray | None, least: int, end: int) -> None:
    if array is not None and array.size and not (least <= array.min() and array.max() < end):
        raise InputError(f"array {name!r} holds numbers beyond {least} to {end - 1}")


def _check_distances(name: str, array: FloatArray) -> None:
    if array.size and not array.min() >= 0:
        raise InputError(f"array {name!r} holds NaN or negative numbers")


def _check_starts(arrays: dict[str, Any], name: str, parted: str, length: int) -> None:
    starts = arrays[name]
    if starts[0] != 0 or starts[-1] != length or (starts[1:] < starts[:-1]).any():
        raise InputError(f"array {name!r} does not part {parted!r}")


def _check_finite(name: str, array: FloatArray | None) -> None:
    """Require finite numbers, without an array of the size of all points."""
    if array is not None and array.size and not np.isfinite([array.min(), array.max()]).all():
        raise InputError(f"array {name!r} holds NaN or infinity")
