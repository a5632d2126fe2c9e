"""The part of RAN's first graph that has been fetched, and the system on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from rankfold.neighbors import Rows
from rankfold.rankers.closed_form import ClosedForm
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors


class Part(NamedTuple):
    """Rows of ``W = (S + S') / 2`` that are complete, and what borders on them.

    Parameters
    ----------
    points : array of int
        Points whose row is complete, ascending.
    inside : sparse array, shape (n_points, n_points)
        Their weights among each other.
    border : array of int
        All other points that they have an edge to.
    across : sparse array, shape (n_points, n_border)
        The weights of those edges.
    """

    points: IntArray
    inside: sparse.csr_array
    border: IntArray
    across: sparse.csr_array


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
    >>> fetched.part().points
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
        """Return the complete rows of W."""
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
        weights = half[:n_complete] + half.T.tocsr()[:n_complete]
        return _parted(weights, everybody, n_complete)


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


def _parted(weights: sparse.csr_array, everybody: IntArray, n_complete: int) -> Part:
    """Part the edges of complete points in those that stay among them and those that leave."""
    within = weights.indices < n_complete
    ends = np.concatenate([[0], np.cumsum(within)])[weights.indptr]
    inside = sparse.csr_array(
        (weights.data[within], weights.indices[within], ends), shape=(n_complete, n_complete)
    )
    beyond = weights.indices[~within]
    met = np.unique(beyond)
    across = sparse.csr_array(
        (weights.data[~within], np.searchsorted(met, beyond), weights.indptr - ends),
        shape=(n_complete, len(met)),
    )
    return Part(everybody[:n_complete], inside, everybody[met], across)
