"""Which method, on which graph? Every method on six data sets, tuned and then measured.

A random half of the points, the same share of every class, are the queries on which
parameters are chosen by precision at the number of relevant points; the other half are
the queries of the tables. Needs the folder RANKFOLD_DATA. Writes docs/measured/methods.md.
"""

import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankfold import RANKERS, datasets
from rankfold.evaluation import Evaluation, tune
from rankfold.graph import AdaptiveGraph, GaussianGraph
from rankfold.neighbors import GIVEN_METRICS

SETS = ("digits", "usps", "orl", "yale", "coil20", "umist")
PAGE = Path(__file__).parents[1] / "docs" / "measured" / "methods.md"
MAIN = "r_precision"
METRICS = (MAIN, "average_precision", "ndcg@10")

# Nine settings for every method on every graph; wider where tuning had chosen the edge.
NEIGHBORS = (3, 6, 12)
GRAPHS = {
    "adaptive": [AdaptiveGraph(k) for k in NEIGHBORS],
    "gaussian": [GaussianGraph(n_neighbors=k) for k in NEIGHBORS],
}
GRIDS = {
    "self_diffusion": {"n_steps": [20, 80, 320]},
    "pagerank": {"alpha": [0.9, 0.99, 0.999]},
    "manifold": {"alpha": [0.9, 0.99, 0.999]},
    "transduction": {"n_steps": [100, 300, 1000]},
    "lcdp": {"n_steps": [3, 10, 30]},
    "tensor": {"n_steps": [5, 20, 80]},
    "k_reciprocal": {"k1": [10, 20, 40], "distance_weight": [0.0, 0.1, 0.3]},
    "lhrr": {"n_neighbors": [10, 15, 20, 30], "n_steps": [1, 2]},
    "query_expansion": {"n_neighbors": NEIGHBORS, "augment": [0, 5, 10]},
    "ran": {"n_neighbors": NEIGHBORS, "smoothness": [10.0, 30.0, 100.0]},
}


def contestants(metric):
    """Yield a name, a ranker and its grid for every method on every graph it can run on."""
    for method, make in RANKERS.items():
        if make.needs_vectors and metric in GIVEN_METRICS:
            continue
        ranker, grid = make(), GRIDS.get(method, {})
        if "graph" not in ranker.get_params(deep=False):
            yield method, ranker, grid
            continue
        for graph, choices in GRAPHS.items():
            yield f"{method}, {graph}", ranker, {"graph": choices, **grid}


def measure(dataset):
    """Tune every method on one half of the queries; return the table of the other half."""
    values, chosen = {}, {}
    for name, ranker, grid in contestants(dataset.metric):
        tuning = tune(ranker, dataset, grid, scoring=MAIN, metrics=METRICS, n_jobs=os.cpu_count())
        if not tuning.complete:
            raise KeyboardInterrupt
        values[name] = tuning.held_out.values["tuned"]
        chosen[name] = ", ".join(f"{key}={value}" for key, value in tuning.best.items())
        print(f"{dataset.name}: {name}: {tuning.held_out.mean('tuned', MAIN):.4f}", flush=True)
    held_out = tuning.held_out
    return Evaluation(dataset.name, held_out.queries, values, held_out.plain), chosen


def summary(found):
    """Return the main measure of every method on every set, in per cent, with harm."""
    rows = {}
    for name, evaluation in found.items():
        for row in evaluation.table():
            if row.metric == MAIN:
                rows.setdefault(row.method, {})[name] = row
    head = ["method, graph", *found, "mean", "harm", "worst harm", "least gain over plain"]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    plain = [evaluation.plain[MAIN].mean() for evaluation in found.values()]

    def place(item):
        """Methods that cannot run on every set come last: their means are of other sets."""
        return len(item[1]) < len(found), -np.mean([row.mean for row in item[1].values()])

    for method, cells in sorted(rows.items(), key=place):
        numbers = [f"{100 * cells[name].mean:.2f}" if name in cells else "-" for name in found]
        if len(cells) == len(found):
            means, harms = np.array([[row.mean, row.harm] for row in cells.values()]).T
            numbers.append(f"{100 * means.mean():.2f}")
            numbers += [f"{100 * harms.mean():.1f}", f"{100 * harms.max():.1f}"]
            numbers.append(f"{100 * (means - plain).min():+.2f}")
        else:
            numbers += ["-"] * 4
        lines.append("| " + " | ".join([method, *numbers]) + " |")
    return lines


def details(found, chosen):
    lines = []
    for name, evaluation in found.items():
        lines += [f"\n## {name}\n", evaluation.to_markdown()]
        lines += ["| method, graph | chosen on the other half |", "|---|---|"]
        lines += [f"| {method} | {setting} |" for method, setting in chosen[name].items()]
    return lines


def main():
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    warnings.simplefilter("ignore", ConvergenceWarning)
    found, chosen = {}, {}
    for name in SETS:
        found[name], chosen[name] = measure(datasets.load(name))
    lines = [
        "# Measured: methods",
        "",
        "Printed by `benchmarks/methods.py`; do not edit. Parameters are chosen on a random half",
        "of the queries, the same share of every class; all figures are from the other half.",
        "The query is left out of the results.",
        "",
        "## Precision at the number of relevant points, in per cent",
        "",
        "Harm is the share of queries in per cent that come out worse than under plain distance,",
        "over the sets on average and at worst. Rows are in the order of the mean.",
        "",
        *summary(found),
        *details(found, chosen),
    ]
    print("\n".join(lines))
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
