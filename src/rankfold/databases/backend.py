"""What backends share: rows of the graph as text, exact distances, addresses, errors."""

from __future__ import annotations

import json
from abc import abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from rankfold.databases.protocol import Database, Edges, Hits, Key, Page, Row
from rankfold.errors import DatabaseError, InputError, RankfoldError, UnreachableError
from rankfold.types import FloatArray

CONNECTING = 5.0
"""Seconds to wait for a server at first."""

WAITING = 30.0
"""Seconds to wait for an answer."""

SIDE = "_rankfold"
"""What is added to a collection's name for the one beside it."""

FIELDS = ("checksum", "nearest", "edges")
"""Of a record, beside its id."""

MANIFEST = "manifest"
"""The id of the manifest among those of rows, which are JSON, as this is not."""

Record = Mapping[str, Any]
Metric = Literal["euclidean", "cosine"]
Explanation = tuple[Sequence[str], type[RankfoldError], str]
"""Signs in what a database says, the error that it is, and what to do."""


T = TypeVar("T")


class Address(NamedTuple):
    """An address, taken apart.

    ``shown`` is for people, without the password; ``tls`` is whether it ends with ``?tls=true``.
    """

    shown: str
    host: str
    port: int
    user: str
    password: str
    path: str
    tls: bool

    @classmethod
    def of(cls, address: str, scheme: str, port: int, example: str) -> Address:
        """Take an address of a scheme apart.

        Examples
        --------
        >>> Address.of("qdrant://:secret@db.example", "qdrant", 6333, "qdrant://host:6333").shown
        'qdrant://db.example:6333'
        >>> Address.of("lancedb:///./shop", "lancedb", 0, "lancedb:///folder").path
        './shop'
        """
        wrong = InputError(f"the address must look like {example}.", "address")
        try:
            parts = urlsplit(address)
            port = parts.port or port
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError:
            raise wrong from None
        if parts.scheme != scheme or parts.fragment or options not in ({}, {"tls": "true"}):
            raise wrong
        user, path = unquote(parts.username or ""), unquote(parts.path)
        if path.startswith(("/./", "/../")):
            path = path[1:]
        shown = f"{scheme}://"
        if parts.hostname:
            host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
            shown += (f"{user}@" if user else "") + f"{host}:{port}"
        shown += unquote(parts.path)
        secret = unquote(parts.password or "")
        return cls(shown, parts.hostname or "", port, user, secret, path, "tls" in options)


def pack_row(row: Row) -> Record:
    """Return a row as three texts and a number, which every database can store.

    Examples
    --------
    >>> row = Row(7, -5, [1, 2], np.float32([0.5, 1]), [2, 9], np.float32([0.25, 0.75]))
    >>> unpack_row(pack_row(row)).neighbors
    [2, 9]
    """
    return {
        "id": json.dumps(row.key),
        "checksum": int(row.checksum),
        "nearest": _pack(row.nearest, row.sq_distances),
        "edges": _pack(row.neighbors, row.weights),
    }


def unpack_row(record: Record) -> Row:
    """Return the row that `pack_row` packed."""
    nearest, edges = unpack_edges(record["nearest"]), unpack_edges(record["edges"])
    return Row(json.loads(record["id"]), int(record["checksum"]), *nearest, *edges)


def unpack_edges(text: str) -> Edges:
    """Return keys and numbers of a list that `pack_row` packed."""
    if text.startswith("["):
        keys, packed = json.loads(text)
        return Edges(keys, np.frombuffer(b64decode(packed), "<f4"))
    data = b64decode(text)
    n = len(data) // 12
    return Edges(np.frombuffer(data, "<i8", n).tolist(), np.frombuffer(data, "<f4", n, 8 * n))


def _pack(keys: Sequence[Key], numbers: FloatArray) -> str:
    """Return a list in base64, its keys as JSON unless all are whole numbers of 64 bits."""
    floats = np.asarray(numbers, dtype="<f4").tobytes()
    if all(type(key) is int and -(2**63) <= key < 2**63 for key in keys):
        return b64encode(np.array(keys, dtype="<i8").tobytes() + floats).decode()
    return json.dumps([list(keys), b64encode(floats).decode()], separators=(",", ":"))


def nearest_first(page: Page, vector: FloatArray, metric: str) -> Hits:
    """Return how far points are from a vector, in double precision, nearest first.

    Examples
    --------
    >>> page = Page([4, 5], np.float32([[3, 4], [0, 2]]))
    >>> nearest_first(page, np.array([0.0, 1.0]), "euclidean").sq_distances.tolist()
    [1.0, 18.0]
    >>> nearest_first(page, np.array([0.0, 1.0]), "cosine").sq_distances.round(9).tolist()
    [0.0, 0.4]
    """
    both: FloatArray = np.vstack([vector, page.vectors]).astype(np.float64)
    if metric == "cosine":
        lengths = np.linalg.norm(both, axis=1, keepdims=True)
        both = both / np.where(lengths > 0, lengths, 1)
    away = both[1:] - both[0]
    squares: FloatArray = np.einsum("ij,ij->i", away, away)
    order = np.argsort(squares, kind="stable")
    return Hits([page.keys[place] for place in order], squares[order])


class Backend(Database):
    """A `Database` that keeps the graph as records of three texts and a number, each with an id.

    The id of a point's row is its key as JSON; the manifest is among them. A backend says how
    points are read, as `Database` asks, and how records are; this does the rest. A record is a
    dict of ``id`` and of what `pack_row` returns.
    """

    round_trips: int = 0
    rows_at_once: int = 2_000
    """Rows that are written together."""

    @abstractmethod
    def load(self, ids: Sequence[str], fields: Sequence[str]) -> Iterable[Record]:
        """Return fields of some records, and their ids; those that are there."""

    @abstractmethod
    def load_all(self, size: int) -> Iterator[Iterable[Record]]:
        """Yield all records, so many at a time."""

    @abstractmethod
    def store(self, records: Sequence[Record]) -> None:
        """Write records, in place of those with the same ids; makes room where there is none."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Remove some records."""

    def distances(self, vector: FloatArray, keys: Sequence[Key]) -> Hits:
        """Return how far points are from a vector."""
        return nearest_first(self.vectors(keys), vector, self.metric)

    def begin(self, keys: Sequence[Key]) -> tuple[dict[str, Any] | None, Mapping[Key, Row]]:
        """Return manifest and rows of some points, in one exchange."""
        found = {r["id"]: r for r in self.load([MANIFEST, *map(json.dumps, keys)], FIELDS)}
        manifest = found.pop(MANIFEST, None)
        rows = {row.key: row for row in map(unpack_row, found.values())}
        return None if manifest is None else dict(json.loads(manifest["edges"])), rows

    def read_manifest(self) -> dict[str, Any] | None:
        """Return what is recorded of the graph; None where nothing is attached."""
        found = [json.loads(record["edges"]) for record in self.load([MANIFEST], ["edges"])]
        return dict(found[0]) if found else None

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Record it, in place of what was there; makes room for rows where there is none."""
        text = json.dumps(dict(manifest))
        self.store([{"id": MANIFEST, "checksum": 0, "nearest": "", "edges": text}])

    def edges(self, keys: Sequence[Key]) -> Mapping[Key, Edges]:
        """Return rows of the graph; those that are there."""
        found = self.load([json.dumps(key) for key in keys], ["edges"])
        return {json.loads(record["id"]): unpack_edges(record["edges"]) for record in found}

    def around(self, key: Key, n: int) -> Mapping[Key, Edges]:
        """Return rows of about the ``n`` points nearest to a point, in three exchanges."""
        hits = self.search(self.vectors([key]).vectors, n)
        return self.edges(hits[0].keys) if hits else {}

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Row]:
        """Return all that is stored for some points; those that are there."""
        found = self.load([json.dumps(key) for key in keys], FIELDS)
        return {row.key: row for row in map(unpack_row, found)}

    def scan_rows(self, size: int) -> Iterator[list[Row]]:
        """Yield all that is stored, so many rows at a time."""
        for found in self.load_all(size):
            yield [unpack_row(record) for record in found if record["id"] != MANIFEST]

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Store rows, in place of those of the same points."""
        for some in portions(rows, self.rows_at_once):
            self.store([pack_row(row) for row in some])

    def remove_rows(self, keys: Sequence[Key]) -> None:
        """Remove what is stored for some points."""
        if keys:
            self.remove([json.dumps(key) for key in keys])

    def transaction(self) -> AbstractContextManager[None]:
        """Do nothing: written is written, where a database has no transactions."""
        return nullcontext()


def as_page(keys: Sequence[Key], vectors: Sequence[Any], n_features: int) -> Page:
    """Return keys and vectors that came as lists."""
    return Page(list(keys), np.array(vectors, dtype=np.float32).reshape(len(keys), n_features))


def portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items, so many at a time.

    Examples
    --------
    >>> list(portions("abc", 2))
    [['a', 'b'], ['c']]
    """
    rest = iter(items)
    while portion := list(islice(rest, size)):
        yield portion


def chosen(what: str, name: str | None, known: Iterable[str], place: str) -> str:
    """Return a name among those that are there, or the only one where none was given.

    Examples
    --------
    >>> chosen("table", "dogs", ["docs"], "lancedb:///shop")
    Traceback (most recent call last):
    ...
    rankfold.errors.DatabaseError: lancedb:///shop has no table 'dogs'; it has: 'docs'.
    """
    names = sorted(known)
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    there = ", ".join(map(repr, names)) or "none"
    if name is None:
        raise DatabaseError(f"choose a {what} of {place}; it has: {there}.")
    raise DatabaseError(f"{place} has no {what} {name!r}; it has: {there}.")


def own_metric(kind: str, metrics: Mapping[str, Metric], asked: str | None, place: str) -> Metric:
    """Return what the database's metric is called here; it must be the one that was asked for."""
    own = metrics.get(kind)
    if own is None:
        raise DatabaseError(
            f"{place} measures by {kind}, of which no graph of neighbours can be made; it must be "
            f"{' or '.join(metrics)}."
        )
    if asked not in (None, own):
        raise InputError(
            f"metric is {asked!r}, but {place} measures by {own!r}: leave it out.", "metric"
        )
    return own


def explained(text: str, said: str, place: str, known: Iterable[Explanation]) -> RankfoldError:
    """Return the error for what a database raised, by the signs that its text has."""
    said = said.split("\n")[0][:300]
    for signs, error, advice in known:
        if any(sign in text for sign in signs):
            does = "does not answer" if issubclass(error, UnreachableError) else "refuses this"
            message = f"{place} {does} ({said}): {advice}."
            return InputError(message, "where") if error is InputError else error(message)
    return DatabaseError(f"{place} cannot do what it was asked ({said}).")
