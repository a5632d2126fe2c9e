"""What a database has to offer to hold an index: PostgreSQL and Milvus do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from rankfold.neighbors import Rows
from rankfold.storage.columns import Column
from rankfold.types import FloatArray, IntArray


class Head(NamedTuple):
    """What is valid in a table: read in one exchange when a session begins.

    Parameters
    ----------
    version : int
        Grows by one with every change.
    n_points : int
        Slots that were ever given; the next point gets this one.
    n_alive : int
        Points that are there.
    settings : dict
        As JSON holds them; see `rankfold.databases.loading`.
    columns : tuple of Column
    """

    version: int
    n_points: int
    n_alive: int
    settings: dict[str, Any]
    columns: tuple[Column, ...]


class NewPoints(NamedTuple):
    """Points that come, in ascending order of their slots.

    ``vectors`` are in single precision, as the engine holds them; ``payload`` has a list of values
    for every column of the table; ``places`` has x and y of each, or is None without a map.
    """

    slots: IntArray
    ids: list[Any]
    vectors: FloatArray
    payload: dict[str, list[Any]]
    places: FloatArray | None


class TableChange(NamedTuple):
    """All that a change writes, at once or not at all.

    Parameters
    ----------
    removed : array of int
        Slots of points that go. Their ids are free again for those that come.
    added : NewPoints
    rows : Rows
        Every row that is new or different, in its lists or in its sources. Rows of removed points
        are deleted with them.
    columns : tuple of Column
        As they are afterwards: whole numbers may have become others.
    """

    removed: IntArray
    added: NewPoints
    rows: Rows
    columns: tuple[Column, ...]


class Session(Protocol):
    """Reads one state of a table, whatever others commit meanwhile; used by one thread.

    Slots are 64-bit whole numbers, and arrays of slots may have any length: a session cuts
    them into as few exchanges as the database allows, and counts these in ``round_trips``.
    """

    head: Head

    @property
    def round_trips(self) -> int:
        """How often this session has waited for an answer."""

    def changed_since(self, version: int) -> IntArray | None:
        """Return the slots whose rows came, went or changed since a version.

        None where that was too long ago to tell; then everything may be different.
        """

    def rows(self, slots: IntArray, around: bool = False) -> Rows:
        """Return the rows of points; with ``around`` also those of all that list them.

        Slots that have no point are left out.
        """

    def search(
        self, vectors: FloatArray, k: int, where: str | None = None
    ) -> list[tuple[IntArray, FloatArray]]:
        """Return slots and vectors of about the ``k`` nearest points of each vector.

        In any order, by the distance as the database measures it: whoever needs the exact order
        asks for somewhat more. ``where`` is a condition on payload that all have to meet.
        """

    def listers(self, vectors: FloatArray) -> list[tuple[IntArray, FloatArray]] | None:
        """Return slots and vectors of all points to whose list each vector is near enough.

        Near enough is closer than the last of a list, or any distance where the list is shorter
        than ``width``: it holds all others then. Some that are too far may be among them. None
        where the database cannot tell without reading everything.
        """

    def vectors(self, slots: IntArray) -> FloatArray:
        """Return vectors in the order of slots, all of which have a point."""

    def scan(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield slots and vectors of all points, block by block, in ascending order."""

    def slots(self) -> IntArray:
        """Return the slots of all points, ascending."""

    def find(self, ids: Sequence[Any]) -> IntArray:
        """Return the slot of each id, -1 where there is none; 1 and "1" are different ids."""

    def points(
        self, slots: IntArray, columns: Sequence[Column]
    ) -> tuple[list[Any], dict[str, list[Any]]]:
        """Return ids and payload in the order of slots, all of which have a point."""

    def matching(self, where: str, slots: IntArray | None = None) -> IntArray:
        """Return the slots, of these or of all, that meet a condition, ascending."""

    def places(self, slots: IntArray) -> FloatArray:
        """Return x and y of points in the order of slots."""

    def largest_number(self) -> int | None:
        """Return the largest id that is a number."""


class Writing(Session, Protocol):
    """A session that is alone in changing the table; what it reads is the last state."""

    def commit(self, change: TableChange) -> int:
        """Make a change, durably; return the new version. Called once at most."""

    def change_payload(
        self, slots: IntArray, payload: dict[str, list[Any]], columns: tuple[Column, ...]
    ) -> None:
        """Give points other values in some columns, durably; the version stays as it is."""


class Filling(Protocol):
    """A table in the making, which nobody sees before `finish`."""

    def add(self, points: NewPoints, rows: Rows | None) -> None:
        """Write some points and their rows; in ascending order of slots.

        Without rows the lists are written later, by `write_rows`.
        """

    def write_rows(self, rows: Rows) -> None:
        """Write rows of points that are there."""

    def session(self) -> AbstractContextManager[Session]:
        """Search among the points so far, to make lists of them."""

    def finish(self) -> None:
        """Build the index for searches, then let the table appear, or replace the one there."""


class Table(Protocol):
    """An index in a database; open until it is closed, used by many threads."""

    place: str
    """Where it is, for people: without a password."""

    def reading(self) -> AbstractContextManager[Session]:
        """Begin a session."""

    def writing(self) -> AbstractContextManager[Writing]:
        """Begin a session that may change the table, once nobody else does.

        Nothing is changed where the block ends with an exception.
        """

    def close(self) -> None:
        """Close all connections."""


class Database(Protocol):
    """A database that holds tables by name; made from an address such as ``postgresql://...``."""

    def names(self) -> list[str]:
        """Return the names of all tables of rankfold."""

    def open(self, name: str) -> Table:
        """Open a table."""

    def check_place(self, name: str, *, replace: bool) -> None:
        """Require that `create` may make a table, before work is done for it."""

    def create(
        self, name: str, settings: dict[str, Any], columns: tuple[Column, ...], *, replace: bool
    ) -> AbstractContextManager[Filling]:
        """Begin to make a table; without `finish` in the block nothing is left of it."""

    def drop(self, name: str) -> None:
        """Delete a table."""
