"""Collections of Milvus: a server, or a file of Milvus Lite. Rows lie in a collection beside."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import RLock
from typing import Any

from rankfold.databases import backend
from rankfold.databases.backend import FIELDS, SIDE, Backend, Metric, Record, portions
from rankfold.databases.protocol import Hits, Key, Page
from rankfold.errors import (
    DatabaseError,
    InputError,
    MissingExtraError,
    RankfoldError,
    UnreachableError,
)
from rankfold.types import FloatArray

try:
    import grpc
    from pymilvus import DataType, MilvusClient
    from pymilvus.exceptions import MilvusException
except ImportError:
    raise MissingExtraError("pymilvus", "milvus") from None

EXAMPLE = (
    "milvus://user:password@host:19530/database?tls=true, where all but the host may be left out, "
    "or milvus:///folder/file.db of Milvus Lite"
)

METRICS: dict[str, Metric] = {"COSINE": "cosine", "L2": "euclidean"}
EXACT = ("FLAT", "GPU_BRUTE_FORCE")
LONGEST = 65_535
"""Characters of the longest text that Milvus stores; longer ones are cut into several."""

MOST_TEXTS = 1_024
FIRST_VECTOR = 100
"""Types of Milvus from here on are vectors."""

MOST_KEYS = 10_000
"""Entities that are asked for at once: Milvus answers with 16,384 at most."""

MOST_BYTES = 8 * 2**20
"""Bytes that are asked for at once, roughly; servers send and take 64 MB."""

MOST_VECTORS = 64
IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}
"""Options by which an answer with a limit has the smallest keys."""

LOGS = (
    "pymilvus.decorators",
    "pymilvus.client.connection_manager",
    "milvus_lite.server_manager",
)

ERRORS: list[backend.Explanation] = [
    (
        ("Open local milvus failed",),
        UnreachableError,
        "a file of Milvus Lite is used by one process at a time; see that no other has it open",
    ),
    (
        ("UNAVAILABLE", "DEADLINE_EXCEEDED", "Fail connecting", "Retry timeout", "rate limit"),
        UnreachableError,
        "see that Milvus runs there, and that the address is right",
    ),
    (
        ("UNAUTHENTICATED", "auth check failure", "PermissionDenied", "permission deny"),
        DatabaseError,
        "give milvus://user:password@host of one who may read and write collections",
    ),
    (
        ("expression", "at column", "cannot parse"),
        InputError,
        "where must be a filter of its own language",
    ),
]
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
LOADING = 24 * 3600.0
"""Seconds to wait until a collection is in memory."""

_locks: defaultdict[str, RLock] = defaultdict(RLock)
"""Of files of Milvus Lite, each served in this process for all who use it."""


class Milvus(Backend):
    """A collection of Milvus.

    ``where`` is an expression of Milvus, or a pair of one and a dict of the values that it names
    in braces, which Milvus Lite does not know.

    Parameters
    ----------
    client : MilvusClient
    table : str
        The collection.
    vector : str, optional
        The field of vectors; may be left out where there is one.
    key, metric : str, optional
        Must be the primary key, and that of the vectors' index, if they are given.
    place : str
        How messages call the server.
    lock : context manager, optional
        Held during every call: Milvus Lite does not keep a reader apart from a writer.
    """

    def __init__(
        self,
        client: MilvusClient,
        table: str,
        vector: str | None = None,
        *,
        key: str | None = None,
        metric: str | None = None,
        place: str = "milvus",
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        self._client, self._table, self._place = client, table, place
        self._lock = lock or nullcontext()
        self.name = f"{table!r} in {place}"
        known = self._call("list_collections")
        backend.chosen("collection", table, known, place)
        described = self._call("describe_collection", table)
        types = {field["name"]: field for field in described["fields"]}
        spaces = [name for name, of in types.items() if of["type"] == DataType.FLOAT_VECTOR]
        primary = next(field for field in types.values() if field.get("is_primary"))
        self._vector = backend.chosen("field of vectors", vector, spaces, self.name)
        self._key = backend.chosen("key", key, [primary["name"]], self.name)
        self._key_type = int if primary["type"] == DataType.INT64 else str
        scalars = [name for name, of in types.items() if of["type"] < FIRST_VECTOR]
        self._own = [name for name in scalars if name != self._key]
        self._own += ["$meta"] if described["enable_dynamic_field"] else []
        self.n_features = int(types[self._vector]["params"]["dim"])
        self._per_answer = min(MOST_KEYS, max(1, MOST_BYTES // (4 * self.n_features)))
        self._read_index(metric)
        self._load_collection(table)
        self._has_side = table + SIDE in known
        if self._has_side:
            self._load_collection(table + SIDE)

    @classmethod
    def open(cls, address: str, table: str, vector: str | None = None, **options: Any) -> Milvus:
        """Open a collection at an address such as ``milvus://host`` or ``milvus:///file.db``.

        Examples
        --------
        >>> Milvus.open("milvus://me:secret@127.0.0.1:1", "docs")
        Traceback (most recent call last):
        ...
        rankfold.errors.UnreachableError: milvus://me@127.0.0.1:1 does not answer (...
        """
        at = backend.Address.of(address, "milvus", 19530, EXAMPLE)
        for log in LOGS:  # all that they say is raised as well
            logging.getLogger(log).addFilter(_is_no_error)
        lock = None if at.host else _locks[str(Path(at.path).resolve())]
        uri = f"http{'s' if at.tls else ''}://{at.host}:{at.port}" if at.host else at.path
        if not at.host and not (at.path.endswith(".db") and Path(at.path).exists()):
            raise DatabaseError(f"there is no file {at.path!r} of Milvus Lite, which end with .db.")
        try:
            client = MilvusClient(
                uri,
                user=at.user,
                password=at.password,
                db_name=at.path.strip("/") if at.host else "",
                timeout=backend.CONNECTING,
            )
        except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError) as error:
            raise _explained(error, at.shown) from error
        try:
            return cls(client, table, vector, place=at.shown, lock=lock, **options)
        except BaseException:
            client.close()
            raise

    def count(self) -> int:
        """Return the number of points."""
        return int(self._query(self._table, "", ["count(*)"])[0]["count(*)"])

    def scan(self, size: int) -> Iterator[Page]:
        """Yield every point once, in the order of keys."""
        size = min(size, self._per_answer)
        for entities in self._pages(self._table, self._key, size, [self._vector]):
            yield self._page(entities)

    def vectors(self, keys: Sequence[Key]) -> Page:
        """Return those of some points that are there."""
        return self._page(self._get(keys, [self._vector], self._per_answer))

    def search(self, vectors: FloatArray, k: int, where: Any = None) -> list[Hits]:
        """Return the points nearest to each vector."""
        expression, values = _expression(where)
        effort = {"ef": max(64, 2 * k)} if self._is_hnsw else {}
        found: list[Hits] = []
        for some in portions(vectors, MOST_VECTORS):
            answers = self._call(
                "search",
                self._table,
                data=[vector.tolist() for vector in some],
                anns_field=self._vector,
                filter=expression,
                filter_params=values,
                limit=k,
                output_fields=[self._key, self._vector],
                search_params={"metric_type": self._metric_type, "params": effort},
                consistency_level="Strong",
            )
            found += [
                backend.nearest_first(
                    self._page([hit["entity"] for hit in hits]), vector, self.metric
                )
                for hits, vector in zip(answers, some, strict=True)
            ]
        return found

    def payload(self, keys: Sequence[Key]) -> Mapping[Key, dict[str, Any]]:
        """Return the other fields of points, without vectors."""
        found = self._get(keys, self._own)
        return {
            entity[self._key]: {name: v for name, v in entity.items() if name != self._key}
            for entity in found
        }

    def matching(self, keys: Sequence[Key], where: Any) -> set[Key]:
        """Return which of some points are there, and pass an expression."""
        return {entity[self._key] for entity in self._get(keys, [], where=where)} & set(keys)

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        """Return fields of some records, up to 10,000 in one exchange."""
        found: list[Record] = []
        for some in portions(ids if self._has_side else (), MOST_KEYS):
            found += self._query(self._table + SIDE, _among("id", some), ["id", *fields])
        return [_whole(entity) for entity in found]

    def load_all(self, size: int) -> Iterator[list[Record]]:
        """Yield all records."""
        if self._has_side:
            for found in self._pages(self._table + SIDE, "id", min(size, MOST_KEYS), FIELDS):
                yield [_whole(entity) for entity in found]

    def store(self, records: Sequence[Record]) -> None:
        """Write records."""
        if not self._has_side:
            self._make_side()
        entities = [
            {
                "id": record["id"],
                "checksum": record["checksum"],
                "nearest": _cut(record["nearest"]),
                "edges": _cut(record["edges"]),
                "spare": [0.0, 0.0],
            }
            for record in records
        ]
        self._call("upsert", self._table + SIDE, entities)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove some records."""
        for some in portions(ids if self._has_side else (), MOST_KEYS):
            self._call("delete", self._table + SIDE, filter=_among("id", some))

    def detach(self) -> None:
        """Drop the collection of the graph."""
        if self._has_side:
            self._call("drop_collection", self._table + SIDE)
            self._has_side = False

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _read_index(self, metric: str | None) -> None:
        names = self._call("list_indexes", self._table)
        indexes = [self._call("describe_index", self._table, name) for name in names]
        own = next((index for index in indexes if index["field_name"] == self._vector), None)
        if own is None:
            raise DatabaseError(f"{self.name} has no index of {self._vector!r}: make one first.")
        self._metric_type = own["metric_type"]
        self.metric = backend.own_metric(self._metric_type, METRICS, metric, self.name)
        self._is_hnsw = own["index_type"].startswith("HNSW")
        self.exact = own["index_type"] in EXACT

    def _load_collection(self, name: str) -> None:
        if self._call("get_load_state", name)["state"].name != "Loaded":
            self._call("load_collection", name, timeout=LOADING)

    def _make_side(self) -> None:
        side = self._table + SIDE
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=LONGEST)
        schema.add_field("checksum", DataType.INT64)
        texts = {"element_type": DataType.VARCHAR, "max_length": LONGEST}
        for name in ("nearest", "edges"):
            schema.add_field(name, DataType.ARRAY, max_capacity=MOST_TEXTS, **texts)
        schema.add_field("spare", DataType.FLOAT_VECTOR, dim=2)  # every collection must have one
        index = self._client.prepare_index_params()
        index.add_index("spare", index_type="FLAT", metric_type="L2")
        self._call("create_collection", side, schema=schema, index_params=index)
        self._load_collection(side)
        self._has_side = True

    def _page(self, entities: Sequence[Record]) -> Page:
        vectors = [entity[self._vector] for entity in entities]
        return backend.as_page([entity[self._key] for entity in entities], vectors, self.n_features)

    def _get(
        self, keys: Sequence[Key], fields: Sequence[str], size: int = MOST_KEYS, where: Any = None
    ) -> list[Record]:
        expression, values = _expression(where)
        found: list[Record] = []
        for some in portions((key for key in keys if type(key) is self._key_type), size):
            only = _among(self._key, some) + (f" and ({expression})" if expression else "")
            found += self._query(self._table, only, fields, filter_params=values)
        return found

    def _pages(
        self, table: str, key: str, size: int, fields: Sequence[str]
    ) -> Iterator[list[Record]]:
        after = ""
        while found := self._query(table, after, [key, *fields], limit=size, **IN_ORDER):
            yield found
            after = f"{key} > {_literal(found[-1][key])}"

    def _query(
        self, table: str, expression: str, fields: Sequence[str], **options: Any
    ) -> list[Record]:
        options = {"consistency_level": "Strong", **options}
        fields = list(fields) or [self._key]
        return list(self._call("query", table, expression, output_fields=fields, **options))

    def _call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method of the client, with errors that say what to do."""
        self.round_trips += 1
        try:
            with self._lock:
                return getattr(self._client, method)(
                    *args, **{"timeout": backend.WAITING, **options}
                )
        except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError) as error:
            raise _explained(error, self._place) from error


def _is_no_error(record: logging.LogRecord) -> bool:
    return record.levelno < logging.WARNING


def _explained(error: Exception, place: str) -> RankfoldError:
    details = getattr(error, "details", None)  # of gRPC, whose text is a report of many lines
    said = str(getattr(error, "message", "") or (details() if callable(details) else "") or error)
    text = f"{getattr(error, 'code', '')} {error} {said}"
    return backend.explained(text, said, place, ERRORS)


def _expression(where: Any) -> tuple[str, dict[str, Any]]:
    if where is None or isinstance(where, str):
        return where or "", {}
    if isinstance(where, tuple) and len(where) == 2 and isinstance(where[0], str):
        return where[0], dict(where[1])
    raise InputError(
        f"where is {where!r}, but must be an expression of Milvus such as 'color == \"red\"', or "
        "a pair of one and its values, ('color == {c}', {'c': 'red'}).",
        "where",
    )


def _among(field: str, values: Sequence[Key]) -> str:
    return f"{field} in [{','.join(map(_literal, values))}]"


def _literal(value: Key) -> str:
    r"""Return a key as expressions have it.

    Examples
    --------
    >>> print(_literal('say "no"'))
    "say \"no\""
    """
    return str(value) if isinstance(value, int) else f'"{value.translate(ESCAPED)}"'


def _cut(text: str) -> list[str]:
    return [text[start : start + LONGEST] for start in range(0, len(text), LONGEST)]


def _whole(entity: Record) -> Record:
    return {name: "".join(v) if isinstance(v, list) else v for name, v in entity.items()}
