"""Time that PostgreSQL takes to serve the rows, searches and changes of an index.

Points lie on curved sheets, 2,000 on each, in random order, with 32 features. Their lists are
copied in, then rows are read around points that are near each other, as a query does; vectors are
searched for, by a scan of everything or by HNSW; and a point is added whose arrival rewrites 100
rows, on disk when it returns. The server runs on the same machine, with its own default settings.
"""

import sys
from itertools import chain
from pathlib import Path

import numpy as np
from kit.report import options, publish, table, versions
from kit.timing import seconds, take_turns

from rankfold.databases.contract import NewPoints, TableChange
from rankfold.databases.postgresql import PostgreSQL
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors import Rows, choose_engine
from rankfold.types import Neighbors

SIZES, LARGE = (20_000,), 200_000
WIDTHS = (39, 78)
"""Stored lengths of lists that are to be had up to 26 and 52."""

ASKED = (1, 50, 500, 5000)
BLOCK, TIMES, REWRITTEN, K = 10_000, 20, 100, 34


def address_of(given):
    if given:
        return given
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from databases.servers import PostgreSQLServer

    return PostgreSQLServer(durable=True).address()


def points(n_points):
    X = sheets(n_points, n_sheets=n_points // 2000).X.astype(np.float32)
    return X[np.random.default_rng(0).permutation(n_points)]


def fill(database, X, lists, search):
    """Copy everything in; return the seconds for points and rows, and for the rest."""
    n_points, width = lists.indices.shape
    settings = {"metric": "euclidean", "n_features": X.shape[1], "n_neighbors": 5,
                "stored_width": width, "precision": "single", "search": search}  # fmt: skip
    rows = Rows.of(np.arange(n_points), lists)
    with database.create("measured", settings, (), replace=True) as filling:

        def copy():
            for start in range(0, n_points, BLOCK):
                part = np.arange(start, min(start + BLOCK, n_points))
                starts = rows.starts[start : part[-1] + 2]
                sources = rows.sources[starts[0] : starts[-1]]
                block = Rows(part, lists.take(part), starts - starts[0], sources)
                filling.add(NewPoints(part, part.tolist(), X[part], {}, None), block)

        copied, _ = seconds(copy)
        finished, _ = seconds(filling.finish)
    return copied, finished


def near(X, n):
    """Return points that are near each other, for several places."""
    rng = np.random.default_rng(1)
    centers = X[rng.integers(0, len(X), TIMES + 1)]
    return [np.argsort(((X - center) ** 2).sum(axis=1))[:n] for center in centers]


def time_rows(opened, X, width):
    for n in ASKED:
        chosen, spent = near(X, n), []

        def ask(turn, chosen=chosen, spent=spent):
            with opened.reading() as session:
                took, rows = seconds(lambda: session.rows(np.sort(chosen[turn]), around=True))
            spent.append(took)
            return rows

        timed = take_turns({"session": ask}, range(TIMES))["session"]
        answers = list(timed.answers.values())
        yield {
            "points": len(X),
            "stored width": width,
            "slots asked for": n,
            "rows": float(np.mean([len(rows) for rows in answers])),
            "kB": float(np.mean([sent(rows) for rows in answers])) / 1000,
            "rows ms": 1000 * float(np.median(spent)),
            "fastest ms": 1000 * min(spent),
            "whole session ms": 1000 * timed.median,
        }


def sent(rows):
    """Return the bytes of rows on their way: an element of an array is preceded by its length."""
    lists = rows.lists.indices.nbytes + rows.lists.sq_distances.nbytes
    return lists + 8 * len(rows.sources) + (4 + 4 + 20) * len(rows)


def time_searches(opened, X, search):
    queries = points(len(X) + 2000)[len(X) :]
    for n in (1, 10, 100):

        def ask(turn, n=n):
            with opened.reading() as session:
                return session.search(queries[turn * n : (turn + 1) * n], K)

        timed = take_turns({"search": ask}, range(5 if n == 100 else TIMES))["search"]
        yield {"points": len(X), "search": search, "vectors": n, "k": K,
               "ms": 1000 * timed.median}  # fmt: skip


def time_commit(opened, X, lists):
    """Add a point and rewrite the rows of some others with it."""
    rewritten = np.arange(REWRITTEN)
    rows = Rows(rewritten, lists.take(rewritten), np.zeros(REWRITTEN + 1, int), np.arange(0))

    def add(turn):
        with opened.writing() as writing:
            slot = np.array([writing.head.n_points])
            new = NewPoints(slot, slot.tolist(), X[turn : turn + 1] + 1, {}, None)
            writing.commit(TableChange(np.arange(0), new, rows, ()))

    return 1000 * take_turns({"add": add}, range(TIMES))["add"].median


def measure(database, n_points, width):
    X = points(n_points)
    found = choose_engine(X, "euclidean").rows(np.arange(n_points), width)
    lists = Neighbors(found.indices.astype(np.int32), found.sq_distances.astype(np.float32))
    reading, searching, writing = [], [], []
    for search in ("exact", "hnsw") if width == WIDTHS[0] else ("exact",):
        copied, finished = fill(database, X, lists, search)
        opened = database.open("measured")
        if search == "exact":
            reading += table(time_rows(opened, X, width))
        searching += table(time_searches(opened, X, search)) if width == WIDTHS[0] else []
        writing += table([{"points": n_points, "stored width": width, "search": search,
                           "points/s copied": n_points / copied, "then s": finished,
                           "add one ms": time_commit(opened, X, lists)}])  # fmt: skip
        opened.close()
    database.drop("measured")
    return reading, searching, writing


def main():
    parser = options(__doc__, large="200,000 points as well")
    parser.add_argument("--address", help="a server to use instead of one that is started")
    arguments = parser.parse_args()
    database = PostgreSQL(address_of(arguments.address))
    sizes = (*SIZES, LARGE) if arguments.large else SIZES
    measured = [measure(database, n_points, width) for n_points in sizes for width in WIDTHS]
    names = ("Rows around points", "Searches", "Filling and changing")
    parts = zip(*measured, strict=True)
    tables = {name: list(chain(*rows)) for name, rows in zip(names, parts, strict=True)}
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "psycopg")]
    publish("postgresql", "an index in PostgreSQL", intro, tables, [], docs=arguments.docs)


if __name__ == "__main__":
    main()
