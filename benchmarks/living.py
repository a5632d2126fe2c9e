"""What does a changing database cost? Points added and removed, beside search and building anew.

Points lie on curved sheets, 2,000 on each, in random order, with 32 features; lists of 42 are
served by FAISS's inverted file. One point is added, removed and replaced, in turns with one search
of the same engine for as many neighbours. Then 1,000 points are added and removed at once, beside
building all lists anew. Recall is that of 500 random points that are left, after all changes,
against exact search. All run on one thread.
"""

import numpy as np
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds, take_turns

from rankfold import ExactEngine, FaissEngine
from rankfold.datasets.synthetic import sheets
from rankfold.neighbors import DynamicEngine

SIZES = (20_000, 200_000)
WIDTH, SINGLE, BATCH, SAMPLE = 42, 100, 1000, 500


def points(n_points):
    X = sheets(n_points, n_sheets=n_points // 2000).X.astype(np.float32)
    return X[np.random.default_rng(0).permutation(n_points)]


def build(X):
    engine = FaissEngine(X, index="ivf", n_threads=1)
    return DynamicEngine.build(X, "euclidean", WIDTH, engine=engine)


def recall(engine):
    """Return the share of true neighbours in the lists of random points that are left."""
    alive = np.flatnonzero(engine.alive)
    sample = np.random.default_rng(1).choice(len(alive), SAMPLE, replace=False)
    true = ExactEngine(engine.points[alive]).rows(sample, WIDTH).sq_distances[:, -1:]
    found = engine.rows(alive[sample], WIDTH).sq_distances
    return float((found <= true * (1 + 1e-6)).mean())


def measure(n_points):
    """Time single changes in turns with searches, then many at once beside building anew."""
    X = points(n_points + BATCH + 2 * SINGLE + 2000)
    new = X[n_points:]
    anew, engine = seconds(lambda: build(X[:n_points]))
    engine.update([0], new[-1:])  # copies what belongs to somebody else
    methods = {
        "search": lambda i: engine.search(new[i : i + 1], WIDTH),
        "add": lambda i: engine.add(new[i : i + 1]),
        "remove": lambda i: engine.remove([n_points // 2 + i]),
        "replace": lambda i: engine.update([1 + i], new[SINGLE + i : SINGLE + i + 1]),
    }
    timed = take_turns(methods, range(SINGLE), warm=False)
    one = {name: 1000 * method.median for name, method in timed.items()}
    batch = new[2 * SINGLE : 2 * SINGLE + BATCH]
    added, _ = seconds(lambda: engine.add(batch))
    removed, _ = seconds(lambda: engine.remove(np.arange(SINGLE + 1, SINGLE + 1 + BATCH)))
    saved, state = seconds(engine.state)
    restored, _ = seconds(lambda: DynamicEngine.restore(*state))
    return {
        "points": n_points,
        **{f"one {name} ms": value for name, value in one.items()},
        "one add / one search": one["add"] / one["search"],
        "one remove / one search": one["remove"] / one["search"],
        "build anew s": anew,
        f"{BATCH:,} added s": added,
        f"{BATCH:,} removed s": removed,
        f"{BATCH:,} added / build anew": added / anew,
        f"{BATCH:,} removed / build anew": removed / anew,
        "state s": saved,
        "restore s": restored,
        "recall": recall(engine),
    }


def judge(rows):
    first, last = rows[0], rows[-1]
    where = f"{last['points']:,} points"
    growth = last["one add ms"] / first["one add ms"]
    key = f"{BATCH:,} added / build anew"
    return [
        Goal(f"{where}: one add", last["one add ms"], most=5, unit="ms"),
        Goal(f"{where}: one remove", last["one remove ms"], most=5, unit="ms"),
        Goal(f"one add, {where} / {first['points']:,} points", growth, most=2),
        Goal(f"{where}: {key}", last[key], most=0.2),
        Goal(f"{where}: recall after all changes", last["recall"], least=0.99),
    ]


def main():
    arguments = options(__doc__).parse_args()
    rows = table(measure(n_points) for n_points in SIZES)
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "faiss-cpu")]
    publish("living", "changing", intro, {"Changes": rows}, judge(rows), docs=arguments.docs)


if __name__ == "__main__":
    main()
