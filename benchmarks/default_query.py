"""How good, and how fast, is a query by default? Budgets from 500 points to none, on 70,000 digits.

RAN ranks by shape alone, so that answers can be compared with the exact scores, and only the budget
differs: how many points a query may give a score. Without one, ``budget=None``, a query goes on
until its best points are proven. One more row is what users get: the default budget, and distance
fused with shape. The true best 100 and 10 are those that were proven, asked for as 100 and as 10;
queries without a proof do not count. The default budget is 20 points for every result, and 1,000 at
least: 2,000 for a hundred results. Those who ask for ten, as most do, get the row of *the first
ten*: the best 10 of an answer of ten. Some are checked against SciPy's conjugate gradients, solved
as far as double precision goes. Beside the budgets, in turns: SciPy's gradients on the same system,
and FAISS's search for the 100 nearest by plain distance, through all points and by HNSW. An unseen
vector is the middle of a point and its nearest neighbour, searched for by the same engine after as
many searches as it awaits before it makes its shortcut for them.
The other graphs had no part in choosing the default budget: texts; texts and pictures of small
sets, with more drawn between near ones and some noise; and curved sheets of four dimensions.

Needs the folder RANKFOLD_DATA and the extra "bench". ``--brief`` is for trying it out.
"""

import os
import warnings
from pathlib import Path

import numpy as np
from kit import rivals
from kit.graphs import GlobalGradients, Remembered, draw, mnist
from kit.pictures import GREY, INK, RIGHT, WRONG, plot, pretty
from kit.report import Goal, options, publish, table, versions
from kit.timing import best, overlap, take_turns
from sklearn.exceptions import ConvergenceWarning

from rankfold import RAN, ExactEngine, FaissEngine, datasets
from rankfold.datasets.synthetic import sheets
from rankfold.graph import AdaptiveGraph
from rankfold.neighbors.projected import PATIENCE
from rankfold.solvers import BUDGET_PER_RESULT, LEAST_BUDGET, System

TOP, FEW, WIDTH = 100, 10, 42
OF_MANY = max(LEAST_BUDGET, BUDGET_PER_RESULT * TOP)
BUDGETS = (500, 1000, OF_MANY, 4000, 8000, 16_000, None)
RESIDUALS = (1e-3, 1e-4, 1e-6)
MOST_SECONDS, MOST_MS = 15.0, 50
N_QUERIES, N_CHECKED, N_TURNS, N_ELSEWHERE = 1000, 50, 30, 200
BRIEF = 20, 5, 5, 10
PROVEN, DEFAULT = "no budget", f"budget {OF_MANY:,} (default)"
FUSED = "default budget, fused with distance"
FLAT, HNSW = "FAISS flat, one thread", "FAISS HNSW"
TEN, FUSED_TEN, FLAT_TEN = "shape alone", "all defaults", "FAISS flat, one thread"
BY_ID, UNSEEN = "by id, one alternation", "unseen vector, one alternation"
OURS, PEER, SEARCH = "ours", "SciPy", "plain search"
SHARES = {
    "mean": np.mean,
    "1st percentile": lambda found: np.percentile(found, 1),
    "worst": np.min,
}
LINES = {PROVEN: RIGHT, FLAT: INK, HNSW: GREY}
N_NEAR, NOISE = 5, 0.1
"""Near points that new ones lie on the way to, and how far they are moved, in their distances."""


def named(budget):
    if budget is None:
        return PROVEN
    return DEFAULT if budget == OF_MANY else f"budget {budget:,}"


def rankers_of(engine, budgets):
    """Return a ranker for every budget; the default is left as it is."""
    return {
        named(budget): RAN(budget="auto" if budget == OF_MANY else budget, fusion="none").fit(
            engine
        )
        for budget in budgets
    } | {FUSED: RAN().fit(engine)}


def answering(ranker):
    return lambda query: ranker.rank(query, top=TOP).solution


def gradients_of(engine, ranker):
    """Return SciPy's gradients on the very system of a ranker, whose weights are float32."""
    weights = AdaptiveGraph(ranker.n_neighbors_).build(engine)
    return GlobalGradients(System.ran(weights, ranker.smoothness).matrix)


def first(scores, query, top=TOP):
    """Return the points of the highest scores, in their order."""
    found = best(scores, query, top)
    return found[np.argsort(-scores[found])]


def truths(ranker, queries):
    """Return the best 100 and the best 10 of queries, where they were proven."""
    n_jobs, true = os.cpu_count() or 1, {}
    for top in (TOP, FEW):
        rankings = ranker.rank_many(queries, top=top, n_jobs=n_jobs)
        true[top] = {
            query: ranking.indices
            for query, ranking in zip(queries, rankings, strict=True)
            if ranking.solution.certified
        }
    return true


def agreement(gradients, true, queries):
    """Return which share of the proven points SciPy's gradients find too, at worst."""
    shares = []
    for query in queries:
        scores = gradients(query, atol=1e-12)
        for top, proven in true.items():
            if query in proven:
                shares.append(overlap(best(scores, query, top), proven[query]))
    return min(shares)


def shares_of(answers, true):
    """Return, for 100 and for 10, the shares of the true best in every answer."""
    return {
        top: np.array([overlap(answers[q][:top], true[top][q]) for q in answers if q in true[top]])
        for top in true
    }


def told(shares, what):
    """Return the mean of shares, or another figure; none where nothing was compared."""
    return float(SHARES[what](shares)) if len(shares) else "-"


def ids_of(answer):
    """Return the points of an answer; ours have the query at their end."""
    return getattr(answer, "points", answer)


def methods_of(rankers, gradients, X):
    """Return all ways to a query by their kind."""
    peers = {
        f"SciPy cg, rtol {rtol:.0e}".replace("e-0", "e-"): lambda q, r=rtol: first(
            gradients(q, rtol=r), q
        )
        for rtol in RESIDUALS
    }
    searches = {name: ask for name, (_, ask) in rivals.of_distance(X).items()}
    return {
        OURS: {name: answering(ranker) for name, ranker in rankers.items()},
        PEER: peers,
        SEARCH: {name: searches[name] for name in (FLAT, HNSW)},
    }


def rows_of(timed, kinds, true):
    for name, result in timed.items():
        answers = {query: ids_of(answer) for query, answer in result.answers.items()}
        found = shares_of(answers, true) if kinds[name] != SEARCH and name != FUSED else {}
        yield {
            "method": name,
            "kind": kinds[name],
            "queries": len(answers),
            "ms": 1e3 * result.median,
            f"{PROVEN} / it": timed[PROVEN].median / result.median,
            "it / FAISS flat": result.median / timed[FLAT].median,
            **{
                f"of the true best {top}, {what}": told(found.get(top, ()), what)
                for top in (TOP, FEW)
                for what in SHARES
            },
        }


def turns(engine, ranker, queries):
    """Yield what two alternations take, and an unseen vector, beside a query by default."""
    twice, width = RAN(max_iter=2).fit(engine), ranker.neighbors_.width
    search = "its neighbour search alone"
    for _ in range(PATIENCE + 1):
        engine.search(engine.beside(queries[0])[None, :], width)
    timed = take_turns(
        {
            BY_ID: lambda q: ranker.rank(q, top=TOP),
            "by id, two alternations": lambda q: twice.rank(q, top=TOP),
            UNSEEN: lambda q: ranker.rank(vectors=engine.beside(q), top=TOP),
            search: lambda q: engine.search(engine.beside(q)[None, :], width),
        },
        queries,
    )
    once, *_, unseen, _ = (result.median for result in timed.values())
    for name, result in timed.items():
        yield {
            "what": name,
            "queries": len(result.seconds),
            "ms": 1e3 * result.median,
            f"/ {BY_ID}": result.median / once,
            "share of an unseen vector": result.median / unseen if name == search else None,
        }


def first_ten(name, rankers, X, queries, true):
    """Yield what ten results take, and how many of the best ten they are."""
    flat = rivals.of_distance(X)[FLAT][1]
    shape, fused = rankers[DEFAULT], rankers[FUSED]
    timed = take_turns(
        {
            TEN: lambda q: shape.rank(q, top=FEW).solution,
            FUSED_TEN: lambda q: fused.rank(q, top=FEW).solution,
            FLAT_TEN: lambda q: flat(q),
        },
        queries,
        MOST_SECONDS,
    )
    shares = [overlap(timed[TEN].answers[q].points[:FEW], true[q]) for q in queries if q in true]
    for way, result in timed.items():
        yield {
            "data": name,
            "ten results": way,
            "queries": len(result.answers),
            "ms": 1e3 * result.median,
            "/ FAISS flat": result.median / timed[FLAT_TEN].median,
            **{
                f"of the true best {FEW}, {what}": told(shares, what) if way == TEN else None
                for what in SHARES
            },
        }


def data_file(name):
    with np.load(Path(os.environ["RANKFOLD_DATA"]) / name, allow_pickle=False) as content:
        return content["X"].astype(np.float32)


def drawn_again(X, n_points, metric):
    """Return more points than a set has: between its points and near ones of each, with noise."""
    rng, X = np.random.default_rng(0), np.asarray(X, dtype=np.float32)
    if metric == "cosine":
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    lists = ExactEngine(X).rows(np.arange(len(X)), N_NEAR)
    apart = float(np.median(np.sqrt(lists.sq_distances)))
    ones = rng.integers(len(X), size=n_points)
    others = lists.indices[ones, rng.integers(N_NEAR, size=n_points)]
    way = rng.uniform(size=(n_points, 1))
    noise = rng.normal(0, NOISE * apart / np.sqrt(X.shape[1]), (n_points, X.shape[1]))
    return ((1 - way) * X[ones] + way * X[others] + noise).astype(np.float32)


def elsewhere():
    """Return other sets: name -> (metric, a function that makes the vectors)."""
    reuters, coil = "Reuters R8 texts, drawn again", "COIL-20 pictures, drawn again"
    return {
        "Debian packages, MiniLM": ("cosine", lambda: data_file("debian_minilm384.npz")),
        reuters: (
            "cosine",
            lambda: drawn_again(data_file("text_reuters_r8_wl256.npz"), 30_000, "cosine"),
        ),
        coil: (
            "euclidean",
            lambda: drawn_again(datasets.load("coil20").X, 20_000, "euclidean"),
        ),
        "sheets, 4 of 10 dimensions": (
            "euclidean",
            lambda: sheets(50_000, n_sheets=5, dimension=4, ambient=10, seed=7).X,
        ),
    }


def other_graphs(n_queries):
    """Yield how well the default budget does on each of the other sets, and its first ten."""
    for name, (metric, make) in elsewhere().items():
        X = make()
        short = name.split()[0].strip(",").lower()
        engine = FaissEngine(X, metric, index="flat")
        engine = Remembered(engine, WIDTH, f"default_query_{short}_{len(X)}")
        rankers = {
            way: RAN(metric=metric, fusion="none", **budget).fit(engine)
            for way, budget in {DEFAULT: {}, PROVEN: {"budget": None}}.items()
        }
        fused = {FUSED: RAN(metric=metric).fit(engine)}
        queries = draw(len(X), n_queries)
        methods = {way: answering(ranker) for way, ranker in rankers.items()}
        timed = take_turns(methods, queries, MOST_SECONDS)
        answers = {q: solution.points for q, solution in timed[DEFAULT].answers.items()}
        true = truths(rankers[PROVEN], queries)
        found = shares_of(answers, true)
        touched = [solution.n_touched for solution in timed[PROVEN].answers.values()]
        ten = list(first_ten(name, rankers | fused, X, queries, true[FEW]))
        yield (
            ten,
            {
                "data": name,
                "points": len(X),
                "features": X.shape[1],
                "k": rankers[DEFAULT].n_neighbors_,
                "queries": len(queries),
                "proven": len(true[TOP]) / len(queries),
                **{
                    f"of the true best {top}, {what}": told(found[top], what)
                    for top in (TOP, FEW)
                    for what in ("mean", "worst")
                },
                "ms": 1e3 * timed[DEFAULT].median,
                f"{PROVEN} ms": 1e3 * timed[PROVEN].median,
                f"{PROVEN} / default": timed[PROVEN].median / timed[DEFAULT].median,
                f"points touched, {PROVEN}": float(np.median(touched)),
            },
        )


def judge(rows, alternating, agreed, ten):
    row, fused = (next(row for row in rows if row["method"] == name) for name in (DEFAULT, FUSED))
    turn = {row["what"]: row for row in alternating}
    twice, unseen = turn["by id, two alternations"]["ms"], turn[UNSEEN][f"/ {BY_ID}"]
    ratio, flat = fused[f"{PROVEN} / it"], fused["it / FAISS flat"]
    hundred, ten_best = (f"of the true best {top}" for top in (TOP, FEW))
    what = "default budget: share of the true best"
    first = {row["ten results"]: row for row in ten if row["data"] == "MNIST"}
    found = min(row[f"{ten_best}, mean"] for row in ten if row["ten results"] == TEN)
    return [
        Goal(f"{what} {TOP}, mean", row[f"{hundred}, mean"], least=0.99),
        Goal(f"{what} {TOP}, worst", row[f"{hundred}, worst"], least=0.97),
        Goal(f"{what} {FEW}, mean", row[f"{ten_best}, mean"], least=0.995),
        Goal(f"{PROVEN} / all defaults, time of a query", ratio, least=50),
        Goal(f"all defaults / one query of {FLAT}", flat, most=0.15, must=0.25),
        Goal(
            "ten results, all defaults / one query of FAISS flat",
            first[FUSED_TEN]["/ FAISS flat"],
            most=0.15,
            must=0.25,
        ),
        Goal(
            "ten results: share of the true best 10, mean, worst of all graphs", found, least=0.995
        ),
        Goal("two alternations at the defaults", twice, most=MOST_MS, unit="ms"),
        Goal("an unseen vector / a query by id", unseen, most=3),
        Goal("share of the proven points that SciPy finds too, at worst", agreed, least=1),
    ]


def picture(rows):
    figure, (axes,) = plot(
        "A query by default, and with other budgets",
        "MNIST, 70,000 digits, defaults, best 100: how many of the true best are found, and in "
        "what time; the number is the budget",
        size=(10.5, 5.8),
    )
    ours = [row for row in rows if row["kind"] == OURS and row["method"] not in (PROVEN, FUSED)]
    times = [row["ms"] for row in ours]
    columns = {what: [100 * row[f"of the true best {TOP}, {what}"] for row in ours]
               for what in SHARES}  # fmt: skip
    mean, rare = columns["mean"], columns["1st percentile"]
    axes.fill_between(times, rare, mean, color=RIGHT, alpha=0.12, linewidth=0)
    axes.plot(times, rare, "-", color=RIGHT, linewidth=1)
    axes.plot(times, columns["worst"], ":", color=WRONG, linewidth=1.4)
    axes.plot(times, mean, "o-", color=RIGHT, linewidth=2.2, markersize=6)
    for row, x, y in zip(ours, times, mean, strict=True):
        label = row["method"].removeprefix("budget ")
        if row["method"] == DEFAULT:
            axes.plot(x, y, "o", color=INK, markersize=9, zorder=4)
            note(axes, label, x, y, (7, -15), INK, weight="bold")
        else:
            note(axes, label, x, y, (-4, 8), RIGHT, ha="right")
    ends = {"mean": (-3, RIGHT), "1st percentile": (3, RIGHT), "worst": (-11, WRONG)}
    for what, (up, color) in ends.items():
        note(axes, what, times[-1], columns[what][-1], (9, up), color)
    for row in rows:
        if row["kind"] == PEER:
            share = 100 * row[f"of the true best {TOP}, mean"]
            axes.plot(row["ms"], share, "s", color=GREY, markersize=6, zorder=3)
            label = row["method"].removeprefix("SciPy cg, rtol ")
            note(axes, f"SciPy\n{label}", row["ms"], share, (0, -28), GREY, ha="center")
        elif row["method"] in LINES:
            color = LINES[row["method"]]
            axes.axvline(row["ms"], color=color, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
            name = row["method"].removesuffix(", one thread")
            axes.text(row["ms"], 1.015, f"{name}\n{pretty(row['ms'] / 1e3)}", color=color,
                      fontsize=9, ha="center", transform=axes.get_xaxis_transform())  # fmt: skip
    low = min(columns["worst"])
    axes.set(xscale="log", xlabel="milliseconds a query, logarithmic",
             ylabel="of the true best 100, per cent",
             ylim=(low - 0.1 * (100 - low), 100 + 0.09 * (100 - low)))  # fmt: skip
    axes.set_xlim(0.5 * times[0], 2 * max(row["ms"] for row in rows))
    figure.subplots_adjust(top=0.77)
    return figure


def note(axes, text, x, y, offset, color, **settings):
    """Write beside a point."""
    axes.annotate(text, (x, y), offset, textcoords="offset points", color=color, fontsize=9,
                  **settings)  # fmt: skip


def main():
    parser = options(__doc__)
    parser.add_argument("--brief", action="store_true", help="few queries, no page worth keeping")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    counts = BRIEF if arguments.brief else (N_QUERIES, N_CHECKED, N_TURNS, N_ELSEWHERE)
    n_queries, n_checked, n_turns, n_elsewhere = counts
    engine = mnist(WIDTH)
    rankers = rankers_of(engine, BUDGETS)
    default = rankers[DEFAULT]
    gradients = gradients_of(engine, default)
    groups = methods_of(rankers, gradients, engine.X)
    kinds = {name: kind for kind, group in groups.items() for name in group}
    methods = {name: ask for group in groups.values() for name, ask in group.items()}
    queries = draw(engine.n_points, n_queries)
    print(f"{len(methods)} methods take turns on {n_queries} queries", flush=True)
    timed = take_turns(methods, queries, MOST_SECONDS)
    true = truths(rankers[PROVEN], queries)
    agreed = agreement(gradients, true, queries[:n_checked])
    rows = table(rows_of(timed, kinds, true))
    alternating = table(turns(engine, rankers[FUSED], queries[:n_turns]))
    ten = list(first_ten("MNIST", rankers, engine.X, queries, true[FEW]))
    elsewhere = list(other_graphs(n_elsewhere))
    ten = table(ten + [row for rows_of_ten, _ in elsewhere for row in rows_of_ten])
    elsewhere_rows = table(row for _, row in elsewhere)
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"MNIST, 70,000 x 784, k = {default.n_neighbors_}, smoothness {default.smoothness:g}, "
        f"{gradients.matrix.nnz - engine.n_points:,} weights; medians over {n_queries} queries, "
        f"fewer where a method takes longer than {MOST_SECONDS:g} s for them. The best {TOP} of "
        f"{len(true[TOP])} queries and the best {FEW} of {len(true[FEW])} were proven; of the "
        f"first {n_checked} SciPy's gradients found {agreed:.4%} of the proven points at worst. "
        + versions("rankfold", "scipy", "faiss-cpu"),
    ]
    tables = {
        "One query": rows,
        "The first ten": ten,
        "Two alternations, and unseen vectors": alternating,
        "Other graphs": elsewhere_rows,
    }
    alt = "Share of the true best 100 against the time of a query, for every budget."
    publish("default_query", "a query by default", intro, tables,
            judge(rows, alternating, agreed, ten), picture(rows), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
