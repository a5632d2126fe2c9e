"""Arrays with room for more rows, so that a change costs what it changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARE = 1.5
"""A full array is replaced by one of so many times its length."""


class Growing:
    """Rows that are appended and changed in place.

    The array it starts from belongs to somebody else, perhaps to a file, and is never written:
    the first change copies it, once.

    Examples
    --------
    >>> import numpy as np
    >>> growing = Growing(np.array([1, 2]))
    >>> growing.append(np.array([3]))
    >>> growing.rows
    array([1, 2, 3])
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self._store, self._length, self._own = np.asarray(rows), len(rows), False

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, as they lie; later changes may show in it."""
        full = self._length == len(self._store)
        return self._store if full else self._store[: self._length]

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        if not len(rows):
            return
        end = self._length + len(rows)
        if not self._own or end > len(self._store):
            self._move(max(end, int(SPARE * self._length)))
        self._store[self._length : end] = rows
        self._length = end

    def write(self, places: NDArray[Any], rows: Any) -> None:
        """Change some rows."""
        if not len(places):
            return
        if not self._own:
            self._move(self._length)
        self._store[places] = rows

    def _move(self, capacity: int) -> None:
        store = np.empty((capacity, *self._store.shape[1:]), dtype=self._store.dtype)
        store[: self._length] = self.rows
        self._store, self._own = store, True
