"""Two cells per slot, written by turns: a change never touches what is valid before it.

A cell says since which number it is valid. Whoever reads the state of a number takes, of the two
cells of a slot, the newer one that is not newer than this number. So a state can be read while
the next one is written, and what a killed writer leaves is seen by nobody. Only a slot that was
written twice since a session began is lost to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rankfold.databases.milvus.client import MOST_KEYS, Client, Entity
from rankfold.databases.milvus.errors import moved
from rankfold.types import IntArray

BLOCK = MOST_KEYS // 2


@dataclass
class Cells:
    """The cells of a collection, as they are at a number.

    Parameters
    ----------
    client : Client
    name : str
        That of the collection.
    number : int
        The state to read.
    n_points : int
        Slots below this had a point at that number, and so a cell, unless it is deleted.
    changed : bool
        False if nothing was written since the collection was filled.
    """

    client: Client
    name: str
    number: int
    n_points: int
    changed: bool
    round_trips: int = 0

    def read(self, slots: IntArray, fields: list[str]) -> list[Entity]:
        """Return the valid cells of slots, ascending, without those that have none."""
        found = []
        for start in range(0, len(slots), BLOCK):
            keys = 2 * slots[start : start + BLOCK].astype(np.int64)
            if self.changed:
                keys = np.concatenate([keys, keys + 1])
            self.round_trips += 1
            found += self.client.get(self.name, keys, _with_stamps(fields))
        return self._valid(found)

    def blocks(self, fields: list[str]) -> Iterator[list[Entity]]:
        """Yield all valid cells, block by block."""
        for start in range(0, self.n_points, BLOCK):
            yield self.read(np.arange(start, min(start + BLOCK, self.n_points)), fields)

    def meeting(self, condition: str, fields: list[str]) -> list[Entity]:
        """Return the valid cells among those that meet a condition which both of a slot meet."""
        self.round_trips += 1
        return self._valid(self.client.query(self.name, condition, _with_stamps(fields)))

    def written_since(self, number: int) -> IntArray:
        """Return the slots that were written since a number, maybe with some of later states."""
        self.round_trips += 1
        found = self.client.query(self.name, f"born > {number}", ["cell"])
        slots = np.unique([entity["cell"] // 2 for entity in found]).astype(np.int64)
        return slots[slots < self.n_points]

    def write(self, number: int, entities: Iterable[Entity]) -> None:
        """Write the next cells of slots, valid from a number on."""
        entities = list(entities)
        slots = np.array([entity["slot"] for entity in entities], dtype=np.int64)
        newest = self._newest(slots)
        self.client.write(
            self.name,
            (_cell(entity, 1 - newest.get(entity["slot"], 1), number) for entity in entities),
        )

    def fill(self, entities: Iterable[Entity]) -> None:
        """Write first cells, valid from the beginning."""
        self.client.write(self.name, (_cell(entity, 0, 0) for entity in entities))

    def undo(self) -> None:
        """Delete what was written for later numbers, which never became valid."""
        late = self.client.query(self.name, f"born > {self.number}", ["cell"])
        self.client.delete(self.name, [entity["cell"] for entity in late])

    def purge(self, slots: list[int]) -> None:
        """Delete both cells of slots."""
        self.client.delete(self.name, [2 * slot + turn for slot in slots for turn in (0, 1)])

    def _newest(self, slots: IntArray) -> dict[int, int]:
        """Return which of the two cells is the newer one, of slots that have any."""
        born: dict[int, tuple[int, int]] = {}
        for start in range(0, len(slots), BLOCK):
            keys = 2 * slots[start : start + BLOCK]
            found = self.client.get(self.name, np.concatenate([keys, keys + 1]), ["cell", "born"])
            for entity in found:
                slot, turn = divmod(entity["cell"], 2)
                born[slot] = max(born.get(slot, (-1, 0)), (entity["born"], turn))
        return {slot: turn for slot, (_, turn) in born.items()}

    def _valid(self, found: Iterable[Entity]) -> list[Entity]:
        newest: dict[int, Entity | None] = {}
        for entity in found:
            slot = entity["cell"] // 2
            known = newest.get(slot)
            if entity["born"] > self.number:
                newest.setdefault(slot, None)
            elif known is None or known["born"] < entity["born"]:
                newest[slot] = entity | {"slot": slot}
        lost = [slot for slot, entity in newest.items() if entity is None and slot < self.n_points]
        if lost:
            raise moved(self.client.place)
        there = ((slot, cell) for slot, cell in newest.items() if cell and not cell["gone"])
        return [cell for _, cell in sorted(there, key=lambda pair: pair[0])]


def _with_stamps(fields: list[str]) -> list[str]:
    return ["cell", "born", "gone", *fields]


def _cell(entity: Entity, turn: int, number: int) -> Entity:
    cell = {"cell": 2 * entity["slot"] + turn, "born": number, "gone": False, **entity}
    del cell["slot"]
    return cell
