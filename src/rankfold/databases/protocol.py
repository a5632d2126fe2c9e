"""What rankfold asks of a vector database: two kinds of reading, and a place for the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from rankfold.types import FloatArray

Key = int | str
"""How a database names a point: its primary key or id. A UUID is given as text."""


class Page(NamedTuple):
    """Some points of a collection: keys, and vectors in single precision, row by row."""

    keys: list[Key]
    vectors: FloatArray


class Hits(NamedTuple):
    """The points nearest to a vector, nearest first, with squared distances.

    For the metric "cosine" the squared distance is that between vectors of length one,
    ``2 - 2 cos``.
    """

    keys: list[Key]
    sq_distances: FloatArray


@dataclass(frozen=True)
class Row:
    """What is stored for a point.

    Parameters
    ----------
    key : Key
    checksum : int
        Of the vector from which the row was made; 64 bits, signed.
    nearest, sq_distances : sequence of Key, array
        The point's own list, nearest first: k neighbours, and one more for the scale.
    neighbors, weights : sequence of Key, array
        Its row of the symmetric graph W, in the order of the scan that built it. Single precision.
    """

    key: Key
    checksum: int
    nearest: Sequence[Key]
    sq_distances: FloatArray
    neighbors: Sequence[Key]
    weights: FloatArray


class Edges(NamedTuple):
    """The part of a row that a query walks along."""

    neighbors: Sequence[Key]
    weights: FloatArray


class Database(Protocol):
    """A collection of a vector database that exists, and the graph that is kept beside it.

    Nothing of the user's data is changed. Where the database has transactions, all that is
    written within ``transaction()`` appears at once, or not at all. Every method counts the
    exchanges it waits for in ``round_trips``. Problems of the network are `UnreachableError`;
    no message contains a password.
    """

    name: str
    """How messages call the collection: address without password, and table."""

    metric: Literal["euclidean", "cosine"]
    n_features: int

    exact: bool
    """Whether a search misses nothing."""

    round_trips: int

    # The user's points: read only.
    def count(self) -> int:
        """Return the number of points."""

    def scan(self, size: int) -> Iterator[Page]:
        """Yield every point once, in the order of keys where it can, so many at a time."""

    def vectors(self, keys: Sequence[Key]) -> Page:
        """Return those of some points that are there."""

    def search(self, vectors: FloatArray, k: int, where: Any = None) -> list[Hits]:
        """Return the points nearest to each vector, among those that a filter lets through."""

    def distances(self, vector: FloatArray, keys: Sequence[Key]) -> Hits:
        """Return how far points are from a vector, in any order, those that are there."""

    def payload(self, keys: Sequence[Key]) -> Mapping[Key, dict[str, Any]]:
        """Return what the user keeps with points, those that are there; no vectors, no graph."""

    def matching(self, keys: Sequence[Key], where: Any) -> set[Key]:
        """Return which of some points are there, and pass the database's own filter, if any."""

    # The graph: a field, or a table beside the user's.
    def begin(self, keys: Sequence[Key]) -> tuple[dict[str, Any] | None, Mapping[Key, Row]]:
        """Return `read_manifest` and `rows` of some points, in one exchange where it can."""

    def read_manifest(self) -> dict[str, Any] | None:
        """Return what is recorded of the graph; None where nothing is attached."""

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Record it, in place of what was there; makes room for rows where there is none."""

    def edges(self, keys: Sequence[Key]) -> Mapping[Key, Edges]:
        """Return rows of the graph, in one exchange; those that are there."""

    def around(self, key: Key, n: int) -> Mapping[Key, Edges]:
        """Return rows of about the ``n`` points nearest to a point, in one exchange if it can.

        A query begins with them, so that it need not follow edges from ring to ring. Some may
        be missing.
        """

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        """Return all that is stored for some points; those that are there."""

    def scan_rows(self, size: int) -> Iterator[list[Row]]:
        """Yield all that is stored, so many rows at a time, in any order."""

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Store rows, in place of those of the same points."""

    def remove_rows(self, keys: Sequence[Key]) -> None:
        """Remove what is stored for some points."""

    def detach(self) -> None:
        """Remove the graph and its record without a trace."""

    def transaction(self) -> AbstractContextManager[None]:
        """Group what is written, where the database can."""

    def close(self) -> None:
        """Release connections."""
