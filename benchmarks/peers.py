"""How fast is one query? RAN and PageRank on 70,000 digits, beside other libraries.

All work on the same graph, W, and take turns. Accuracy is the share of the true best 100 of the
system that a method solves: RAN's, or PageRank's with the same damping. scikit-network's
Dirichlet problem is RAN's system when a ground of score zero is joined to every point with the
weight 1 / (2 lambda); its PageRank by push fails on weights below one. scikit-learn's
LabelSpreading takes W as its kernel; it parts its scores among classes, which leaves no order
to compare, so that only its time counts, for the query against one other point. Every peer is
compared with the fastest of ours that solves the same system and, on the peer's queries, is not
less accurate. Ours have no budget (``budget=None``), but where it is named. Goals are for RAN with
smoothness 1; PageRank with damping 0.85 spreads as far as RAN with smoothness 2.8.

Needs the folder RANKFOLD_DATA and the extra "bench".
"""

import warnings

import numpy as np
from kit import rivals
from kit.graphs import GlobalGradients, draw, mnist, region_solver, solved, whole_system
from kit.pictures import GREY, INK, RIGHT, plot, pretty
from kit.report import Goal, options, publish, table, versions
from kit.rivals import TOP
from kit.timing import best, overlap, take_turns
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankfold import RAN, PersonalizedPageRank, datasets
from rankfold.graph import AdaptiveGraph

NEIGHBORS, SMOOTHNESS, DAMPING = 10, 1.0, 0.85
N_QUERIES, MOST_SECONDS = 1000, 15.0
RAN_MODES = {
    1e-6: "certified",
    3e-5: "tol 3e-5",
    1e-4: "tol 1e-4",
    2e-4: "tol 2e-4",
    1e-3: "tol 1e-3",
}
PAGERANK_MODES = {1e-9: "certified", 1e-5: "tol 1e-5", 1e-4: "tol 1e-4", 1e-3: "tol 1e-3"}
KERNEL, SHARE = "RAN, certified, its kernel alone", "of the true best 100"
OURS, PEER, SEARCH = "ours", "graph peer", "plain search"


def our_methods(engine, weights):
    """Return our ways to a query: name -> (system, function)."""
    methods = {}
    for tol, mode in RAN_MODES.items():
        ran = RAN(NEIGHBORS, SMOOTHNESS, solver="region", fusion="none", tol=tol, budget=None).fit(
            engine
        )
        methods[f"RAN, {mode}"] = "RAN", lambda q, r=ran: r.rank(q, top=TOP).indices
    ran = RAN(NEIGHBORS, SMOOTHNESS, solver="region", fusion="none").fit(engine)
    methods["RAN, default budget"] = "RAN", lambda q: ran.rank(q, top=TOP).indices
    solver, certified = region_solver(weights, SMOOTHNESS), next(iter(RAN_MODES))
    methods[KERNEL] = "RAN", lambda q: solved(solver, q, certified, TOP)
    graph = AdaptiveGraph(NEIGHBORS)
    for tol, mode in PAGERANK_MODES.items():
        walk = PersonalizedPageRank(
            DAMPING, graph=graph, solver="region", fusion="none", tol=tol, budget=None
        ).fit(engine)
        methods[f"PageRank, {mode}"] = "PageRank", lambda q, r=walk: r.rank(q, top=TOP).indices
    return methods


def truths(weights, timed, queries):
    """Return the best 100 of every system, solved as far as double precision goes."""
    gradients = GlobalGradients(whole_system(weights, SMOOTHNESS))
    weights = weights.astype(np.float64)
    degrees = weights.sum(axis=1)
    # f = D x turns f = a P' f + (1 - a) y into (D - a W) x = (1 - a) y.
    pages = GlobalGradients((sparse.diags_array(degrees) - DAMPING * weights).tocsr())
    return {
        "RAN": {q: best(gradients(q, atol=1e-13), q, TOP) for q in queries},
        "PageRank": {q: best(degrees * pages(q, atol=1e-13), q, TOP) for q in queries},
        "distance": timed["FAISS flat, one thread"].answers,
    }


def shares_of(timed, systems, true):
    """Return, for every method with answers to compare, the share that it found, by query."""
    return {
        name: {q: overlap(found, true[systems[name]][q]) for q, found in result.answers.items()}
        for name, result in timed.items()
        if systems[name] and name != KERNEL
    }


def rows_of(timed, systems, kinds, shares):
    base = timed["RAN, certified"].median
    for name, result in timed.items():
        yield {
            "method": name,
            "kind": kinds[name],
            "system": systems[name] or "label spreading",
            "queries": len(result.seconds),
            "ms": 1e3 * result.median,
            "times RAN, certified": result.median / base,
            SHARE: float(np.mean(list(shares[name].values()))) if name in shares else "-",
        }


def matched(rows, shares, system):
    """Yield every peer of a system with the fastest of ours that is not less accurate.

    Shares are those of the peer's queries. Where all of ours are less accurate, the best of them
    is taken, and the last value is false.
    """
    rows = [row for row in rows if row["system"] == system and row["method"] in shares]
    ours = [row for row in rows if row["kind"] == OURS]
    for peer in (row for row in rows if row["kind"] == PEER):
        queries = shares[peer["method"]]
        found = {
            row["method"]: float(np.mean([shares[row["method"]][q] for q in queries]))
            for row in (peer, *ours)
        }
        least = found[peer["method"]]
        equals = [row for row in ours if found[row["method"]] >= least]
        chosen = (
            min(equals, key=lambda row: row["ms"])
            if equals
            else max(ours, key=lambda row: found[row["method"]])
        )
        names = [f"{row['method']} ({100 * found[row['method']]:.3f} %)" for row in (peer, chosen)]
        yield *names, peer["ms"] / chosen["ms"], bool(equals)


def judge(rows, shares):
    goals, time = [], {row["method"]: row["ms"] for row in rows}
    for peer, chosen, ratio, valid in matched(rows, shares, "RAN"):
        what = f"{chosen}: times faster than {peer}"
        goals.append(Goal(what, ratio, least=100, must=40, valid=valid))
    for name in ("RAN, certified", "RAN, tol 1e-4"):
        ratio = time[name] / time["FAISS flat, one thread"]
        goals.append(Goal(f"{name} / one query of FAISS flat, one thread", ratio, most=3))
    return goals


def beside_pagerank(rows, shares):
    for peer, chosen, ratio, valid in matched(rows, shares, "PageRank"):
        yield {"peer": peer, "ours": chosen, "times faster": ratio, "as accurate": valid}


def picture(rows):
    rows = sorted(rows, key=lambda row: -row["ms"])
    figure, (axes,) = plot(
        "One query among 70,000 digits",
        "MNIST, graph of 10 neighbours, best 100; median time of a query, and the share of the "
        "true best 100 that was found",
        size=(10.5, 6.4),
    )
    colors = {OURS: RIGHT, PEER: GREY, SEARCH: INK}
    for place, row in enumerate(rows):
        color, share = colors[row["kind"]], row[SHARE]
        axes.plot(row["ms"], place, "o", color=color, markersize=7)
        accuracy = f"   {100 * share:.2f} %" if share != "-" else ""
        text = pretty(row["ms"] / 1e3) + accuracy
        axes.annotate(text, (row["ms"], place), (9, -3.5), textcoords="offset points",
                      color=color, fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(rows)), [row["method"] for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(colors[row["kind"]])
        label.set_weight("bold" if row["kind"] == OURS else "normal")
    axes.set(xscale="log", xlabel="milliseconds, logarithmic")
    axes.set_xlim(right=8 * max(row["ms"] for row in rows))
    figure.subplots_adjust(left=0.29)
    return figure


def main():
    arguments = options(__doc__).parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    engine = mnist()
    weights = AdaptiveGraph(NEIGHBORS).build(engine)
    print(f"graph: {weights.nnz:,} weights", flush=True)
    groups = {
        OURS: our_methods(engine, weights),
        PEER: rivals.of_ran(weights, SMOOTHNESS)
        | rivals.of_pagerank(weights, DAMPING)
        | rivals.of_labels(weights, DAMPING),
        SEARCH: rivals.of_distance(datasets.load("mnist").X),
    }
    methods = {name: ask for group in groups.values() for name, (_, ask) in group.items()}
    systems = {name: system for group in groups.values() for name, (system, _) in group.items()}
    kinds = {name: kind for kind, group in groups.items() for name in group}
    queries = draw(engine.n_points, N_QUERIES)
    print(f"{len(methods)} methods take turns on {N_QUERIES} queries", flush=True)
    timed = take_turns(methods, queries, MOST_SECONDS)
    shares = shares_of(timed, systems, truths(weights, timed, queries))
    rows = table(rows_of(timed, systems, kinds, shares))
    used = [
        "rankfold",
        "scipy",
        "scikit-network",
        "igraph",
        "networkx",
        "scikit-learn",
        "faiss-cpu",
    ]
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"MNIST, 70,000 x 784, k = {NEIGHBORS}, smoothness {SMOOTHNESS:g}, damping {DAMPING:g}, "
        f"{weights.nnz:,} weights; medians over {N_QUERIES} queries, fewer where a method takes "
        f"longer than {MOST_SECONDS:g} s for them. " + versions(*used),
    ]
    alt = "Median time of a query for each method, on a logarithmic axis."
    tables = {"One query": rows, "PageRank": table(beside_pagerank(rows, shares))}
    publish("peers", "beside other libraries", intro, tables, judge(rows, shares), picture(rows),
            alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
