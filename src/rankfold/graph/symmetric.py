"""The symmetric graph in CSR form: degrees, transition matrices, and the lowest eigenvectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import Any, NamedTuple, Self

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from rankfold.parallel import in_order
from rankfold.solvers.system import GraphRows
from rankfold.types import FloatArray, IntArray, Weights

Lists = tuple[IntArray, FloatArray]

DENSE_LIMIT = 2000
"""Up to so many points all eigenvectors are found at once."""

SPARE = 0.25
"""How many more vectors than are wanted are iterated, beside them: the last converge slowest."""

COLUMNS = 32
"""Vectors that one thread filters at once; a row of them fills two lines of the cache."""

BLOCK_ROWS = 2**14
"""Rows of tall matrices that are multiplied at once, and added up in double precision."""

AMPLIFICATION = {"float32": 3e3, "float64": 1e7}
"""How much a filter may lift what is wanted above the rest, so that rounding does not show."""

MOST_FILTERS = 30
"""Filters after which the iteration ends, converged or not."""


def link(
    indices: IntArray, weights: FloatArray, empty: Callable[..., Any] = np.empty
) -> sparse.csr_array:
    """Return ``W = (S + S') / 2`` of lists, like ``symmetrize(affinity_matrix(...))``.

    S itself and its transpose are never made, which is what takes the memory there. Entries of
    a row are not sorted: first the point's own neighbours, then those that chose it.

    Parameters
    ----------
    indices : array of int, shape (n_points, width)
    weights : array of float, shape (n_points, width)
        Rows of S; an entry that is not positive is no edge.

    Examples
    --------
    >>> import numpy as np
    >>> link(np.array([[1], [2], [1]], dtype=np.int32), np.ones((3, 1))).toarray()
    array([[0. , 0.5, 0. ],
           [0.5, 0. , 1. ],
           [0. , 1. , 0. ]])
    """
    from rankfold.graph.kernels import count, fill  # compiled, loaded when used

    n_points = len(indices)
    # Slices are another type, for which all would be compiled once more.
    indices, weights = np.ascontiguousarray(indices), np.ascontiguousarray(weights)
    counts = np.zeros(n_points, dtype=np.int64)
    count(indices, weights, counts)
    total = int(counts.sum())
    wide = np.int32 if total < np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(n_points + 1, dtype=wide)
    np.cumsum(counts, out=indptr[1:])
    columns, data = empty((total,), wide), empty((total,), weights.dtype)
    fill(indices, weights, indptr[:-1].copy(), columns, data)
    return sparse.csr_array((data, columns, indptr), shape=(n_points, n_points))


def relink(
    graph: GraphRows,
    changed: IntArray,
    lists_of: Callable[[IntArray], Lists],
    n_points: int,
    factor: float,
) -> None:
    """Let ``factor (S + S') / 2`` follow lists of which a few have changed; the rest stays.

    It is then what `link` makes of all lists, but for the order of entries in a row.

    Parameters
    ----------
    graph : GraphRows
        The same of the lists before; points that are new have no row in it.
    changed : array of int
        Rows of S that differ, new ones among them.
    lists_of : callable
        Returns rows of S as they are now, as `link` takes them; an entry that is not positive is
        no edge.
    n_points : int
        How many points there are now.
    factor : float

    Examples
    --------
    >>> import numpy as np
    >>> before = np.array([[1], [0], [0]], dtype=np.int32), np.ones((3, 1))
    >>> after = np.array([[1], [2], [0]], dtype=np.int32), np.ones((3, 1))
    >>> graph = GraphRows.of(link(*before))
    >>> relink(graph, np.array([1]), lambda rows: (after[0][rows], after[1][rows]), 3, 1.0)
    >>> graph.csr().toarray()
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    n_before = graph.n_points
    _, have = _edges(lists_of(changed))
    # A neighbour of a changed row may have been chosen by it.
    rows = np.unique(np.concatenate([changed, graph.neighbors(changed[changed < n_before]), have]))
    # Who chooses one of these rows did so before, or has changed.
    around = np.union1d(rows, graph.neighbors(rows[rows < n_before]))
    fresh = _fresh_rows(lists_of(around), around, rows, n_points)
    graph.replace(rows, fresh.indptr, fresh.indices, factor * fresh.data, n_points)


def _edges(lists: Lists) -> tuple[IntArray, IntArray]:
    """Return the edges of some rows of S: places among the rows, and where they lead."""
    place, entry = np.nonzero(lists[1] > 0)
    return place, lists[0][place, entry]


def _fresh_rows(lists: Lists, around: IntArray, rows: IntArray, n_points: int) -> sparse.csr_array:
    """Return ``(S + S') / 2`` at some rows; they, and all that choose one of them, are around."""
    source, target = _edges(lists)
    given, source = lists[1][lists[1] > 0] / 2, around[source]
    wanted = np.zeros(n_points, dtype=bool)
    wanted[rows] = True
    own, received = wanted[source], wanted[target]
    row = np.searchsorted(rows, np.concatenate([source[own], target[received]]))
    column = np.concatenate([target[own], source[received]])
    weights = np.concatenate([given[own], given[received]])
    fresh = sparse.csr_array((weights, (row, column)), shape=(len(rows), n_points))
    fresh.sum_duplicates()
    return fresh


def degrees(weights: Weights) -> FloatArray:
    """Return the sum of every row."""
    sums: FloatArray = np.asarray(weights.sum(axis=1))
    return sums


def inverse(values: FloatArray) -> FloatArray:
    """Return ``1 / v``, and 0 where ``v`` is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def scale_rows(weights: Weights, factors: FloatArray) -> Weights:
    """Multiply every row by its factor."""
    if sparse.issparse(weights):
        return (sparse.diags_array(factors) @ weights).tocsr()
    return weights * factors[:, None]


def random_walk(weights: Weights, laziness: float = 0.0) -> Weights:
    """Return ``P = laziness I + (1 - laziness) D^-1 W``; rows sum to one.

    The walk from a point without neighbours ends there: its row of ``D^-1 W`` is zero.

    Examples
    --------
    >>> import numpy as np
    >>> random_walk(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0], [3.0, 0.0, 0.0]]))
    array([[0.  , 0.25, 0.75],
           [1.  , 0.  , 0.  ],
           [1.  , 0.  , 0.  ]])
    """
    steps = scale_rows(weights, (1 - laziness) * inverse(degrees(weights)))
    if not laziness:
        return steps
    stay = laziness * sparse.eye_array(weights.shape[0], format="csr")
    if sparse.issparse(steps):
        return (steps + stay).tocsr()
    steps[np.diag_indices_from(steps)] += laziness
    return steps


def symmetric_walk(weights: Weights) -> Weights:
    """Return ``S = D^-1/2 W D^-1/2``, whose eigenvalues lie between -1 and 1."""
    roots = np.sqrt(inverse(degrees(weights)))
    scaled = scale_rows(weights, roots)
    if sparse.issparse(scaled):
        return (scaled @ sparse.diags_array(roots)).tocsr()
    return scaled * roots


def strongest(weights: Weights, n_neighbors: int | None) -> Weights:
    """Keep the largest weights of every row, ties by index; all of them for None.

    Examples
    --------
    >>> import numpy as np
    >>> strongest(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]), 1).toarray()
    array([[0., 0., 3.],
           [0., 0., 2.],
           [3., 0., 0.]])
    """
    if n_neighbors is None:
        return weights
    edges = sparse.csr_array(weights).tocoo()
    order = np.lexsort((edges.col, -edges.data, edges.row))
    rows = edges.row[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = order[place < n_neighbors]
    return sparse.csr_array(
        (edges.data[kept], (edges.row[kept], edges.col[kept])), shape=weights.shape
    )


class _Bar:
    """A bar on stderr, if one is wanted."""

    def __init__(self, shown: bool) -> None:
        self._bar = Progress(console=Console(stderr=True), transient=True, disable=not shown)
        self._task = self._bar.add_task("eigenvectors", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Say how far it has come."""
        self._bar.update(self._task, description=text)


class Spectrum(NamedTuple):
    """Eigenvalues, ascending, their vectors, and whether they have settled."""

    values: FloatArray
    vectors: FloatArray
    converged: bool


class SpectrumSolver:
    """Finds the lowest eigenvectors of a graph's Laplacian by filtered subspace iteration.

    A block of vectors is multiplied by a Chebyshev polynomial of the Laplacian, which is at most
    one in size where nothing is wanted, between the largest eigenvalue of the block and that of the
    graph, and grows quickly below. Then the block is made orthogonal and turned to its own
    eigenvectors (Rayleigh-Ritz), and so on. Products with the sparse matrix are all that touches
    it, each thread has columns of its own, and memory is two blocks of N (1.25 r) numbers.
    """

    def __init__(
        self,
        weights: sparse.csr_array,
        smoothness: float,
        tol: float,
        dtype: str,
        seed: int,
        n_jobs: int,
        progress: bool,
    ) -> None:
        self.n_points, self.dtype, self.tol = weights.shape[0], np.dtype(dtype), tol
        self.spread, self.n_jobs, self.bar = 2 * smoothness, n_jobs, _Bar(progress)
        self.rng = np.random.default_rng(seed)
        self.weights = weights.astype(np.float64)
        degrees = np.asarray(self.weights.sum(axis=1)).ravel()
        self.laplacian = (sparse.diags_array(degrees) - self.weights).tocsr()
        self.middle = float(np.median(degrees))

    def find(self, wanted: int) -> Spectrum:
        """Return so many of the lowest."""
        width = wanted + max(16, int(SPARE * wanted))
        if self.n_points <= DENSE_LIMIT or 2 * width > self.n_points:
            ends = (0, wanted - 1)
            values, vectors = eigh(self.laplacian.toarray(), subset_by_index=ends)
            return Spectrum(np.maximum(values, 0.0), _signed(vectors), True)
        with self.bar:
            return self._iterated(wanted, width)

    def _iterated(self, wanted: int, width: int) -> Spectrum:
        self.laplacian = self.laplacian.astype(self.dtype)
        top = self._largest()
        block = self.rng.standard_normal((self.n_points, width)).astype(self.dtype)
        edge, before = min(self.middle / 2, top / 2), 0.0
        values: FloatArray = np.empty(0)
        for number in range(1, MOST_FILTERS + 1):
            block = self._filtered(block, edge, top, f"eigenvectors, iteration {number}")
            values, block = self._turned(block, width)
            captured = float(np.sum(1 / (1 + self.spread * values[:wanted])))
            self.bar.say(f"eigenvectors: iteration {number}, {captured:.3f} captured")
            if captured - before <= self.tol * captured:
                return Spectrum(values[:wanted], _signed(block[:, :wanted]), True)
            edge, before = float(values[-1]), captured
        return Spectrum(values[:wanted], _signed(block[:, :wanted]), False)

    def _largest(self) -> float:
        """Return a little more than the largest eigenvalue."""
        start = self.rng.standard_normal(self.n_points).astype(self.dtype)
        found = eigsh(
            self.laplacian, k=1, which="LA", tol=1e-2, v0=start, return_eigenvectors=False
        )
        return 1.02 * float(found[0])

    def _filtered(self, block: FloatArray, edge: float, top: float, label: str) -> FloatArray:
        """Apply the longest filter that this precision bears, columns by columns."""
        centre, half = (top + edge) / 2, (top - edge) / 2
        degree = int(np.arccosh(AMPLIFICATION[self.dtype.name]) / np.arccosh(centre / half))
        degree = max(2, degree)
        shifted = self.laplacian - centre * sparse.eye_array(self.n_points, format="csr")
        twice = (shifted * (2 / half)).tocsr().astype(self.dtype)

        ended = Event()

        def filtered(start: int) -> FloatArray:
            before = np.ascontiguousarray(block[:, start : start + COLUMNS])
            now: FloatArray = twice @ before
            now /= 2
            for _ in range(degree - 1):
                if ended.is_set():
                    break
                after = twice @ now
                after -= before
                before, now = now, after
            return now

        starts = range(0, block.shape[1], COLUMNS)
        done: Iterable[FloatArray] = in_order(filtered, starts, self.n_jobs, False, ended=ended)
        return self._gathered(done, block.shape[1], label)

    def _gathered(self, parts: Iterable[FloatArray], width: int, label: str) -> FloatArray:
        found = np.empty((self.n_points, width), dtype=self.dtype)
        start = 0
        for part in parts:
            found[:, start : start + part.shape[1]] = part
            start += part.shape[1]
            self.bar.say(f"{label}, {start / width:.0%}")
        return found

    def _turned(self, block: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
        """Make a block orthonormal, and turn it to the eigenvectors of its space."""
        block = self._orthonormal(block)
        if block.shape[1] < width:  # the filter left fewer directions than precision tells apart
            more = self.rng.standard_normal((self.n_points, width - block.shape[1]))
            block = self._orthonormal(np.hstack([block, more.astype(self.dtype)]))
        starts = range(0, block.shape[1], COLUMNS)
        parts = in_order(
            lambda start: self.laplacian @ np.ascontiguousarray(block[:, start : start + COLUMNS]),
            starts, self.n_jobs, False,
        )  # fmt: skip
        projected = np.empty((block.shape[1], block.shape[1]))
        for start, part in zip(starts, parts, strict=True):
            projected[:, start : start + part.shape[1]] = _product(block, part)
        values, turn = np.linalg.eigh((projected + projected.T) / 2)
        return np.maximum(values, 0.0), _multiplied(block, turn)

    def _orthonormal(self, block: FloatArray) -> FloatArray:
        """Orthonormalise columns by their products, twice; drop those that depend on others."""
        for _ in range(2):
            block /= np.sqrt(np.einsum("ij,ij->j", block, block, dtype=np.float64))
            sizes, turn = np.linalg.eigh(_product(block, block))
            kept = sizes > 10 * block.shape[1] * np.finfo(self.dtype).eps
            block = _multiplied(block, turn[:, kept] / np.sqrt(sizes[kept]))
        return block


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK_ROWS) for start in range(0, n_rows, BLOCK_ROWS))


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``left' right`` of tall matrices, added up in double precision."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for rows in _blocks(len(left)):
        total += left[rows].T @ right[rows]
    return total


def _multiplied(block: FloatArray, turn: FloatArray) -> FloatArray:
    """Return ``block turn`` in the place of the block, where it is no wider."""
    turn = turn.astype(block.dtype)
    for rows in _blocks(len(block)):
        block[rows, : turn.shape[1]] = block[rows] @ turn
    turned: FloatArray = block[:, : turn.shape[1]]
    return turned


def _signed(vectors: FloatArray) -> FloatArray:
    """Turn every vector so that its largest entry is positive."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    vectors *= np.where(signs == 0, 1, signs).astype(vectors.dtype)
    return vectors
