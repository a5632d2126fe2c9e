"""A graph whose lists lie in a database: rows are fetched where a query reaches."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankfold.check import InputError
from rankfold.graph.adaptive import ClosedForm
from rankfold.neighbors import DistantEngine, Rows
from rankfold.solvers import Part
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors


class RemoteGraph:
    """RAN's first graph over an engine that is asked for few rows at a time.

    Parameters
    ----------
    engine : DistantEngine
    n_neighbors : int
    """

    def __init__(self, engine: DistantEngine, n_neighbors: int) -> None:
        self.engine, self.n_neighbors = engine, n_neighbors

    @property
    def n_alive(self) -> int:
        """The number of points that were not removed."""
        return self.engine.n_alive

    def begin(self) -> Fetching:
        """Return what a query fetches into."""
        return Fetching(self.engine, self.n_neighbors)

    def row(self, point: int) -> tuple[IntArray, FloatArray]:
        """Return the neighbours of a point, and the weights of the edges to them."""
        part = self.begin().fetch(np.array([point]))
        place = int(np.flatnonzero(part.points[: part.n_rows] == point)[0])
        entries = slice(part.weights.indptr[place], part.weights.indptr[place + 1])
        return part.points[part.weights.indices[entries]], part.weights.data[entries]

    def degrees(self, points: IntArray) -> FloatArray:
        """Return the degrees of some points."""
        part = self.begin().fetch(np.unique(points))
        rows = part.points[: part.n_rows]
        order = np.argsort(rows)
        places = order[np.searchsorted(rows, points, sorter=order)]
        sums: FloatArray = part.weights[places].sum(axis=1)
        return sums


class Fetching:
    """The rows that one query has fetched.

    Parameters
    ----------
    engine : DistantEngine
    n_neighbors : int
    """

    def __init__(self, engine: DistantEngine, n_neighbors: int) -> None:
        self._engine, self._rows = engine, FetchedRows(n_neighbors)
        self._asked = np.empty(0, dtype=np.int64)

    def fetch(self, points: IntArray) -> Part:
        """Fetch the rows of points and of all that list them; return all that are complete."""
        points = np.setdiff1d(points, self._asked)
        if len(points):
            self._rows.add(self._engine.around(points), points)
            if not len(self._asked) and not self._rows.has(points).all():
                raise InputError(
                    f"ids holds {points[~self._rows.has(points)][0]}, which was removed from the "
                    "database; give row numbers of points that are still there."
                )
            self._asked = np.union1d(self._asked, points)
        return self._rows.part()


class FetchedRows:
    """Rows of points, as they came; every number of a point is looked up as seldom as possible.

    A row of W is complete once the point's own list is here and the lists of all that list it.

    Parameters
    ----------
    n_neighbors : int

    Examples
    --------
    >>> from rankfold.types import Neighbors
    >>> lists = Neighbors(np.array([[1, 2], [0, 2], [1, 3]]), np.array([[1.0, 2.0]] * 3))
    >>> rows = Rows(np.arange(3), lists, np.array([0, 1, 3, 4]), np.array([1, 0, 2, 0]))
    >>> fetched = FetchedRows(n_neighbors=1)
    >>> fetched.add(rows, around=np.array([1]))
    >>> part = fetched.part()
    >>> part.points[: part.n_rows]
    array([0, 1, 2])
    """

    def __init__(self, n_neighbors: int) -> None:
        self.slots = np.empty(0, dtype=np.int64)
        self._n_neighbors = n_neighbors
        self._targets = np.empty((0, n_neighbors), dtype=np.int64)
        self._weights = np.empty((0, n_neighbors))
        self._places = np.empty((0, n_neighbors), dtype=np.int64)
        self._awaited = self._awaiting = np.empty(0, dtype=np.int64)
        self._order = self._sorted = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.slots)

    def has(self, slots: IntArray) -> BoolArray:
        """Return which of some points have their row here."""
        known: BoolArray = _find(slots, self._sorted) >= 0
        return known

    def add(self, rows: Rows, around: IntArray) -> None:
        """Take up what an engine returned around some points, whose rows are complete then."""
        is_new = ~self.has(rows.slots)
        lists, slots = rows.lists.take(np.flatnonzero(is_new)), rows.slots[is_new]
        counts, n_before = np.diff(rows.starts), len(self.slots)
        self._meet(slots)
        self._append(slots, lists)
        awaited = rows.sources[np.repeat(is_new, counts)]
        awaiting = n_before + np.repeat(np.arange(len(slots)), counts[is_new])
        absent = ~self.has(awaited)
        self._awaited = np.concatenate([self._awaited, awaited[absent]])
        self._awaiting = np.concatenate([self._awaiting, awaiting[absent]])
        complete = np.isin(self.slots, around)
        self._await(~complete[self._awaiting])

    def _meet(self, slots: IntArray) -> None:
        """Note that rows are about to come which earlier ones point to or wait for."""
        unknown = np.flatnonzero((self._places < 0) & (self._targets >= 0))
        found = _find(self._targets.flat[unknown], slots)
        self._places.flat[unknown[found >= 0]] = len(self.slots) + found[found >= 0]
        self._await(_find(self._awaited, slots) < 0)

    def _append(self, slots: IntArray, lists: Neighbors) -> None:
        form = ClosedForm.of(lists, self._n_neighbors)
        missing = ((0, 0), (0, self._n_neighbors - form.indices.shape[1]))
        weights = np.pad(form.weights.astype(np.float64), missing)
        targets = np.pad(form.indices.astype(np.int64), missing, constant_values=NOBODY)
        targets[weights <= 0] = NOBODY
        self.slots = np.concatenate([self.slots, slots])
        self._order = np.argsort(self.slots, kind="stable")
        self._sorted = self.slots[self._order]
        found = _find(targets.ravel(), self._sorted).reshape(targets.shape)
        places = np.where(found >= 0, self._order[found], NOBODY)
        self._targets = np.concatenate([self._targets, targets])
        self._weights = np.concatenate([self._weights, weights])
        self._places = np.concatenate([self._places, places])

    def _await(self, still: BoolArray) -> None:
        self._awaited, self._awaiting = self._awaited[still], self._awaiting[still]

    def part(self) -> Part:
        """Return the complete rows of W, and what borders on them."""
        n_rows = len(self.slots)
        complete = np.ones(n_rows, dtype=bool)
        complete[self._awaiting] = False
        n_complete = int(np.count_nonzero(complete))
        order = self._order[np.argsort(~complete[self._order], kind="stable")]
        number = np.empty(n_rows, dtype=np.int64)
        number[order] = np.arange(n_rows)
        targets, places = self._targets[order], self._places[order]
        columns = np.where(places >= 0, number[places], NOBODY)
        unfetched = (places < 0) & (targets >= 0)
        unfetched[n_complete:] = False  # an edge between two others is no part of it
        strangers, column = np.unique(targets[unfetched], return_inverse=True)
        columns[unfetched] = n_rows + column
        everybody = np.concatenate([self.slots[order], strangers])
        half = _rows_of(columns, self._weights[order] / 2, len(everybody))
        rows = half[:n_complete] + half.T.tocsr()[:n_complete]
        across = rows[:, n_complete:]
        met = np.flatnonzero(np.bincount(across.indices, minlength=across.shape[1]))
        across = across[:, met]
        blocks = [[rows[:, :n_complete], across], [across.T, None]]
        weights = sparse.block_array(blocks, format="csr")
        points = np.concatenate([everybody[:n_complete], everybody[n_complete + met]])
        return Part(points, n_complete, weights)


def _find(slots: IntArray, among: IntArray) -> IntArray:
    """Return the places of points in an ascending array, or -1."""
    if not len(among):
        return np.full(len(slots), NOBODY)
    near = np.minimum(np.searchsorted(among, slots), len(among) - 1)
    return np.where(among[near] == slots, near, NOBODY)


def _rows_of(columns: IntArray, weights: FloatArray, n_columns: int) -> sparse.csr_array:
    """Return weights as a square matrix, whose rows beyond those given are empty."""
    used = columns >= 0
    ends = np.pad(np.cumsum(used.sum(axis=1)), (1, n_columns - len(columns)), mode="edge")
    ends[0] = 0
    return sparse.csr_array((weights[used], columns[used], ends), shape=(n_columns, n_columns))
