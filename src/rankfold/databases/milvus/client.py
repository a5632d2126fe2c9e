"""A connection to Milvus: few calls, each with strong consistency and a limit in time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import sleep
from typing import Any

import numpy as np

from rankfold.check import DatabaseError, MissingExtraError
from rankfold.databases.milvus import lite
from rankfold.databases.milvus.address import Address
from rankfold.databases.milvus.errors import TooLargeError, explained
from rankfold.types import FloatArray, IntArray

CONNECTING = 5.0
"""Seconds to wait for a server at first."""

WAITING = 30.0
"""Seconds to wait for an answer, retries of pymilvus among them."""

BUILDING = 24 * 3600.0
"""Seconds to wait until everything is on disk, or in memory."""

LOOKING = 0.5
"""Seconds between looks at how far an index has got."""

MOST_KEYS = 10_000
"""Entities that are asked for by key at once."""

MOST_BYTES = 8 * 2**20
"""Bytes that are written at once, roughly; servers take 64 MB."""

MOST_HITS = 16_384
"""What Milvus answers to one vector at most."""

LOGS = ("pymilvus.decorators", "pymilvus.client.connection_manager")

Entity = dict[str, Any]


class Client:
    """A connection that threads share; ``place`` is for people.

    Examples
    --------
    >>> Client(Address.of("milvus://127.0.0.1:1"))
    Traceback (most recent call last):
    ...
    rankfold.check.UnreachableError: milvus://127.0.0.1:1 does not answer (Fail connecting ...
    """

    def __init__(self, address: Address) -> None:
        try:
            import pymilvus
        except ImportError:
            raise MissingExtraError("pymilvus", "milvus") from None
        for name in LOGS:
            logging.getLogger(name).addFilter(_is_no_trouble)
        self.place = address.place
        self._file = address.file
        self._lock: AbstractContextManager[Any] = nullcontext()
        self._loaded: set[str] = set()
        uri = address.uri
        if address.file is not None:
            uri, self._lock = lite.serve(address.file)
        try:
            with explained(self.place):
                self._client = pymilvus.MilvusClient(
                    uri,
                    user=address.user,
                    password=address.password,
                    db_name=address.database,
                    timeout=CONNECTING,
                )
        except BaseException:
            if address.file is not None:
                lite.leave(address.file)
            raise

    def close(self) -> None:
        """Close the connection, and the file if nobody else uses it."""
        try:
            with explained(self.place):
                self._client.close()
        finally:
            if self._file is not None:
                lite.leave(self._file)
                self._file = None

    def collections(self) -> list[str]:
        """Return the names of all collections."""
        with self._calling():
            return list(self._client.list_collections(timeout=WAITING))

    def create(self, name: str, fields: Iterable[tuple[str, str, int]], index: Entity) -> None:
        """Make a collection, whose first field is the key and whose last one a vector.

        ``fields`` have a name, a type of Milvus, and the length of a vector or text. Numbers
        are indexed; ``index`` is that of the vector.
        """
        from pymilvus import DataType

        with self._calling():
            schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
            indexes = self._client.prepare_index_params()
            for place, (field, kind, length) in enumerate(fields):
                size = {"FLOAT_VECTOR": {"dim": length}, "VARCHAR": {"max_length": length}}
                schema.add_field(field, DataType[kind], is_primary=place == 0, **size.get(kind, {}))
                if kind == "FLOAT_VECTOR":
                    indexes.add_index(field, metric_type="L2", **index)
                elif kind == "INT64" and place:
                    indexes.add_index(field, index_type="INVERTED")
            self._client.create_collection(
                name, schema=schema, consistency_level="Strong", timeout=WAITING
            )
            self._client.create_index(name, indexes, timeout=WAITING, sync=False)
            self._client.load_collection(name, timeout=WAITING)
            self._loaded.add(name)

    def drop(self, name: str) -> None:
        """Delete a collection, if it is there."""
        with self._calling():
            self._client.drop_collection(name, timeout=WAITING)
            self._loaded.discard(name)

    def settle(self, name: str) -> None:
        """Have everything written to disk and indexed."""
        with self._calling():
            self._client.flush(name, timeout=BUILDING)
            while self._n_pending(name):
                sleep(LOOKING)

    def get(self, name: str, keys: IntArray | Sequence[str], fields: list[str]) -> list[Entity]:
        """Return what there is under some keys, at most `MOST_KEYS`, in any order."""
        if not len(keys):
            return []
        listed = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
        try:
            with self._calling(name):
                return list(
                    self._client.get(
                        name, listed, fields, consistency_level="Strong", timeout=WAITING
                    )
                )
        except TooLargeError:
            half = len(keys) // 2
            if not half:
                raise
            return self.get(name, keys[:half], fields) + self.get(name, keys[half:], fields)

    def query(self, name: str, condition: str, fields: list[str]) -> list[Entity]:
        """Return all that meets a condition on numbers."""
        with self._calling(name):
            found = self._client.query(
                name, condition, fields, consistency_level="Strong", timeout=WAITING
            )
            return list(found)

    def search(
        self, name: str, vectors: FloatArray, k: int, condition: str, params: Entity
    ) -> list[list[Entity]]:
        """Return what is nearest to each vector among what meets a condition."""
        with self._calling(name):
            found = self._client.search(
                name,
                list(vectors.astype(np.float32)),
                filter=condition,
                limit=k,
                output_fields=["slot", "vector"],
                search_params={"metric_type": "L2", "params": params},
                consistency_level="Strong",
                timeout=WAITING,
            )
            return [[hit["entity"] for hit in hits] for hits in found]

    def write(self, name: str, entities: Iterable[Entity]) -> None:
        """Write entities over those with the same keys, as few at once as servers like."""
        for batch in _batches(entities):
            with self._calling(name):
                self._client.upsert(name, batch, timeout=WAITING)

    def delete(self, name: str, keys: Sequence[int] | Sequence[str]) -> None:
        """Delete what there is under some keys."""
        for start in range(0, len(keys), MOST_KEYS):
            with self._calling(name):
                self._client.delete(name, list(keys[start : start + MOST_KEYS]), timeout=WAITING)

    def _n_pending(self, name: str) -> int:
        """Return how many entries indexes still lack."""
        described = [
            self._client.describe_index(name, index, timeout=WAITING)
            for index in self._client.list_indexes(name)
        ]
        if any(index.get("state") == "Failed" for index in described):
            raise DatabaseError(
                f"{self.place} cannot build the index of {name!r}; the logs of the server say why."
            )
        return sum(int(index["pending_index_rows"]) for index in described)

    @contextmanager
    def _calling(self, name: str | None = None) -> Iterator[None]:
        with self._lock, explained(self.place):
            if name is not None and name not in self._loaded:
                self._client.load_collection(name, timeout=BUILDING)
                self._loaded.add(name)
            yield


def _is_no_trouble(record: logging.LogRecord) -> bool:
    """Keep errors out of the log: all of them are raised as well."""
    return record.levelno < logging.WARNING


def _batches(entities: Iterable[Entity]) -> Iterator[list[Entity]]:
    batch: list[Entity] = []
    size = 0
    for entity in entities:
        own = sum(
            value.nbytes if isinstance(value, np.ndarray) else len(value)
            for value in entity.values()
            if isinstance(value, np.ndarray | str)
        )
        if batch and (size + own > MOST_BYTES or len(batch) == MOST_KEYS):
            yield batch
            batch, size = [], 0
        batch.append(entity)
        size += own + 100
    if batch:
        yield batch
