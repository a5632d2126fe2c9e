"""A store whose contents follow from the number of its last change, and a process that grows it.

Change number s adds the points 10 s, 10 s + 1, ... and removes the oldest ones beyond 20. A point
has its number as value of the array "values", as price, and in its id. So whoever knows
the number of the last change knows everything that must be there.
"""

import sys
from pathlib import Path

import numpy as np

from rankfold.storage import Store

MOST = 20
BULK = 30_000


def added(sequence):
    return [10 * sequence + i for i in range(1 + sequence % 3)]


def alive(sequence):
    points = [0]
    for number in range(1, sequence + 1):
        points = points[max(0, len(points) - MOST) :] + added(number)
    return points


def contents(points, marker):
    values = np.array(points, dtype=np.int64)
    return {"values": values, "bulk": np.full(BULK, marker)}


def create(path, replace=False):
    Store.create(
        path, contents([0], 0), {"sequence": 0}, ["point-0"], {"price": [0]}, replace=replace
    )


def values_by_slot(store):
    """Replay the changes; return the value of each slot and whether it is alive."""
    with store.reading():
        arrays = store.arrays
        values, removed = list(arrays["values"]), set()
        assert set(arrays["bulk"].tolist()) == {store.settings["sequence"]}
        for number, change in store.changes():
            assert set(change["bulk"].tolist()) == {number}
            assert change["values"].tolist() == added(number)
            values += change["values"].tolist()
            removed |= set(change["removed"].tolist())
    return values, removed


def check(store):
    """Require that a store holds exactly what it must; return the number of its last change."""
    with store.reading() as version:
        values, removed = values_by_slot(store)
        slots = [slot for slot in range(len(values)) if slot not in removed]
        points = [int(values[slot]) for slot in slots]
        assert points == alive(version.sequence)
        assert store.n_points == len(slots)
        assert store.ids_of(slots) == [f"point-{point}" for point in points]
        assert store.payload_of(slots) == {"price": points}
        assert store.slots_of([f"point-{point}" for point in points]).tolist() == slots
    return version.sequence


def grow(store):
    values, removed = values_by_slot(store)
    slots = [slot for slot in range(len(values)) if slot not in removed]
    old = slots[: max(0, len(slots) - MOST)]
    number = store.version.sequence + 1
    change = contents(added(number), number) | {"removed": np.array(old, dtype=np.int64)}
    ids = [f"point-{point}" for point in added(number)]
    new = range(len(values), len(values) + len(ids))
    return store.append(
        change, removed=old, added_slots=new, ids=ids, payload={"price": added(number)}
    )


def merge(store):
    values, removed = values_by_slot(store)
    kept = [slot for slot in range(len(values)) if slot not in removed]
    number = store.version.sequence
    store.merge(contents([values[i] for i in kept], number), {"sequence": number}, kept)


def main(path, every):
    """Grow a store without end, once told to, and tell of each change when it is safe."""
    input()
    with Store.open(path, write=True) as store:
        while True:
            sys.stdout.write(f"{grow(store)}\n")
            sys.stdout.flush()
            if store.n_pending >= every:
                merge(store)


if __name__ == "__main__":
    if sys.argv[1] in ("create", "replace"):
        create(Path(sys.argv[2]), replace=sys.argv[1] == "replace")
    else:
        main(Path(sys.argv[2]), int(sys.argv[3]))
