"""Whether all that a table holds agrees."""

from __future__ import annotations

from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from rankfold.check import StorageError
from rankfold.databases.contract import Session, Table
from rankfold.neighbors import Rows
from rankfold.types import NOBODY, IntArray

BLOCK_ROWS = 2**13

Sums = NDArray[np.uint64]


class DisagreementError(StorageError):
    """Two parts of a table contradict each other."""


def verify(table: Table) -> None:
    """Require that head, points, ids, lists and sources of a table agree; then close it.

    Everything is read once, block by block. Who lists a point is compared by sums, so that nothing
    but some numbers for each point is held.

    Parameters
    ----------
    table : Table
    """
    with closing(table), table.reading() as session:
        try:
            _check_points(session)
            _check_lists(session)
        except DisagreementError as error:
            raise StorageError(
                f"{table.place} is damaged: {error} Copy what is left with index copy, or build "
                "it again."
            ) from error


def _check_points(session: Session) -> None:
    head, slots = session.head, session.slots()
    _require(len(slots) == head.n_alive, f"{len(slots)} points, but the head says {head.n_alive}.")
    ascending = bool((np.diff(slots) > 0).all())
    within = not len(slots) or (slots[0] >= 0 and slots[-1] < head.n_points)
    _require(ascending and bool(within), f"a point beyond the {head.n_points} slots of the head.")
    for block in _blocks(slots):
        ids, _ = session.points(block, head.columns)
        same = np.array_equal(session.find(ids), block)
        _require(same, "an id that leads to another point, or to none.")
        if head.settings["layout"] is not None:
            placed = np.isfinite(session.places(block)).all()
            _require(bool(placed), "a point without a place on the map.")
    scanned = [(found, bool(np.isfinite(vectors).all())) for found, vectors in session.scan()]
    there = np.concatenate([slots[:0], *(found for found, _ in scanned)])
    whole = np.array_equal(there, slots) and all(finite for _, finite in scanned)
    _require(whole, "a point without a vector, or a vector without a point.")


def _check_lists(session: Session) -> None:
    slots = session.slots()
    listed, known = _Listing(session.head.n_points), _Listing(session.head.n_points)
    for block in _blocks(slots):
        rows = session.rows(block)
        _require(np.array_equal(rows.slots, block), "a point without a list.")
        _check_order(rows, slots)
        place, column = np.nonzero(rows.lists.indices != NOBODY)
        listed.add(rows.lists.indices[place, column], rows.slots[place])
        known.add(np.repeat(rows.slots, np.diff(rows.starts)), rows.sources)
    _require(listed == known, "a list whose points do not know that they are listed.")


def _check_order(rows: Rows, slots: IntArray) -> None:
    """Require lists of other points that are there, the nearest first, without gaps."""
    indices, near = rows.lists.indices, rows.lists.sq_distances
    full = indices != NOBODY
    named = indices[full]
    places = np.minimum(np.searchsorted(slots, named), max(0, len(slots) - 1))
    _require(bool((slots[places] == named).all()), "a list with a point that is not there.")
    others = not (indices == rows.slots[:, None]).any()
    alone = [len(set(row[there].tolist())) for row, there in zip(indices, full, strict=True)]
    _require(others and alone == full.sum(axis=1).tolist(), "a list with a point too many.")
    ordered = bool((near[:, 1:] >= near[:, :-1]).all()) and bool((full == np.isfinite(near)).all())
    _require(ordered, "a list that is not in the order of its distances.")


class _Listing:
    """Who lists whom, as a number and a sum of scattered numbers for each point."""

    def __init__(self, n_points: int) -> None:
        self._counts: Sums = np.zeros(n_points, dtype=np.uint64)
        self._sums: Sums = np.zeros(n_points, dtype=np.uint64)

    def add(self, targets: IntArray, sources: IntArray) -> None:
        np.add.at(self._counts, targets, np.uint64(1))
        np.add.at(self._sums, targets, _scattered(sources))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Listing)
            and np.array_equal(self._counts, other._counts)
            and np.array_equal(self._sums, other._sums)
        )

    __hash__ = None  # type: ignore[assignment]


def _scattered(slots: IntArray) -> Sums:
    """Return a number for each slot, so that sums of different slots differ (SplitMix64)."""
    mixed = slots.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _blocks(slots: IntArray) -> list[IntArray]:
    return [slots[start : start + BLOCK_ROWS] for start in range(0, len(slots), BLOCK_ROWS)]


def _require(holds: bool, wrong: str) -> None:
    if not holds:
        raise DisagreementError(f"it has {wrong}")
