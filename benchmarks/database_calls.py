"""What do the calls to an index in a database take? Filling it, rows, searches and changes.

Points lie on curved sheets, 2,000 on each, with 32 features. Their lists are copied in, then a
session reads rows around points that are near each other, as a query does; vectors are searched
for, by a scan of everything or by HNSW; and a point is added whose arrival rewrites rows, durable
when it returns. PostgreSQL and Milvus Lite run on this machine with their default settings.
Figures are medians of several calls, in milliseconds.

An address names another database: ``python benchmarks/database_calls.py milvus://host:19530``. An
index of the name "rankfold benchmark" is made there, and dropped in the end.
"""

from tempfile import TemporaryDirectory

import numpy as np
from kit.databases import DATABASES
from kit.report import options, publish, table, versions
from kit.timing import seconds

from rankfold.databases.contract import NewPoints, TableChange
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors import ExactEngine, Rows
from rankfold.storage.columns import Column
from rankfold.types import Neighbors

NAME, N_POINTS, LARGE, WIDTH, RUNS, BLOCK = "rankfold benchmark", 10_000, 100_000, 39, 7, 5000
ASKED, K, WHERE = (1, 50, 500, 5000), 34, "price < 50"
COLUMNS = (Column("price", "integer", 0),)


def rows_at(rows, slots):
    """Return the rows of some points."""
    parts = [rows.sources[rows.starts[s] : rows.starts[s + 1]] for s in slots]
    starts = np.cumsum([0, *map(len, parts)])
    sources = np.concatenate([rows.sources[:0], *parts])
    return Rows(slots, rows.lists.take(slots), starts, sources)


def points_at(X, slots):
    """Return points with a price."""
    payload = {"price": (slots % 100).tolist()}
    return NewPoints(slots, slots.tolist(), X[slots % len(X)], payload, None)


def milliseconds(ask, runs=RUNS):
    return 1000 * float(np.median([seconds(ask)[0] for _ in range(runs)]))


def fill(database, X, rows, search):
    """Make the index, and yield what that took."""
    settings = {"metric": "euclidean", "n_features": X.shape[1], "n_neighbors": 5,
                "stored_width": WIDTH, "precision": "single", "search": search}  # fmt: skip
    with database.create(NAME, settings, COLUMNS, replace=True) as filling:

        def copy():
            for slots in np.array_split(np.arange(len(X)), max(1, len(X) // BLOCK)):
                filling.add(points_at(X, slots), rows_at(rows, slots))

        yield "fill, 1,000 points", 1000 * seconds(copy)[0] / (len(X) / 1000)
        yield f"finish, {search}", 1000 * seconds(filling.finish)[0]


def reads(opened, X):
    """Yield what calls of a session take."""
    centre = X[len(X) // 2]
    order = np.argsort(((X - centre) ** 2).sum(axis=1))
    with opened.reading() as session:
        for n in ASKED:
            near = np.sort(order[:n])
            yield f"rows of {n}", milliseconds(lambda near=near: session.rows(near))
            ask = lambda near=near: session.rows(near, around=True)  # noqa: E731
            yield f"rows around {n}, which are {len(ask())}", milliseconds(ask)
        yield (
            f"search, half matches, k = {K}",
            milliseconds(lambda: session.search(X[:1], K, WHERE)),
        )
        yield "ids of 3", milliseconds(lambda: session.find([1, 2, 3]))
        some = np.arange(100)
        yield "ids and payload of 100", milliseconds(lambda: session.points(some, COLUMNS))
        yield "all that matches", milliseconds(lambda: session.matching(WHERE), 1)
    yield "begin and end a session", milliseconds(lambda: whole_session(opened))


def whole_session(opened):
    with opened.reading():
        pass


def searches(opened, X, search):
    """Yield what it takes to search for several vectors at once."""
    with opened.reading() as session:
        for n in (1, 10, 100):
            ask = lambda n=n: session.search(X[:n] + 0.01, K)  # noqa: E731
            yield f"search for {n}, {search}, k = {K}", milliseconds(ask)


def commit(opened, X, rows, n_rows):
    """Add a point and rewrite some rows."""
    with opened.writing() as writing:
        new = points_at(X, np.array([writing.head.n_points]))
        changed = rows_at(rows, np.arange(n_rows))
        writing.commit(TableChange(np.empty(0, np.int64), new, changed, COLUMNS))


def measure(here, X, rows):
    """Return what each call takes, by its name."""
    timed = {}
    for search in ("exact", "hnsw"):
        timed.update(fill(here.database, X, rows, search))
        opened = here.database.open(NAME)
        timed.update(searches(opened, X, search))
        if search == "exact":
            timed.update(reads(opened, X))
            for n_rows in (50, 500):
                took = milliseconds(lambda n=n_rows, to=opened: commit(to, X, rows, n))
                timed[f"commit of a point and {n_rows} rows"] = took
        opened.close()
    here.database.drop(NAME)
    here.close()
    return timed


def chosen(address, folder):
    """Return the database at an address, or all that can run here."""
    if address is None:
        return [kind(folder) for kind in DATABASES.values()]
    return [DATABASES[address.partition(":")[0]](folder, address)]


def main():
    parser = options(__doc__, large="100,000 points")
    parser.add_argument("address", nargs="?", help="a database to use instead of those here")
    arguments = parser.parse_args()
    n_points = LARGE if arguments.large else N_POINTS
    X = sheets(n_points, n_sheets=n_points // 2000).X
    found = ExactEngine(X).rows(np.arange(n_points), WIDTH)
    lists = Neighbors(found.indices.astype(np.int32), found.sq_distances.astype(np.float32))
    rows = Rows.of(np.arange(n_points), lists)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        measured = {here.name: measure(here, X, rows) for here in chosen(arguments.address, folder)}
    calls = dict.fromkeys(call for timed in measured.values() for call in timed)
    listed = table(
        {"call": call, **{name: timed.get(call) for name, timed in measured.items()}}
        for call in calls
    )
    packages = versions("rankfold", "psycopg", "pymilvus", "milvus-lite")
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", f"{n_points:,} points.", "", packages]
    publish("database_calls", "calls of a database", intro, {"Calls": listed}, [],
            docs=arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
