"""Distances by differences, never by products: nothing cancels, duplicates are at zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import spatial

from rankfold.check import check_directions, check_matrix, check_single_precision
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors, Query

if TYPE_CHECKING:
    from rankfold.neighbors.engine import Engine


BLOCK_ROWS = 2**14
ORIGIN_SAMPLE = 1000
SMALLEST = 1e-15
"""Squared distances of data that is smaller throughout would vanish in float32."""

GIVEN_METRICS = ("precomputed", "precomputed_sq")
"""Those that say that distances are given, plain or squared."""

INTERPRETED_LIMIT = 20_000
"""Up to this many points nothing is worth compiling for."""


@dataclass(frozen=True, eq=False)
class SinglePrecision:
    """How vectors become float32: moved to an origin, or scaled to length one.

    Parameters
    ----------
    unit : bool
        Whether vectors are scaled to length one.
    origin : array, shape (n_features,), optional
        Where float64 data is moved from, since what is far from zero loses digits in
        float32. It is a point of the data, so that whole numbers stay whole numbers.
    """

    unit: bool
    origin: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray, metric: str) -> tuple[SinglePrecision, FloatArray]:
        """Choose the form for a database, and return the database in it."""
        X = check_matrix(X, "X")
        if metric == "euclidean":
            check_single_precision(X, "X", SMALLEST)
        form = cls(metric == "cosine", _amid(X) if metric == "euclidean" else None)
        return form, form._convert(X, "X")

    def apply(self, vectors: FloatArray, name: str, n_features: int) -> FloatArray:
        """Check vectors and bring them into the form of the database."""
        return self._convert(check_matrix(vectors, name, n_features), name)

    def _convert(self, vectors: FloatArray, name: str) -> FloatArray:
        if not self.unit:
            check_single_precision(vectors, name)
        if self.origin is None and not self.unit:
            return np.ascontiguousarray(vectors, dtype=np.float32)
        converted = np.empty(vectors.shape, dtype=np.float32)
        for start in range(0, len(vectors), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            if self.origin is not None:
                converted[rows] = vectors[rows] - self.origin
            else:
                wide = check_directions(vectors[rows], name, start)
                converted[rows] = wide / np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
        return converted


def _amid(X: FloatArray) -> FloatArray | None:
    """Return a point in the middle of a sample of the data; None for data in float32 already."""
    if X.dtype == np.float32 or not len(X):
        return None
    sample = X[:: -(-len(X) // ORIGIN_SAMPLE)]
    to_mean = np.abs(sample - sample.mean(axis=0)).sum(axis=1)
    middle: FloatArray = sample[np.argmin(to_mean)].copy()
    return middle


def row_blocks(n_rows: int, row_size: int, block_bytes: int) -> list[slice]:
    """Cut rows into blocks that hold at most so many bytes of float64 each."""
    step = max(1, block_bytes // (8 * max(1, row_size)))
    return [slice(start, start + step) for start in range(0, n_rows, step)]


def measured_row(points: FloatArray, query: FloatArray, block_bytes: int) -> FloatArray:
    """Return the squared distance of every point to one vector."""
    row = np.empty(len(points))
    for block in row_blocks(len(points), points.shape[1], block_bytes):
        row[block] = spatial.distance.cdist(query[None, :], points[block], "sqeuclidean")[0]
    return row


def sq_distances_between(some: FloatArray, points: FloatArray, rows: IntArray) -> FloatArray:
    """Return the squared distance of each of some vectors to certain rows of all points."""
    sq_distances: FloatArray = np.empty((len(some), len(rows)))
    if len(points) > INTERPRETED_LIMIT and points.dtype == np.float32:
        from rankfold.neighbors.kernels import sq_distances_among  # compiled, loaded when used

        for place, one in enumerate(some):
            sq_distances[place] = sq_distances_among(points, rows, one.astype(np.float32))
    else:
        sq_distances[:] = spatial.distance.cdist(some, points[rows], "sqeuclidean")
    return sq_distances


def positive_shares(query: Query) -> FloatArray:
    """Return each example's share of what is looked for; negative examples have none."""
    positive = np.maximum(query.weights, 0.0)
    shares: FloatArray = positive / positive.sum()
    return shares


def measured_candidates(
    points: FloatArray, queries: FloatArray, candidates: IntArray
) -> FloatArray:
    """Return the squared distances of each query to its own candidates.

    Each is the same to the last digit as in `measure_all`, so that ties stay ties.
    """
    rows = zip(queries, candidates, strict=True)
    return np.stack(
        [
            spatial.distance.cdist(query[None, :], points[near], "sqeuclidean")[0]
            for query, near in rows
        ]
    )


def plain_sq_distances(engine: Engine, query: Query) -> FloatArray:
    """Return each point's squared distance to the query.

    For several examples this is the mean of the squared distances to each, by weight; up
    to a constant, the squared distance to their weighted centre. Negative examples do not count.
    """
    return mean_sq_distances(engine, query, positive_shares(query))


def mean_sq_distances(engine: Engine, query: Query, shares: FloatArray) -> FloatArray:
    """Return the sum of each point's squared distances to the examples, each by its share."""
    used, n_indices = shares != 0, len(query.indices)
    rows = engine.sq_distances(query.indices[used[:n_indices]], query.vectors[used[n_indices:]])
    total = np.zeros(engine.n_points)
    for share, row in zip(shares[used], rows, strict=True):
        total += share * row
    return total


def nearest_columns(sq_distances: FloatArray, k: int, own: IntArray | None) -> Neighbors:
    """Return the ``k`` smallest entries of every row, ties by column, without ``own``."""
    n_rows, n_columns = sq_distances.shape
    width = min(k + 1, n_columns)
    edge = np.partition(sq_distances, width - 1, axis=1)[:, width - 1 : width]
    rows, columns = np.nonzero(sq_distances <= edge)
    values = sq_distances[rows, columns]
    order = np.lexsort((columns, values, rows))
    starts = np.searchsorted(rows, np.arange(n_rows))
    place = np.arange(len(rows)) - starts[rows]
    kept = place < width
    chosen = order[kept].reshape(n_rows, width)
    return merge_lists([Neighbors(columns[chosen], values[chosen])], k, own)


def without_unknown(lists: Neighbors) -> Neighbors:
    """Return lists that end where known distances do."""
    nobody = np.where(np.isinf(lists.sq_distances), NOBODY, lists.indices)
    return Neighbors(nobody, lists.sq_distances)


def measure_all(
    points: FloatArray,
    queries: FloatArray,
    k: int,
    own: IntArray | None,
    block_bytes: int,
    alive: BoolArray | None = None,
) -> Neighbors:
    """Find the ``k`` nearest by measuring every distance, in blocks of rows and of columns.

    Only points that are ``alive`` are found; all of them by default.
    """
    found = []
    columns = max(k + 1, int(np.sqrt(block_bytes / 8)))
    for rows in row_blocks(len(queries), columns, block_bytes):
        block_own = None if own is None else own[rows]
        parts = []
        for start in range(0, len(points), columns):
            sq_distances = spatial.distance.cdist(
                queries[rows], points[start : start + columns], "sqeuclidean"
            )
            if alive is not None:
                sq_distances[:, ~alive[start : start + columns]] = np.inf
            part = nearest_columns(sq_distances, k + 1, None)
            shifted = np.where(np.isinf(part.sq_distances), NOBODY, part.indices + start)
            parts.append(Neighbors(shifted, part.sq_distances))
        found.append(merge_lists(parts, k, block_own))
    return stack_lists(found, k)


def merge_lists(parts: Sequence[Neighbors], width: int, own: IntArray | None = None) -> Neighbors:
    """Join lists that speak of the same rows into one sorted list of ``width``.

    This is the one place that decides whether a point is its own neighbour:
    index ``own[i]`` never enters row ``i``. An index found twice counts once,
    at its smaller distance.

    Parameters
    ----------
    parts : sequence of Neighbors
        Lists with equal numbers of rows, in any order within a row.
    width : int
        Length of the merged lists; short ones are filled up.
    own : array of int, shape (n_rows,), optional
        The index each row has in the database, -1 where it has none.

    Examples
    --------
    >>> import numpy as np
    >>> near = Neighbors(np.array([[0, 4]]), np.array([[0.0, 2.0]]))
    >>> far = Neighbors(np.array([[7, 4]]), np.array([[1.0, 2.0]]))
    >>> merge_lists([near, far], width=3, own=np.array([0])).indices
    array([[ 7,  4, -1]])
    """
    indices = np.concatenate([part.indices for part in parts], axis=1)
    sq_distances = np.concatenate([part.sq_distances for part in parts], axis=1)
    if own is not None:
        indices = np.where(indices == own[:, None], NOBODY, indices)
    indices, sq_distances = _sort_rows(indices, sq_distances, by_index_first=True)
    repeated = np.zeros(indices.shape, dtype=bool)
    repeated[:, 1:] = indices[:, 1:] == indices[:, :-1]
    indices = np.where(repeated, NOBODY, indices)
    sq_distances = np.where(indices == NOBODY, np.inf, sq_distances)
    indices, sq_distances = _sort_rows(indices, sq_distances)
    missing = max(0, width - indices.shape[1])
    return Neighbors(
        np.pad(indices[:, :width], ((0, 0), (0, missing)), constant_values=NOBODY),
        np.pad(sq_distances[:, :width], ((0, 0), (0, missing)), constant_values=np.inf),
    )


def stack_lists(blocks: Sequence[Neighbors], width: int) -> Neighbors:
    """Put lists of different rows below each other; each is so long."""
    if not blocks:
        return Neighbors(np.empty((0, width), dtype=np.intp), np.empty((0, width)))
    return Neighbors(
        np.concatenate([block.indices for block in blocks]),
        np.concatenate([block.sq_distances for block in blocks]),
    )


def _sort_rows(
    indices: IntArray, sq_distances: FloatArray, by_index_first: bool = False
) -> tuple[IntArray, FloatArray]:
    keys = (sq_distances, indices) if by_index_first else (indices, sq_distances)
    order = np.lexsort(keys, axis=-1)
    return np.take_along_axis(indices, order, 1), np.take_along_axis(sq_distances, order, 1)
