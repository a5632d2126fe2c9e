"""The lowest eigenvectors of a graph's Laplacian."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Event
from typing import NamedTuple, Self

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from rankfold.parallel import in_order
from rankfold.types import FloatArray

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
