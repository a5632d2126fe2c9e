"""A change of the points, as plain arrays: what a log keeps and other processes follow."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from rankfold.types import FloatArray, IntArray, Neighbors


@dataclass(frozen=True, eq=False)
class Change:
    """What came, what went, and the lists that are different now.

    Parameters
    ----------
    added : array, shape (n_added, n_features)
        New points as the engine holds them; their slots follow those that were there.
    removed : array of int
        Slots that went, ascending.
    rows : array of int
        Slots whose list is new or different, ascending.
    indices, sq_distances : array, shape (n_rows, stored width)
        Their lists.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.neighbors import LivingEngine
    >>> engine = LivingEngine.build(np.array([[0.0], [1.0], [3.0]]), "euclidean", width=2)
    >>> change = engine.remove([1])
    >>> Change.of(change.arrays()).rows
    array([0, 2])
    """

    added: FloatArray
    removed: IntArray
    rows: IntArray
    indices: IntArray
    sq_distances: FloatArray

    @property
    def lists(self) -> Neighbors:
        """The lists of ``rows``."""
        return Neighbors(self.indices, self.sq_distances)

    def arrays(self) -> dict[str, Any]:
        """Return the arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, arrays: dict[str, Any]) -> Change:
        """Make a change from its arrays."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})
