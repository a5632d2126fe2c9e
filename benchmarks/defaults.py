"""Which defaults should RAN have? Measured on six data sets, and checked on others.

Precision is measured at the number of relevant points (the query left out), in per cent;
harm is the share of queries that come out worse than under plain distance. Every point is
a query; where graph and scores are learned in several alternations, a fixed sample of 60
points a set. Needs the folder RANKFOLD_DATA. Writes docs/measured/defaults.md.
"""

import os
import warnings
from pathlib import Path

import numpy as np
from rich.progress import track
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from rankfold import RAN, Dataset, Distance, datasets, metrics
from rankfold.neighbors import intrinsic_dimension

SETS = ("digits", "usps", "orl", "yale", "coil20", "umist")
PAGE = Path(__file__).parents[1] / "docs" / "measured" / "defaults.md"


def precisions(ranker, dataset, queries=None):
    """Precision at the number of relevant points, for each query."""
    ranker.set_params(metric=dataset.metric).fit(dataset.X)
    sizes = np.bincount(dataset.labels)[dataset.labels] - 1
    if queries is None:
        queries = np.arange(len(dataset.labels))
        answers = ranker.search(k=int(sizes.max()))[0]
    else:
        rankings = ranker.rank_many(queries.tolist(), top=int(sizes.max()))
        answers = [ranking.indices for ranking in rankings]
    return np.array(
        [
            metrics.precision(dataset.labels[answer] == dataset.labels[query], sizes[query])
            for query, answer in zip(queries, answers, strict=True)
            if sizes[query]
        ]
    )


def table(title, head, rows):
    lines = [f"\n## {title}\n", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    print("\n".join(lines), flush=True)
    return lines


def summary(results, base):
    """Mean precision on each set, their mean, mean harm, and the gain on the worst set."""
    means = [100 * result.mean() for result in results]
    harm = np.mean([100 * (r < b).mean() for r, b in zip(results, base, strict=True)])
    least = min(100 * (r.mean() - b.mean()) for r, b in zip(results, base, strict=True))
    return [f"{m:.2f}" for m in [*means, np.mean(means)]] + [f"{harm:.1f}", f"{least:+.2f}"]


def one_alternation(sets, base):
    rows = [["plain distance", "", *summary(base, base)]]
    settings = [(k, s) for k in (5, 10, 20, "auto") for s in (1.0, 3.0, 10.0, 30.0, 100.0)]
    for k, smoothness in track(settings, description="one alternation"):
        results = [precisions(RAN(k, smoothness, fusion="none"), dataset) for dataset in sets]
        rows.append([str(k), f"{smoothness:g}", *summary(results, base)])
    head = ["k", "smoothness", *SETS, "mean", "harm", "least gain over plain"]
    return table("Neighbours and smoothness, one alternation", head, rows)


def several_alternations(sets, title, variants):
    rng = np.random.default_rng(0)
    samples = [rng.permutation(len(dataset.labels))[:60] for dataset in sets]
    first = [precisions(RAN(fusion="none"), d, q) for d, q in zip(sets, samples, strict=True)]
    rows = [["1", "", *summary(first, first)]]
    for label, parameters in track(variants, description=title.lower()):
        for guard in (True, False):
            results = [
                precisions(RAN(guard=guard, fusion="none", **parameters), dataset, sample)
                for dataset, sample in zip(sets, samples, strict=True)
            ]
            rows.append([label, "on" if guard else "off", *summary(results, first)])
    head = [
        "variant", "guard", *SETS, "mean", "worse than the first", "least gain over the first",
    ]  # fmt: skip
    return table(title, head, rows)


def other_sets():
    """Yield sets that had no part in the choice."""
    for name, loader in (("iris", load_iris), ("wine", load_wine), ("cancer", load_breast_cancer)):
        X, labels = loader(return_X_y=True)
        yield Dataset(name, StandardScaler().fit_transform(X), labels)
    yield datasets.load("usps_all")
    mnist = datasets.load("mnist")
    rows = np.random.default_rng(0).permutation(len(mnist.labels))[:3000]
    yield Dataset("mnist, 3000 of it", mnist.X[rows], mnist.labels[rows])


def confirmation(sets):
    rows = []
    for dataset in track([*sets, *other_sets()], description="confirmation"):
        plain = precisions(Distance(), dataset)
        few, many = (precisions(RAN(k, fusion="none"), dataset) for k in (5, 20))
        ranker = RAN()
        chosen = precisions(ranker, dataset)
        rows.append(
            [
                dataset.name,
                str(len(dataset.labels)),
                f"{intrinsic_dimension(ranker.neighbors_):.1f}",
                str(ranker.n_neighbors_),
                *(f"{100 * result.mean():.2f}" for result in (plain, few, many, chosen)),
                f"{100 * (chosen < plain).mean():.1f}",
            ]
        )
    head = ["set", "points", "dimension", "k", "plain", "k=5", "k=20", "defaults", "harm"]
    return table("The defaults on these sets and on others", head, rows)


def main():
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    warnings.simplefilter("ignore", ConvergenceWarning)
    sets = [datasets.load(name) for name in SETS]
    base = [precisions(Distance(), dataset) for dataset in sets]
    readings = [
        (f"{n} alternations, {name}", {"max_iter": n, **parameters})
        for name, parameters in (
            ("own gamma", {"gamma": "own"}),
            ("shared gamma", {"gamma": "shared"}),
            ("shared gamma, local", {"gamma": "shared", "candidates": "local"}),
        )
        for n in (2, 10)
    ]
    raw = [(f"{n} alternations, scale=None", {"max_iter": n, "scale": None}) for n in (2, 10)]
    lines = [
        "# Measured: defaults",
        "",
        "Printed by `benchmarks/defaults.py`; do not edit. Precision at the number of relevant",
        "points in per cent, the query left out; harm is the share of queries in per cent that",
        "come out worse than under plain distance. Every point is a query, except under Several",
        "alternations: there 60 queries a set, so that its figures for one alternation differ from",
        "those above. iris, wine and cancer are standardised; yale and orl are distance matrices.",
        *one_alternation(sets, base),
        *several_alternations(sets, "Several alternations", readings + raw),
        *confirmation(sets),
    ]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
