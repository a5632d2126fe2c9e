"""Collections of Qdrant: a server, or a folder of its local mode. Rows lie in a payload field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from rankfold.databases import backend
from rankfold.databases.backend import FIELDS, MANIFEST, SIDE, Backend, Metric, Record, portions
from rankfold.databases.protocol import Edges, Hits, Key, Page, Row
from rankfold.errors import DatabaseError, InputError, MissingExtraError, UnreachableError
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

HAS_ROW = models.Filter.model_validate({"must_not": [{"is_empty": {"key": FIELD}}]})
METRICS: dict[str, Metric] = {"Cosine": "cosine", "Euclid": "euclidean"}
MOST_KEYS = 10_000
MOST_VECTORS = 64
UUID_FORM = re.compile("[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


class GoneError(DatabaseError):
    """A point or collection is not there, or no longer."""


REFUSED = (DatabaseError, "give qdrant://:api-key@host with one that may read and write")
LATER = (UnreachableError, "see that Qdrant is well, and try later")
ANSWERS: dict[int | None, tuple[type[DatabaseError], str]] = {
    401: REFUSED,
    403: REFUSED,
    404: (GoneError, "it is not there, or no longer"),
    **dict.fromkeys((408, 429, 500, 502, 503, 504), LATER),
}


class Qdrant(Backend):
    """A collection of Qdrant.

    ``where`` is a ``Filter`` of qdrant-client, or the same as a dict. Whoever upserts a point
    replaces its payload, and its row with it; `refresh` writes it again.

    Parameters
    ----------
    client : QdrantClient
    table : str
        The collection.
    vector : str, optional
        Which of its named vectors; may be left out where there is one.
    key, metric : str, optional
        Must be "id", and the collection's own, if they are given.
    place : str
        How messages call the server.
    """

    rows_at_once = 500  # each is an operation of its own

    def __init__(
        self,
        client: QdrantClient,
        table: str,
        vector: str | None = None,
        *,
        key: str | None = None,
        metric: str | None = None,
        place: str = "qdrant",
    ) -> None:
        self._client, self._table, self._place = client, table, place
        self.name = f"{table!r} in {place}"
        self.exact = "local" in type(client._client).__module__
        self._lock: AbstractContextManager[Any] = RLock() if self.exact else nullcontext()
        known = [found.name for found in self._call(client.get_collections).collections]
        backend.chosen("collection", table, known, place)
        backend.chosen("key", key, ["id"], self.name)
        spaces = self._call(client.get_collection, table).config.params.vectors or {}
        if not isinstance(spaces, dict):
            spaces = {"": spaces}
        self._vector = backend.chosen("vector", vector, spaces, self.name)
        space = spaces[self._vector]
        kind = "sets of vectors" if space.multivector_config else space.distance.value
        self.metric = backend.own_metric(kind, METRICS, metric, self.name)
        self.n_features = int(space.size)
        self._there = models.Filter(must=[models.HasVectorCondition(has_vector=self._vector)])
        self._with_vector = [self._vector] if self._vector else True

    @classmethod
    def open(cls, address: str, table: str, vector: str | None = None, **options: Any) -> Qdrant:
        """Open a collection at an address such as ``qdrant://host:6333`` or ``qdrant:///folder``.

        Examples
        --------
        >>> Qdrant.open("qdrant://:secret@127.0.0.1:1?tls=true", "docs")
        Traceback (most recent call last):
        ...
        rankfold.errors.UnreachableError: qdrant://127.0.0.1:1 does not answer (...
        """
        at = backend.Address.of(address, "qdrant", 6333, EXAMPLE)
        if at.host:
            client = QdrantClient(
                host=at.host,
                port=at.port,
                https=at.tls,
                api_key=at.password or None,
                timeout=int(backend.WAITING),
                check_compatibility=False,
            )
        elif not (Path(at.path) / "meta.json").is_file():
            raise DatabaseError(f"{at.path!r} is no folder that QdrantClient(path=...) made.")
        else:
            try:
                client = QdrantClient(path=at.path)
            except RuntimeError as error:  # another process has it open
                raise UnreachableError(f"{at.shown} cannot be opened ({error})") from None
        try:
            return cls(client, table, vector, place=at.shown, **options)
        except BaseException:
            client.close()
            raise

    def count(self) -> int:
        """Return the number of points."""
        counted = self._call(self._client.count, self._table, self._there, exact=True)
        return int(counted.count)

    def scan(self, size: int) -> Iterator[Page]:
        """Yield every point once: numbers first, then UUIDs."""
        for records in self._scroll(self._there, size, with_vectors=self._with_vector):
            yield self._page(records)

    def vectors(self, keys: Sequence[Key]) -> Page:
        """Return those of some points that are there."""
        return self._page(self._get(keys, with_vectors=self._with_vector))

    def search(self, vectors: FloatArray, k: int, where: Any = None) -> list[Hits]:
        """Return the points nearest to each vector."""
        only = None if where is None else _filter(where)
        options: Any = {"limit": k, "with_vector": self._with_vector, "filter": only}
        found: list[Hits] = []
        for some in portions(vectors, MOST_VECTORS):
            requests = [
                models.QueryRequest(query=vector.tolist(), using=self._vector or None, **options)
                for vector in some
            ]
            answers = self._call(self._client.query_batch_points, self._table, requests)
            found += [
                backend.nearest_first(self._page(answer.points), vector, self.metric)
                for answer, vector in zip(answers, some, strict=True)
            ]
        return found

    def payload(self, keys: Sequence[Key]) -> Mapping[Key, dict[str, Any]]:
        """Return the payload of points, without the graph."""
        own = models.PayloadSelectorExclude(exclude=[FIELD])
        return {record.id: record.payload or {} for record in self._get(keys, with_payload=own)}

    def matching(self, keys: Sequence[Key], where: Any) -> set[Key]:
        """Return which of some points are there, and pass a filter."""
        if where is None:
            return {record.id for record in self._get(keys)}
        found: set[Key] = set()
        for some in _ids(keys):
            both = models.Filter(must=[models.HasIdCondition(has_id=[*some]), _filter(where)])
            for records in self._scroll(both, len(some)):
                found.update(record.id for record in records)
        return found

    def around(self, key: Key, n: int) -> Mapping[Key, Edges]:
        """Return rows of about the ``n`` points nearest to a point, in one exchange."""
        options = {"limit": n, "with_payload": [f"{FIELD}.edges"], "using": self._vector or None}
        try:
            found = self._call(self._client.query_points, self._table, key, **options).points
        except GoneError:
            return {}
        return {r.id: backend.unpack_edges(r.payload[FIELD]["edges"]) for r in found if r.payload}

    def begin(self, keys: Sequence[Key]) -> tuple[dict[str, Any] | None, Mapping[Key, Row]]:
        """Return manifest and rows of some points, in two exchanges."""
        return self.read_manifest(), self.rows(keys)

    def read_manifest(self) -> dict[str, Any] | None:
        """Return what is recorded of the graph."""
        try:
            records = self._call(self._client.retrieve, self._table + SIDE, [0])
        except GoneError:
            return None
        return dict(json.loads(records[0].payload[MANIFEST])) if records else None

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Record it in a collection of one point beside the user's."""
        side = self._table + SIDE
        if not self._call(self._client.collection_exists, side):
            self._call(self._client.create_collection, side, vectors_config={})
        text = json.dumps(dict(manifest))
        point = models.PointStruct(id=0, vector={}, payload={MANIFEST: text})
        self._call(self._client.upsert, side, [point])

    def load(self, ids: Sequence[str], fields: Sequence[str]) -> list[Record]:
        """Return fields of some records, up to 10,000 in one exchange."""
        wanted = [f"{FIELD}.{field}" for field in fields]
        return _records(self._get([json.loads(name) for name in ids], with_payload=wanted))

    def load_all(self, size: int) -> Iterator[list[Record]]:
        """Yield all records."""
        for found in self._scroll(HAS_ROW, size, with_payload=[FIELD]):
            yield _records(found)

    def store(self, records: Sequence[Record]) -> None:
        """Write records; those of points that are gone by now are left out."""
        rows = {json.loads(r["id"]): {field: r[field] for field in FIELDS} for r in records}
        try:
            self._set(rows)
        except GoneError:
            there = self.matching(list(rows), None)
            self._set({key: row for key, row in rows.items() if key in there})

    def remove(self, ids: Sequence[str]) -> None:
        """Remove some records."""
        for some in _ids([json.loads(name) for name in ids]):
            with suppress(GoneError):  # said of some points after it was done for all others
                self._call(self._client.delete_payload, self._table, [FIELD], points=some)

    def detach(self) -> None:
        """Remove the payload field, then the record."""
        for records in self._scroll(HAS_ROW, MOST_KEYS):
            self.remove_rows([record.id for record in records])
        if self._call(self._client.collection_exists, self._table + SIDE):
            self._call(self._client.delete_collection, self._table + SIDE)

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _page(self, records: Sequence[Any]) -> Page:
        found = {
            record.id: own.get(self._vector) if isinstance(own := record.vector, dict) else own
            for record in records
        }
        keys = [key for key, vector in found.items() if vector is not None]
        return backend.as_page(keys, [found[key] for key in keys], self.n_features)

    def _get(self, keys: Sequence[Key], **fields: Any) -> list[Any]:
        fields = {"with_payload": False, **fields}
        found: list[Any] = []
        for some in _ids(keys):
            found += self._call(self._client.retrieve, self._table, some, **fields)
        return found

    def _scroll(self, only: Any, size: int, **fields: Any) -> Iterator[list[Any]]:
        options = {"with_payload": False, "limit": size, **fields}
        scroll, offset = self._client.scroll, None
        while True:
            records, offset = self._call(scroll, self._table, only, offset=offset, **options)
            if records:
                yield records
            if offset is None:
                return

    def _set(self, rows: Mapping[Key, Record]) -> None:
        operations = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={FIELD: row}, points=[key])
            )
            for key, row in rows.items()
        ]
        if operations:
            self._call(self._client.batch_update_points, self._table, operations)

    def _call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a method of the client, with errors that say what to do."""
        self.round_trips += 1
        try:
            with self._lock:
                return method(*args, **options)
        except UnexpectedResponse as error:
            said = error.content.decode(errors="replace")[:300]
            kind, advice = ANSWERS.get(error.status_code, (DatabaseError, "it cannot do that"))
            raise kind(f"{self._place} refuses a request ({said}): {advice}.") from error
        except (ResponseHandlingException, httpx.HTTPError, QdrantException) as error:
            raise UnreachableError(
                f"{self._place} does not answer ({error}): see that Qdrant runs there, and that "
                "the address is right."
            ) from error
        except (KeyError, ValueError, RuntimeError) as error:  # of the local mode
            gone = isinstance(error, KeyError) or "not found" in str(error)
            kind = GoneError if gone else DatabaseError
            raise kind(f"{self.name} cannot do what it was asked ({error}).") from error


def _filter(where: Any) -> models.Filter:
    try:
        return models.Filter.model_validate(where)
    except ValueError as error:
        raise InputError(
            f"where is {where!r}, but must be a Filter of qdrant-client, or one as a dict such as "
            f"{{'must': [{{'key': 'color', 'match': {{'value': 'red'}}}}]}} ({error}).",
            "where",
        ) from None


def _ids(keys: Sequence[Key]) -> Iterator[list[Key]]:
    """Yield those keys that can be ids of Qdrant, whole numbers and UUIDs, in portions."""
    numbers = (key for key in keys if isinstance(key, int) and 0 <= key < 2**64)
    uuids = (key for key in keys if isinstance(key, str) and UUID_FORM.fullmatch(key))
    return portions((*numbers, *uuids), MOST_KEYS)


def _records(found: Iterable[Any]) -> list[Record]:
    return [{"id": json.dumps(r.id), **r.payload[FIELD]} for r in found if r.payload]
