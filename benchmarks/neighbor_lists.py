"""What do neighbour lists of many points cost? Our lists beside FAISS's own search, in one run.

The points lie on curved sheets, 2,000 on each. FAISS's own search is that of the index we
build, with the effort we chose, for every point in blocks of the same size; both work in
turns, so that a busy machine slows both. Our lists measure each neighbour again by
differences, sort, leave the point itself out and store int32 and float32; searching cell by
cell, they can be quicker. Memory is the peak of a process of its own that does nothing else,
above what it held with the points and all packages loaded.

The embeddings are those of 20,000 package descriptions of Debian by MiniLM, 384 numbers each, and
more of them drawn between each and its near ones, with noise; 768 numbers are two of them side by
side, of a package and of one that is near to it. NN-descent is that of pynndescent, compiled
before, with its defaults and as many neighbours; recall is measured by the same points. Each of
the two runs in a process of its own, which reads the vectors from a file: into memory, or as a map
of it, of which only what is no file counts.

With --large also one million points of either kind, which takes minutes. --texts and --features
measure embeddings of other sizes alone.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np
from default_query import data_file, drawn_again
from kit.memory import forget_peak, of_a_process, own_mb, peak_mb, resident_mb
from kit.report import Goal, options, publish, table, versions
from kit.timing import TURNS, seconds
from pynndescent import NNDescent

from rankfold import ExactEngine, FaissEngine
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors.faiss_engine import BLOCK_ROWS
from rankfold.neighbors.faiss_indexes import (
    PRODUCTS,
    FlatIndex,
    threads,
)
from rankfold.types import Neighbors

SIZES, TEXTS, LARGE = (10_000, 100_000), (50_000, 200_000), 1_000_000
WIDTH = 30
SAMPLE, LEAST = 500, 20_000


def points(n_points):
    return sheets(n_points, n_sheets=max(1, n_points // 2000)).X


def independent_recall(X, sq_distances):
    """Share of true neighbours found, against the exact engine on points of our own choice."""
    ids = np.random.default_rng(1).choice(len(X), SAMPLE, replace=False)
    true = ExactEngine(X).rows(ids, WIDTH).sq_distances[:, -1:]
    return float((sq_distances[ids] <= true * (1 + 1e-6)).mean())


def raw_search(engine, plan, X):
    """Let FAISS search all these points, and drop what it finds."""
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        engine._indexes[plan.kind].candidates(block, WIDTH + 1, plan.effort)


def side_by_side(engine, X):
    """Return seconds of FAISS's search and of our lists, in turns, and the lists."""
    plan, raw, ours, lists = engine._plan(WIDTH), 0.0, 0.0, []
    for ids in np.array_split(np.arange(len(X)), TURNS):
        raw += seconds(lambda ids=ids: raw_search(engine, plan, X[ids]))[0]
        spent, found = seconds(lambda ids=ids: engine.rows(ids, WIDTH))
        ours += spent
        lists.append(found)
    indices = np.concatenate([part.indices for part in lists])
    return raw, ours, Neighbors(indices, np.concatenate([part.sq_distances for part in lists]))


def memory_of_a_process(n_points):
    """Print what engine and lists take at the most, beside the points."""
    FaissEngine(points(1000)).rows(np.arange(1000), WIDTH)
    X = points(n_points)
    forget_peak()
    before = resident_mb()
    lists = FaissEngine(X).rows(np.arange(n_points), WIDTH)
    stored = (lists.indices.nbytes + lists.sq_distances.nbytes) / 2**20
    print(json.dumps({"peak": max(0.0, peak_mb() - before), "lists": stored}))


def one_query():
    """Compare a single query on all threads with one on one thread."""
    X = points(100_000)
    flat = FlatIndex(X, 0)

    def search(n_threads):
        with threads(n_threads):
            for row in range(50):
                flat.candidates(X[row : row + 1], WIDTH, PRODUCTS)

    search(None)
    many, _ = seconds(lambda: search(None))
    one, _ = seconds(lambda: search(1))
    return {"all threads / one thread, a single query": many / one}


def measure(n_points):
    X = points(n_points)
    FaissEngine(X[:1000]).rows(np.arange(1000), WIDTH)
    build, engine = seconds(lambda: FaissEngine(X))
    plan = engine._plan(WIDTH)
    raw, ours, lists = side_by_side(engine, X)
    used = of_a_process(__file__, n_points)
    return {
        "points": n_points,
        "index": engine.index_,
        "compared": engine._indexes[plan.kind].scanned(plan.effort) / n_points,
        "recall": engine.recall_,
        "recall, other points": independent_recall(X, lists.sq_distances),
        "build s": build,
        "FAISS search s": raw,
        "lists s": ours,
        "lists / FAISS": ours / raw,
        "points MB": X.nbytes / 2**20,
        "lists MB": used["lists"],
        "peak MB beside points": used["peak"],
    }


def drawn_embeddings(n_points, n_features):
    """Return embeddings of length one, of 384 numbers or a multiple of that."""
    X = drawn_again(data_file("debian_minilm384.npz"), n_points, "cosine")
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if n_features == X.shape[1]:
        return X
    near = FaissEngine(X[:LEAST]).search(X, 2).indices[:, 1]
    parts = [X, *(X[near] for _ in range(n_features // X.shape[1] - 1))]
    return np.concatenate(parts, axis=1) / np.float32(np.sqrt(len(parts)))


def lists_of_a_file(path, way):
    """Search lists of the vectors in a file, and print how long that took, and its memory."""
    few = np.load(path, mmap_mode="r")[:2000].copy()
    if way == "NN-descent":
        NNDescent(few, n_neighbors=WIDTH + 1)  # compiles
    else:
        FaissEngine(few).rows(np.arange(len(few)), WIDTH)
    X = np.load(path, mmap_mode="r" if way == "mapped" else None)
    forget_peak()
    before, most, over = resident_mb(), [0.0], Event()

    def watch():
        while not over.wait(0.05):
            most[0] = max(most[0], own_mb())

    watcher = Thread(target=watch)
    watcher.start()
    if way == "NN-descent":
        took, graph = seconds(lambda: NNDescent(X, n_neighbors=WIDTH + 1).neighbor_graph)
        facts = {"s": took}
        sq_distances = np.sort(graph[1], axis=1)[:, 1:].astype(np.float64) ** 2 * (1 - 1e-5)
    else:
        build, engine = seconds(lambda: FaissEngine(X, progress=True))
        took, lists = seconds(lambda: engine.rows(np.arange(len(X)), WIDTH))
        sq_distances = lists.sq_distances
        facts = {"index": engine.index_, "asked": engine.recall, "recall": engine.recall_}
        facts |= {"build": build, "s": took}
    over.set()
    watcher.join()
    facts["peak"] = most[0] if way == "mapped" else max(0.0, peak_mb() - before)
    facts["independent"] = independent_recall(X, sq_distances)
    print(json.dumps(facts))


def embeddings(n_points, n_features=384):
    """Measure lists of embeddings beside NN-descent, each in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "embeddings.npy"
        np.save(path, drawn_embeddings(n_points, n_features))
        ours, mapped, theirs = (
            json.loads(
                subprocess.run(  # noqa: S603
                    [sys.executable, __file__, "--file", str(path), "--way", way],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                ).stdout
            )
            for way in ("in memory", "mapped", "NN-descent")
        )
    return {
        "points": n_points,
        "numbers": n_features,
        "index": ours["index"],
        "recall, asked": ours["asked"],
        "recall, measured": ours["recall"],
        "recall, other points": ours["independent"],
        "build s": ours["build"],
        "lists s": ours["s"],
        "NN-descent s": theirs["s"],
        "recall of NN-descent": theirs["independent"],
        "ours / NN-descent": (ours["build"] + ours["s"]) / theirs["s"],
        "vectors MB": n_points * n_features * 4 / 2**20,
        "peak MB beside vectors": ours["peak"],
        "NN-descent, peak MB beside vectors": theirs["peak"],
        "from a mapped file s": mapped["build"] + mapped["s"],
        "mapped: peak MB in all, files not counted": mapped["peak"],
    }


def judge(rows):
    """Return the goals for the largest embeddings."""
    last = rows[-1]
    what = f"{last['points']:,} embeddings of {last['numbers']}"
    minutes = (last["build s"] + last["lists s"]) / 60
    return [
        Goal(f"{what}: beside NN-descent", last["ours / NN-descent"], most=1),
        Goal(f"{what}: minutes", minutes, most=20 if last["points"] > 200_000 else 6),
        Goal(f"{what}: peak memory beside vectors", last["peak MB beside vectors"] / 1024,
             most=2, unit="GB"),
        Goal(f"{what}: peak memory from a mapped file", unit="GB", most=2,
             measured=last["mapped: peak MB in all, files not counted"] / 1024),
    ]  # fmt: skip


def main():
    parser = options(__doc__.splitlines()[0], large="one million points as well")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--texts", type=int, nargs="+", help="numbers of embeddings, nothing else")
    parser.add_argument("--features", type=int, default=384, help="numbers of each embedding")
    arguments = parser.parse_args()
    if arguments.memory:
        return memory_of_a_process(arguments.memory)
    if arguments.file:
        return lists_of_a_file(arguments.file, arguments.way)
    intro = [*__doc__.splitlines(), "", versions("rankfold", "faiss-cpu", "pynndescent")]
    if arguments.texts:
        rows = table(embeddings(n_points, arguments.features) for n_points in arguments.texts)
        name, title = f"embedding_lists_{arguments.features}", "neighbour lists of embeddings"
        publish(
            name,
            title,
            intro,
            {"Embeddings": rows},
            judge(rows),
            docs=arguments.docs,
            script="neighbor_lists",
        )
        return None
    larger = (LARGE,) if arguments.large else ()
    of_texts = table(embeddings(n_points) for n_points in (*TEXTS, *larger))
    of_sheets = table(measure(n_points) for n_points in (*SIZES, *larger))
    tables = {"Embeddings": of_texts, "Sheets": of_sheets, "One query": table([one_query()])}
    publish("neighbor_lists", "neighbour lists", intro, tables, judge(of_texts),
            docs=arguments.docs)  # fmt: skip
    return None


if __name__ == "__main__":
    main()
