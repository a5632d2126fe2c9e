"""The linear system that every method on a graph solves, its rows, and a query in its terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rankfold.errors import InputError
from rankfold.types import FloatArray, IntArray, Solution, Weights

EPS = float(np.finfo(np.float64).eps)

NO_POINTS = np.empty(0, dtype=np.int64)
NO_VALUES = np.empty(0)

BLOCK_ROWS = 2**14
"""Rows that are summed at once."""

SPARE = 8
"""Room for new rows and entries: one for so many that are there."""

LEAST_SPARE = 2**12
"""Room that there is in any case."""


SAMPLE = 2**15
"""So many points, spread evenly, say what the median of all is."""


def sampled(values: FloatArray) -> FloatArray:
    """Return values of all points, or of a sample that tells their median, spread evenly."""
    return values[:: 1 + len(values) // SAMPLE]


class Boundary(NamedTuple):
    """A query in the terms of a system.

    Parameters
    ----------
    points, rhs : arrays
        Entries of the right-hand side; all others are zero.
    clamped, values : arrays
        Points whose rows are eliminated, and the values at which they are held.
    left_out : array of int
        Points that are not part of an answer: those of the query.
    pulled, pull : arrays
        What unseen vectors of the query add to the diagonal of their neighbours.
    size : float
        No exact value is larger, whatever its sign.
    lowest : float
        No exact value is below it: zero, unless there are negative examples.
    """

    points: IntArray = NO_POINTS
    rhs: FloatArray = NO_VALUES
    clamped: IntArray = NO_POINTS
    values: FloatArray = NO_VALUES
    left_out: IntArray = NO_POINTS
    pulled: IntArray = NO_POINTS
    pull: FloatArray = NO_VALUES
    size: float = 1.0
    lowest: float = 0.0


class Wanted(NamedTuple):
    """What an answer needs.

    Parameters
    ----------
    top : int
        Its length.
    candidates : int
        How many of the best points it is chosen from; as many as ``top``, or more.
    """

    top: int
    candidates: int


class Effort(NamedTuple):
    """When to stop.

    Parameters
    ----------
    tol : float
        No score is to be further than this from the exact one,
    top : int, optional
        unless this many best points are proven before;
    budget : int, optional
        and no more points than this are solved for. None: as many as it takes.
    reserve : int
        So many points more are solved for once where the end of the top is in doubt then.
    """

    tol: float
    top: int | None = None
    budget: int | None = None
    reserve: int = 0


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
        self.longest = int(np.diff(starts).max(initial=0))
        """No row has more entries."""

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
        self.longest = max(self.longest, int(np.diff(starts).max(initial=0)))
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


_ones: list[FloatArray] = [np.ones(0)]


def shared_ones(length: int) -> FloatArray:
    """Return so many ones, which nobody may write to: making them takes most of a small change."""
    if length > len(_ones[0]):
        more = np.ones(_with_spare(length))
        more.flags.writeable = False
        _ones[0] = more
    return _ones[0][:length]


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


@dataclass(frozen=True, eq=False)
class System:
    """``(C - beta W) x = b`` with ``C = diag(m + beta W 1)``; scores are ``scale * x``.

    W is symmetric and not negative, and every margin ``m_i`` is positive: an M-matrix with
    ``A 1 = m``, hence ``A^-1 >= 0``, and ``A - diag(m)`` is positive semi-definite. Eliminating
    rows and adding to the diagonal keep both, with ``A 1 >= m``. For the residual ``r = b - A x``
    the error ``e`` of ``x`` therefore obeys

        |e_i| <= m_i^(-1/p) ||r / m^(1 - 1/p)||_p    for p = 1, 2 and infinity:

    p = infinity from ``A 1 >= m``, p = 1 from the same of the transpose, and p = 2 from
    ``e'r = e'A e >= e' diag(m) e``. In the maximum norm it reads ``|e_i| <= max |r_j| / m_j``.

    * RAN: ``beta = 2 lambda``, ``m = 1``, scores ``f = x``.
    * PageRank: ``f = alpha P' f + (1 - alpha) y`` is, with ``f = D x``,
      ``(D - alpha W) x = (1 - alpha) y``; ``beta = alpha``, ``m = (1 - alpha) D``.
    * Manifold ranking: ``f = alpha D^-1/2 W D^-1/2 f + (1 - alpha) y`` is, with
      ``f = D^1/2 x``, ``(D - alpha W) x = (1 - alpha) D^1/2 y``: the same matrix.

    Parameters
    ----------
    given : array, sparse or dense, or GraphRows
        ``beta W``.
    margin : array m
    scale : array
    """

    given: Weights | GraphRows
    margin: FloatArray
    scale: FloatArray
    rows: GraphRows | None = field(init=False)
    """``beta W`` row by row; None where every pair of points has a weight."""

    def __post_init__(self) -> None:
        given = self.given
        rows = GraphRows.of(given) if sparse.issparse(given) else None
        object.__setattr__(self, "rows", given if isinstance(given, GraphRows) else rows)
        if not np.all(self.margin > 0):
            raise InputError(
                f"the smallest margin of a row is {self.margin.min():.3g}, but every one must be "
                "positive: each diagonal entry larger than the sum of its row's weights."
            )

    @classmethod
    def ran(cls, weights: sparse.csr_array, smoothness: float) -> System:
        """Return RAN's f-step, Eq. (7)."""
        return cls.coupled(2 * smoothness * weights)

    @classmethod
    def coupled(
        cls, couplings: sparse.csr_array | GraphRows, leak: FloatArray | float = 0.0
    ) -> System:
        """Return RAN's f-step for ``2 lambda W``.

        ``leak`` is the sum of each row's couplings to points outside, whose value is zero.
        """
        n_points = couplings.n_points if isinstance(couplings, GraphRows) else couplings.shape[0]
        ones = shared_ones(n_points)
        return cls(couplings, ones if np.isscalar(leak) and not leak else ones + leak, ones)

    @classmethod
    def walk(cls, weights: Weights, alpha: float, power: float) -> System:
        """Return ``f = alpha D^(p-1) W D^-p f + (1 - alpha) y``: p = 1 is PageRank, 1/2 manifold.

        A point without neighbours has its own row, with 1 for its degree.
        """
        weights = weights.astype(np.float64)  # the bounds are for the weights as they are given
        sums = np.asarray(weights.sum(axis=1))
        degrees = np.where(sums > 0, sums, 1.0)
        margin = np.where(sums > 0, (1 - alpha) * sums, 1.0)
        return cls(alpha * weights, margin, degrees**power)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.margin)

    @cached_property
    def couplings(self) -> Weights:
        """``beta W`` as an array, sparse or dense."""
        return self.given.csr() if isinstance(self.given, GraphRows) else self.given

    @cached_property
    def diagonal(self) -> FloatArray:
        """``C``: margins and the sums of the rows, in double precision."""
        if self.rows is not None:
            return self.margin + self.rows.sums
        sums: FloatArray = self.couplings.sum(axis=1, dtype=np.float64)
        return self.margin + sums

    @property
    def matrix(self) -> Any:
        """``A = C - beta W``, sparse or dense."""
        if self.rows is not None:
            return (sparse.diags_array(self.diagonal) - self.couplings).tocsr()
        return np.diag(self.diagonal) - self.couplings


def solution_of(
    system: System, matrix: Any, boundary: Boundary, x: FloatArray, **facts: Any
) -> Solution:
    """Turn values of all points into scores with a bound.

    The residual is measured again, and its own rounding is added: a few units in the last place
    of ``|A| |x| + |b|``. Scores that the bound cannot tell from zero are set to zero, since their
    order would be that of the solver's rounding; the bound grows by what was cut.
    """
    x = np.maximum(x, boundary.lowest)  # no exact value is below: this only brings it closer
    x[boundary.clamped] = boundary.values
    rhs = np.zeros(len(x))
    np.add.at(rhs, boundary.points, boundary.rhs)
    pull = np.zeros(len(x))
    np.add.at(pull, boundary.pulled, boundary.pull)
    product, size = matrix @ x, np.abs(x)
    residual = rhs - product - pull * x
    spread = matrix @ size if boundary.lowest < 0 else product
    sizes = 2 * matrix.diagonal() * size - spread + pull * size + np.abs(rhs)  # |A| |x| + |b|
    rounding = (longest_row(matrix) + len(boundary.pulled) + 8) * EPS * sizes
    error = np.abs(residual) + rounding
    error[boundary.clamped] = 0.0
    bound = error_bound(error, system.margin, system.scale)
    scores, bound = without_noise(system.scale * x, bound)
    scores[boundary.clamped] = system.scale[boundary.clamped] * boundary.values
    return Solution(np.arange(len(x)), scores, bound, n_touched=len(x), **facts)


def without_noise(scores: FloatArray, bound: float) -> tuple[FloatArray, float]:
    """Set scores to zero that the error bound cannot tell from zero; the bound grows by them."""
    blurred = np.abs(scores) <= bound
    cut = float(np.abs(scores[blurred]).max(initial=0.0))
    return np.where(blurred, 0.0, scores), bound + cut


def error_bound(residual: FloatArray, margin: FloatArray, scale: FloatArray) -> float:
    """Return the least of the three bounds of an error by its residual, see `System`."""
    if not len(residual):
        return 0.0
    roots = np.sqrt(margin)
    return min(
        float(scale.max()) * float((residual / margin).max()),
        float((scale / roots).max()) * float(np.linalg.norm(residual / roots)),
        float((scale / margin).max()) * float(residual.sum()),
    )


def longest_row(matrix: Any) -> int:
    """Return the largest number of terms that a row adds up."""
    if sparse.issparse(matrix):
        return int(np.diff(matrix.indptr).max(initial=0))
    return int(matrix.shape[1])
