"""What every index of FAISS offers, and what all of them need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from rankfold.types import BoolArray, FloatArray, IntArray

FEW_QUERIES = 16
"""So few queries are searched by one thread: waking the others costs more than it gains.
FAISS also measures so few by differences, not by matrix products."""


class Index(Protocol):
    """Finds candidates, with more or less effort; the engine measures them again."""

    kind: str
    n_spare: int

    @property
    def efforts(self) -> tuple[int, ...]:
        """What it can do, from the least to the most."""

    def scanned(self, effort: int) -> int:
        """Return with how many points a query is compared, about."""

    def candidates(
        self, queries: FloatArray, k: int, effort: int, alive: BoolArray | None = None
    ) -> IntArray:
        """Return the ``k`` points that seem nearest to each query, -1 where it ran out.

        Only those that are ``alive``, where some are not.
        """

    def certain(self, queries: FloatArray, farthest: FloatArray, effort: int) -> FloatArray:
        """Return the distance below which rounding made no query miss a point.

        ``farthest`` holds the distance of each query's farthest candidate.
        """

    def search_order(self, ids: IntArray) -> IntArray:
        """Return places of ``ids`` in an order that keeps near points together."""

    def add(self, points: FloatArray, n_added: int) -> None:
        """Take in the last so many of all points."""


def selected(alive: BoolArray | None) -> dict[str, Any]:
    """Return the parameter that makes FAISS pass over points."""
    if alive is None:
        return {}
    import faiss

    return {"sel": faiss.IDSelectorBitmap(np.packbits(alive, bitorder="little"))}


@contextmanager
def threads(n_threads: int | None) -> Iterator[None]:
    """Let FAISS use so many threads for a while; None leaves it as it is."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
