"""What does keeping an index cost? Building, opening, asking and changing it, beside the search.

Points lie on curved sheets, 2,000 on each, in random order, with 32 features and one column of
payload. An index is built on disk, beside the search for its neighbour lists alone, and opened
again with its pages in memory: that checks every byte of its arrays, and all numbers in them. The
first query fits RAN to the graph that is kept; the first one after a change takes up what has
changed. Queries are by id, with ids and payload of ten results; above the kernel is what they take
beside compiled code. Batches of queries share two threads. Then a point is added, removed and
described anew, each on disk when it returns, in turns with queries by plain distance, which fit
nothing. Compiled code is loaded before. On disk there are also embeddings of 384 numbers: those of
package descriptions by MiniLM, and more drawn between them. Memory is that of a process of its own
which answers queries, files not counted. What a machine holds follows from these bytes: an index
whose files are in memory, too, and a fifth is left to others.
"""

import argparse
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from default_query import data_file, drawn_again
from kit.memory import own_mb
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds, take_turns

from rankfold import Index
from rankfold.datasets.synthetic import sheets
from rankfold.graph import stored_width
from rankfold.neighbors import DynamicEngine, choose_engine
from rankfold.solvers import RegionSolver

SIZES, LARGE = (10_000, 100_000), 1_000_000
N_NEIGHBORS, CHANGES, QUERIES = 5, 50, 50
SMOOTHNESS = {"defaults": ({}, 800, 800), "smoothness 1": ({"smoothness": 1.0}, 5_000, 5_000)}
"""What is asked: parameters, queries of a batch, and how many are to be answered in a second."""

EMBEDDINGS = 30_000
MACHINES, FEATURES, USED = (4, 16, 64, 256), (128, 384, 768, 1536), 0.8
"""Memory of machines in GB, numbers of embeddings, and the share of memory that is used."""


def points(n_points):
    X = sheets(n_points, n_sheets=n_points // 2000).X.astype(np.float32)
    return X[np.random.default_rng(0).permutation(n_points)]


def search(X):
    """Search the neighbour lists of an index and keep nothing."""
    engine = choose_engine(X, "euclidean")
    return DynamicEngine.build(X, "euclidean", stored_width(N_NEIGHBORS, len(X)), engine=engine)


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def timed_queries(index, parameters, queries):
    """Return the median milliseconds of a query, and of what it takes above compiled code."""
    advance, spent = RegionSolver._advance, [0.0]

    def timed(*arguments, **options):
        took, answer = seconds(lambda: advance(*arguments, **options))
        spent[0] += took
        return answer

    whole, beside = [], []
    RegionSolver._advance = timed
    try:
        for query in queries:
            spent[0] = 0.0
            took, _ = seconds(lambda query=query: index.query(query, **parameters))
            whole.append(1000 * took)
            beside.append(1000 * (took - spent[0]))
    finally:
        RegionSolver._advance = advance
    return float(np.median(whole)), float(np.median(beside))


def asked(index, n_points):
    """Measure single queries and batches."""
    rng, row = np.random.default_rng(1), {}
    for name, (parameters, size, _) in SMOOTHNESS.items():
        queries = rng.integers(n_points, size=size).tolist()
        index.query(1, **parameters)
        whole, beside = timed_queries(index, parameters, queries[: 4 * QUERIES])
        took, _ = seconds(
            lambda queries=queries, parameters=parameters: index.query_batch(
                queries, n_jobs=2, **parameters
            )
        )
        row |= {f"{name}: query ms": whole, f"{name}: above the kernel ms": beside,
                f"{name}: queries a second": len(queries) / took}  # fmt: skip
    return row


def on_disk(folder):
    """Yield what an index takes on disk beside its vectors, at 32 and at 384 features."""
    drawn = drawn_again(data_file("debian_minilm384.npz"), EMBEDDINGS, "cosine")
    for name, X, metric in (
        ("sheets", points(EMBEDDINGS), "euclidean"),
        ("embeddings", drawn, "cosine"),
    ):
        path, payload = folder / name, {"price": np.arange(len(X)) % 100}
        with Index.build(X, payload=payload, path=path, metric=metric) as index:
            facts = index.info()
        yield {
            "points": name,
            "features": X.shape[1],
            "n_neighbors": facts["n_neighbors"],
            "lists of": facts["list_width"],
            "bytes a point": size(path) / len(X),
            "disk / vectors": size(path) / X.nbytes,
        }


def memory_of_an_index(path):
    """Print the memory that asking an index takes, by ids, and by vectors as well."""
    for code in ("faiss", "rankfold.solvers.levels", "rankfold.neighbors.kernels"):
        import_module(code)
    before = own_mb()
    with Index.open(path) as index:
        for query in range(QUERIES):
            index.query(query)
        by_id = own_mb() - before
        index.query(vectors=np.ones((1, index.info()["features"])))
        print(json.dumps([by_id, own_mb() - before]))


def remembered(path, n_points, features):
    """Return the memory that asking an index takes."""
    child = [sys.executable, __file__, "--memory", str(path)]
    by_id, with_vectors = json.loads(subprocess.check_output(child, text=True))  # noqa: S603
    return {
        "points": n_points,
        "features": features,
        "asked by ids MB": by_id,
        "by vectors as well MB": with_vectors,
        "beside the vectors, bytes a point": 2**20 * with_vectors / n_points - 4 * features,
    }


def held(kept, memory):
    """Yield how many points a machine holds, by its memory and the numbers of an embedding."""
    files = kept[-1]["bytes a point"] - 4 * kept[-1]["features"]
    own = memory[-1]["beside the vectors, bytes a point"]
    for size in MACHINES:
        counts = [USED * 2**30 * size / (8 * features + files + own) for features in FEATURES]
        millions = [f"{float(f'{count:.2g}') / 1e6:g} million" for count in counts]
        yield {"memory GB": size} | dict(
            zip([f"{features} numbers" for features in FEATURES], millions, strict=True)
        )


def measure(n_points, folder, answered, memory):
    """Build, open, ask and change an index of some size."""
    X = points(n_points + 2000)
    X, new = X[:n_points], X[n_points:]
    path, payload = folder / str(n_points), {"price": np.arange(n_points) % 100}
    searched, _ = seconds(lambda: search(X))
    built, index = seconds(
        lambda: Index.build(X, payload=payload, path=path, n_neighbors=N_NEIGHBORS)
    )
    index.query(1)  # loads compiled code
    index.close()
    opened = min(reopened(path) for _ in range(3))
    memory.append(remembered(path, n_points, X.shape[1]))
    on_disk = size(path)
    with Index.open(path, write=True) as index:
        first, _ = seconds(lambda: index.query(1))
        warm = take_turns({"query": index.query}, range(2, 2 + QUERIES))["query"].median
        answered.append({"points": n_points, **asked(index, n_points)})
        index.add(new[-1])  # copies what is mapped from disk
        index.query(1)  # loads compiled code
        index.add(new[-2])
        after, _ = seconds(lambda: index.query(1))
        changes = {
            "plain query": lambda i: index.query(n_points // 2 + i, method="distance"),
            "add": lambda i: index.add(new[i]),
            "remove": lambda i: index.remove(n_points // 4 + i),
            "describe": lambda i: index.update(n_points // 2 + i, payload={"price": [i]}),
        }
        timed = take_turns(changes, range(CHANGES), warm=False)
        one = {name: 1000 * method.median for name, method in timed.items()}
        saved, _ = seconds(index.save)
    return {
        "points": n_points,
        "search s": searched,
        "build s": built,
        "build / search": built / searched,
        "open s": opened,
        "first query s": first,
        "query ms": 1000 * warm,
        "first query after a change s": after,
        **{f"one {name} ms": value for name, value in one.items()},
        "one add / one query": one["add"] / (1000 * warm),
        "one remove / one query": one["remove"] / (1000 * warm),
        "merge s": saved,
        "disk / vectors": on_disk / X.nbytes,
    }


def reopened(path):
    took, index = seconds(lambda: Index.open(path))
    index.close()
    return took


def judge(rows, answered, kept):
    last, quick = rows[-1], answered[-1]
    where = f"{last['points']:,} points"
    goals = [
        Goal(f"{where}: open", last["open s"], most=1, unit="s"),
        Goal(f"{where}: first query after open", last["first query s"], most=0.3, unit="s"),
        Goal(f"{where}: first query after a change", last["first query after a change s"],
             most=0.05, unit="s"),
        Goal(f"{where}: build / search", last["build / search"], most=1.5),
        Goal(f"{where}: one add, on disk", last["one add ms"], most=50, unit="ms"),
        Goal(f"{where}: one remove, on disk", last["one remove ms"], most=50, unit="ms"),
        Goal("embeddings: disk / vectors", kept[-1]["disk / vectors"], most=2),
    ]  # fmt: skip
    for name, (_, _, rate) in SMOOTHNESS.items():
        above, batch = f"{name}: above the kernel ms", f"{name}: queries a second"
        goals += [
            Goal(f"{where}, {name}: a query above its kernel", quick[above], most=0.4, unit="ms"),
            Goal(f"{where}, {name}: queries a second", quick[batch], least=rate),
        ]
    return goals


def main():
    parser = options(__doc__, large="a million points as well")
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        return memory_of_an_index(arguments.memory)
    sizes = (*SIZES, LARGE) if arguments.large else SIZES
    answered, memory = [], []
    with TemporaryDirectory() as folder:
        kept = table(on_disk(Path(folder)))
        rows = table(measure(n_points, Path(folder), answered, memory) for n_points in sizes)
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "faiss-cpu")]
    tables = {"Costs": rows, "Queries": table(answered), "On disk": kept}
    tables |= {"In memory": table(memory), "What a machine holds": table(held(kept, memory))}
    goals = judge(rows, answered, kept)
    publish("index", "the index", intro, tables, goals, docs=arguments.docs)
    return None


if __name__ == "__main__":
    main()
