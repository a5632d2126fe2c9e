"""RAN's graph: neighbour lists, their closed-form weights, and the graph that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from rankfold.check import check_count, check_neighbors, warn_caller
from rankfold.errors import InputError
from rankfold.neighbors import Engine, GivenEngine, Listing, choose_n_neighbors, live_points
from rankfold.neighbors.exact import DIFFUSE_NEIGHBORS, DIMENSION_NEIGHBORS
from rankfold.types import FloatArray, IntArray, Neighbors

Empty = Callable[..., Any]
"""How arrays of the size of all lists are made: ``numpy.empty``, or one that lies in a file."""

NEARLY_ZERO = 1e-12
"""Relative squared distance at which an unseen vector counts as a copy of a point."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""Weights below this are zero, so that every sum of weights is zero or has an inverse."""

BLOCK_ROWS = 2**14
"""Rows whose weights are computed at once."""

SMALL = 20_000
"""Up to so many points SciPy symmetrises sooner than compiled code is loaded."""

SAMPLE = 2000
"""Points whose lists are looked at where the number of neighbours is chosen without all lists."""


def adaptive_weights(
    sq_distances: FloatArray, n_neighbors: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the closed-form weights of the k nearest neighbours, Eq. (14) with Eq. (18).

    With the distances of row i ascending,
    ``s_ij = (d_{i,k+1} - d_ij) / (k d_{i,k+1} - sum_{j<=k} d_ij)`` and
    ``gamma_i = (k d_{i,k+1} - sum_{j<=k} d_ij) / 2``. Where the k+1 nearest are all at one
    distance this is 0/0, and each of the k gets 1/k. A row with m <= k neighbours uses
    the last of them as its (k+1)-th; a single neighbour gets all the weight.

    Parameters
    ----------
    sq_distances : array, shape (n_rows, width)
        Ascending; inf where a list has ended.
    n_neighbors : int

    Returns
    -------
    weights : array, shape (n_rows, n_neighbors)
        Every row with a neighbour sums to one.
    gamma : array, shape (n_rows,)
    reach : array, shape (n_rows,)
        The distance at which the weight falls to zero, ``d_{i,k+1}``.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_weights(np.array([[1.0, 2.0, 4.0]]), 2)[0]
    array([[0.6, 0.4]])
    """
    n_rows = len(sq_distances)
    missing = max(0, n_neighbors + 1 - sq_distances.shape[1])
    nearest = np.pad(
        sq_distances[:, : n_neighbors + 1], ((0, 0), (0, missing)), constant_values=np.inf
    )
    length = np.isfinite(nearest).sum(axis=1)
    reach = np.where(length > 0, nearest[np.arange(n_rows), np.maximum(length - 1, 0)], 0.0)
    present = np.isfinite(nearest[:, :n_neighbors])
    slack = np.where(present, reach[:, None] - np.where(present, nearest[:, :-1], 0.0), 0.0)
    total = slack.sum(axis=1)
    degenerate = total <= 0
    kept = np.maximum(length - 1, 1)[:, None]
    uniform = np.where(present & (np.arange(n_neighbors) < kept), 1.0 / kept, 0.0)
    weights = np.where(
        degenerate[:, None], uniform, slack / np.where(degenerate, 1.0, total)[:, None]
    )
    return weights, total / 2, reach


def projected_weights(sq_distances: FloatArray, gamma: float) -> tuple[FloatArray, FloatArray]:
    """Project ``-d_i / (2 gamma)`` on the simplex, Eq. (12), for every row.

    The solution is ``s_ij = (t_i - d_ij)_+ / (2 gamma)`` with the threshold
    ``t_i = 2 gamma eta_i`` that makes the row sum to one. For ``gamma = 0`` the weight is
    shared by the nearest points alone.

    Parameters
    ----------
    sq_distances : array, shape (n_rows, width)
        Ascending; inf where a list has ended.
    gamma : float

    Returns
    -------
    weights : array, shape (n_rows, width)
    threshold : array, shape (n_rows,)
        No point at or beyond this distance can have any weight.

    Examples
    --------
    >>> import numpy as np
    >>> projected_weights(np.array([[1.0, 2.0, 4.0]]), gamma=2.5)
    (array([[0.6, 0.4, 0. ]]), array([4.]))
    """
    present = np.isfinite(sq_distances)
    nearest = np.where(present[:, :1], sq_distances[:, :1], 0.0)
    # Only differences matter to the projection, and small ones survive this way.
    beyond = np.where(present, sq_distances - nearest, 0.0)
    counts = np.arange(1, sq_distances.shape[1] + 1)
    thresholds = (2 * gamma + np.cumsum(beyond, axis=1)) / counts
    support = np.maximum((present & (thresholds > beyond)).sum(axis=1), 1)
    threshold = thresholds[np.arange(len(beyond)), support - 1][:, None]
    weights = np.where(present, np.maximum(threshold - beyond, 0.0), 0.0)
    undecided = weights.sum(axis=1, keepdims=True) <= 0
    weights = np.where(undecided, present & (beyond <= 0), weights)
    totals = weights.sum(axis=1, keepdims=True)
    return weights / np.where(totals > 0, totals, 1.0), (nearest + threshold)[:, 0]


def interpolating(weights: FloatArray, relative_sq_distances: FloatArray) -> FloatArray:
    """Return ``w / x``, the weights of an unseen vector at relative squared distances x.

    Plain weights hardly tell a copy of a point from something in its neighbourhood. These grow
    without end as the vector comes near a point (up to a factor of ``1e12``), so that it
    becomes that point, and in no other place do they jump.

    Examples
    --------
    >>> import numpy as np
    >>> interpolating(np.array([0.6, 0.4]), np.array([0.5, 0.8]))
    array([1.2, 0.5])
    """
    scaled = weights / np.maximum(relative_sq_distances, NEARLY_ZERO)
    return np.where(scaled < SMALLEST, 0.0, scaled)


def affinity_matrix(indices: IntArray, weights: FloatArray, n_columns: int) -> sparse.csr_array:
    """Collect weights of neighbour lists in a sparse matrix S, one row per list."""
    kept = weights > 0
    rows = np.nonzero(kept)[0]
    shape = (len(indices), n_columns)
    return sparse.csr_array((weights[kept], (rows, indices[kept])), shape=shape)


def symmetrize(affinity: sparse.csr_array) -> sparse.csr_array:
    """Return ``W = (S + S') / 2``.

    Rows of S beyond its columns belong to points outside the database, which no other
    point has as a neighbour; they become points of W like all others.
    """
    n_rows, n_columns = affinity.shape
    if n_rows > n_columns:
        affinity = affinity.copy()
        affinity.resize((n_rows, n_rows))
    return ((affinity + affinity.T) / 2).tocsr()


class ClosedForm(NamedTuple):
    """Weights of lists, and what all queries need to know of them.

    Parameters
    ----------
    indices : array of int, shape (n_rows, n_neighbors)
    weights : array of float, shape (n_rows, n_neighbors)
        Rows of S, in the precision of the distances.
    gamma : float
        Mean of the ``gamma_i``.
    end : float
        Mean squared distance at which weights end, ``d_{i,k+1}``.
    cost : float
        ``sum_ij d_ij s_ij``.
    """

    indices: IntArray
    weights: FloatArray
    gamma: float
    end: float
    cost: float

    @classmethod
    def of(
        cls,
        neighbors: Neighbors,
        n_neighbors: int,
        n_points: int | None = None,
        empty: Empty = np.empty,
    ) -> ClosedForm:
        """Apply the closed form to every list, block by block.

        Means are over ``n_points``, as many as there are lists by default: lists of points that
        were removed are empty and do not count. ``empty(shape, dtype)`` makes the arrays.
        """
        nearest = neighbors.sq_distances[:, : n_neighbors + 1]
        chosen = neighbors.indices[:, :n_neighbors]
        indices = empty(chosen.shape, chosen.dtype)
        weights = empty(chosen.shape, nearest.dtype)
        gamma = end = cost = 0.0
        for start in range(0, len(indices), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            distances = nearest[rows].astype(np.float64)
            found, gammas, ends = adaptive_weights(distances, n_neighbors)
            found = found[:, : indices.shape[1]]
            indices[rows], weights[rows] = chosen[rows], found
            used = np.where(found > 0, distances[:, : indices.shape[1]], 0.0)
            gamma += float(gammas.sum())
            end += float(ends.sum())
            cost += float(np.sum(found * used))
        n_rows = max(1, len(indices) if n_points is None else n_points)
        return cls(indices, weights, gamma / n_rows, end / n_rows, cost)

    def affinity(self, n_points: int) -> sparse.csr_array:
        """Return S, one row per list."""
        return affinity_matrix(self.indices, self.weights, n_points)

    def symmetric(self, empty: Empty = np.empty) -> sparse.csr_array:
        """Return ``W = (S + S') / 2`` for the lists of a whole database.

        In double precision, or where memory matters, in that of the lists; ``empty(shape, dtype)``
        makes the arrays of a large one.
        """
        n_points = len(self.indices)
        if n_points <= SMALL:
            return symmetrize(self.affinity(n_points))
        from rankfold.graph.symmetric import link  # compiled code, loaded when it is used

        return link(self.indices, self.weights, empty)


class AdaptiveGraph(BaseEstimator):
    """RAN's closed-form graph, ``W = (S + S') / 2``.

    ``s_ij = (d_{i,k+1} - d_ij) / (k d_{i,k+1} - sum_{j<=k} d_ij)`` for the k nearest, Eq. (14)
    with Eq. (18): exactly k neighbours, no bandwidth, the same in every unit of distance.

    Parameters
    ----------
    n_neighbors : int or "auto"
        "auto" chooses 10 on clean manifolds and 20 in diffuse data; ``n_neighbors_`` says which.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold import ExactEngine
    >>> engine = ExactEngine(np.array([[0.0], [1.0], [2.5], [4.5]]))
    >>> AdaptiveGraph(n_neighbors=1).build(engine).toarray()
    array([[0. , 1. , 0. , 0. ],
           [1. , 0. , 0.5, 0. ],
           [0. , 0.5, 0. , 0.5],
           [0. , 0. , 0.5, 0. ]])
    """

    def __init__(self, n_neighbors: int | Literal["auto"] = "auto") -> None:
        self.n_neighbors = n_neighbors

    def build(self, engine: Engine) -> sparse.csr_array:
        """Return the symmetric weights of the points of the database."""
        check_neighbors(self.n_neighbors)
        lists, self.n_neighbors_ = candidate_lists(engine, self.n_neighbors, 2)
        return ClosedForm.of(lists, self.n_neighbors_).symmetric()

    def attach(self, engine: Engine, vectors: FloatArray) -> sparse.csr_array:
        """Return ``(s_j / 2) d_{k+1} / d_j``: vectors choose neighbours, nobody chooses them."""
        lists = engine.search(vectors, self.n_neighbors_ + 1)
        weights, _, reach = adaptive_weights(lists.sq_distances, self.n_neighbors_)
        nearest = lists.head(self.n_neighbors_)
        relative = nearest.sq_distances / np.where(reach > 0, reach, 1.0)[:, None]
        return affinity_matrix(
            nearest.indices, interpolating(weights, relative) / 2, engine.n_points
        )


def candidate_lists(
    engine: Engine,
    n_neighbors: int | Literal["auto"],
    n_left_out: int,
    least_width: int = 0,
) -> tuple[Neighbors, int]:
    """Return neighbour lists of the database and the number of neighbours to use.

    The lists are about twice as long as that number, so that "auto" can measure the dimension
    and graphs that change find candidates; ``least_width`` asks for more. At least ``n_left_out``
    points are not neighbours of a point: the point itself, and one more where the graph needs it
    for the scale.

    Given lists are as long as they are. "auto" keeps to what half of them have; another number
    must be reached by some, and where others are shorter, which is said, points use what they have.
    """
    n_points, automatic = engine.n_alive, isinstance(n_neighbors, str)
    most = max(1, n_points - n_left_out)
    chosen = DIFFUSE_NEIGHBORS
    if not isinstance(n_neighbors, str):
        chosen = at_most(n_neighbors, most, n_points)
    width = max(stored_width(chosen, n_points), min(least_width, n_points - 1))
    lists = engine.rows(np.arange(engine.n_points), width)
    if automatic:
        chosen = min(choose_n_neighbors(lists), most)
    if isinstance(engine, GivenEngine):
        chosen = _given_neighbors(engine, chosen, n_left_out - 1, automatic)
    if automatic:
        lists = lists.head(max(stored_width(chosen, n_points), least_width))
    return lists, chosen


def _given_neighbors(engine: GivenEngine, asked: int, n_more: int, automatic: bool) -> int:
    """Return a number of neighbours that given lists have, with ``n_more`` beyond for the scale."""
    lengths = engine.lengths
    if automatic:
        return max(1, min(asked, int(np.median(lengths)) - n_more))
    needed, longest, short = asked + n_more, int(lengths.max()), lengths < asked + n_more
    beyond = f" ({n_more} more for the scale)" if n_more else ""
    if longest < needed:
        raise InputError(
            f"n_neighbors={asked} needs lists of {needed} neighbours{beyond}, but the longest list "
            f"of the graph has {longest}, the point itself not counted; give a graph with more "
            f"neighbours, or n_neighbors={max(1, longest - n_more)} or less.",
            "n_neighbors",
        )
    if short.any():
        warn_caller(
            f"n_neighbors={asked} needs lists of {needed} neighbours{beyond}, but "
            f"{np.count_nonzero(short)} of {len(lengths)} lists of the graph are shorter, that of "
            f"point {int(np.argmin(lengths))} with {int(lengths.min())} the shortest; these points "
            "use what they have.",
        )
    return asked


def at_most(n_neighbors: int, most: int, n_points: int) -> int:
    """Return a number of neighbours that there are points for; warn where it is a smaller one."""
    if n_neighbors > most:
        warn_caller(
            f"n_neighbors={n_neighbors} is too large for {n_points} points, of which a point is "
            "not its own neighbour, and an adaptive graph needs one more for the scale; "
            f"using {most}.",
        )
    return min(n_neighbors, most)


def choose_from_sample(engine: Listing, n_neighbors: int | Literal["auto"], seed: int = 0) -> int:
    """Return the number of neighbours to use; "auto" looks at the lists of some points only."""
    if not (isinstance(n_neighbors, str) and n_neighbors == "auto"):
        return check_count(n_neighbors, "n_neighbors")
    live = live_points(engine)
    sample = np.random.default_rng(seed).permutation(live)[:SAMPLE]
    return choose_n_neighbors(engine.rows(np.sort(sample), DIMENSION_NEIGHBORS))


def stored_width(n_neighbors: int, n_points: int) -> int:
    """Return how many candidates to keep: twice what the closed form reads, k+1 at least."""
    return min(max(DIMENSION_NEIGHBORS, 2 * (n_neighbors + 1)), max(1, n_points - 1))
