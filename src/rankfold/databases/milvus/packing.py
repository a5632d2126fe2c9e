"""Lists, ids and payload as texts, which Milvus stores faster than arrays and without a change."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from rankfold.check import DatabaseError, InputError
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column
from rankfold.types import FloatArray, IntArray, Neighbors

LONGEST = 65_535
"""Bytes of the longest text that Milvus stores."""

AS_KEPT: dict[str, Callable[[Any], Any]] = {"integer": int, "number": float}


def pack_row(
    slot: int, indices: IntArray, sq_distances: FloatArray, sources: IntArray
) -> dict[str, str]:
    """Turn a list, and who has the point in theirs, into texts.

    Sources are written as steps from one to the next, compressed: those of a point that very many
    list are close together, and would not fit otherwise.
    """
    steps = np.diff(sources.astype("<i4"), prepend=np.int32(0))
    lists = b64encode(indices.astype("<i4").tobytes() + sq_distances.tobytes()).decode()
    listed_by = b64encode(zlib.compress(steps.astype("<i4").tobytes(), 1)).decode()
    for text, what in ((lists, f"a list of {len(indices)}"), (listed_by, "sources")):
        if len(text) > LONGEST:
            raise DatabaseError(
                f"the point at slot {slot} is listed by {len(sources)} points and has {what} that "
                f"take {len(text)} bytes, but Milvus stores up to {LONGEST} in one place; use "
                "fewer neighbours, or PostgreSQL, which has no such limit."
            )
    return {"lists": lists, "sources": listed_by}


def unpack_rows(cells: Sequence[dict[str, Any]], settings: dict[str, Any]) -> Rows:
    """Turn texts back into rows, one for each cell, which are in ascending order of slots."""
    dtype = np.dtype("<f8" if settings["precision"] == "double" else "<f4")
    width = settings["stored_width"]
    data = b"".join(b64decode(cell["lists"]) for cell in cells)
    table = np.frombuffer(data, np.uint8).reshape(len(cells), width * (4 + dtype.itemsize))
    indices = np.ascontiguousarray(table[:, : 4 * width]).view("<i4")
    sq_distances = np.ascontiguousarray(table[:, 4 * width :]).view(dtype)
    parts = [_sources(cell["sources"]) for cell in cells]
    starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Rows(
        np.array([cell["slot"] for cell in cells], dtype=np.int64),
        Neighbors(indices, sq_distances),
        starts,
        np.concatenate([np.empty(0, dtype=np.int64), *parts]),
    )


def _sources(text: str) -> IntArray:
    steps = np.frombuffer(zlib.decompress(b64decode(text)), "<i4")
    return np.cumsum(steps, dtype=np.int64)


def pack_record(point: Any, values: Iterable[Any]) -> dict[str, Any]:
    """Turn an id and payload into a text, and the id into a number to find it by.

    Examples
    --------
    >>> pack_record("a", [1, None])["record"]
    '["a",1,null]'
    """
    record = json.dumps([point, *values], ensure_ascii=False, separators=(",", ":"))
    size = len(record.encode())
    if size > LONGEST:
        raise InputError(
            f"id and payload of the point {point!r} take {size} bytes together, but Milvus stores "
            f"up to {LONGEST}; shorten its texts, or keep them elsewhere."
        )
    return {"record": record, "hash": hashed(point)}


def unpack_records(
    cells: Sequence[dict[str, Any]], columns: Sequence[Column]
) -> tuple[list[Any], dict[str, list[Any]]]:
    """Turn texts back into ids and columns of payload."""
    records = [json.loads(cell["record"]) for cell in cells]
    payload = {}
    for column in columns:
        values = [record[column.position + 1] for record in records]
        if column.kind in AS_KEPT:  # a value is stored as it came, maybe before this was the kind
            values = [None if value is None else AS_KEPT[column.kind](value) for value in values]
        payload[column.name] = column.out(values)
    return [record[0] for record in records], payload


def hashed(point: Any) -> int:
    """Return a number of 64 bits for an id; 1 and "1" have different ones."""
    text = f"{type(point).__name__} {point}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)
