"""Measure how long it takes to make, open and ask a store of a million points.

Run with ``python benchmarks/storage.py``; it needs about 2 GB of disk for a moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from rankfold.storage import Store

N_POINTS = 1_000_000


@contextmanager
def timed(what: str) -> Iterator[None]:
    start = perf_counter()
    yield
    print(f"{what:<48}{perf_counter() - start:9.4f} s")


def main() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "vectors": rng.random((N_POINTS, 100), dtype=np.float32),
        "indices": rng.integers(0, N_POINTS, (N_POINTS, 50), dtype=np.int32),
        "sq_distances": rng.random((N_POINTS, 50), dtype=np.float32),
    }
    n_bytes = sum(array.nbytes for array in arrays.values())
    ids = [f"point-{number:07d}" for number in rng.permutation(N_POINTS)]
    payload = {"price": rng.random(N_POINTS), "color": ["red", "blue"] * (N_POINTS // 2)}
    some = rng.choice(N_POINTS, 1000, replace=False)
    with TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "store"
        with timed(f"create: {N_POINTS:,} points, {n_bytes / 1e6:.0f} MB of arrays"):
            Store.create(path, arrays, {}, ids, payload)
        for _ in range(3):
            with timed("open, pages in memory, every byte checked"):
                store = Store.open(path)
            store.close()
        with Store.open(path, write=True) as store:
            measure_questions(store, some)
            measure_changes(store, arrays)


def measure_questions(store: Store, some: np.ndarray) -> None:
    with timed("ids of 1,000 slots"):
        ids = store.ids_of(some)
    with timed("slots of 1,000 ids"):
        store.slots_of(ids)
    with timed("payload of 1,000 slots"):
        store.payload_of(some)
    with timed("ids of all slots"):
        every = store.ids_of(np.arange(N_POINTS))
    with timed("slots of all ids"):
        store.slots_of(every)
    with timed('matching: price < 0.1 and color = "red"'):
        store.matching('price < 0.1 and color = "red"')
    with timed("version"):
        _ = store.version


def measure_changes(store: Store, arrays: dict[str, np.ndarray]) -> None:
    change = {"added": np.zeros((100, 100), np.float32)}
    with timed("append: 100 points added, 1 removed, on disk"):
        slots = np.arange(N_POINTS, N_POINTS + 100)
        store.append(change, removed=[0], added_slots=slots, ids=[f"new-{i}" for i in range(100)])
    with timed("merge: every point renumbered"):
        store.merge(arrays, {}, np.arange(1, N_POINTS + 100))


if __name__ == "__main__":
    main()
