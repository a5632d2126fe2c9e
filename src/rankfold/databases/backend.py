"""What rankfold asks of a vector database, and what all databases share."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from threading import local
from typing import Any, Literal, NamedTuple, Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from rankfold.errors import DatabaseError, InputError, RankfoldError, UnreachableError
from rankfold.solvers import Adjacency, key_order
from rankfold.types import FloatArray

CONNECTING, WAITING = 5.0, 30.0
"""Seconds to wait for a server at first, and for an answer."""

SIDE = "_rankfold"
"""What is added to a collection's name for the one beside it."""

FIELDS = ("checksum", "nearest", "edges")
"""Of a record, beside its id."""

MANIFEST = "manifest"
"""The id of the manifest among those of rows, which are JSON, as this is not."""

MOST_KEYS, MOST_BYTES, MOST_VECTORS = 10_000, 8 * 2**20, 64
"""Points that are read at once, bytes of their vectors, and vectors that are searched at once."""

UUID_FORM = re.compile("[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")

Key = int | str
"""How a database names a point: its primary key or id. A UUID is given as text."""

Record = Mapping[str, Any]
"""A part of the graph as it is stored: ``id``, ``checksum``, ``nearest`` and ``edges``, of which
the second is a whole number of 64 bits and the others are texts."""

Metric = Literal["euclidean", "cosine"]
What = Literal["vector", "payload", "nothing"]
Points = Iterable[tuple[Key, Any]]
"""Keys of points, and what was asked for with each."""

ErrorPattern = tuple[str, type[RankfoldError], str]
"""A pattern in what a database says, the error that it is, and what to do."""

T = TypeVar("T")


class GoneError(DatabaseError):
    """What was asked for is not there, or no longer."""


class Page(NamedTuple):
    """Some points of a collection: keys, and vectors in single precision, row by row."""

    keys: list[Key]
    vectors: FloatArray


class StoredRow(NamedTuple):
    """What is stored for a point; all numbers are in single precision.

    ``checksum`` is that of the vector from which the row was made: 64 bits, signed. ``nearest`` is
    the point's own list, nearest first: k neighbours, and one more for the scale. ``edges`` is its
    row of the symmetric graph W, in the order of the scan that built it.
    """

    key: Key
    checksum: int
    nearest: Adjacency
    edges: Adjacency


class Database(ABC):
    """A collection of a vector database that exists, and the graph that is kept beside it.

    A database says how its points are read and how records are stored; this does the rest. Nothing
    of the user's data is changed. Methods that are given keys answer for the points that are there,
    in any order. Problems of the network are `UnreachableError`; no message contains a password.

    Parameters
    ----------
    client
        A connection to the database.
    table : str
        The table or collection.
    vector, key : str, optional
        Where its vectors and keys are. May be left out where there is one of them, or where the
        graph is attached already.
    metric : {"euclidean", "cosine"}, optional
        That of the collection by default, else "euclidean".
    place : str
        How messages call the database: its address without password.
    """

    metric: Metric
    n_features: int
    exact: bool
    """Whether a search misses nothing."""

    rows_at_once, records_at_once = 2_000, 5_000
    """Records that are written together, and read together where all of them are."""

    points_at_once: int
    """How many points are read together with their vectors."""

    failures: tuple[type[Exception], ...] = ()
    errors: Sequence[ErrorPattern] = ()
    """What the client raises, and what becomes of it."""

    def __init__(
        self,
        client: Any,
        table: str,
        vector: str | None = None,
        *,
        key: str | None = None,
        metric: Metric | None = None,
        place: str = "here",
    ) -> None:
        self.client, self.table, self.place = client, table, place
        self.name = f"{table!r} in {place}"
        self.columns: dict[str, str] = {}  # of vector and key; recorded with the graph
        self.is_key: Callable[[Key], bool] = lambda key: True
        self.lock: AbstractContextManager[Any] = nullcontext()
        self._waited = local()
        self.describe(vector, key, metric)
        self.points_at_once = min(MOST_KEYS, max(1, MOST_BYTES // (4 * self.n_features)))

    @classmethod
    def connect(cls, address: str) -> Any:
        """Return a client for an address."""
        raise InputError(f"{cls.__name__} has no addresses; make it from a client.", "address")

    @classmethod
    def open(cls, address: str, table: str, vector: str | None = None, **columns: Any) -> Self:
        """Open a collection at an address."""
        client = cls.connect(address)
        try:
            return cls(client, table, vector, place=without_password(address), **columns)
        except BaseException:
            if hasattr(client, "close"):
                client.close()
            raise

    @abstractmethod
    def describe(self, vector: str | None, key: str | None, metric: Metric | None) -> None:
        """Find out ``metric``, ``n_features``, ``exact`` and ``columns``.

        Where points cannot have any key, ``is_key`` says which; where calls must not overlap, they
        hold ``lock``.
        """

    # The user's points: read only.
    @abstractmethod
    def count(self) -> int:
        """Return the number of points."""

    @abstractmethod
    def scan(self) -> Iterator[Points]:
        """Yield vectors of all points, in the order of keys where it can, some at a time."""

    @abstractmethod
    def get(self, keys: Sequence[Key], what: What, where: Any = None) -> Points:
        """Return points with their vector, with what the user keeps with them, or with nothing.

        At most `MOST_KEYS` are asked for, all of which ``is_key`` lets through; those that pass
        the database's own filter are returned.
        """

    @abstractmethod
    def nearest(self, vectors: FloatArray, k: int, where: Any = None) -> Iterable[Points]:
        """Return vectors of at least the ``k`` points nearest to each; `search` measures them."""

    # The graph: records in a field, or in a table beside the user's.
    @abstractmethod
    def load(self, ids: Sequence[str], fields: Sequence[str]) -> Iterable[Record]:
        """Return these fields of some records, and their ids."""

    @abstractmethod
    def load_all(self) -> Iterator[Iterable[Record]]:
        """Yield all records, some at a time."""

    @abstractmethod
    def store(self, records: Sequence[Record]) -> None:
        """Write records, in place of those with the same ids; makes room where there is none."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Remove some records."""

    @abstractmethod
    def detach(self) -> None:
        """Remove all records without a trace."""

    def check_vectors(self, name: str, size: int) -> None:
        """Refuse a second vector of so many numbers, where it cannot be written."""
        raise InputError(
            f"{self.name} cannot be given a second vector: {type(self).__name__} fixes its vectors "
            "when a collection is made. docs/shape_vectors.md shows how to make one with both.",
            "as_vector",
        )

    def write_vectors(self, name: str, size: int, pages: Iterable[Page]) -> None:
        """Write a second vector of points, which the user has asked for."""
        self.check_vectors(name, size)

    def transaction(self) -> AbstractContextManager[None]:
        """Group what is written: all of it appears at once, where the database can."""
        return nullcontext()

    def close(self) -> None:
        """Release connections."""
        self.client.close()

    # What follows from these.
    @property
    def round_trips(self) -> int:
        """How often this thread has waited for an answer."""
        return int(getattr(self._waited, "times", 0))

    @round_trips.setter
    def round_trips(self, times: int) -> None:
        self._waited.times = times

    @contextmanager
    def exchange(self) -> Iterator[None]:
        """Count an exchange, and turn what the client raises into errors that say what to do."""
        self.round_trips += 1
        try:
            with self.lock:
                yield
        except self.failures as error:
            raise explained(*self.told(error), self.place, self.errors) from error

    def call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a method of the client, in one exchange."""
        with self.exchange():
            return method(*args, **options)

    @staticmethod
    def told(error: Exception) -> tuple[str, str]:
        """Return what the client says: where ``errors`` looks for signs, and what is shown."""
        return str(error), str(error)

    def pages(self) -> Iterator[Page]:
        """Yield every point once, as `scan` does."""
        return map(self.page, self.scan())

    def vectors(self, keys: Sequence[Key]) -> Page:
        """Return the vectors of some points."""
        return self.page(self._read(keys, "vector"))

    def payload(self, keys: Sequence[Key]) -> dict[Key, dict[str, Any]]:
        """Return what the user keeps with points; no vectors, no graph."""
        return dict(self._read(keys, "payload"))

    def matching(self, keys: Sequence[Key], where: Any) -> set[Key]:
        """Return which of some points are there, and pass the database's own filter, if any."""
        return {key for key, _ in self._read(keys, "nothing", where)} & set(keys)

    def search(self, vectors: FloatArray, k: int, where: Any = None) -> list[Adjacency]:
        """Return the points nearest to each vector, among those that a filter lets through.

        They come with squared distances, nearest first; for cosine these are ``2 - 2 cos``.
        """
        return [
            nearest_first(self.page(points), vector, self.metric, k)
            for some in portions(vectors, MOST_VECTORS)
            for points, vector in zip(self.nearest(np.array(some), k, where), some, strict=True)
        ]

    def page(self, found: Points) -> Page:
        """Return points and their vectors as a page; who has none is left out."""
        pairs = [(key, vector) for key, vector in found if vector is not None]
        for key, vector in pairs:
            if len(vector) != self.n_features:
                raise DatabaseError(
                    f"{self.name} has vectors of {self.n_features} numbers, but that of {key!r} "
                    f"has {len(vector)}; a graph needs vectors of one length."
                )
        vectors = np.array([vector for _, vector in pairs], dtype=np.float32)
        return Page([key for key, _ in pairs], vectors.reshape(-1, self.n_features))

    def _read(
        self, keys: Iterable[Key], what: What, where: Any = None
    ) -> Iterator[tuple[Key, Any]]:
        size = self.points_at_once if what == "vector" else MOST_KEYS
        for some in portions(filter(self.is_key, keys), size):
            yield from self.get(some, what, where)

    def begin(self, keys: Sequence[Key]) -> tuple[dict[str, Any] | None, dict[Key, StoredRow]]:
        """Return manifest and rows of some points, in one exchange where it can."""
        found = {record["id"]: record for record in self._records(keys, FIELDS, MANIFEST)}
        manifest = found.pop(MANIFEST, None)
        rows = {row.key: row for row in map(unpack_row, found.values())}
        return None if manifest is None else dict(json.loads(manifest["edges"])), rows

    def read_manifest(self) -> dict[str, Any] | None:
        """Return what is recorded of the graph; None where nothing is attached."""
        return self.begin([])[0]

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Record it, in place of what was there."""
        texts = {"nearest": json.dumps(self.columns), "edges": json.dumps(dict(manifest))}
        self.store([{"id": MANIFEST, "checksum": 0, **texts}])

    def as_attached(
        self, vector: str | None, key: str | None, metric: Metric | None
    ) -> tuple[str | None, str | None, Metric | None]:
        """Return what was given; what was left out is as the graph was attached."""
        for record in self.load([MANIFEST], FIELDS):
            before = json.loads(record["nearest"])
            vector = before.get("vector") if vector is None else vector
            key = before.get("key") if key is None else key
            metric = metric or json.loads(record["edges"]).get("metric")
        return vector, key, metric

    def edges(self, keys: Sequence[Key]) -> dict[Key, Adjacency]:
        """Return rows of the graph, in one exchange."""
        return unpacked_edges(self._records(keys, ["edges"]))

    def around(self, key: Key, n: int) -> dict[Key, Adjacency]:
        """Return rows of about the ``n`` points nearest to a point; some may be missing.

        A query begins with them, so that it need not follow edges from ring to ring. Takes three
        exchanges, unless the database can do better.
        """
        hits = self.search(self.vectors([key]).vectors, n)
        return self.edges(hits[0].neighbors) if hits else {}

    def rows(self, keys: Sequence[Key]) -> dict[Key, StoredRow]:
        """Return all that is stored for some points."""
        return {row.key: row for row in map(unpack_row, self._records(keys, FIELDS))}

    def all_edges(self) -> Iterator[dict[Key, Adjacency]]:
        """Yield all rows of the graph, some at a time."""
        for rows in self.scan_rows():
            yield {row.key: row.edges for row in rows}

    def scan_rows(self) -> Iterator[list[StoredRow]]:
        """Yield all that is stored, some rows at a time, in any order."""
        for found in self.load_all():
            yield [unpack_row(record) for record in found if record["id"] != MANIFEST]

    def write_rows(self, rows: Iterable[StoredRow]) -> None:
        """Store rows, in place of those of the same points."""
        for some in portions(rows, self.rows_at_once):
            self.store([pack_row(row) for row in some])

    def remove_rows(self, keys: Sequence[Key]) -> None:
        """Remove what is stored for some points."""
        for some in portions(keys, MOST_KEYS):
            self.remove([as_id(key) for key in some])

    def _records(self, keys: Iterable[Key], fields: Sequence[str], *more: str) -> Iterator[Record]:
        ids = [*more, *(as_id(key) for key in keys if self.is_key(key))]
        for some in portions(ids, MOST_KEYS):
            yield from self.load(some, fields)


def as_id(key: Key) -> str:
    """Return the id of a point's record: its key as JSON."""
    return json.dumps(key, ensure_ascii=False)


def pack_row(row: StoredRow) -> Record:
    """Return a row as three texts and a number, which every database can store.

    Examples
    --------
    >>> row = StoredRow(7, -5, Adjacency([1], np.float32([0.5])), Adjacency([9], np.float32([1])))
    >>> unpack_row(pack_row(row)).edges.neighbors
    [9]
    """
    texts = {"nearest": _pack(*row.nearest), "edges": _pack(*row.edges)}
    return {"id": as_id(row.key), "checksum": int(row.checksum), **texts}


def unpack_row(record: Record) -> StoredRow:
    """Return the row that `pack_row` packed."""
    nearest, edges = _unpack(record["nearest"]), _unpack(record["edges"])
    return StoredRow(json.loads(record["id"]), int(record["checksum"]), nearest, edges)


def unpacked_edges(records: Iterable[Record]) -> dict[Key, Adjacency]:
    """Return the rows of the graph that are in records."""
    return {json.loads(record["id"]): _unpack(record["edges"]) for record in records}


def _pack(keys: Sequence[Key], numbers: FloatArray) -> str:
    """Return a list in base64, its keys as JSON unless all are whole numbers of 64 bits."""
    floats = np.asarray(numbers, dtype="<f4").tobytes()
    if all(map(is_whole, keys)):
        return b64encode(np.array(keys, dtype="<i8").tobytes() + floats).decode()
    return json.dumps([list(keys), b64encode(floats).decode()], separators=(",", ":"))


def _unpack(text: str) -> Adjacency:
    if text.startswith("["):
        keys, packed = json.loads(text)
        return Adjacency(keys, np.frombuffer(b64decode(packed), "<f4"))
    data = b64decode(text)
    n = len(data) // 12
    return Adjacency(np.frombuffer(data, "<i8", n).tolist(), np.frombuffer(data, "<f4", n, 8 * n))


def is_whole(key: Key) -> bool:
    """Return whether a key is a whole number of 64 bits."""
    return type(key) is int and -(2**63) <= key < 2**63


def is_text(key: Key) -> bool:
    """Return whether a key is a text."""
    return isinstance(key, str)


def is_uuid(key: Key) -> bool:
    """Return whether a key is a UUID."""
    return isinstance(key, str) and UUID_FORM.fullmatch(key) is not None


def nearest_first(page: Page, vector: FloatArray, metric: str, k: int) -> Adjacency:
    """Return how far the ``k`` nearest points are from a vector, in double precision.

    Ties go to the smaller key, as they go to the smaller row in memory.

    Examples
    --------
    >>> page = Page([4, 5], np.float32([[3, 4], [0, 2]]))
    >>> nearest_first(page, np.array([0.0, 1.0]), "euclidean", 2).weights.tolist()
    [1.0, 18.0]
    """
    both: FloatArray = np.vstack([vector, page.vectors]).astype(np.float64)
    if metric == "cosine":
        lengths = np.linalg.norm(both, axis=1, keepdims=True)
        both = both / np.where(lengths > 0, lengths, 1)
    away = both[1:] - both[0]
    squares: FloatArray = np.einsum("ij,ij->i", away, away)
    order = sorted(range(len(squares)), key=lambda at: (squares[at], *key_order(page.keys[at])))
    return Adjacency([page.keys[place] for place in order[:k]], squares[order[:k]])


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


class Address(NamedTuple):
    """An address, taken apart; ``tls`` is whether it ends with ``?tls=true``."""

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
        user, password, path = map(
            unquote, (parts.username or "", parts.password or "", parts.path)
        )
        path = path[1:] if path.startswith(("/./", "/../")) else path
        return cls(parts.hostname or "", port, user, password, path, "tls" in options)


def without_password(address: str) -> str:
    """Return an address as it may be shown: whatever may belong to a password is left out.

    Examples
    --------
    >>> without_password("postgresql://ann:secret@host:5432/db?password=secret&sslmode=require")
    'postgresql://ann@host:5432/db?sslmode=require'
    """
    shown = re.sub(r"(?<=:)([^/@:]*|//[^/@:]*):.*@", r"\1@", address).replace("://@", "://")
    start, _, query = shown.partition("?")
    options = query.split("&") if query else []
    options = [one for one in options if "password" not in unquote(one.partition("=")[0]).lower()]
    return "?".join([start, "&".join(options)]) if options else start


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
        raise InputError(f"choose a {what} of {place}; it has: {there}.")
    raise DatabaseError(f"{place} has no {what} {name!r}; it has: {there}.")


def own_metric(kind: str, metrics: Mapping[str, Metric], asked: str | None, place: str) -> Metric:
    """Return what the database's metric is called here; it must be the one that was asked for."""
    if kind not in metrics:
        raise DatabaseError(
            f"{place} measures by {kind}, of which no graph of neighbours can be made; it must be "
            f"{' or '.join(metrics)}."
        )
    if asked not in (None, own := metrics[kind]):
        measures = f"metric is {asked!r}, but {place} measures by {own!r}: leave it out."
        raise InputError(measures, "metric")
    return own


def explained(text: str, said: str, place: str, known: Iterable[ErrorPattern]) -> RankfoldError:
    """Return the error for what a database raised, by the patterns that its text has."""
    said = said.strip().split("\n")[0][:300]
    for pattern, error, advice in known:
        if re.search(pattern, text):
            does = "does not answer" if issubclass(error, UnreachableError) else "refuses this"
            message = f"{place} {does} ({said}): {advice}."
            return InputError(message, "where") if error is InputError else error(message)
    return DatabaseError(f"{place} cannot do what it was asked ({said}).")
