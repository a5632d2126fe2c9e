"""What does fitting cost beside the search that it contains? RAN and FAISS, in one run.

Points lie on curved sheets, 2,000 on each; lists are 30 long. FAISS builds the same index and
searches every point with the same effort, in turns with our lists. What fit adds to its lists is
the graph, its weights, and the system of the region solver. Memory is the peak of a new process
that fits and does nothing else, above what it held with the points and all packages loaded.

With --large also one million points: minutes.
"""

import argparse
import json

from kit.graphs import Remembered
from kit.memory import forget_peak, of_a_process, peak_mb, resident_mb
from kit.pictures import GREY, INK, RIGHT, WRONG, plot, pretty
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds
from neighbor_lists import WIDTH, points, side_by_side

from rankfold import RAN, FaissEngine
from rankfold.neighbors.faiss_indexes import INDEXES

SIZES, LARGE = (100_000,), 1_000_000
NEIGHBORS = 14


def fit(X):
    return RAN(n_neighbors=NEIGHBORS, solver="region").fit(X)


def memory_of_a_process(n_points):
    """Print what fit takes at the most, beside the points, and how long it took."""
    # More points than the exact engine takes, so that FAISS and all compiled code are there.
    fit(FaissEngine(points(25_000))).rank(0, top=100)
    X = points(n_points)
    forget_peak()
    before = resident_mb()
    took, ran = seconds(lambda: fit(X))
    after = resident_mb()
    ran.rank(0, top=100)
    peak = max(0.0, peak_mb() - before)
    print(json.dumps({"peak": peak, "kept": after - before, "fit": took}))


class Given:
    """An engine whose lists are known, so that fitting it does all but the search."""

    rows, nearest = Remembered.rows, Remembered.nearest

    def __init__(self, engine, lists):
        self.engine, self.lists, self.metric = engine, lists, engine.metric
        self.n_points, self.n_features = engine.n_points, engine.n_features
        self.n_alive, self.alive = engine.n_alive, engine.alive
        self.search, self.sq_distances, self.pairs = (
            engine.search,
            engine.sq_distances,
            engine.pairs,
        )


def measure(n_points):
    """Time the parts of a fit and of FAISS's own search, in turns."""
    X = points(n_points)
    fit(FaissEngine(X[:25_000]))
    ours, engine = seconds(lambda: FaissEngine(X))
    theirs, _ = seconds(lambda: INDEXES[engine.index_](X, 0))
    searched, listed, lists = side_by_side(engine, X)
    rest, _ = seconds(lambda: fit(Given(engine, lists)))
    whole, used = ours + listed + rest, of_a_process(__file__, n_points)
    return {
        "points": n_points,
        "index": engine.index_,
        "FAISS builds s": theirs,
        "FAISS searches s": searched,
        "engine s": ours,
        "lists s": listed,
        "graph and system s": rest,
        "fit s": whole,
        "fit / FAISS builds and searches": whole / (theirs + searched),
        "fit / FAISS searches": whole / searched,
        "fit in a process of its own s": used["fit"],
        "points MB": X.nbytes / 2**20,
        "peak MB beside points": used["peak"],
        "kept MB": used["kept"],
    }


def judge(rows):
    last = rows[-1]
    where = f"{last['points']:,} points"
    key = "fit / FAISS builds and searches"
    goals = [
        Goal(f"{where}: {key}", last[key], most=1.3),
        Goal(f"{where}: fit / FAISS searches, its index not counted", last["fit / FAISS searches"],
             most=1.3),
    ]  # fmt: skip
    peak = last["peak MB beside points"] / 1024
    if last["points"] == LARGE:
        goals.append(Goal(f"{where}: peak memory beside the points", peak, most=0.6, unit="GB"))
    return goals


def picture(rows):
    last = rows[-1]
    figure, (axes,) = plot(
        "Fitting, beside FAISS alone",
        f"{last['points']:,} points of 32 features, lists of {WIDTH}, k = {NEIGHBORS}; in turns "
        "with FAISS",
        size=(9.5, 3.9),
    )
    bars = {
        "FAISS alone": (("builds", "FAISS builds s", GREY), ("searches", "FAISS searches s", INK)),
        "fit": (("engine", "engine s", "#56b4e9"), ("lists", "lists s", RIGHT),
                ("graph", "graph and system s", WRONG)),
    }  # fmt: skip
    longest = max(last["fit s"], last["FAISS builds s"] + last["FAISS searches s"])
    for place, parts in enumerate(reversed(bars.values())):
        left = 0.0
        for name, key, color in parts:
            axes.barh(place, last[key], left=left, color=color, height=0.5)
            label = f"{name}\n{pretty(last[key])}"
            wide = last[key] > 0.09 * longest
            axes.text(left + last[key] / 2 if wide else left + last[key] + 0.01 * longest, place,
                      label, color="white" if wide else color, fontsize=9, va="center",
                      ha="center" if wide else "left")  # fmt: skip
            left += last[key]
    axes.set_yticks(range(len(bars)), list(reversed(bars)))
    axes.set(xlabel="seconds", xlim=(0, 1.15 * longest))
    axes.grid(visible=False, axis="y")
    figure.subplots_adjust(left=0.12, top=0.74, bottom=0.16)
    return figure


def main():
    parser = options(__doc__, large="one million points as well")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        return memory_of_a_process(arguments.memory)
    rows = table(measure(n) for n in ((*SIZES, LARGE) if arguments.large else SIZES))
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "faiss-cpu")]
    alt = "Seconds of the parts of a fit, beside those of FAISS alone."
    publish("build", "building", intro, {"Fit": rows}, judge(rows), picture(rows), alt,
            arguments.docs)  # fmt: skip
    return None


if __name__ == "__main__":
    main()
