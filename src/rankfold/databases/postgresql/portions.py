"""Slots cut into those of one exchange each, and answers put together again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankfold.check import InputError
from rankfold.neighbors import Rows
from rankfold.storage.ids import few
from rankfold.types import IntArray, Neighbors

MOST_SLOTS = 20_000
"""Slots asked about in one exchange."""


def portions(slots: IntArray) -> list[IntArray]:
    """Cut slots into those of one exchange each: one at least."""
    slots = np.asarray(slots, dtype=np.int64)
    return [slots[start : start + MOST_SLOTS] for start in range(0, len(slots) or 1, MOST_SLOTS)]


def order_of(present: IntArray, slots: IntArray) -> IntArray:
    """Return where slots are among those that came, ascending."""
    check_present(slots, present)
    return np.searchsorted(present, slots)


def check_present(slots: IntArray, present: Any) -> None:
    """Require that all slots have a point."""
    missing = np.setdiff1d(slots, np.fromiter(present, dtype=np.int64, count=len(present)))
    if len(missing):
        raise InputError(f"there are no points at the slots {few(missing.tolist())}.")


def together(parts: list[Rows]) -> Rows:
    """Join rows, of which several parts may have the same."""
    if len(parts) == 1:
        return parts[0]
    slots, first = np.unique(np.concatenate([part.slots for part in parts]), return_index=True)
    indices = np.concatenate([part.lists.indices for part in parts])[first]
    sq_distances = np.concatenate([part.lists.sq_distances for part in parts])[first]
    sources = [part.sources[a:b] for part in parts for a, b in _bounds(part)]
    chosen = [sources[place] for place in first.tolist()]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in chosen], dtype=np.int64)])
    return Rows(slots, Neighbors(indices, sq_distances), starts, np.concatenate(chosen))


def _bounds(rows: Rows) -> Iterator[tuple[int, int]]:
    return zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True)
