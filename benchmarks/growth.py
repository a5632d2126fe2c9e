"""Does a query cost more when the database grows? RAN on sheets of 10,000 points each.

The number of sheets grows with the number of points, 10,000 on each, so that the density stays
as it is; all sizes take turns. A query hardly leaves its sheet, which smoothness 30 fills, so that
only smaller values show how local a query is. Every graph has 10 neighbours, all answers
are the best 100. SciPy's conjugate gradients solve the same system on the whole graph, to a
relative residual of 1e-4. Our answers are certified, and, beside SciPy's, solved to a tolerance of
1e-4: both without a budget. Solved to 1e-10, SciPy's gradients give the true best 100, for some of
the queries. Under "Default budget" at most 2,000 points are given a score, and the true best are
those that are certified without a budget. An unseen vector is the middle of a point and its nearest
neighbour; its own neighbours are searched when it is asked for.

With --large also one million points: minutes.
"""

import warnings

import numpy as np
from kit.graphs import (
    POINTS_PER_SHEET,
    GlobalGradients,
    draw,
    many_sheets,
    region_solver,
    solved,
    whole_system,
)
from kit.pictures import GREEN, GREY, INK, RIGHT, WRONG, label_ends, plot, pretty
from kit.report import Goal, options, publish, table, versions
from kit.timing import best, overlap, seconds, take_turns
from sklearn.exceptions import ConvergenceWarning

from rankfold import RAN
from rankfold.graph import AdaptiveGraph

SIZES, LARGE = (10_000, 100_000), 1_000_000
NEIGHBORS, TOP = 10, 100
SMOOTHNESS = (1.0, 10.0, 30.0)
N_QUERIES, N_CHECKED, N_TURNS, N_TOGETHER, MOST_SECONDS = 100, 5, 25, 2048, 15.0
DEFAULT, TOL = 30.0, 1e-6
QUICK, SCIPY = "rank, tol 1e-4, ms", "SciPy cg, rtol 1e-4, ms"
BUDGET = "rank, default budget, ms"
WAYS = "rank", "quick", "kernel", "SciPy"
TURNS = ((1.0, None), (1.0, "auto"), (DEFAULT, "auto"))


class Sized:
    """A database of one size, and its ways to answer."""

    def __init__(self, n_points):
        took, self.engine = seconds(lambda: many_sheets(n_points))
        self.n_points, self.queries = n_points, draw(n_points, N_QUERIES)
        self.weights = AdaptiveGraph(NEIGHBORS).build(self.engine)
        print(f"{n_points:,} points, {self.weights.nnz:,} weights: {took:.0f} s", flush=True)

    def methods(self, smoothness):
        """Return functions of a query's place in the list: whole, kernel alone, SciPy."""
        settings = {"rank": {"budget": None}, "quick": {"budget": None, "tol": 1e-4}, "budget": {}}
        rankers = {
            way: RAN(NEIGHBORS, smoothness, solver="region", fusion="none", **own).fit(self.engine)
            for way, own in settings.items()
        }
        solver = region_solver(self.weights, smoothness)
        self.gradients = GlobalGradients(whole_system(self.weights, smoothness))
        ids = self.queries
        methods = {
            (self.n_points, way): lambda i, r=ran: r.rank(ids[i], top=TOP)
            for way, ran in rankers.items()
        }
        methods[self.n_points, "kernel"] = lambda i: solved(solver, ids[i], TOL, TOP)
        methods[self.n_points, "SciPy"] = lambda i: best(
            self.gradients(ids[i], rtol=1e-4), ids[i], TOP
        )
        return methods

    def accuracy(self, *methods):
        """Return the share of the true best 100 in some of the answers of each method."""
        ids = self.queries[:N_CHECKED]
        true = [best(self.gradients(q, atol=1e-10), q, TOP) for q in ids]
        return [
            float(np.mean([overlap(points_of(timed.answers[i]), f) for i, f in enumerate(true)]))
            for timed in methods
        ]


def points_of(answer):
    return getattr(answer, "indices", answer)


def measure(databases, smoothness):
    """Time all sizes in turns; return rows for answers without a budget, and with the default."""
    methods = {name: ask for sized in databases for name, ask in sized.methods(smoothness).items()}
    timed = take_turns(methods, range(N_QUERIES), MOST_SECONDS)
    proven = table(without_budget(databases, smoothness, timed))
    return proven, table(with_budget(databases, smoothness, timed))


def without_budget(databases, smoothness, timed):
    for sized in databases:
        whole, quick, kernel, scipy = (timed[sized.n_points, way] for way in WAYS)
        ours, quickly, theirs = sized.accuracy(whole, quick, scipy)
        yield {
            "points": sized.n_points,
            "smoothness": smoothness,
            "rank ms": 1e3 * whole.median,
            "kernel ms": 1e3 * kernel.median,
            "points touched": float(np.median([r.n_touched for r in kernel.answers.values()])),
            "certified": float(np.mean([r.certified for r in kernel.answers.values()])),
            "of the true best 100": ours,
            "SciPy / rank": scipy.median / whole.median,
            QUICK: 1e3 * quick.median,
            "its share of the true best": quickly,
            SCIPY: 1e3 * scipy.median,
            "SciPy's share": theirs,
            "SciPy / rank, tol 1e-4": scipy.median / quick.median,
        }


def with_budget(databases, smoothness, timed):
    for sized in databases:
        whole, few, scipy = (timed[sized.n_points, way] for way in ("rank", "budget", "SciPy"))
        shares = [
            overlap(found.indices, whole.answers[i].indices)
            for i, found in few.answers.items()
            if i in whole.answers and whole.answers[i].solution.certified
        ]
        yield {
            "points": sized.n_points,
            "smoothness": smoothness,
            BUDGET: 1e3 * few.median,
            "points touched": float(
                np.median([found.solution.n_touched for found in few.answers.values()])
            ),
            "of the true best 100": float(np.mean(shares)),
            "at worst": float(np.min(shares)),
            "queries compared": len(shares),
            "no budget / default": whole.median / few.median,
            "SciPy / default": scipy.median / few.median,
        }


def alternate(engine, smoothness, budget):
    """Time three alternations beside one, and an unseen vector beside a point of the database."""
    rankers = {
        n: RAN(
            NEIGHBORS, smoothness, solver="region", fusion="none", budget=budget, max_iter=n
        ).fit(engine)
        for n in (1, 3)
    }
    one, three = rankers.values()
    queries = draw(engine.n_points, N_TURNS)
    methods = {
        "1": lambda q: one.rank(q, top=TOP),
        "3": lambda q: three.rank(q, top=TOP),
        "unseen": lambda q: one.rank(vectors=engine.beside(q), top=TOP),
    }
    timed = take_turns(methods, queries, most_seconds=60)
    reach = [answer.trace.reach[-1] for answer in timed["3"].answers.values()]
    return {
        "points": engine.n_points,
        "smoothness": smoothness,
        "budget": "none" if budget is None else "default",
        "queries": len(timed["3"].seconds),
        "one alternation ms": 1e3 * timed["1"].median,
        "three alternations ms": 1e3 * timed["3"].median,
        "three / one": timed["3"].median / timed["1"].median,
        "unseen vector ms": 1e3 * timed["unseen"].median,
        "unseen / by id": timed["unseen"].median / timed["1"].median,
        "points that share the score": float(np.median(reach)),
    }


def together(engine):
    """Time many queries on one thread and on two, in turns."""
    ran = RAN(NEIGHBORS, 1.0, solver="region", fusion="none", budget=None).fit(engine)
    queries = np.random.default_rng(1).choice(engine.n_points, N_TOGETHER).tolist()
    ran.rank_many(queries[:256], top=TOP)
    spent = {1: [], 2: []}
    for _ in range(3):
        for n_jobs, times in spent.items():
            work = lambda n_jobs=n_jobs: ran.rank_many(queries, top=TOP, n_jobs=n_jobs)  # noqa: E731
            times.append(seconds(work)[0])
    one, two = (float(np.median(times)) for times in spent.values())
    return {
        "points": engine.n_points,
        "queries": N_TOGETHER,
        "per second, n_jobs=1": N_TOGETHER / one,
        "per second, n_jobs=2": N_TOGETHER / two,
        "two / one": one / two,
    }


def judge(growth, default, turns):
    goals = []
    largest = max(row["points"] for row in growth)
    if largest != LARGE:  # the goals are about one million points
        return goals
    times = {(row["points"], row["smoothness"]): row for row in growth}
    for smoothness in SMOOTHNESS:
        small, large = times[SIZES[0], smoothness], times[largest, smoothness]
        what = f"smoothness {smoothness:g}: {largest:,} points / {SIZES[0]:,}, time of a query"
        goals.append(Goal(what, large["rank ms"] / small["rank ms"], most=2, must=4))
    last = times[largest, 1.0]
    for way, share in (("rank", 1.0), ("rank, tol 1e-4", last["its share of the true best"])):
        what = f"smoothness 1, {largest:,} points: SciPy cg / {way}"
        fair = share >= last["SciPy's share"]
        goals.append(Goal(what, last[f"SciPy / {way}"], least=1000, valid=fair))
    least = min(row["of the true best 100"] for row in growth)
    goals.append(Goal("share of the true best 100 that was found, at worst", least, least=1))
    ends = [row["three alternations ms"] for row in turns if row["budget"] == "none"]
    what = f"three alternations, no budget: {largest:,} points / {SIZES[1]:,}"
    goals.append(Goal(what, ends[-1] / ends[0], most=2))
    asked = {row["points"]: row[BUDGET] for row in default if row["smoothness"] == DEFAULT}
    what = f"sheets: {largest:,} points / {SIZES[0]:,} at smoothness 30, default budget"
    goals.append(Goal(what, asked[largest] / asked[SIZES[0]], most=1.3))
    for row in turns:
        if (row["smoothness"], row["budget"]) == (DEFAULT, "default"):
            where = f"{row['points']:,} points, smoothness 30, default budget"
            goals.append(Goal(f"{where}: three alternations / one", row["three / one"], most=3))
            goals.append(Goal(f"{where}: unseen vector / by id", row["unseen / by id"], most=3))
    return goals


def picture(growth, default):
    figure, panels = plot(
        "One query, as the database grows",
        f"Sheets of {POINTS_PER_SHEET:,} points each, graph of 10 neighbours, best 100; "
        "median of a query",
        n_panels=2,
        size=(11.5, 5.0),
    )
    colors = dict(zip(SMOOTHNESS, (RIGHT, GREEN, WRONG), strict=True))
    sizes = sorted({row["points"] for row in growth})
    ends = ([], [(sizes[-1], "all points", GREY)])
    panels[1].plot(sizes, sizes, "--", color=GREY, linewidth=1)
    for smoothness, color in colors.items():
        rows = [row for row in growth if row["smoothness"] == smoothness]
        for panel, key, style in ((0, "rank ms", "-"), (0, SCIPY, ":"), (1, "points touched", "-")):
            values = [row[key] for row in rows]
            panels[panel].plot(sizes, values, style, color=color, marker="o", markersize=5)
            name = f"SciPy cg, {smoothness:g}" if key == SCIPY else f"smoothness {smoothness:g}"
            last = f"{values[-1]:,.0f}" if panel else pretty(values[-1] / 1e3)
            ends[panel].append((values[-1], f"{name}: {last}", color))
    values = [row[BUDGET] for row in default if row["smoothness"] == DEFAULT]
    panels[0].plot(sizes, values, "-", color=INK, marker="o", markersize=5, linewidth=2.4)
    ends[0].append((values[-1], f"30, default budget: {pretty(values[-1] / 1e3)}", INK))
    panels[0].set(ylabel="milliseconds")
    panels[1].set(ylabel="points touched", ylim=(100, 2 * sizes[-1]))
    for axes, labels in zip(panels, ends, strict=True):
        axes.set(xscale="log", yscale="log", xlabel="points in the database")
        axes.set_xlim(0.8 * sizes[0], 1.15 * sizes[-1])
        label_ends(axes, sizes[-1], labels)
    figure.subplots_adjust(left=0.07, right=0.86, wspace=0.62)
    return figure


def main():
    arguments = options(__doc__, large="one million points as well").parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    databases = [Sized(n) for n in ((*SIZES, LARGE) if arguments.large else SIZES)]
    growth, default = [], []
    for smoothness in SMOOTHNESS:
        for rows, more in zip((growth, default), measure(databases, smoothness), strict=True):
            rows += more
    large = [sized.engine for sized in databases if sized.n_points > SIZES[0]]
    turns = table(alternate(engine, *setting) for setting in TURNS for engine in large)
    threads = table(together(engine) for engine in large)
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "scipy")]
    tables = {
        "Growth": growth,
        "Default budget": default,
        "Several alternations": turns,
        "Threads": threads,
    }
    alt = "Time of a query and points touched against the size of the database."
    publish("growth", "growth of the database", intro, tables, judge(growth, default, turns),
            picture(growth, default), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
