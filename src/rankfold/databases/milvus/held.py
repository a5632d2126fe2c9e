"""The three collections of an index, as they are at one state."""

from __future__ import annotations

from typing import Any, NamedTuple

from rankfold.databases.milvus.cells import Cells
from rankfold.databases.milvus.client import Client
from rankfold.databases.milvus.heads import State
from rankfold.databases.milvus.vectors import Vectors


class Held(NamedTuple):
    """What an index holds: lists and sources, ids and payload, vectors."""

    rows: Cells
    records: Cells
    vectors: Vectors

    @classmethod
    def at(cls, client: Client, state: State, settings: dict[str, Any]) -> Held:
        """Look at a state."""
        rows, records, vectors = map(state.collection, ("rows", "records", "vectors"))
        changed = state.version > state.first
        sizes = (settings["n_features"], settings["search"])
        return cls(
            Cells(client, rows, state.version, state.n_points, changed),
            Cells(client, records, state.stamp, state.n_points, state.stamp > 0),
            Vectors(client, vectors, state.version, state.n_points, *sizes),
        )

    @property
    def round_trips(self) -> int:
        """How often an answer was waited for."""
        return self.rows.round_trips + self.records.round_trips + self.vectors.round_trips

    def undo(self) -> None:
        """Delete what was written for states that never became valid."""
        self.rows.undo()
        self.records.undo()
        self.vectors.undo()

    def purge(self, version: int) -> None:
        """Delete points that died up to a version; their vectors last, which tell who died."""
        dead = self.vectors.dead(version)
        self.rows.purge(dead)
        self.records.purge(dead)
        self.vectors.purge(dead)
