"""A table and the engine that reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, cast

import numpy as np

from rankfold.check import InputError
from rankfold.databases.contract import NewPoints, Session, Table, TableChange, Writing
from rankfold.databases.engine import TableEngine, held
from rankfold.databases.payload import check_widening, table_values
from rankfold.databases.planning import Planning
from rankfold.databases.sessions import Sessions
from rankfold.databases.unloading import State, unloaded
from rankfold.databases.view import TableView
from rankfold.layout import projected
from rankfold.layout.arriving import between
from rankfold.layout.projection import Projection
from rankfold.storage.columns import checked_payload, widened
from rankfold.storage.ids import distinct_ids, few
from rankfold.types import FloatArray, IntArray, Neighbors

SHAPE = ("metric", "n_features", "width", "stored_width", "precision", "search")
"""Settings that an engine is made for; others come where a table is replaced."""

MOST_SLOTS = 2**31
"""Lists name points by whole numbers of 32 bits."""


class TableKeeper:
    """Keeps nothing but rows that were read: every answer is that of a session with a table.

    A session is one state, whatever others commit meanwhile; threads are in sessions of their own
    and do not wait for each other. A change is made in a session that is alone in changing.

    Parameters
    ----------
    table : Table
    write : bool
        Whether changes may be made.
    """

    keeps_one_state = False

    def __init__(self, table: Table, write: bool) -> None:
        self._table, self._write = table, write
        self._sessions = Sessions(table)
        self.store = TableView(self._sessions)
        self._turn = Lock()
        self._engine: tuple[list[Any], TableEngine] | None = None
        self._drawn: tuple[int, FloatArray] | None = None

    @property
    def version(self) -> int:
        """The version of the state that this thread reads."""
        with self._sessions.current() as session:
            return session.head.version

    @property
    def round_trips(self) -> int:
        """How often this thread has waited for the database."""
        return self._sessions.round_trips

    @contextmanager
    def current(self) -> Iterator[TableEngine]:
        """Yield the engine; all that this thread reads inside belongs to one state."""
        with self._sessions.current() as session:
            yield self._engine_of(session)

    def _engine_of(self, session: Session) -> TableEngine:
        shape = [session.head.settings[name] for name in SHAPE]
        with self._turn:
            if self._engine is None or self._engine[0] != shape:
                self._engine = shape, TableEngine(self._sessions, session.head.settings)
            return self._engine[1]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be alone in changing the table while a change is prepared and made."""
        if not self._write:
            raise InputError(f"{self._table.place!r} is open for reading; open it with write=True.")
        with self._sessions.writing():
            yield

    def change(
        self,
        removed: Any = (),
        vectors: FloatArray | None = None,
        ids: Sequence[Any] = (),
        payload: dict[str, Any] | None = None,
    ) -> None:
        """Remove points, add others, and return once that is durable; inside of `changing`.

        Parameters
        ----------
        removed : array of int
            Slots.
        vectors, ids, payload
            Of the points to add.
        """
        session = cast(Writing, self._sessions.held)
        head, names = session.head, distinct_ids(ids)
        gone = np.sort(np.asarray(removed, dtype=np.int64))
        given = np.empty((0, head.settings["n_features"])) if vectors is None else vectors
        added = held(given, head.settings)
        values = checked_payload(payload, len(names))
        columns = widened(head.columns, values)
        _check_new(session, names, gone)
        check_widening(session, columns)
        rows, old = Planning(session, gone, added).rows()
        slots = head.n_points + np.arange(len(added))
        named = table_values(columns, values, len(names))
        places = _places_of_new(session, added, old)
        session.commit(
            TableChange(gone, NewPoints(slots, names, added, named, places), rows, columns)
        )

    def changed_since(self, version: Any) -> None:
        """Know of nothing: rankers of another state are left alone, as others may use them."""
        return

    @property
    def layout(self) -> str | None:
        """The kind of the map that is kept."""
        layout: str | None = self.store.settings["layout"]
        return layout

    def places(self, slots: IntArray) -> FloatArray:
        """Return the places of points; inside of `current`.

        Where no map is kept, it is drawn by principal components, which reads all vectors.
        """
        with self._sessions.current() as session:
            version = session.head.version
            if self.layout is not None:
                return session.places(slots)
            drawn = self._drawn
            if drawn is None or drawn[0] != version:
                drawn = self._drawn = version, projected(self._engine_of(session)).places
            return drawn[1][slots]

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it."""
        with self._sessions.current() as session:
            head, settings = session.head, session.head.settings
            return {
                "path": self._table.place,
                "points": head.n_alive,
                "features": settings["n_features"],
                "metric": settings["metric"],
                "n_neighbors": settings["n_neighbors"],
                "list_width": settings["width"],
                "engine": settings["search"],
                "columns": self.store.columns,
                "layout": settings["layout"],
                "learned": None,
                "source": settings["source"],
                "pending_changes": 0,
                "removed_slots": head.n_points - head.n_alive,
                "generation": head.version,
            }

    def state(self) -> State:
        """Return all of it without removed points, as a folder keeps it."""
        with self._sessions.current() as session:
            return unloaded(session)

    def close(self) -> None:
        """Close all connections."""
        self._table.close()


def _check_new(session: Session, ids: list[Any], gone: IntArray) -> None:
    """Require ids that are free, and slots for them."""
    found = session.find(ids)
    taken = [
        one for one, slot in zip(ids, found.tolist(), strict=True) if slot >= 0 and slot not in gone
    ]
    if taken:
        raise InputError(f"ids are in use already: {few(taken)}; remove or update these points.")
    if session.head.n_points + len(ids) >= MOST_SLOTS:
        raise InputError(
            f"the index has given {session.head.n_points} slots, and {len(ids)} more are too many; "
            "copy it, which numbers the points that are left anew."
        )


def _places_of_new(session: Session, added: FloatArray, old: Neighbors) -> FloatArray | None:
    """Put new points where their vectors lie if the map is a projection, else among others."""
    settings = session.head.settings
    if settings["layout"] is None:
        return None
    if settings["projection"] is not None:
        return Projection.of(settings["projection"]).places(added)
    if not len(added):
        return np.empty((0, 2), dtype=np.float32)
    return between(old, session.places)
