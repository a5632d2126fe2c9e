"""Rows that were read before."""

from __future__ import annotations

from threading import Lock

import numpy as np

from rankfold.databases.contract import Session
from rankfold.neighbors import Rows
from rankfold.neighbors.rows import runs
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors

MOST_BYTES = 2**28
"""Size of the arrays when they are full; those of a small table stay mostly untouched."""


class RowCache:
    """Rows of one version of a table, at most one for each *line*.

    The line of a point follows from its slot, and a row takes the place of the one that was there:
    what is remembered is bounded, and nothing has to be searched for. Sources lie in one array
    behind each other; once it is full, everything is forgotten. When a session of a later
    version comes, the rows that have changed since are forgotten; one of an earlier version finds
    nothing here and leaves nothing. Threads take turns.

    Parameters
    ----------
    width : int
        Length of the stored lists.
    precision : str
        Type of their squared distances.
    most_bytes : int
    """

    def __init__(self, width: int, precision: str, most_bytes: int = MOST_BYTES) -> None:
        of_line = width * (4 + 4 + np.dtype(precision).itemsize) + 24
        self._n_lines = max(1, most_bytes // of_line)
        self._slots = np.full(self._n_lines, NOBODY, dtype=np.int64)
        self._indices = np.empty((self._n_lines, width), dtype=np.int32)
        self._sq_distances: FloatArray = np.empty((self._n_lines, width), dtype=precision)
        self._starts = np.empty(self._n_lines, dtype=np.int64)
        self._counts = np.empty(self._n_lines, dtype=np.int64)
        self._sources = np.empty(self._n_lines * width, dtype=np.int32)
        self._n_sources = 0
        self._version = NOBODY
        self._turn = Lock()

    def known(self, session: Session, slots: IntArray) -> tuple[BoolArray, Rows]:
        """Return which of some points are known in the state of a session, and their rows.

        Parameters
        ----------
        session : Session
        slots : array of int
            Ascending, each once.
        """
        lines = slots % self._n_lines
        with self._turn:
            followed = self._follow(session)
            found = (self._slots[lines] == slots) & followed
            lines = lines[found]
            counts = self._counts[lines]
            lists = Neighbors(self._indices[lines], self._sq_distances[lines])
            sources = self._sources[runs(self._starts[lines], counts)]
        starts = np.concatenate([[0], np.cumsum(counts)])
        return found, Rows(slots[found], lists, starts, sources)

    def remember(self, session: Session, rows: Rows) -> None:
        """Take up rows that a session has read, unless a later one was here meanwhile."""
        with self._turn:
            if len(rows.sources) > len(self._sources) or not self._follow(session):
                return
            if self._n_sources + len(rows.sources) > len(self._sources):
                self._forget()
            lines, chosen = np.unique(rows.slots % self._n_lines, return_index=True)
            self._slots[lines] = rows.slots[chosen]
            self._indices[lines] = rows.lists.indices[chosen]
            self._sq_distances[lines] = rows.lists.sq_distances[chosen]
            self._starts[lines] = self._n_sources + rows.starts[chosen]
            self._counts[lines] = np.diff(rows.starts)[chosen]
            end = self._n_sources + len(rows.sources)
            self._sources[self._n_sources : end] = rows.sources
            self._n_sources = end

    def _follow(self, session: Session) -> bool:
        """Bring everything to the version of a session; False where that is an earlier one."""
        version = session.head.version
        if version > self._version:
            changed = session.changed_since(self._version) if self._version != NOBODY else None
            if changed is None:
                self._forget()
            else:
                lines = changed % self._n_lines
                self._slots[lines[self._slots[lines] == changed]] = NOBODY
            self._version = version
        return version == self._version

    def _forget(self) -> None:
        self._slots.fill(NOBODY)
        self._n_sources = 0
