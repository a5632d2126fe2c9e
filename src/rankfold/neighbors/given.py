"""Neighbour lists from elsewhere, as an engine: a graph that was given, or one that was learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from os import urandom
from typing import Any, NamedTuple

import numpy as np

from rankfold.check import ZERO, check_choice, check_distances, check_vectors
from rankfold.errors import InputError
from rankfold.neighbors.distances import (
    GIVEN_METRICS,
    merge_lists,
    nearest_columns,
    plain_sq_distances,
    without_unknown,
)
from rankfold.neighbors.engine import Engine
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors, Query

ENTRIES = 2**18
"""Entries of a graph that are compared at once."""


class GivenEngine:
    """The lists of a sparse graph of distances, of any length each; nothing is searched.

    Row i holds the distances of point i to its neighbours, as scikit-learn, pynndescent and
    scanpy make such graphs. An entry that is stored is a distance, also where it is zero: a
    duplicate. One that is not stored is unknown. Only row i speaks for point i, so that the
    graph need not be symmetric. The diagonal may be there or not; a point is never its own
    neighbour.

    What is not in a list is at distance inf. Vectors from anywhere are rows of such a graph.

    Parameters
    ----------
    graph : sparse array or matrix, shape (n_points, n_points)
    metric : {"precomputed", "precomputed_sq"}
        Whether its entries are squared or used as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> graph = kneighbors_graph(np.array([[0.0], [1.0], [3.0]]), 1, mode="distance")
    >>> GivenEngine(graph).rows(np.array([2]), 2)
    Neighbors(indices=array([[ 1, -1]]), sq_distances=array([[ 4., inf]]))
    """

    alive = tie_order = None

    def __init__(self, graph: Any, metric: str = "precomputed") -> None:
        check_choice(metric, "metric", GIVEN_METRICS)
        graph = _checked_graph(graph, metric)
        self.metric = metric
        self.n_points: int = graph.shape[0]
        self.n_features: int = graph.shape[1]
        rows = np.repeat(np.arange(self.n_points), np.diff(graph.indptr))
        others = rows != graph.indices
        rows, columns = rows[others], graph.indices[others].astype(np.intp)
        sq_distances = self._squared(graph.data[others])
        order = np.lexsort((columns, sq_distances, rows))
        self._columns, self._sq_distances = columns[order], sq_distances[order]
        self.lengths: IntArray = np.bincount(rows, minlength=self.n_points)
        self._starts = np.cumsum(self.lengths) - self.lengths

    @property
    def n_alive(self) -> int:
        """The number of points; none are removed."""
        return self.n_points

    exact = True

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Return the ``k`` nearest of rows of distances to the database, inf where unknown."""
        return without_unknown(nearest_columns(self._check(vectors), k, None))

    def rows(self, indices: IntArray, k: int) -> Neighbors:
        """Return the ``k`` nearest neighbours of points, as far as their lists go."""
        counts = np.minimum(self.lengths[indices], k)
        nearest = np.full((len(counts), k), NOBODY, dtype=np.intp)
        sq_distances = np.full((len(counts), k), np.inf)
        places, filled = runs(self._starts[indices], counts), np.arange(k) < counts[:, None]
        nearest[filled], sq_distances[filled] = self._columns[places], self._sq_distances[places]
        return Neighbors(nearest, sq_distances)

    def nearest(self, query: Query, k: int) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out.

        Points that are not in the lists of all examples come last, at inf.
        """
        total = plain_sq_distances(self, query)
        others = np.setdiff1d(np.arange(self.n_points), query.indices)
        found = others[np.lexsort((others, total[others]))][:k]
        part = Neighbors(found[None, :], total[None, found])
        return merge_lists([part], k)

    def sq_distances(self, indices: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Return one row of squared distances per point, then one per vector; inf where unknown."""
        rows = self._check(vectors)
        for index in indices:
            row = np.full(self.n_points, np.inf)
            start, length = self._starts[index], self.lengths[index]
            listed = slice(start, start + length)
            row[self._columns[listed]] = self._sq_distances[listed]
            row[index] = 0.0
            yield row
        yield from rows

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Return the squared distances of points to each example of a query; inf where unknown."""
        return np.stack([row[points] for row in self.sq_distances(query.indices, query.vectors)])

    def pairs(self, indices: IntArray) -> FloatArray:
        """Return the squared distances of a few points to each other; inf where unknown."""
        nothing = np.empty((0, self.n_points))
        return np.stack([row[indices] for row in self.sq_distances(indices, nothing)])

    def _check(self, vectors: Any) -> FloatArray:
        rows = check_vectors(vectors, self.n_features, partial=True)
        check_distances(
            np.where(np.isinf(rows), 0.0, rows), "vectors", self.metric == "precomputed"
        )
        return self._squared(rows)

    def _squared(self, distances: FloatArray) -> FloatArray:
        distances = np.maximum(distances.astype(np.float64), 0.0)
        return distances**2 if self.metric == "precomputed" else distances


def _checked_graph(graph: Any, metric: str) -> Any:
    """Return a graph as rows with every entry once."""
    if not hasattr(graph, "tocsr") or len(graph.shape) != 2 or graph.shape[0] != graph.shape[1]:
        shape = getattr(graph, "shape", None)
        raise InputError(
            f"the graph is a {type(graph).__name__} of shape {shape}, but must be a square sparse "
            "array of distances between all points, such as kneighbors_graph(X, 16, "
            "mode='distance') of scikit-learn makes."
        )
    graph = graph.tocsr(copy=True)
    graph.sum_duplicates()
    if graph.data.dtype.kind not in "iufb" or not np.isfinite(graph.data).all():
        raise InputError(
            f"the graph holds {graph.data.dtype} values of which some are no finite real numbers; "
            "leave out entries that are unknown."
        )
    check_distances(graph, "the graph", squared=metric == "precomputed")
    own = np.abs(graph.diagonal())
    if own.max(initial=0.0) > ZERO * float(graph.data.max(initial=0.0)):
        row = int(np.argmax(own))
        raise InputError(
            f"the graph says that point {row} is at distance {own[row]:.6g} from itself, but its "
            "diagonal must be zero or left out. Similarities must be turned into distances first."
        )
    return graph


def runs(starts: IntArray, counts: IntArray) -> IntArray:
    """Return whole numbers that count up from each start, so many each.

    Examples
    --------
    >>> runs(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    before = np.cumsum(counts) - counts
    places: IntArray = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return places


@dataclass(frozen=True)
class Round:
    """One round of learning, and whether its graph was good enough to be kept.

    Parameters
    ----------
    n_neighbors : int
        Neighbours of every point in the graph of this round.
    number : int
        How many rounds the same attempt had made, this one counted.
    reach : float
        The effective number of points that a query reaches, relative to the graph that learning
        began from.
    share : float
        The same, relative to a plain graph of as many neighbours.
    kept : bool
        Whether it was good enough.
    """

    n_neighbors: int
    number: int
    reach: float
    share: float
    kept: bool


def _mixed(code: Any, factor: np.uint64) -> Any:
    """Return hash values of whole numbers, which depend on the factor in every bit."""
    code = (code ^ (code >> np.uint64(31))) * factor
    code = (code ^ (code >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return (code ^ (code >> np.uint64(32))) * factor


class KeptGraph(NamedTuple):
    """RAN's plain graph ``W = (S + S') / 2``, as an index keeps it beside its lists.

    Parameters
    ----------
    n_neighbors : int
        Neighbours that every point chose.
    starts : array of int, shape (n_points + 1,)
    indices, weights : arrays
        Those from ``starts[i]`` to ``starts[i + 1]`` are the row of point i.
    """

    n_neighbors: int
    starts: IntArray
    indices: IntArray
    weights: FloatArray

    def arrays(self) -> dict[str, Any]:
        """Return the arrays by name."""
        parts = {"starts": self.starts, "indices": self.indices, "weights": self.weights}
        return {f"graph_{name}": array for name, array in parts.items()}

    @classmethod
    def restore(cls, arrays: dict[str, Any], n_neighbors: int) -> KeptGraph:
        """Make it from its arrays."""
        parts = (arrays[f"graph_{name}"] for name in ("starts", "indices", "weights"))
        return cls(n_neighbors, *parts)

    def check(self) -> None:
        """Require weights of 0 to 1, the same both ways, between different points.

        On other graphs a solver may go on for ever. Entries are compared by a sum of hash values,
        those above the diagonal less those below; nobody knows beforehand how they are hashed.
        """
        salt, factor = (np.uint64(int.from_bytes(urandom(8), "little") | 1) for _ in range(2))
        most = float(self.weights.max(initial=0.0))
        total, n_points = 0, len(self.starts) - 1
        ends = np.searchsorted(self.starts, np.arange(0, len(self.indices), ENTRIES))
        cuts = np.unique([0, *ends.tolist(), n_points]).tolist()
        for first, last in pairwise(cuts):
            part = slice(int(self.starts[first]), int(self.starts[last]))
            lengths = np.diff(self.starts[first : last + 1])
            source = np.repeat(np.arange(first, last, dtype=np.uint64), lengths)
            target = self.indices[part].astype(np.uint64)
            if (source == target).any():
                raise InputError("array 'graph_indices' joins a point to itself")
            code = np.minimum(source, target) << np.uint64(32) | np.maximum(source, target)
            code = _mixed(code, salt)
            bits = self.weights[part].view(f"u{self.weights.itemsize}").astype(np.uint64)
            code = _mixed(code + bits, factor)
            total += int(np.where(source < target, code, -code).sum())
        if most > 1:
            raise InputError("array 'graph_weights' holds weights above 1")
        if total % 2**64:
            raise InputError(
                "array 'graph_weights' is not symmetric: a weight differs from that of the same "
                "edge the other way"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """Lists in the learned distance ``d_ij / unit + mu ||F_i - F_j||^2``.

    Points that came after it was learned have their plain list, in the same unit. So has a
    point of whose learned neighbours so many were removed that too few are left. Where nothing
    was worth keeping, ``lists`` is empty and all points have plain lists.

    Parameters
    ----------
    lists : Neighbors
        One for every point that was there.
    n_neighbors : int
        Neighbours of every point.
    n_plain : int
        Neighbours in the plain graph that learning began with.
    unit : float
        The squared distance of the data that counts as one; 1 where nothing was kept.
    rounds : tuple of Round
        All that were tried, in order.
    """

    lists: Neighbors
    n_neighbors: int
    n_plain: int
    unit: float
    rounds: tuple[Round, ...]

    def __repr__(self) -> str:
        return (
            f"Learned(n_rounds={self.n_rounds}, n_neighbors={self.n_neighbors}, "
            f"reach={self.reach:.3g})"
        )

    @property
    def n_rounds(self) -> int:
        """Rounds that made the graph; zero where the plain one is kept."""
        return sum(made.kept for made in self.rounds)

    @property
    def reach(self) -> float:
        """The effective number of points that a query reaches, beside where learning began."""
        return next((made.reach for made in reversed(self.rounds) if made.kept), 1.0)

    def fits(self, n_plain: int, n_alive: int) -> bool:
        """Tell whether it stands for the plain graph of so many neighbours and points."""
        return self.n_plain == n_plain and self.n_neighbors <= max(1, n_alive - 2)

    def known(self, alive: BoolArray) -> BoolArray:
        """Tell of each slot whether it has a point with enough of its learned neighbours left."""
        indices = self.lists.indices
        left = (indices != NOBODY) & alive[indices] if len(indices) else indices != NOBODY
        known = np.zeros(len(alive), dtype=bool)
        known[: len(indices)] = left.sum(axis=1) > self.n_neighbors
        return known & alive

    def current(self, engine: Engine) -> tuple[Neighbors, IntArray]:
        """Return the lists of all points of an engine, and the live ones that are not learned."""
        n_points, width = engine.n_points, self.lists.width
        alive = np.ones(n_points, dtype=bool) if engine.alive is None else engine.alive
        indices = np.full((n_points, width), NOBODY, dtype=self.lists.indices.dtype)
        distances = np.full((n_points, width), np.inf, dtype=self.lists.sq_distances.dtype)
        known = self.known(alive)
        left = without(self.lists.take(np.flatnonzero(known)), ~alive)
        indices[known], distances[known] = left.indices, left.sq_distances
        rest = np.flatnonzero(alive & ~known)
        if len(rest):
            plain = engine.rows(rest, width)
            indices[rest], distances[rest] = plain.indices, plain.sq_distances / self.unit
        return Neighbors(indices, distances), rest

    def kept(self, slots: IntArray) -> Learned:
        """Return what is left for some slots, ascending, which are renumbered in order."""
        known = slots[slots < len(self.lists.indices)]
        number = np.full(max(len(self.lists.indices), 1), NOBODY, dtype=np.int32)
        number[known] = np.arange(len(known))
        left = without(self.lists.take(known), number == NOBODY)
        named = np.where(left.indices == NOBODY, NOBODY, number[left.indices])
        return replace(self, lists=Neighbors(named.astype(np.int32), left.sq_distances))

    def arrays(self) -> dict[str, Any]:
        """Return arrays from which `restore` makes it again."""
        return {
            "learned_indices": self.lists.indices,
            "learned_distances": self.lists.sq_distances,
        }

    def settings(self) -> dict[str, Any]:
        """Return the rest of its state, as JSON can hold it."""
        return {
            "n_neighbors": self.n_neighbors,
            "n_plain": self.n_plain,
            "unit": self.unit,
            "rounds": [asdict(made) for made in self.rounds],
        }

    @classmethod
    def restore(
        cls, arrays: Mapping[str, Any], settings: Mapping[str, Any] | None
    ) -> Learned | None:
        """Make it from its state; None where nothing was learned."""
        if settings is None:
            return None
        lists = Neighbors(arrays["learned_indices"], arrays["learned_distances"])
        rounds = tuple(Round(**made) for made in settings["rounds"])
        counts = int(settings["n_neighbors"]), int(settings["n_plain"])
        return cls(lists, *counts, float(settings["unit"]), rounds)


def without(lists: Neighbors, removed: Any) -> Neighbors:
    """Return lists without some points, closed up.

    Examples
    --------
    >>> import numpy as np
    >>> lists = Neighbors(np.array([[1, 2], [2, 0]]), np.array([[1.0, 2.0], [1.0, 3.0]]))
    >>> without(lists, np.array([False, False, True])).indices
    array([[ 1, -1],
           [ 0, -1]])
    """
    gone = (lists.indices == NOBODY) | removed[lists.indices]
    if not (gone & (lists.indices != NOBODY)).any():
        return lists
    order = np.argsort(gone, axis=1, kind="stable")
    indices = np.take_along_axis(np.where(gone, NOBODY, lists.indices), order, 1)
    distances: FloatArray = np.where(gone, np.inf, lists.sq_distances)
    return Neighbors(
        indices.astype(lists.indices.dtype),
        np.take_along_axis(distances, order, 1).astype(lists.sq_distances.dtype),
    )


def changed_rows(before: Neighbors, after: Neighbors, plain: IntArray) -> IntArray:
    """Return the rows of lists that are not what they were, new ones among them.

    Parameters
    ----------
    before, after : Neighbors
    plain : array of int
        Rows that are not learned, which are taken to have changed.
    """
    n_before = len(before.indices)
    same = (before.indices == after.indices[:n_before]).all(axis=1)
    new = np.arange(n_before, len(after.indices))
    return np.union1d(np.flatnonzero(~same), np.union1d(plain, new))
