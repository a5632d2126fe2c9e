"""A database in plain dictionaries: what every other one has to do, in the fewest words."""

from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from sqlite3 import connect
from threading import Lock, RLock

import numpy as np

from rankfold.check import DatabaseError, InputError
from rankfold.databases.contract import Head
from rankfold.neighbors import Rows
from rankfold.storage.conditions import translate
from rankfold.types import Neighbors

MOST_VERSIONS = 50
"""Changes that are remembered."""


@dataclass(frozen=True)
class State:
    """A state of a table; nobody changes one, whoever makes a change makes another."""

    settings: dict
    columns: tuple
    version: int = 1
    n_points: int = 0
    vectors: dict = field(default_factory=dict)
    ids: dict = field(default_factory=dict)
    payload: dict = field(default_factory=dict)
    places: dict = field(default_factory=dict)
    lists: dict = field(default_factory=dict)
    sources: dict = field(default_factory=dict)
    changed: dict = field(default_factory=dict)

    def with_points(self, points):
        places = [None] * len(points.slots) if points.places is None else points.places
        slots = points.slots.tolist()
        named = [dict(zip(points.payload, one, strict=True)) for one in columns_to_rows(points)]
        return replace(
            self,
            n_points=max([self.n_points, *(slot + 1 for slot in slots)]),
            vectors={**self.vectors, **dict(zip(slots, points.vectors, strict=True))},
            ids={**self.ids, **dict(zip(slots, points.ids, strict=True))},
            payload={**self.payload, **dict(zip(slots, named, strict=True))},
            places={**self.places, **dict(zip(slots, places, strict=True))},
        )

    def with_rows(self, rows):
        lists, sources = dict(self.lists), dict(self.sources)
        for place, slot in enumerate(rows.slots.tolist()):
            lists[slot] = rows.lists.indices[place].copy(), rows.lists.sq_distances[place].copy()
            sources[slot] = rows.sources[rows.starts[place] : rows.starts[place + 1]].copy()
        return replace(self, lists=lists, sources=sources)

    def without(self, slots):
        gone = set(slots.tolist())
        names = ("vectors", "ids", "payload", "places", "lists", "sources")
        left = {n: {s: v for s, v in getattr(self, n).items() if s not in gone} for n in names}
        return replace(self, **left)


def columns_to_rows(points):
    """Return the payload of each point."""
    return list(zip(*points.payload.values(), strict=True)) or [()] * len(points.slots)


def as_kind(column, value):
    """Return a value as its column holds it: whole numbers may have become others."""
    return float(value) if column.kind == "number" and value is not None else value


class MemorySession:
    def __init__(self, state):
        self._state, self.round_trips = state, 1

    @property
    def head(self):
        state = self._state
        return Head(
            state.version, state.n_points, len(state.ids), dict(state.settings), state.columns
        )

    def changed_since(self, version):
        self.round_trips += 1
        wanted = range(version + 1, self._state.version + 1)
        if any(number not in self._state.changed for number in wanted):
            return None
        return np.unique(np.concatenate([np.empty(0, int), *map(self._state.changed.get, wanted)]))

    def rows(self, slots, around=False):
        self.round_trips += 1
        state = self._state
        chosen = {slot for slot in slots.tolist() if slot in state.ids}
        if around:
            chosen |= {int(source) for slot in chosen for source in state.sources[slot]}
        ordered = sorted(chosen)
        starts = np.cumsum([0, *(len(state.sources[slot]) for slot in ordered)])
        width = state.settings["stored_width"]
        precision = np.dtype(state.settings["precision"])
        lists = Neighbors(
            np.array([state.lists[s][0] for s in ordered], np.int32).reshape(-1, width),
            np.array([state.lists[s][1] for s in ordered], precision).reshape(-1, width),
        )
        sources = [np.empty(0, np.int32), *(state.sources[slot] for slot in ordered)]
        return Rows(np.array(ordered, np.int64), lists, starts, np.concatenate(sources))

    def search(self, vectors, k, where=None):
        slots = self.slots() if where is None else self.matching(where)
        X = self.vectors(slots)
        found = []
        for vector in vectors:
            near = np.argsort(((X - vector) ** 2).sum(axis=1), kind="stable")[:k]
            found.append((slots[near], X[near]))
        return found

    def listers(self, vectors):
        if self._state.settings["search"] != "exact":
            return None
        rows = self.rows(self.slots())
        counts = (rows.lists.indices >= 0).sum(axis=1)
        last = rows.lists.sq_distances[np.arange(len(rows)), np.maximum(counts - 1, 0)]
        last = np.where(counts < self._state.settings["width"], np.inf, last)
        found = []
        for vector in vectors:
            near = ((self.vectors(rows.slots) - vector) ** 2).sum(axis=1)
            chosen = near <= last * (1 + 1e-5)
            found.append((rows.slots[chosen], self.vectors(rows.slots[chosen])))
        return found

    def vectors(self, slots):
        self.round_trips += 1
        found = [self._state.vectors[slot] for slot in slots.tolist()]
        return np.array(found, np.float32).reshape(-1, self._state.settings["n_features"])

    def scan(self):
        slots = self.slots()
        for start in range(0, len(slots), 7):
            block = slots[start : start + 7]
            yield block, self.vectors(block)

    def slots(self):
        self.round_trips += 1
        return np.array(sorted(self._state.ids), np.int64)

    def find(self, ids):
        self.round_trips += 1
        slots = {(type(name), name): slot for slot, name in self._state.ids.items()}
        return np.array([slots.get((type(name), name), -1) for name in ids], np.int64)

    def points(self, slots, columns):
        self.round_trips += 1
        ids = [self._state.ids[slot] for slot in slots.tolist()]
        named = [self._state.payload[slot] for slot in slots.tolist()]
        return ids, {c.name: [as_kind(c, row[c.name]) for row in named] for c in columns}

    def matching(self, where, slots=None):
        self.round_trips += 1
        state = self._state
        sql, values = translate(where, state.columns)
        names = "".join(f", {column.key}" for column in state.columns)
        marks = ", ?" * len(state.columns)
        with closing(connect(":memory:")) as there:
            there.execute(f"CREATE TABLE points (slot, id{names})")
            there.executemany(
                f"INSERT INTO points VALUES (?, ?{marks})",  # noqa: S608
                [
                    (s, i, *(state.payload[s][c.name] for c in state.columns))
                    for s, i in state.ids.items()
                ],
            )
            chosen = f"SELECT slot FROM points WHERE {sql} ORDER BY slot"  # noqa: S608
            rows = there.execute(chosen, values)
            found = np.array([slot for (slot,) in rows], np.int64)
        return found if slots is None else np.intersect1d(found, slots)

    def places(self, slots):
        self.round_trips += 1
        return np.array([self._state.places[slot] for slot in slots.tolist()], np.float32).reshape(
            -1, 2
        )

    def largest_number(self):
        self.round_trips += 1
        return max((name for name in self._state.ids.values() if type(name) is int), default=None)


class MemoryWriting(MemorySession):
    def __init__(self, table):
        super().__init__(table.state)
        self._table = table

    def commit(self, change):
        before = self._state
        changed = np.union1d(change.removed, change.rows.slots)
        version = before.version + 1
        after = before.without(change.removed).with_points(change.added).with_rows(change.rows)
        known = {n: slots for n, slots in before.changed.items() if n > version - MOST_VERSIONS}
        self._table.state = replace(
            after, version=version, columns=change.columns, changed={**known, version: changed}
        )
        return version

    def change_payload(self, slots, payload, columns):
        known = dict(self._state.payload)
        for place, slot in enumerate(slots.tolist()):
            known[slot] = {**known[slot], **{name: payload[name][place] for name in payload}}
        self._table.state = replace(self._state, payload=known, columns=columns)


class MemoryTable:
    def __init__(self, name, state):
        self.place, self.state, self._turn = f"memory:{name}", state, Lock()
        self.name, self.is_there = name, True

    @contextmanager
    def reading(self):
        if not self.is_there:
            raise DatabaseError(f"there is no index {self.name!r} any more.")
        yield MemorySession(self.state)

    @contextmanager
    def writing(self):
        with self._turn:
            yield MemoryWriting(self)

    def close(self):
        pass


class MemoryFilling:
    def __init__(self, database, name, state):
        self._database, self._name, self._state = database, name, state

    def add(self, points, rows):
        self._state = self._state.with_points(points)
        if rows is not None:
            self.write_rows(rows)

    def write_rows(self, rows):
        self._state = self._state.with_rows(rows)

    @contextmanager
    def session(self):
        yield MemorySession(self._state)

    def finish(self):
        made = MemoryTable(self._name, self._state)
        there = self._database.tables.setdefault(self._name, made)
        if there is not made:
            there.state = replace(self._state, version=there.state.version + 1)
            there.is_there = True


class MemoryDatabase:
    """Tables by name, gone with the process."""

    def __init__(self):
        self.tables, self._turn = {}, RLock()

    def names(self):
        return sorted(name for name, table in self.tables.items() if table.is_there)

    def open(self, name):
        if name not in self.names():
            raise DatabaseError(f"there is no index {name!r}; there are {self.names()}.")
        return self.tables[name]

    def check_place(self, name, *, replace):
        if name in self.names() and not replace:
            raise InputError(f"there is an index {name!r} already; give replace=True.")

    @contextmanager
    def create(self, name, settings, columns, *, replace):
        self.check_place(name, replace=replace)
        with self._turn:
            yield MemoryFilling(self, name, State(dict(settings), tuple(columns)))

    def drop(self, name):
        self.open(name).is_there = False  # what has it open must not take another for it
