"""What does keeping an index cost? Building, opening, asking and changing it, beside the search.

Points lie on curved sheets, 2,000 on each, in random order, with 32 features and one column of
payload. An index is built on disk, beside the search for its neighbour lists alone, and opened
again with its pages in memory. The first query fits RAN to the graph; the first one after a change
takes up what has changed. Then a point is added, removed and described anew, each on disk when it
returns, in turns with queries by plain distance, which fit nothing. Compiled code is loaded before.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds, take_turns

from rankfold import Index
from rankfold.datasets.synthetic import sheets
from rankfold.graph import stored_width
from rankfold.neighbors import DynamicEngine, choose_engine

SIZES, LARGE = (10_000, 100_000), 1_000_000
N_NEIGHBORS, CHANGES, QUERIES = 5, 50, 50


def points(n_points):
    X = sheets(n_points, n_sheets=n_points // 2000).X.astype(np.float32)
    return X[np.random.default_rng(0).permutation(n_points)]


def search(X):
    """Search the neighbour lists of an index and keep nothing."""
    engine = choose_engine(X, "euclidean")
    return DynamicEngine.build(X, "euclidean", stored_width(N_NEIGHBORS, len(X)), engine=engine)


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure(n_points, folder):
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
    on_disk = size(path)
    with Index.open(path, write=True) as index:
        first, _ = seconds(lambda: index.query(1))
        warm = take_turns({"query": index.query}, range(2, 2 + QUERIES))["query"].median
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


def judge(rows):
    last = rows[-1]
    where = f"{last['points']:,} points"
    return [
        Goal(f"{where}: open", last["open s"], most=1, unit="s"),
        Goal(f"{where}: build / search", last["build / search"], most=1.5),
        Goal(f"{where}: one add, on disk", last["one add ms"], most=50, unit="ms"),
        Goal(f"{where}: one remove, on disk", last["one remove ms"], most=50, unit="ms"),
    ]


def main():
    arguments = options(__doc__, large="a million points as well").parse_args()
    sizes = (*SIZES, LARGE) if arguments.large else SIZES
    with TemporaryDirectory() as folder:
        rows = table(measure(n_points, Path(folder)) for n_points in sizes)
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "faiss-cpu")]
    publish("index", "the index", intro, {"Costs": rows}, judge(rows), docs=arguments.docs)


if __name__ == "__main__":
    main()
