"""Collections of Qdrant: a server, or a folder of its local mode. Rows lie in a payload field."""
# ruff: noqa: D102 (`Database` says what each method does)

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

from rankfold.databases import backend
from rankfold.databases.backend import (
    FIELDS,
    MANIFEST,
    SIDE,
    Database,
    GoneError,
    Key,
    Page,
    Points,
)
from rankfold.errors import DatabaseError, InputError, MissingExtraError, UnreachableError
from rankfold.solvers import Adjacency
from rankfold.types import FloatArray

try:
    import httpx
    from qdrant_client import QdrantClient, models
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
except ImportError:
    raise MissingExtraError("qdrant-client", "qdrant") from None

EXAMPLE = (
    "qdrant://:api-key@host:6333?tls=true, where all but the host may be left out, or "
    "qdrant:///folder of the local mode"
)
FIELD = "_rankfold"
"""The payload field that holds a point's row."""

WITHOUT_FIELD = models.PayloadSelectorExclude(exclude=[FIELD])
HAS_ROW = models.Filter.model_validate({"must_not": [{"is_empty": {"key": FIELD}}]})
METRICS: dict[str, backend.Metric] = {"Cosine": "cosine", "Euclid": "euclidean"}
ERRORS: list[backend.ErrorPattern] = [
    ("401|403", DatabaseError, "give qdrant://:api-key@host with one that may read and write"),
    ("404", GoneError, "it is not there, or no longer"),
    ("408|429|50[0234]", UnreachableError, "see that Qdrant is well, and try later"),
    ("no answer", UnreachableError, "see that Qdrant runs there, and that the address is right"),
]


class Qdrant(Database):
    """A collection of Qdrant, from a ``QdrantClient``.

    ``where`` is a ``Filter`` of qdrant-client, or the same as a dict. ``vector`` is the name of a
    named vector. Whoever upserts a point replaces its payload, and its row with it; `refresh`
    writes it again.
    """

    rows_at_once = 500  # each is an operation of its own
    failures = (
        UnexpectedResponse, ResponseHandlingException, httpx.HTTPError, QdrantException,
        KeyError, ValueError, RuntimeError,  # of the local mode
    )  # fmt: skip
    errors = ERRORS

    @classmethod
    def connect(cls, address: str) -> Any:
        at = backend.Address.of(address, "qdrant", 6333, EXAMPLE)
        if at.host:
            how: dict[str, Any] = {"https": at.tls, "api_key": at.password or None}
            how |= {"timeout": int(backend.WAITING), "check_compatibility": False}
            return QdrantClient(host=at.host, port=at.port, **how)
        if not (Path(at.path) / "meta.json").is_file():
            made = f"{at.path!r} is no folder that QdrantClient(path=...) made."
            raise InputError(made, "address")
        try:
            return QdrantClient(path=at.path)
        except RuntimeError as error:  # another process has it open
            raise UnreachableError(
                f"{backend.without_password(address)} cannot be opened ({error})"
            ) from None

    def describe(self, vector: str | None, key: str | None, metric: backend.Metric | None) -> None:
        self.is_key = _is_id
        self.exact = "local" in type(self.client._client).__module__
        if self.exact:
            self.lock = RLock()
        known = [found.name for found in self.call(self.client.get_collections).collections]
        backend.chosen("collection", self.table, known, self.place)
        vector, key, _ = self.as_attached(vector, key, metric)
        backend.chosen("key", key, ["id"], self.name)
        spaces = self.call(self.client.get_collection, self.table).config.params.vectors or {}
        if not isinstance(spaces, dict):
            spaces = {"": spaces}
        self._vector = backend.chosen("vector", vector, spaces, self.name)
        self.columns = {"vector": self._vector, "key": "id"}
        space = spaces[self._vector]
        kind = "sets of vectors" if space.multivector_config else space.distance.value
        self.metric = backend.own_metric(kind, METRICS, metric, self.name)
        self.n_features = int(space.size)
        self._there = models.Filter(must=[models.HasVectorCondition(has_vector=self._vector)])
        self._with_vector = [self._vector] if self._vector else True

    def count(self) -> int:
        return int(self.call(self.client.count, self.table, self._there, exact=True).count)

    def scan(self) -> Iterator[Points]:
        fields = {"with_vectors": self._with_vector}
        return map(self._vectors, self._scroll(self._there, self.points_at_once, **fields))

    def get(self, keys: Sequence[Key], what: backend.What, where: Any = None) -> Points:
        fields: dict[str, Any] = {
            "with_payload": WITHOUT_FIELD if what == "payload" else False,
            "with_vectors": self._with_vector if what == "vector" else False,
        }
        if where is None:
            found = self.call(self.client.retrieve, self.table, keys, **fields)
        else:
            both = models.Filter(must=[models.HasIdCondition(has_id=[*keys]), _filter(where)])
            found = [one for some in self._scroll(both, len(keys), **fields) for one in some]
        if what == "vector":
            return self._vectors(found)
        return [(one.id, one.payload or {}) for one in found]

    def nearest(self, vectors: FloatArray, k: int, where: Any = None) -> list[Points]:
        only = None if where is None else _filter(where)
        how: Any = {"limit": k, "with_vector": self._with_vector, "filter": only}
        queries = [
            models.QueryRequest(query=vector.tolist(), using=self._vector or None, **how)
            for vector in vectors
        ]
        answers = self.call(self.client.query_batch_points, self.table, queries)
        return [self._vectors(answer.points) for answer in answers]

    def around(self, key: Key, n: int) -> dict[Key, Adjacency]:
        how = {"limit": n, "with_payload": [f"{FIELD}.edges"], "using": self._vector or None}
        try:
            found = self.call(self.client.query_points, self.table, key, **how).points
        except GoneError:
            return {}
        return backend.unpacked_edges(_records(found))

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[backend.Record]:
        found: list[backend.Record] = []
        if MANIFEST in ids:
            with suppress(GoneError):
                manifests = self.call(self.client.retrieve, self.table + SIDE, [0])
                found += [one.payload for one in manifests]
        keys = [json.loads(name) for name in ids if name != MANIFEST]
        if keys:
            wanted = [f"{FIELD}.{field}" for field in fields]
            points = self.call(self.client.retrieve, self.table, keys, with_payload=wanted)
            found += _records(points)
        return found

    def load_all(self) -> Iterator[list[backend.Record]]:
        return map(_records, self._scroll(HAS_ROW, self.records_at_once, with_payload=[FIELD]))

    def store(self, records: Sequence[backend.Record]) -> None:
        rows = {r["id"]: r for r in records}
        if manifest := rows.pop(MANIFEST, None):
            side = self.table + SIDE
            if not self.call(self.client.collection_exists, side):
                self.call(self.client.create_collection, side, vectors_config={})
            point = models.PointStruct(id=0, vector={}, payload=dict(manifest))
            self.call(self.client.upsert, side, [point])
        fields = {json.loads(name): {f: row[f] for f in FIELDS} for name, row in rows.items()}
        there = self.matching(list(fields), None)  # a point that is not there would be an error
        operations = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={FIELD: row}, points=[key])
            )
            for key, row in fields.items()
            if key in there
        ]
        if operations:
            self.call(self.client.batch_update_points, self.table, operations)

    def remove(self, ids: Sequence[str]) -> None:
        self._clear([json.loads(name) for name in ids])

    def detach(self) -> None:
        for points in self._scroll(HAS_ROW, backend.MOST_KEYS):
            self._clear([point.id for point in points])
        if self.call(self.client.collection_exists, self.table + SIDE):
            self.call(self.client.delete_collection, self.table + SIDE)

    def check_vectors(self, name: str, size: int) -> None:
        spaces = self.call(self.client.get_collection, self.table).config.params.vectors
        own = spaces.get(name) if isinstance(spaces, dict) else None
        if own is None or own.size != size or own.distance.value != "Dot" or name == self._vector:
            raise InputError(
                f"{self.name} has no vector {name!r} of {size} numbers by Dot; declare it when the "
                "collection is made, as docs/shape_vectors.md shows.",
                "as_vector",
            )

    def write_vectors(self, name: str, size: int, pages: Iterable[Page]) -> None:
        for keys, vectors in pages:
            points = [
                models.PointVectors(id=key, vector={name: vector.tolist()})
                for key, vector in zip(keys, vectors, strict=True)
            ]
            self.call(self.client.update_vectors, self.table, points)

    @staticmethod
    def told(error: Exception) -> tuple[str, str]:
        if isinstance(error, UnexpectedResponse):
            return str(error.status_code), error.content.decode(errors="replace")
        if isinstance(error, KeyError | ValueError | RuntimeError):
            gone = isinstance(error, KeyError) or "not found" in str(error)
            return "404" if gone else "", str(error)
        return "no answer", str(error)

    def _vectors(self, points: Iterable[Any]) -> Points:
        named = [(point.id, point.vector) for point in points]
        return [(key, v.get(self._vector) if isinstance(v, dict) else v) for key, v in named]

    def _scroll(self, only: Any, size: int, **fields: Any) -> Iterator[list[Any]]:
        options = {"with_payload": False, "limit": size, **fields}
        offset = None
        while True:
            scroll = self.client.scroll
            points, offset = self.call(scroll, self.table, only, offset=offset, **options)
            if points:
                yield points
            if offset is None:
                return

    def _clear(self, keys: Sequence[Key]) -> None:
        with suppress(GoneError):  # said of some points after it was done for all others
            self.call(self.client.delete_payload, self.table, [FIELD], points=keys)


def _is_id(key: Key) -> bool:
    return backend.is_uuid(key) or (type(key) is int and 0 <= key < 2**64)


def _filter(where: Any) -> models.Filter:
    try:
        return models.Filter.model_validate(where)
    except ValueError as error:
        raise InputError(
            f"where is {where!r}, but must be a Filter of qdrant-client, or one as a dict such as "
            f"{{'must': [{{'key': 'color', 'match': {{'value': 'red'}}}}]}} ({error}).",
            "where",
        ) from None


def _records(points: Iterable[Any]) -> list[backend.Record]:
    return [{"id": backend.as_id(p.id), **p.payload[FIELD]} for p in points if p.payload]
