"""Changes of an index."""

from __future__ import annotations

from typing import Any

from rankfold.check import InputError, check_vectors
from rankfold.index.asking import Asking
from rankfold.index.building import check_as_many
from rankfold.index.results import as_list
from rankfold.inputs import as_columns
from rankfold.storage.ids import distinct_ids
from rankfold.types import FloatArray, IntArray


class Changing(Asking):
    """Lets points come, go and change; what has returned is kept, also after a crash."""

    def add(self, vectors: Any, ids: Any = None, payload: Any = None) -> list[Any]:
        """Add points and return their ids.

        Parameters
        ----------
        vectors : array, shape (n_points, n_features)
        ids : sequence of str and int, optional
            May be left out where the index was built without; then numbers go on from the largest.
        payload : as for `build`, optional
            Columns that the index has; what is left out is missing.
        """
        with self._keeper.changing():
            checked = self._checked_vectors(vectors)
            names = self._next_ids(len(checked)) if ids is None else as_list(ids)
            check_as_many(checked, names)
            columns = as_columns(payload, len(names))
            if names:
                self._keeper.change((), checked, names, columns)
            return names

    def remove(self, ids: Any) -> None:
        """Remove points.

        Parameters
        ----------
        ids : id or list of ids
        """
        with self._keeper.changing():
            slots = self._slots(as_list(ids))
            if len(slots):
                self._keeper.change(slots)

    def update(self, ids: Any, vectors: Any = None, payload: Any = None) -> None:
        """Give points other vectors, another payload, or both.

        Points with other vectors are then the last to have arrived; payload alone is changed
        where it is.

        Parameters
        ----------
        ids : id or list of ids
        vectors : array, optional
            Without, they stay where they are.
        payload : as for `build`, optional
            Columns to change; the others stay as they are.
        """
        names = as_list(ids)
        with self._keeper.changing():
            store = self._keeper.store
            slots = self._slots(names)
            columns = as_columns(payload, len(names))
            if vectors is None:
                store.change_payload(slots, columns)
                return
            checked = self._checked_vectors(vectors)
            check_as_many(checked, names)
            if names:
                everything = {**store.payload_of(slots), **columns}
                self._keeper.change(slots, checked, names, everything)

    def _next_ids(self, n_ids: int) -> list[Any]:
        store = self._keeper.store
        if not store.settings["numbered"]:
            raise InputError("the points of this index have ids of their own; give ids.")
        last = store.largest_number
        first = 0 if last is None else last + 1
        return list(range(first, first + n_ids))

    def _checked_vectors(self, vectors: Any) -> FloatArray:
        with self._keeper.current() as engine:
            return check_vectors(vectors, engine.n_features)

    def _slots(self, names: list[Any]) -> IntArray:
        """Return the slots of ids that are all different."""
        return self._keeper.store.slots_of(distinct_ids(names))
