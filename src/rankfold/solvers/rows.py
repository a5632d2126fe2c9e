"""Rows of a sparse graph, some of which are replaced while all others stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankfold.types import FloatArray, IntArray

BLOCK_ROWS = 2**14
"""Rows that are summed at once."""

SPARE = 8
"""Room for new rows and entries: one for so many that are there."""

LEAST_SPARE = 2**12
"""Room that there is in any case."""


class GraphRows:
    """Weights of a graph, row by row, which need not lie in order.

    A row that is replaced is written behind all others, so that following a change costs as much
    as has changed. Once there is no more room, everything is put in order again.

    Parameters
    ----------
    starts : array of int, shape (n_points + 1,)
    indices, weights : arrays
        Those from ``starts[i]`` to ``starts[i + 1]`` are the row of point i. They are not copied
        before the first change, and never written.

    Examples
    --------
    >>> import numpy as np
    >>> rows = GraphRows(np.array([0, 1, 2]), np.array([1, 0]), np.array([0.5, 0.5]))
    >>> rows.replace(np.array([1, 2]), np.array([0, 1, 2]), np.array([2, 1]), np.ones(2), 3)
    >>> rows.csr().toarray()
    array([[0. , 0.5, 0. ],
           [0. , 0. , 1. ],
           [0. , 1. , 0. ]])
    """

    def __init__(self, starts: IntArray, indices: IntArray, weights: FloatArray) -> None:
        self._starts: IntArray | None = starts
        self._bounds = np.stack([starts[:-1], starts[1:]], axis=1).astype(np.int64, copy=False)
        self._indices, self._weights = indices, weights
        self._sums = row_sums(starts, weights)
        self.n_points, self.n_edges = len(starts) - 1, len(indices)
        self._end, self._own = len(indices), False

    @classmethod
    def of(cls, graph: sparse.csr_array) -> GraphRows:
        """Return the rows of a sparse array, which is not copied."""
        return cls(graph.indptr, graph.indices, graph.data)

    @classmethod
    def scaled(
        cls, starts: IntArray, indices: IntArray, weights: FloatArray, factor: float
    ) -> GraphRows:
        """Return rows whose weights are multiplied by a factor, with room for more."""
        room = _with_spare(len(indices))
        columns, couplings = np.empty(room, dtype=np.int32), np.empty(room, dtype=weights.dtype)
        columns[: len(indices)] = indices
        np.multiply(weights, factor, out=couplings[: len(indices)])
        rows = cls(starts, columns[: len(indices)], couplings[: len(indices)])
        rows._indices, rows._weights, rows._own = columns, couplings, True
        return rows

    @property
    def in_order(self) -> bool:
        """Whether each row begins where the one before it ends."""
        return self._starts is not None

    @property
    def bounds(self) -> IntArray:
        """Where each row begins and ends."""
        return self._bounds[: self.n_points]

    @property
    def indices(self) -> IntArray:
        """The points that entries lead to, among others that are not used any more."""
        return self._indices[: self._end]

    @property
    def weights(self) -> FloatArray:
        """The weights of the entries, among others that are not used any more."""
        return self._weights[: self._end]

    @property
    def sums(self) -> FloatArray:
        """The sum of each row, in double precision."""
        return self._sums[: self.n_points]

    def row(self, point: int) -> tuple[IntArray, FloatArray]:
        """Return the neighbours of a point, and the weights."""
        begin, end = self._bounds[point]
        return self._indices[begin:end], self._weights[begin:end]

    def neighbors(self, points: IntArray) -> IntArray:
        """Return the neighbours of some points, one after the other."""
        bounds = self._bounds[points].tolist()
        parts = [self._indices[begin:end] for begin, end in bounds]
        return np.concatenate([np.empty(0, dtype=np.int32), *parts])

    def replace(
        self,
        rows: IntArray,
        starts: IntArray,
        indices: IntArray,
        weights: FloatArray,
        n_points: int,
    ) -> None:
        """Put other rows in the place of some; points beyond those that were there are new."""
        self._starts = None
        if not self._own or self._end + len(indices) > len(self._indices):
            self._put_in_order(_with_spare(self.n_edges + len(indices)))
        if n_points > len(self._bounds):
            self._grow(_with_spare(n_points))
        self._bounds[self.n_points : n_points] = 0
        self._sums[self.n_points : n_points] = 0.0
        self.n_points, first = n_points, self._end
        self._end += len(indices)
        self._indices[first : self._end] = indices
        self._weights[first : self._end] = weights
        before = self._bounds[rows]
        self.n_edges += len(indices) - int((before[:, 1] - before[:, 0]).sum())
        self._bounds[rows, 0], self._bounds[rows, 1] = first + starts[:-1], first + starts[1:]
        self._sums[rows] = row_sums(starts, self._weights[first : self._end])

    def csr(self) -> sparse.csr_array:
        """Return the graph as a sparse array, which is not copied while rows lie in order."""
        starts, indices, weights = self._in_order()
        shape = (self.n_points, self.n_points)
        return sparse.csr_array((weights, indices, starts), shape=shape)

    def _in_order(self) -> tuple[IntArray, IntArray, FloatArray]:
        if self._starts is not None:
            return self._starts, self.indices, self.weights
        bounds = self.bounds
        lengths = bounds[:, 1] - bounds[:, 0]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        if starts[-1] <= np.iinfo(np.int32).max:  # SciPy wants both of one type
            starts = starts.astype(np.int32)
        places = np.repeat(bounds[:, 0] - starts[:-1], lengths) + np.arange(starts[-1])
        return starts, self._indices[places], self._weights[places]

    def _put_in_order(self, room: int) -> None:
        """Copy all rows, one after the other, into arrays with room for more."""
        starts, indices, weights = self._in_order()
        self._end = len(indices)
        self._bounds[: self.n_points, 0] = starts[:-1]
        self._bounds[: self.n_points, 1] = starts[1:]
        self._indices = _enlarged(indices, room).astype(np.int32, copy=False)
        self._weights, self._own = _enlarged(weights, room), True

    def _grow(self, room: int) -> None:
        """Make room for more points."""
        self._bounds, self._sums = _enlarged(self._bounds, room), _enlarged(self._sums, room)


def _with_spare(length: int) -> int:
    return length + length // SPARE + LEAST_SPARE


def _enlarged(array: Any, room: int) -> Any:
    larger = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def row_sums(starts: IntArray, weights: FloatArray) -> FloatArray:
    """Sum rows in double precision, block by block; SciPy's own sum keeps to that of the data."""
    sums = np.zeros(len(starts) - 1)
    for start in range(0, len(sums), BLOCK_ROWS):
        ends = starts[start : start + BLOCK_ROWS + 1]
        first, filled = ends[0], np.diff(ends) > 0
        if filled.any():
            block = weights[first : ends[-1]].astype(np.float64)
            sums[start : start + BLOCK_ROWS][filled] = np.add.reduceat(
                block, ends[:-1][filled] - first
            )
    return sums
