"""What an index holds, for whoever looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankfold.check import StorageError
from rankfold.index.keeper import Keeper
from rankfold.index.results import as_list
from rankfold.neighbors import live_points
from rankfold.types import FloatArray


class Contents:
    """Points, their ids, payload and places, in the state that was committed last.

    Parameters
    ----------
    keeper : Keeper
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let everything that this thread reads inside belong to one state.

        Changes wait until the block ends; the thread itself can change nothing inside.

        Examples
        --------
        >>> from rankfold import Index
        >>> with Index.build([[0.0], [1.0]], payload={"name": ["a", "b"]}) as index:
        ...     with index.reading():
        ...         index.payload(index.ids)
        {'name': ['a', 'b']}
        """
        with self._keeper.current():
            yield

    @property
    def columns(self) -> dict[str, str]:
        """Names of the payload's columns, and of what kind each is."""
        with self._keeper.current():
            return self._keeper.store.columns

    @property
    def layout(self) -> str | None:
        """How the map was drawn: "graph", "pca" or "plane"; None where none is kept."""
        with self._keeper.current():
            return self._keeper.layout

    @property
    def ids(self) -> list[Any]:
        """All ids, in the order of arrival."""
        with self._keeper.current() as engine:
            return self._keeper.store.ids_of(live_points(engine))

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it."""
        return self._keeper.info()

    def places(self, most: int | None = None) -> tuple[list[Any], FloatArray]:
        """Return ids, in the order of arrival, and a place in the plane for each: x and y.

        When the map was drawn, its longer side spanned -1 to 1. A point keeps its place for as
        long as its vector stays. Points that came later lie among their neighbours, or where
        the projection puts them. An index without a map is projected when it is asked.

        Parameters
        ----------
        most : int, optional
            How many points at most, spread evenly over the index; all by default.
        """
        with self._keeper.current() as engine:
            slots = live_points(engine)
            if most is not None and len(slots) > most:
                slots = slots[np.linspace(0, len(slots) - 1, most).astype(int)]
            return self._keeper.store.ids_of(slots), self._keeper.places(slots)

    def vectors(self, ids: Any) -> FloatArray:
        """Return the vectors of points; scaled to length one for cosine."""
        with self._keeper.current() as engine:
            return engine.vectors(self._keeper.store.slots_of(as_list(ids)))

    def payload(self, ids: Any, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Return the payload of points, column by column; all columns if none are named."""
        with self._keeper.current():
            store = self._keeper.store
            return store.payload_of(store.slots_of(as_list(ids)), columns)

    def __repr__(self) -> str:
        try:
            facts = self.info()
        except StorageError:
            return "Index(closed)"
        return (
            f"Index({facts['path']!r}, {facts['points']} points x {facts['features']}, "
            f"{facts['metric']}, {facts['n_neighbors']} neighbours)"
        )

    def holds(self, ids: Any) -> list[bool]:
        """Tell of each id whether a point has it; one question, however many there are."""
        with self._keeper.current():
            return self._keeper.store.holds(as_list(ids))

    def __contains__(self, point: Any) -> bool:
        return self.holds([point])[0]

    def __len__(self) -> int:
        with self._keeper.current() as engine:
            return engine.n_alive
