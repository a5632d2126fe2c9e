"""What one graph for every query costs on MNIST, and what is left of it when points change.

Building is timed on all cores: exact search of all lists that learning chooses from, by the
exact engine and by FAISS's flat index, and the fits of `RAN()` and `RAN(adapt="collective")`
from the vectors, each with the search that it does by itself. Learning alone is a fit on lists
that are there. Memory is that of a process of its own, at the most, during that fit. Queries are
asked in turns on the plain graph, on the one that is learned, and on one of three rounds that were
made without the guard, all of the same exact lists: where the guard keeps no round, the second is
the first. Precision is that of the best 100, in per cent. Changes: the graph is learned on
90 % of the points, the rest is added, then 5 % of all are removed at random; old and new points
that are left are asked on the plain graph, on the learned one as it was kept, and on one that is
learned anew.

Needs the folder RANKFOLD_DATA. ``--small`` is for trying it out.
"""

import json
import os
from dataclasses import replace
from math import inf

import numpy as np
from kit.graphs import Remembered, draw
from kit.memory import forget_peak, of_a_process, peak_mb, resident_mb
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds, take_turns

from rankfold import RAN, ExactEngine, FaissEngine, datasets
from rankfold.graph.collective import CANDIDATES, Attempt, learning_of
from rankfold.neighbors import DynamicEngine

SIZES = {"full": (70_000, 20_000), "small": (6_000, 3_000)}
SMOOTHNESS, N_QUERIES, TOP = (30.0, 1.0), 200, 100
LEARNED_SHARE, REMOVED_SHARE = 0.9, 0.05
PLAIN, LEARNED, FORCED = "plain graph", "learned graph", "without the guard"


def points(n_points):
    """Return some of MNIST, in random order, always the same."""
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    mnist = datasets.load("mnist")
    rows = np.random.default_rng(0).permutation(len(mnist.labels))[:n_points]
    return np.ascontiguousarray(mnist.X[rows]), mnist.labels[rows]


def warm(X):
    """Let compiled code be read, so that nobody is timed with it."""
    for adapt in ("query", "collective"):
        RAN(adapt=adapt, solver="region").fit(X[:1000]).rank(0, top=5)


def build(X, engine, exact):
    """Yield how long every way of building takes."""
    everyone = np.arange(len(X))
    ways = {
        f"FAISS flat, {CANDIDATES} neighbours": lambda: FaissEngine(X, index="flat").rows(
            everyone, CANDIDATES
        ),
        "RAN().fit": lambda: RAN().fit(X),
        'RAN(adapt="collective").fit': lambda: RAN(adapt="collective").fit(X),
        "learning alone, on exact lists": lambda: RAN(adapt="collective").fit(engine),
    }
    yield {"what": f"exact engine, {CANDIDATES} neighbours", "s": exact,
           "/ exact engine": 1.0, "rounds kept": None, "k'": None}  # fmt: skip
    for name, way in ways.items():
        took, made = seconds(way)
        learned = getattr(made, "collective_", None)
        yield {
            "what": name,
            "s": took,
            "/ exact engine": took / exact,
            "rounds kept": learned and learned.n_rounds,
            "k'": learned and learned.n_neighbors,
        }


def memory(n_points):
    """Print what a process that does nothing else holds while it learns."""
    X, _ = points(n_points)
    warm(X)
    forget_peak()
    before = resident_mb()
    RAN(adapt="collective").fit(X)
    more = peak_mb() - before
    found = {"vectors MB": X.nbytes / 2**20, "held before MB": before, "more at the peak MB": more}
    print(json.dumps(found))


def precision(answers, labels):
    """Return the mean precision of rankings by query, in per cent."""
    return float(100 * np.mean([
        (labels[ranking.indices] == labels[query]).mean() for query, ranking in answers.items()
    ]))  # fmt: skip


def asked(rankers, queries):
    """Let rankers answer the same queries in turns."""
    methods = {
        name: lambda query, ranker=ranker: ranker.rank(query, top=TOP)
        for name, ranker in rankers.items()
    }
    return take_turns(methods, queries)


def without_guard(engine, plain):
    """Return a ranker on the graph of three rounds, however little queries reach on it."""
    learning = learning_of(engine, plain.n_neighbors_, plain.smoothness, candidates=engine.lists)
    living = DynamicEngine.of_lists(engine.engine, engine.lists, CANDIDATES, 1.0)
    living.learned = replace(learning, attempts=(Attempt(1, 3, -inf),)).run()
    return RAN(plain.n_neighbors_, plain.smoothness, adapt="collective").fit(living)


def query(engine, labels):
    """Yield what queries take on all graphs, for every smoothness."""
    queries = draw(engine.n_points, N_QUERIES)
    for smoothness in SMOOTHNESS:
        plain = RAN(smoothness=smoothness).fit(engine)
        learned = RAN(smoothness=smoothness, adapt="collective").fit(engine)
        rankers = {PLAIN: plain, LEARNED: learned, FORCED: without_guard(engine, plain)}
        timed = asked(rankers, queries)
        medians = {name: 1e3 * found.median for name, found in timed.items()}
        yield {
            "smoothness": smoothness,
            "rounds kept": learned.collective_.n_rounds,
            **{f"{name} ms": median for name, median in medians.items()},
            "learned / plain": medians[LEARNED] / medians[PLAIN],
            "without the guard / plain": medians[FORCED] / medians[PLAIN],
            **{
                f"precision at {TOP}, {name}": precision(found.answers, labels)
                for name, found in timed.items()
            },
        }


def change(X, labels):
    """Yield what is left of a learned graph after points came and went, for old and new ones."""
    n_learned, rng = int(LEARNED_SHARE * len(X)), np.random.default_rng(1)
    engine = DynamicEngine.build(
        X[:n_learned], "euclidean", CANDIDATES, engine=ExactEngine(X[:n_learned])
    )
    first = RAN(adapt="collective").fit(engine)
    k, engine.learned = first.collective_.n_plain, first.collective_
    adding, _ = seconds(lambda: engine.add(X[n_learned:]))
    gone = rng.permutation(len(X))[: int(REMOVED_SHARE * len(X))]
    removing, _ = seconds(lambda: engine.remove(np.sort(gone)))
    following, kept = seconds(lambda: RAN(k, adapt="collective").fit(engine))
    engine.learned = None
    again, anew = seconds(lambda: RAN(k, adapt="collective").fit(engine))
    rankers = {PLAIN: RAN(k).fit(engine), "learned graph, kept": kept, "learned graph, anew": anew}
    alive = np.flatnonzero(engine.alive)
    for name, among in {"old": alive[alive < n_learned], "new": alive[alive >= n_learned]}.items():
        chosen = rng.choice(among, min(N_QUERIES, len(among)), replace=False).tolist()
        timed = asked(rankers, chosen)
        yield {
            "queries": f"{len(chosen)} {name} points",
            **{f"precision at {TOP}, {way}": precision(found.answers, labels)
               for way, found in timed.items()},
            **{f"{way} ms": 1e3 * found.median for way, found in timed.items()},
            "rounds kept, at first": first.collective_.n_rounds,
            "rounds kept, anew": anew.collective_.n_rounds,
            "added s": adding,
            "removed s": removing,
            "taken up s": following,
            "learned anew s": again,
        }  # fmt: skip


def judge(built, queried):
    """Return the goals: of building, and of queries at every smoothness."""
    took = {row["what"]: row["/ exact engine"] for row in built}
    alone = took["learning alone, on exact lists"]
    goals = [
        Goal("exact search and learning / exact search", 1 + alone, most=3),
        Goal(
            "learned build from vectors / exact search", took['RAN(adapt="collective").fit'], most=3
        ),
    ]
    for row in queried:
        where = f"smoothness {row['smoothness']:g}"
        kept = f"{row['rounds kept']} rounds kept"
        forced = row["without the guard / plain"]
        goals += [
            Goal(f"a query, learned / plain, {where}, {kept}", row["learned / plain"], most=1.2),
            Goal(f"a query, without the guard / plain, {where}", forced, most=1.2),
        ]
    return goals


def main():
    parser = options(__doc__)
    parser.add_argument("--small", action="store_true", help="a few thousand points")
    parser.add_argument("--memory", type=int, help="only measure memory, of so many points")
    arguments = parser.parse_args()
    if arguments.memory:
        memory(arguments.memory)
        return
    n_points, n_changing = SIZES["small" if arguments.small else "full"]
    X, labels = points(n_points)
    warm(X)
    exact, engine = seconds(lambda: Remembered(ExactEngine(X), CANDIDATES))
    built = table(build(X, engine, exact))
    queried = table(query(engine, labels))
    changed = table(change(X[:n_changing], labels[:n_changing]))
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"{n_points:,} points, {N_QUERIES} queries; changes on {n_changing:,}. "
        + versions("rankfold", "faiss-cpu", "numba"),
    ]
    held = table([{"points": n_points, **of_a_process(__file__, n_points)}])
    tables = {"Building": built, "Memory": held, "Queries": queried, "Changes": changed}
    publish("collective_scale", f"one graph for {n_points:,} points", intro, tables,
            judge(built, queried), docs=arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
