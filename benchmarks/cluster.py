"""What do the workers of Dask cost beside one process? The same index, its time and its memory.

The points lie on curved sheets, 2,000 on each, in eight .npy files. One process builds the index
with all cores of FAISS; then Dask builds the same index with two processes of one thread. Both
write it to disk, and every array of one index is compared with that of the other. Starting the
workers is timed apart. The two take turns, three each, one of a million points; times are
medians. Memory is what a process holds at the most that is no file, read every 20 ms: the caller
and the workers map vectors and lists from files, whose pages the system takes back when it needs
them.

With --large also one million points: minutes.
"""

import argparse
import json
import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Event, Thread

import numpy as np
from distributed import Client
from kit.memory import of_a_process, own_mb
from kit.pictures import GREEN, GREY, INK, RIGHT, plot, pretty
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds
from neighbor_lists import points

from rankfold import Index
from rankfold.cluster import build_index
from rankfold.cluster.client import own_cluster
from rankfold.storage import Store

SIZES, LARGE = (100_000,), 1_000_000
N_SHARDS, N_WORKERS, NEIGHBORS, TURNS = 8, 2, 14, 3
SHARDS = "RANKFOLD_BENCHMARK_SHARDS"
"""Names the folder of the shards to the process that is measured alone."""


class Watch:
    """Reads what processes hold at the most, until the end of a block."""

    def __init__(self, processes):
        self.peaks, self._end = dict.fromkeys(processes, 0.0), Event()
        self._thread = Thread(target=self._look)

    def _look(self):
        while not self._end.wait(0.02):
            for process, peak in self.peaks.items():
                self.peaks[process] = max(peak, own_mb(process))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def write_shards(folder, n_points):
    for number, part in enumerate(np.array_split(points(n_points), N_SHARDS)):
        np.save(folder / f"part-{number}.npy", part)


def alone():
    """Build in this process, and print what that took."""
    folder = Path(os.environ[SHARDS])
    with Watch([os.getpid()]) as watch:
        parts = [np.load(path) for path in sorted(folder.glob("part-*.npy"))]
        X = np.concatenate(parts)
        del parts
        took, made = seconds(
            lambda: Index.build(X, path=folder / "alone", n_neighbors=NEIGHBORS, replace=True)
        )
    made.close()
    print(json.dumps({"seconds": took, "peak": max(watch.peaks.values())}))


def together(folder):
    """Build with Dask; return seconds of the start and of the work, and peaks of memory."""
    with own_cluster(0) as cluster, Client(cluster) as client:
        cluster.scale(N_WORKERS)
        started, _ = seconds(lambda: client.wait_for_workers(N_WORKERS))
        workers = [*client.run(os.getpid).values()]
        with Watch([os.getpid(), *workers]) as watch:
            took, _ = seconds(
                lambda: build_index(
                    folder,
                    folder / "together",
                    scheduler=client,
                    n_neighbors=NEIGHBORS,
                    replace=True,
                )
            )
    caller = watch.peaks.pop(os.getpid())
    return {
        "start": started,
        "seconds": took,
        "caller": caller,
        "worker": max(watch.peaks.values()),
    }


def summed_up(turns):
    """Return the median of times, and the largest of all peaks."""
    times = ("start", "seconds")
    return {
        name: (np.median if name in times else max)([turn[name] for turn in turns])
        for name in turns[0]
    }


def are_equal(one, other):
    """Say whether two indexes hold the same arrays."""
    with Store.open(one) as first, Store.open(other) as second:
        names = {*first.arrays, *second.arrays}
        return all(np.array_equal(first.arrays[n], second.arrays[n]) for n in names)


def measure(n_points):
    folder = Path(mkdtemp(prefix="rankfold-benchmark-"))
    try:
        write_shards(folder, n_points)
        os.environ[SHARDS] = str(folder)
        n_turns = TURNS if n_points < LARGE else 1
        turns = [(of_a_process(__file__, n_points), together(folder)) for _ in range(n_turns)]
        single, dask = map(summed_up, zip(*turns, strict=True))
        return {
            "points": n_points,
            "one process s": single["seconds"],
            "Dask s": dask["seconds"],
            "Dask / one process": dask["seconds"] / single["seconds"],
            "start of workers s": dask["start"],
            "one process MB": single["peak"],
            "caller MB": dask["caller"],
            "largest worker MB": dask["worker"],
            "same index": are_equal(folder / "alone", folder / "together"),
        }
    finally:
        rmtree(folder, ignore_errors=True)


def judge(rows):
    goals = []
    for row in rows:
        where = f"{row['points']:,} points"
        goals.append(
            Goal(f"{where}: Dask / one process", row["Dask / one process"], most=1.5,
                 valid=row["same index"])
        )  # fmt: skip
    last = rows[-1]
    largest = max(last["caller MB"], last["largest worker MB"])
    goals.append(Goal(f"{last['points']:,} points: memory of the largest process / of one process",
                      largest / last["one process MB"], most=0.75))  # fmt: skip
    return goals


def picture(rows):
    last = rows[-1]
    figure, (times, memory) = plot(
        "An index built with Dask, beside one process",
        f"{last['points']:,} points of 32 features, k = {NEIGHBORS}; two workers of one thread",
        n_panels=2,
        size=(9.5, 3.9),
    )
    bars = [("one process", "one process s", GREY), ("Dask", "Dask s", RIGHT)]
    draw(times, "seconds", bars, last, pretty)
    bars = [
        ("one process", "one process MB", GREY),
        ("caller", "caller MB", GREEN),
        ("largest worker", "largest worker MB", RIGHT),
    ]
    draw(memory, "MB that are no file, at the most", bars, last, lambda value: f"{value:,.0f} MB")
    figure.subplots_adjust(left=0.11, top=0.76, bottom=0.16, wspace=0.35)
    return figure


def draw(axes, label, bars, row, written):
    longest = max(row[key] for _, key, _ in bars)
    for place, (_, key, color) in enumerate(reversed(bars)):
        axes.barh(place, row[key], color=color, height=0.5)
        axes.text(row[key] + 0.02 * longest, place, written(row[key]), color=INK, fontsize=9,
                  va="center")  # fmt: skip
    axes.set_yticks(range(len(bars)), [name for name, _, _ in reversed(bars)])
    axes.set(xlabel=label, xlim=(0, 1.25 * longest))
    axes.grid(visible=False, axis="y")


def main():
    parser = options(__doc__, large="one million points as well")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        return alone()
    rows = table(measure(n) for n in ((*SIZES, LARGE) if arguments.large else SIZES))
    packages = versions("rankfold", "dask", "distributed", "faiss-cpu")
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", packages]
    alt = "Seconds and memory of building an index in one process and with Dask."
    publish("cluster", "building with Dask", intro, {"Build": rows}, judge(rows), picture(rows),
            alt, arguments.docs)  # fmt: skip
    return None


if __name__ == "__main__":
    main()
