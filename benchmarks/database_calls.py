"""What do the calls to an index in a database take? Filling it, rows, searches and changes.

The database is a file of Milvus Lite in a temporary folder, or any Milvus whose address is given:
``python benchmarks/database_calls.py milvus://host:19530``. An index of the name
"rankfold benchmark" is made there, and dropped in the end. Every figure is the least of several.
"""

import sys
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from kit.report import table

from rankfold.databases.contract import NewPoints, TableChange
from rankfold.databases.milvus import Milvus
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors import ExactEngine, Rows
from rankfold.storage.columns import Column

NAME, N_POINTS, WIDTH, RUNS = "rankfold benchmark", 10_000, 44, 5
COLUMNS = (Column("price", "integer", 0),)
SETTINGS = {"precision": "double", "stored_width": WIDTH, "search": "exact"}


def rows_at(rows, slots):
    """Return the rows of some points."""
    parts = [rows.sources[rows.starts[s] : rows.starts[s + 1]] for s in slots]
    starts = np.cumsum([0, *map(len, parts)])
    sources = np.concatenate([rows.sources[:0], *parts])
    return Rows(slots, rows.lists.take(slots), starts, sources)


def points_at(X, slots, ids):
    """Return points with a price."""
    return NewPoints(slots, ids, X[slots % len(X)], {"price": (slots % 100).tolist()}, None)


def milliseconds(ask, runs=RUNS):
    """Return the least that something took."""
    times = []
    for _ in range(runs):
        began = perf_counter()
        ask()
        times.append(1000 * (perf_counter() - began))
    return min(times)


def fill(database, X, rows):
    """Make the index; return points per second."""
    began = perf_counter()
    settings = {**SETTINGS, "n_features": X.shape[1]}
    with database.create(NAME, settings, COLUMNS, replace=True) as filling:
        for slots in np.array_split(np.arange(len(X)), max(1, len(X) // 5000)):
            filling.add(points_at(X, slots, slots.tolist()), rows_at(rows, slots))
        filling.finish()
    return len(X) / (perf_counter() - began)


def reads(index, X):
    """Yield what calls of a session take."""
    draw = np.random.default_rng(0)
    with index.reading() as session:
        yield "begin a session", milliseconds(lambda: index.reading().__enter__())
        for count in (1, 50, 500, 5000):
            slots = draw.choice(len(X), count, replace=False)
            yield f"rows of {count}", milliseconds(lambda slots=slots: session.rows(slots))
        for count in (1, 50):
            near = session.search(X[:1], count)[0][0]
            ask = lambda near=near: session.rows(near, around=True)  # noqa: E731
            yield f"rows around {count} ({len(ask())})", milliseconds(ask)
        yield "search, k = 60", milliseconds(lambda: session.search(X[:1], 60))
        yield "search for 10 at once, k = 60", milliseconds(lambda: session.search(X[:10], 60))
        where = "price < 50"
        yield "search, half matches", milliseconds(lambda: session.search(X[:1], 60, where))
        yield "ids of 3", milliseconds(lambda: session.find([1, 2, 3]))
        yield (
            "ids and payload of 100",
            milliseconds(lambda: session.points(np.arange(100), COLUMNS)),
        )
        yield "all that matches", milliseconds(lambda: session.matching(where), 1)


def commit(index, X, rows, n_rows):
    """Add a point and rewrite some rows."""
    with index.writing() as writing:
        slot = writing.head.n_points
        changed = rows_at(rows, np.arange(n_rows))
        new = points_at(X, np.array([slot]), [slot])
        writing.commit(TableChange(np.empty(0, np.int64), new, changed, COLUMNS))


def main(address):
    X = sheets(N_POINTS).X
    rows = Rows.of(np.arange(N_POINTS), ExactEngine(X).rows(np.arange(N_POINTS), WIDTH))
    database = Milvus(address)
    print(f"{N_POINTS:,} points of {X.shape[1]} values, lists of {WIDTH}, in {database.place}")
    print(f"filling: {fill(database, X, rows):,.0f} points per second", flush=True)
    index = database.open(NAME)
    timed = list(reads(index, X))
    for n_rows in (50, 500):
        took = milliseconds(lambda n_rows=n_rows: commit(index, X, rows, n_rows))
        timed.append((f"commit of a point and {n_rows} rows", took))
    index.close()
    database.drop(NAME)
    table({"call": call, "ms": took} for call, took in timed)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(*(sys.argv[1:] or [f"milvus://{folder}/benchmark.db"]))
