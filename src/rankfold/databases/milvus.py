"""Collections of Milvus: a server, or a file of Milvus Lite. Rows lie in a collection beside."""
# ruff: noqa: D102 (`Database` says what each method does)

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

from rankfold.databases import backend
from rankfold.databases.backend import FIELDS, SIDE, Database, Key, Metric, Points, Record, What
from rankfold.errors import DatabaseError, InputError, MissingExtraError, UnreachableError
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
LONGEST, MOST_TEXTS = 65_535, 1_024
"""Characters of the longest text that Milvus stores, of which longer ones are made, and how many
there may be."""

FIRST_VECTOR = 100
"""Types of Milvus from here on are vectors."""

IN_ORDER = {"iterator": "True", "reduce_stop_for_best": "True"}
"""Options by which an answer with a limit has the smallest keys."""

LOADING = 24 * 3600.0
"""Seconds to wait until a collection is in memory."""

LOGS = (
    "pymilvus.decorators",
    "pymilvus.client.connection_manager",
    "milvus_lite.server_manager",
)
FAILURES = (MilvusException, grpc.RpcError, grpc.FutureTimeoutError)
BUSY = "UNAVAILABLE|DEADLINE_EXCEEDED|Fail connecting|Retry timeout|rate limit"
DENIED = "UNAUTHENTICATED|auth check failure|PermissionDenied|permission deny"
ALONE = "a file of Milvus Lite is used by one process at a time; see that no other has it open"
NAMED = "give milvus://user:password@host of one who may read and write collections"
ERRORS: list[backend.ErrorPattern] = [
    ("Open local milvus failed", UnreachableError, ALONE),
    (BUSY, UnreachableError, "see that Milvus runs there, and that the address is right"),
    (DENIED, DatabaseError, NAMED),
    ("expression|at column|cannot parse", InputError, "where must be a filter of its own language"),
]
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})

_locks: defaultdict[str, RLock] = defaultdict(RLock)
"""Of files of Milvus Lite, which does not keep a reader apart from a writer; by place."""


class Milvus(Database):
    """A collection of Milvus, from a ``MilvusClient``.

    ``where`` is an expression of Milvus, or a pair of one and a dict of the values that it names
    in braces, which Milvus Lite does not know. ``key`` is the primary key, and the metric that of
    the vectors' index.
    """

    failures, errors = FAILURES, ERRORS

    @classmethod
    def connect(cls, address: str) -> Any:
        at = backend.Address.of(address, "milvus", 19530, EXAMPLE)
        for log in LOGS:  # all that they say is raised as well
            logging.getLogger(log).addFilter(_is_no_error)
        uri = f"http{'s' if at.tls else ''}://{at.host}:{at.port}"
        if not at.host:
            uri = str(Path(at.path).resolve())
            if not (uri.endswith(".db") and Path(uri).exists()):
                missing = f"there is no file {at.path!r} of Milvus Lite, which end with .db."
                raise InputError(missing, "address")
        name = at.path.strip("/") if at.host else ""
        how = {"user": at.user, "password": at.password, "timeout": backend.CONNECTING}
        try:
            return MilvusClient(uri, db_name=name, **how)
        except FAILURES as error:
            place = backend.without_password(address)
            raise backend.explained(*cls.told(error), place, ERRORS) from error

    def describe(self, vector: str | None, key: str | None, metric: Metric | None) -> None:
        if self.place.startswith("milvus:///"):
            self.lock = _locks[str(Path(self.place.removeprefix("milvus://")).resolve())]
        known = self._call("list_collections")
        backend.chosen("collection", self.table, known, self.place)
        self._has_side = self.table + SIDE in known
        for name in (self.table, self.table + SIDE)[: 1 + self._has_side]:
            self._load_collection(name)
        vector, key, _ = self.as_attached(vector, key, metric)
        described = self._call("describe_collection", self.table)
        fields = {field["name"]: field for field in described["fields"]}
        spaces = [name for name, of in fields.items() if of["type"] == DataType.FLOAT_VECTOR]
        primary = next(field for field in fields.values() if field.get("is_primary"))
        self._vector = backend.chosen("field of vectors", vector, spaces, self.name)
        self._key = backend.chosen("key", key, [primary["name"]], self.name)
        self.columns = {"vector": self._vector, "key": self._key}
        self.is_key = backend.is_whole if primary["type"] == DataType.INT64 else backend.is_text
        scalars = [name for name, of in fields.items() if of["type"] < FIRST_VECTOR]
        self._own = [name for name in scalars if name != self._key]
        self._own += ["$meta"] if described["enable_dynamic_field"] else []
        self.n_features = int(fields[self._vector]["params"]["dim"])
        names = self._call("list_indexes", self.table)
        indexes = [self._call("describe_index", self.table, name) for name in names]
        own = next((index for index in indexes if index["field_name"] == self._vector), None)
        if own is None:
            raise DatabaseError(f"{self.name} has no index of {self._vector!r}: make one first.")
        self._metric_type, kind = own["metric_type"], own["index_type"]
        self.metric = backend.own_metric(self._metric_type, METRICS, metric, self.name)
        self._is_hnsw, self.exact = kind.startswith("HNSW"), kind in EXACT

    def count(self) -> int:
        return int(self._query(self.table, "", ["count(*)"])[0]["count(*)"])

    def scan(self) -> Iterator[Points]:
        pages = self._pages(self.table, self._key, self.points_at_once, [self._vector])
        return map(self._vectors, pages)

    def get(self, keys: Sequence[Key], what: What, where: Any = None) -> Points:
        expression, values = _expression(where)
        only = _among(self._key, keys) + (f" and ({expression})" if expression else "")
        more = {"vector": [self._vector], "payload": self._own, "nothing": []}[what]
        found = self._query(self.table, only, [self._key, *more], filter_params=values)
        if what == "vector":
            return self._vectors(found)
        return [
            (entity[self._key], {name: v for name, v in entity.items() if name != self._key})
            for entity in found
        ]

    def nearest(self, vectors: FloatArray, k: int, where: Any = None) -> list[Points]:
        expression, values = _expression(where)
        effort = {"ef": max(64, 2 * k)} if self._is_hnsw else {}
        answers = self._call(
            "search",
            self.table,
            data=vectors.tolist(),
            anns_field=self._vector,
            filter=expression,
            filter_params=values,
            limit=k,
            output_fields=[self._key, self._vector],
            search_params={"metric_type": self._metric_type, "params": effort},
            consistency_level="Strong",
        )
        return [self._vectors(hit["entity"] for hit in hits) for hits in answers]

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        if not self._has_side:
            return []
        found = self._query(self.table + SIDE, _among("id", ids), ["id", *fields])
        return [_whole(entity) for entity in found]

    def load_all(self) -> Iterator[list[Record]]:
        if self._has_side:
            for found in self._pages(self.table + SIDE, "id", self.records_at_once, FIELDS):
                yield [_whole(entity) for entity in found]

    def store(self, records: Sequence[Record]) -> None:
        if not self._has_side:
            self._make_side()
        entities = [
            {**record, "spare": [0.0, 0.0], **{name: _cut(record[name]) for name in FIELDS[1:]}}
            for record in records
        ]
        self._call("upsert", self.table + SIDE, entities)

    def remove(self, ids: Sequence[str]) -> None:
        if self._has_side:
            self._call("delete", self.table + SIDE, filter=_among("id", ids))

    def detach(self) -> None:
        if self._has_side:
            self._call("drop_collection", self.table + SIDE)
            self._has_side = False

    @staticmethod
    def told(error: Exception) -> tuple[str, str]:
        details = getattr(error, "details", None)  # of gRPC, whose text is a report of many lines
        said = getattr(error, "message", "") or (details() if callable(details) else "") or error
        return f"{getattr(error, 'code', '')} {error} {said}", str(said)

    def _load_collection(self, name: str) -> None:
        if self._call("get_load_state", name)["state"].name != "Loaded":
            self._call("load_collection", name, timeout=LOADING)

    def _make_side(self) -> None:
        side = self.table + SIDE
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=LONGEST)
        schema.add_field("checksum", DataType.INT64)
        texts = {"element_type": DataType.VARCHAR, "max_length": LONGEST}
        for name in FIELDS[1:]:
            schema.add_field(name, DataType.ARRAY, max_capacity=MOST_TEXTS, **texts)
        schema.add_field("spare", DataType.FLOAT_VECTOR, dim=2)  # every collection must have one
        index = self.client.prepare_index_params()
        index.add_index("spare", index_type="FLAT", metric_type="L2")
        self._call("create_collection", side, schema=schema, index_params=index)
        self._load_collection(side)
        self._has_side = True

    def _vectors(self, entities: Iterable[Record]) -> Points:
        return [(entity[self._key], entity[self._vector]) for entity in entities]

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
        return list(self._call("query", table, expression, output_fields=list(fields), **options))

    def _call(self, method: str, *args: Any, **options: Any) -> Any:
        options = {"timeout": backend.WAITING, **options}
        return self.call(getattr(self.client, method), *args, **options)


def _is_no_error(record: logging.LogRecord) -> bool:
    return record.levelno < logging.WARNING


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
