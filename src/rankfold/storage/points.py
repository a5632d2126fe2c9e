"""The table of points: slot, id and payload of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import itemgetter

import numpy as np

from rankfold.errors import InputError, StorageError
from rankfold.storage.columns import (
    EXACT,
    Column,
    Id,
    Slots,
    Value,
    Values,
    few,
    ids_twice,
    too_large,
)
from rankfold.storage.database import (
    POINTS_BY_ID,
    Row,
    SqliteDatabase,
    checksum,
    checksums,
    intact,
    points_table,
    text_columns,
)
from rankfold.storage.words import add_words, drop_words, make_words, remove_words

FEW = 1000
"""Up to so many points are looked up one by one, without counting all."""

AT_ONCE = 500
"""So many of them in one statement."""

PART = 10_000
"""So many rows are read at a time where all are."""


PointBatch = tuple[Sequence[Id], Mapping[str, Values]]
"""Ids of some points, and their payload."""


def make_points(
    database: SqliteDatabase, columns: Sequence[Column], batches: Iterable[PointBatch]
) -> None:
    """Make the table again, with slots from 0 in the order of the batches."""
    drop_words(database)
    database.rows("DROP TABLE IF EXISTS points")
    database.rows(points_table(columns))
    first = 0
    for ids, payload in batches:
        _insert(database, columns, range(first, first + len(ids)), ids, payload)
        first += len(ids)
    try:
        database.rows(POINTS_BY_ID)  # one sort is faster than many insertions
    except StorageError as error:
        twice = database.rows("SELECT id FROM points GROUP BY id HAVING count(*) > 1")
        if not twice:
            raise
        raise ids_twice(name for (name,) in twice) from error
    make_words(database, columns)


def insert_points(
    database: SqliteDatabase,
    columns: Sequence[Column],
    slots: Sequence[int],
    ids: Sequence[Id],
    payload: Mapping[str, Values],
) -> None:
    """Add points, and their words; columns that the payload leaves out are missing values."""
    add_words(database, columns, _insert(database, columns, slots, ids, payload))


def _insert(
    database: SqliteDatabase,
    columns: Sequence[Column],
    slots: Sequence[int],
    ids: Sequence[Id],
    payload: Mapping[str, Values],
) -> list[Row]:
    """Add points, and return their rows."""
    stored = (_as_kept(column, payload, len(ids)) for column in columns)
    rows = list(zip(slots, ids, *stored, strict=True))
    marks = ", ?" * len(columns)
    database.run_many(
        f"INSERT INTO points VALUES (?, ?, ?{marks})",  # noqa: S608
        [(*row[:2], crc, *row[2:]) for row, crc in zip(rows, checksums(rows), strict=True)],
    )
    return rows


def last_slot(database: SqliteDatabase) -> int:
    """Return the largest slot in use, or -1."""
    ((last,),) = database.rows("SELECT coalesce(max(slot), -1) FROM points")
    return int(last)


def check_new(
    database: SqliteDatabase,
    columns: Sequence[Column],
    last: int,
    slots: Sequence[int],
    ids: Sequence[Id],
) -> None:
    """Require slots after the last one, in ascending order, and ids that are not taken."""
    if any(np.diff([last, *slots]) < 1):
        raise InputError(f"added_slots must ascend from above {last}, the last slot in use.")
    found = _slots(database, columns, ids)
    taken = [i for i, slot in zip(ids, found, strict=True) if slot is not None]
    if taken:
        raise InputError(f"ids are in use already: {few(taken)}; remove or update these points.")


def delete_points(
    database: SqliteDatabase, columns: Sequence[Column], slots: Sequence[int]
) -> None:
    """Remove points, and their words."""
    if not slots:
        return
    before = rows_of(database, columns, slots)  # refuses slots that are not there
    remove_words(database, columns, _with_slots(slots, before))
    database.run_many("DELETE FROM points WHERE slot = ?", ((slot,) for slot in slots))


def change_points(
    database: SqliteDatabase,
    columns: Sequence[Column],
    slots: Sequence[int],
    payload: Mapping[str, Values],
) -> None:
    """Give points other values in the columns of a payload."""
    changed = {c.key: _as_kept(c, payload, len(slots)) for c in columns if c.name in payload}
    keys = ["id", *(column.key for column in columns)]
    before = rows_of(database, columns, slots)
    after = (changed.get(k, [row[i] for row in before]) for i, k in enumerate(keys))
    rows = list(zip(slots, *after, strict=True))
    places = "".join(f", {key} = ?" for key in keys[1:])
    reworded = any(column.name in payload for column in text_columns(columns))
    if reworded:
        remove_words(database, columns, _with_slots(slots, before))
    database.run_many(
        f"UPDATE points SET crc32 = ?{places} WHERE slot = ?",  # noqa: S608
        [(crc, *row[2:], row[0]) for row, crc in zip(rows, checksums(rows), strict=True)],
    )
    if reworded:
        add_words(database, columns, rows)


def _with_slots(slots: Iterable[int], rows: Iterable[Row]) -> list[Row]:
    return [(slot, *row) for slot, row in zip(slots, rows, strict=True)]


def renumber_points(database: SqliteDatabase, columns: Sequence[Column], kept: Slots) -> None:
    """Give all points the slots 0, 1, 2, ... in their order."""
    slots = [slot for (slot,) in database.rows("SELECT slot FROM points ORDER BY slot")]
    if not np.array_equal(slots, kept):
        raise InputError(
            f"kept names {len(kept)} slots, but must name the {len(slots)} of all points that were "
            "not removed, in ascending order."
        )
    first = next((new for new, old in enumerate(slots) if new != old), None)
    if first is None:
        return
    database.rows("DROP INDEX points_by_id")  # one sort is faster than many insertions
    for rows in _all_rows(database, columns, slots[first]):  # no slot is taken: they only sink
        moved = enumerate(rows, first)
        database.run_many(
            "UPDATE points SET slot = ?, crc32 = ? WHERE slot = ?",
            [(new, checksum((new, *row)), old) for new, (old, *row) in moved],
        )
        first += len(rows)
    database.rows(POINTS_BY_ID)
    make_words(database, columns)


def widen(database: SqliteDatabase, before: Sequence[Column], after: Sequence[Column]) -> None:
    """Turn whole numbers into others where a column needs it, and let words be found in it."""
    widening = [
        new
        for old, new in zip(before, after, strict=True)
        if (old.kind, new.kind) == ("integer", "number")
    ]
    if widening:
        check_points(database, before)  # the new checksums must not vouch for damage
    for column in widening:
        key = column.key
        inexact = f"SELECT {key} FROM points WHERE {key} NOT BETWEEN ? AND ? LIMIT 1"  # noqa: S608
        for (value,) in database.rows(inexact, (-EXACT, EXACT)):
            raise too_large(column.name, value)
        database.rows(f"UPDATE points SET {key} = CAST({key} AS REAL) WHERE {key} NOT NULL")  # noqa: S608
    if widening:
        _renew_checksums(database, after)
    if text_columns(before) != text_columns(after):  # the first texts of a column
        make_words(database, after)


def add_columns(
    database: SqliteDatabase, before: Sequence[Column], after: Sequence[Column]
) -> None:
    """Give all points further columns, in which every value is missing."""
    check_points(database, before)  # the new checksums must not vouch for damage
    for column in after[len(before) :]:
        database.rows(f"ALTER TABLE points ADD COLUMN {column.key}")
    _renew_checksums(database, after)
    if text_columns(before) != text_columns(after):
        make_words(database, after)


def _renew_checksums(database: SqliteDatabase, columns: Sequence[Column]) -> None:
    for rows in _all_rows(database, columns, checked=False):
        sums = [(checksum(row), row[0]) for row in rows]
        database.run_many("UPDATE points SET crc32 = ? WHERE slot = ?", sums)


def check_points(database: SqliteDatabase, columns: Sequence[Column]) -> None:
    """Require that every point has the checksum that was written."""
    for _ in _all_rows(database, columns):
        pass


def largest_number(database: SqliteDatabase) -> int | None:
    """Return the largest id that is a number; SQLite takes any number for less than any text."""
    ((largest,),) = database.rows("SELECT max(id) FROM points WHERE id < ''")
    return None if largest is None else int(largest)


def find_slots(database: SqliteDatabase, columns: Sequence[Column], ids: Sequence[Id]) -> Slots:
    """Return the slot of each id."""
    slots = _slots(database, columns, ids)
    if None in slots:
        unknown = [i for i, slot in zip(ids, slots, strict=True) if slot is None]
        ((known,),) = database.rows("SELECT id FROM points LIMIT 1") or [(None,)]
        as_here = "" if known is None else f"; ids of this index are like {known!r}"
        raise InputError(
            f"there are no points with the ids {few(unknown)}{as_here}, and the number 1 is not "
            "the text '1'."
        )
    return np.array(slots, dtype=np.int64)


def are_held(database: SqliteDatabase, columns: Sequence[Column], ids: Sequence[Id]) -> list[bool]:
    """Tell of each id whether a point has it."""
    return [slot is not None for slot in _slots(database, columns, ids)]


def rows_of(database: SqliteDatabase, columns: Sequence[Column], slots: Sequence[int]) -> list[Row]:
    """Return id and payload of the points at some slots; each has the checksum that was written."""
    found = _looked_up(database, columns, "slot", slots)
    present = [row[1:] for row in found if row is not None]
    if len(present) < len(slots):
        there = {slot for (slot,) in database.rows("SELECT slot FROM points")}
        raise InputError(
            f"there are no points at the slots {few(s for s in slots if s not in there)}."
        )
    return present


def ids_and_payload(
    database: SqliteDatabase,
    every: Sequence[Column],
    chosen: Sequence[Column],
    slots: Sequence[int],
) -> tuple[list[Id], dict[str, list[Value]]]:
    """Return ids, and some of all columns of the payload, of the points at some slots."""
    ids, *values = zip(*rows_of(database, every, slots), strict=True) if slots else [()]
    stored = dict(zip((column.key for column in every), values, strict=False))
    return list(ids), {
        column.name: _as_given(column, stored.get(column.key, ())) for column in chosen
    }


def _slots(
    database: SqliteDatabase, columns: Sequence[Column], ids: Sequence[Id]
) -> list[int | None]:
    found = _looked_up(database, columns, "id", ids)
    return [None if row is None else row[0] for row in found]


def _looked_up(
    database: SqliteDatabase, columns: Sequence[Column], key: str, values: Sequence[Id]
) -> Iterable[Row | None]:
    """Return slot, id and payload for each value of "slot" or "id"; None where there is none."""
    selection, place = _selection(columns), 1 if key == "slot" else 2
    if _are_many(database, len(values)):
        found = database.rows(selection)
    else:
        found = []
        for first in range(0, len(values), AT_ONCE):
            some = values[first : first + AT_ONCE]
            where = f"WHERE {key} IN ({', '.join('?' * len(some))})"
            found += database.rows(f"{selection} {where}", some)
    rows = dict(zip(map(itemgetter(place), found), found, strict=True))
    return intact(database, list(map(rows.get, values)))


def _are_many(database: SqliteDatabase, count: int) -> bool:
    """Tell whether reading the whole table is faster than looking up so many points."""
    if count <= FEW:
        return False
    ((n_points,),) = database.rows("SELECT count(*) FROM points")
    return bool(count * 10 > n_points)


def _all_rows(
    database: SqliteDatabase,
    columns: Sequence[Column],
    first: int | None = None,
    *,
    checked: bool = True,
) -> Iterator[list[Row]]:
    """Yield slot, id and payload of all points from a slot on, some at a time."""
    where = f"WHERE slot > ? ORDER BY slot LIMIT {PART}"
    before = -inf if first is None else first - 1
    while rows := database.rows(f"{_selection(columns)} {where}", (before,)):
        yield intact(database, rows) if checked else [row[1:] for row in rows]
        before = rows[-1][1]


def _selection(columns: Sequence[Column]) -> str:
    names = "".join(f", {column.key}" for column in columns)
    return f"SELECT crc32, slot, id{names} FROM points"  # noqa: S608


def _as_given(column: Column, values: Iterable[Value]) -> list[Value]:
    if column.kind == "boolean":
        return [None if value is None else bool(value) for value in values]
    return list(values)


def _as_kept(column: Column, payload: Mapping[str, Values], n_points: int) -> list[Value]:
    if column.name not in payload:
        return [None] * n_points
    values = payload[column.name].values
    if column.kind == "number":  # SQLite keeps no negative zero
        return [None if value is None else float(value) + 0.0 for value in values]
    if column.kind in ("integer", "boolean"):
        return [None if value is None else int(value) for value in values]
    return values
