"""The one record of an index that says what is valid, and what was settled when it was built."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

from rankfold.check import DatabaseError, InputError
from rankfold.databases.contract import Head
from rankfold.databases.milvus.client import Client
from rankfold.databases.milvus.errors import damaged
from rankfold.databases.milvus.packing import LONGEST
from rankfold.storage.columns import Column
from rankfold.storage.ids import few

HEADS = "rankfold_heads"
FIELDS = [("key", "VARCHAR", 1000), ("text", "VARCHAR", LONGEST), ("spare", "FLOAT_VECTOR", 2)]
FLAT = {"index_type": "FLAT"}
LONGEST_NAME = 80
PART = LONGEST // 4
"""Characters of a long text in one record; each may take four bytes."""


@dataclass(frozen=True)
class State:
    """What is valid in an index; replaced at once as a whole.

    Parameters
    ----------
    generation : str
        In the names of its collections.
    first, version : int
        That with which it was built, and that of now.
    stamp : int
        Like the version, but grows with changes of payload, too.
    n_points, n_alive : int
    kinds : tuple of str
        Those of the columns of payload.
    n_parts : int
        Records that hold settings and names of columns.
    largest : int or None
        The largest id that is a number; whether it is known says ``largest_known``.
    writer : str or None
        Who is about to write what nobody sees yet; None if nobody is.
    purged : int
        What was removed up to this version is deleted, or about to be.
    marks : tuple of (int, float)
        When some of the versions came, in seconds.
    """

    generation: str
    first: int
    version: int
    stamp: int
    n_points: int
    n_alive: int
    kinds: tuple[str, ...]
    n_parts: int
    largest: int | None
    largest_known: bool = True
    writer: str | None = None
    purged: int = 0
    marks: tuple[tuple[int, float], ...] = ()

    def collection(self, kind: str) -> str:
        """Return the name of one of its collections."""
        return f"rankfold_{self.generation}_{kind}"


@dataclass(frozen=True)
class Settled:
    """What does not change once an index is built."""

    settings: dict[str, Any]
    names: list[str]

    def head(self, state: State) -> Head:
        """Return what the contract calls the head."""
        columns = tuple(
            Column(name, kind, position)
            for position, (name, kind) in enumerate(zip(self.names, state.kinds, strict=True))
        )
        return Head(state.version, state.n_points, state.n_alive, self.settings, columns)


class Heads:
    """The collection of heads; also says who is just filling new collections."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def prepare(self) -> None:
        """Make the collection, unless it is there."""
        if HEADS not in self._client.collections():
            self._client.create(HEADS, FIELDS, FLAT)

    def names(self) -> list[str]:
        """Return the names of all indexes."""
        if HEADS not in self._client.collections():
            return []
        found = self._client.query(HEADS, 'key like "index/%"', ["key"])
        return sorted(unquote(entity["key"].removeprefix("index/")) for entity in found)

    def read(self, name: str) -> State | None:
        """Return the state of an index, or None if there is none."""
        text = self._text([_key(name)])
        if not text:
            return None
        try:
            fields = json.loads(text)
            fields["kinds"] = tuple(fields["kinds"])
            fields["marks"] = tuple(map(tuple, fields["marks"]))
            return State(**fields)
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(f"{name!r} in {self._client.place}", f"its head reads {error}") from None

    def read_known(self, name: str) -> State:
        """Return the state of an index that has to be there."""
        state = self.read(name) if HEADS in self._client.collections() else None
        if state is None:
            names = few(self.names()) or "none"
            raise DatabaseError(
                f"there is no index {name!r} in {self._client.place}; there are: {names}."
            )
        return state

    def write(self, name: str, state: State) -> None:
        """Put a state in the place of the one before: from now on it is what all see."""
        self._write(_key(name), json.dumps(asdict(state)))

    def read_settled(self, name: str, state: State) -> Settled:
        """Return settings and names of columns of an index."""
        keys = [f"settled/{state.generation}/{part:04}" for part in range(state.n_parts)]
        try:
            return Settled(**json.loads(self._text(keys)))
        except (ValueError, TypeError):
            reason = "settings are missing"
            raise damaged(f"{name!r} in {self._client.place}", reason) from None

    def write_settled(self, generation: str, settled: Settled) -> int:
        """Write settings and names of columns; return in how many parts."""
        text = json.dumps(asdict(settled), ensure_ascii=False)
        parts = [text[start : start + PART] for start in range(0, len(text), PART)]
        for number, part in enumerate(parts):
            self._write(f"settled/{generation}/{number:04}", part)
        return len(parts)

    def mark_filling(self, generation: str, owner: dict[str, Any]) -> None:
        """Say who is filling the collections of a generation."""
        self._write(f"filling/{generation}", json.dumps(owner))

    def fillings(self) -> dict[str, dict[str, Any]]:
        """Return who is filling which generation, or was when it was stopped."""
        found = self._client.query(HEADS, 'key like "filling/%"', ["key", "text"])
        return {e["key"].removeprefix("filling/"): json.loads(e["text"]) for e in found}

    def end_filling(self, generation: str) -> None:
        """Forget who was filling a generation."""
        self._client.delete(HEADS, [f"filling/{generation}"])

    def forget(self, name: str, state: State) -> None:
        """Delete the head of an index: from now on it is not there, but its version is known."""
        self._write(_dropped_key(name), str(state.version))
        self._client.delete(HEADS, [_key(name)])

    def last_version(self, name: str) -> int:
        """Return the last version that an index of a name has ever had; 0 if there was none.

        Whoever still has a deleted one open must not take another of its name for the same.
        """
        state = self.read(name)
        return state.version if state else int(self._text([_dropped_key(name)]) or 0)

    def drop(self, generation: str) -> None:
        """Delete the collections of a generation, and what was settled for it."""
        for collection in self._client.collections():
            if collection.startswith(f"rankfold_{generation}_"):
                self._client.drop(collection)
        found = self._client.query(HEADS, f'key like "settled/{generation}/%"', ["key"])
        self._client.delete(HEADS, [entity["key"] for entity in found])
        self.end_filling(generation)

    def _text(self, keys: list[str]) -> str:
        found = self._client.get(HEADS, keys, ["key", "text"])
        return "".join(e["text"] for e in sorted(found, key=lambda entity: str(entity["key"])))

    def _write(self, key: str, text: str) -> None:
        self._client.write(HEADS, [{"key": key, "text": text, "spare": [0.0, 0.0]}])


def _key(name: str) -> str:
    """Return the key of an index, in characters that mean nothing in an expression of Milvus."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"the name of an index is {name!r}, but must be 1 to {LONGEST_NAME} printable "
            "characters.",
            "name",
        )
    return f"index/{quote(name, safe='')}"


def _dropped_key(name: str) -> str:
    return f"dropped/{quote(name, safe='')}"


def next_state(state: State, **changes: Any) -> State:
    """Return the state after a write, which nobody is about to change."""
    return replace(state, writer=None, stamp=state.stamp + 1, **changes)
