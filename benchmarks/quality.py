"""The quality of the defaults beside plain distance, at every depth, chosen and tested apart.

RAN with its defaults, beside plain distance and beside ``fusion="none"``, which is the paper's
ranking by shape alone, and reciprocal rank fusion of both. The same defaults everywhere. The weight
of distance, the horizon and the number of neighbours were chosen on the sets that the column *used*
calls *chosen on*; those called *tested on* had no part in it, but for one older choice: two of the
three corpora of texts were at hand when twenty neighbours were set for dimensions above 10. On
labelled sets every point is a query, or 500 drawn at random, and a result is right if it has the
query's label. On search collections queries are unseen questions, and right is what was judged
relevant. Harm is the share of queries that come out worse than by plain distance, at ten results;
gains are in points of per cent, with 95 % intervals over queries. By default the nearest neighbour
stays first, so that P@1 is that of plain distance by construction, but for ties.

Needs the folder RANKFOLD_DATA and the extra "bench".
"""

import os
import warnings
from pathlib import Path

import numpy as np
from images import spaces
from kit import collections
from kit.pictures import GREY, INK, RIGHT, WRONG, plot
from kit.report import Goal, options, publish, table, versions
from scipy.io import loadmat
from sklearn import datasets as sklearn_sets
from sklearn.exceptions import ConvergenceWarning
from sources.image_model import ImageModel
from text import corpora

from rankfold import RAN, Dataset, datasets, evaluate
from rankfold.evaluation.measures import bootstrap_interval, share_worse

CHOSEN, TESTED = "chosen on", "tested on"
SHAPE, FUSED, RANKS = "shape alone", "default", "reciprocal ranks"
METHODS = {SHAPE: RAN(fusion="none"), FUSED: RAN(), RANKS: RAN(fusion="reciprocal_rank")}
LABELLED = ("precision@1", "precision@10", "precision@50", "r_precision", "average_precision@1000")
SEARCHED = ("ndcg@10", "average_precision", "recall@100", "precision@1", "precision@10")
KEEPS = ("coil20", "umist", "usps", "digits", "mpeg7", "leaves v0", "leaves v1", "leaves v2")
N_QUERIES, BRIEF = 500, 60
MOST_HARM, MOST_HARM_ANYWHERE, LEAST_KEPT = 0.09, 0.20, 0.90
SHORT = {
    "precision@1": "P@1", "precision@10": "P@10", "precision@50": "P@50", "r_precision": "RP",
    "average_precision@1000": "mAP", "average_precision": "mAP", "ndcg@10": "nDCG@10",
    "recall@100": "recall@100",
}  # fmt: skip


def folder():
    return Path(os.environ["RANKFOLD_DATA"])


def standardised(X):
    X = np.asarray(X, dtype=np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def from_file(name, file, key="X", scale=False, metric="euclidean"):
    with np.load(folder() / file, allow_pickle=False) as content:
        X, labels = content[key], np.unique(content["y"], return_inverse=True)[1]
    X = standardised(X) if scale else X.astype(np.float32 if metric == "cosine" else np.float64)
    return Dataset(name, np.ascontiguousarray(X), labels, metric)


def whole_usps():
    content = loadmat(folder() / "usps_1854.mat")
    return Dataset("usps", content["X"].astype(np.float64), content["Y"].ravel().astype(int))


def part_of_mnist(n_points):
    digits, rows = datasets.load("mnist"), np.random.default_rng(0).permutation(70_000)[:n_points]
    return Dataset(f"mnist {n_points:,}", digits.X[rows], digits.labels[rows])


def of_sklearn(name, load):
    data = load()
    return Dataset(name, standardised(data.data), data.target)


def chosen_on():
    """Yield the sets on which settings were chosen."""
    yield datasets.load("coil20")
    yield datasets.load("umist")
    yield whole_usps()
    yield datasets.load("digits")
    yield from_file("mpeg7", "mpeg7_shapes.npz")
    for view in ("v0", "v1", "v2"):
        yield from_file(f"leaves {view}", "leaves100.npz", view, scale=True)
    yield from_file("spoken digits", "fsdd_mfcc.npz", scale=True)
    yield from_file("blood cells", "pbmc68k_reduced.npz", "pca")
    for name, file in {"vowel": "vowel.npz", "vehicle": "vehicle.npz"}.items():
        yield from_file(name, file, scale=True)
    yield from_file("gunpoint", "ts_gunpoint.npz", scale=True)
    yield datasets.load("orl")
    yield datasets.load("yale")
    yield of_sklearn("wine", sklearn_sets.load_wine)
    yield of_sklearn("cancer", sklearn_sets.load_breast_cancer)
    yield of_sklearn("iris", sklearn_sets.load_iris)
    yield part_of_mnist(20_000)
    yield from_file("reuters r8, WordLlama", "text_reuters_r8_wl256.npz", metric="cosine")
    yield from_file("debian 20,000, MiniLM", "debian_minilm384.npz", metric="cosine")


def tested_on():
    """Yield sets that had no part in it: texts, and images by features of a network."""
    for corpus in corpora():
        yield Dataset(f"{corpus.name}, WordLlama", corpus.X, corpus.labels, corpus.metric)
    model = ImageModel.load()
    for name in ("coil20", "umist", "usps"):
        features = spaces(datasets.load(name), model)["features"]
        yield Dataset(f"{name}, network", features.X, features.labels, features.metric)


def gain(found, method, metric):
    """Return the mean gain over plain distance and its interval, in points of per cent."""
    difference = found.values[method][metric] - found.plain[metric]
    low, high = (100 * float(end[0]) for end in bootstrap_interval(difference[:, None]))
    return 100 * float(difference.mean()), low, high


def harm(found, method, metric="precision@10"):
    return share_worse(found.values[method][metric], found.plain[metric])


def rows_of(found, used, metrics):
    """Yield a row for every method: gains with their intervals, and harm."""
    plain = {
        f"plain {SHORT[metric]}": f"{100 * found.plain[metric].mean():.1f}" for metric in metrics
    }
    yield {"set": found.dataset, "used": used, "queries": len(found.queries), "method": "plain",
           **{SHORT[metric]: plain[f"plain {SHORT[metric]}"] for metric in metrics},
           "harm at 10 %": ""}  # fmt: skip
    for method in METHODS:
        cells = {}
        for metric in metrics:
            mean, low, high = gain(found, method, metric)
            cells[SHORT[metric]] = f"{mean:+.1f} ({low:+.1f}, {high:+.1f})"
        yield {"set": found.dataset, "used": used, "queries": len(found.queries), "method": method,
               **cells, "harm at 10 %": f"{100 * harm(found, method):.1f}"}  # fmt: skip


def measured(sets, used, brief):
    for dataset in sets:
        n_queries = min(BRIEF if brief else N_QUERIES, len(dataset.labels))
        found = evaluate(METHODS, dataset, LABELLED, queries=eligible(dataset, n_queries))
        if not found.complete:
            raise KeyboardInterrupt
        yield used, found


def eligible(dataset, n_queries):
    """Return rows whose label others have too: all, or some at random."""
    counts = np.bincount(dataset.labels)[dataset.labels]
    rows = np.flatnonzero(counts > 1)
    rng = np.random.default_rng(0)
    return np.sort(rng.permutation(rows)[:n_queries])


def searched(brief):
    for name in collections.COLLECTIONS:
        for model in collections.MODELS:
            collection = collections.load(name, model)
            queries = BRIEF // 3 if brief else "all"
            yield evaluate(METHODS, collection, SEARCHED, queries=queries)


def summary(labelled):
    """Yield means over the sets, chosen on and tested on apart."""
    for used in (CHOSEN, TESTED):
        some = [found for which, found in labelled if which == used]
        for method in METHODS:
            row = {"used": used, "sets": len(some), "method": method}
            for metric in LABELLED:
                gains = [gain(found, method, metric)[0] for found in some]
                row[f"{SHORT[metric]}, mean"] = f"{np.mean(gains):+.2f}"
                row[f"{SHORT[metric]}, worst set"] = f"{min(gains):+.1f}"
            harms = [harm(found, method) for found in some]
            row |= {"harm at 10 %, mean": f"{100 * np.mean(harms):.1f}",
                    "harm at 10 %, worst set": f"{100 * max(harms):.1f}"}  # fmt: skip
            yield row


def judge(labelled, collected):
    """Return the goals; a set loses where the whole interval is below zero."""
    every = [found for _, found in labelled] + collected
    harms = [harm(found, FUSED) for _, found in labelled]

    def losing(metric, some):
        return sum(gain(found, FUSED, metric)[2] < 0 for found in some if metric in found.plain)

    kept = {
        method: np.mean([gain(found, method, "r_precision")[0] for _, found in labelled
                         if found.dataset in KEEPS])
        for method in METHODS
    }  # fmt: skip
    lowest = min(
        gain(found, FUSED, metric)[0]
        for found in collected
        for metric in ("ndcg@10", "average_precision", "recall@100")
    )
    labelled_only = [found for _, found in labelled]
    return [
        Goal("sets and collections that lose P@1, beyond the interval",
             losing("precision@1", every), most=0),
        Goal("sets and collections that lose P@10, beyond the interval",
             losing("precision@10", every), most=0),
        Goal("sets that lose RP, beyond the interval", losing("r_precision", labelled_only),
             most=0),
        Goal("sets that lose mAP, beyond the interval",
             losing("average_precision@1000", labelled_only), most=0),
        Goal("harm at 10, mean over sets", float(np.mean(harms)), most=MOST_HARM),
        Goal("harm at 10, worst set", max(harms), most=MOST_HARM_ANYWHERE),
        Goal("gain of RP on COIL-20, UMIST, USPS, digits, MPEG-7 and leaves, of what shape alone "
             "gains", kept[FUSED] / kept[SHAPE], least=LEAST_KEPT),
        Goal("least gain of nDCG@10, mAP and recall@100 on MED and Cranfield, in points", lowest,
             least=0.0),
    ]  # fmt: skip


def picture(labelled):
    figure, panels = plot(
        "By default: near points stay ahead, and shape decides further down",
        "Gain over plain distance in points of per cent, a dot a set: P@10 and precision at class "
        "size", 2, size=(11, 6.8),
    )  # fmt: skip
    for axes, metric in zip(panels, ("precision@10", "r_precision"), strict=True):
        for place, (_, found) in enumerate(labelled):
            shape, fused = (gain(found, method, metric)[0] for method in (SHAPE, FUSED))
            axes.plot([shape, fused], [place, place], color=GREY, linewidth=1, zorder=1)
            axes.plot(shape, place, "o", color=WRONG, markersize=5, zorder=2)
            axes.plot(fused, place, "o", color=RIGHT, markersize=6, zorder=3)
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_title(SHORT[metric], loc="left", color=INK, fontsize=11, weight="bold")
        axes.set_ylim(len(labelled), -1)
        axes.set_yticks([])
        axes.set_xlabel("points")
    names = [f"{found.dataset}{' *' if used == TESTED else ''}" for used, found in labelled]
    panels[0].set_yticks(range(len(names)), names, fontsize=8)
    legend = {"shape alone": WRONG, "the default": RIGHT, "* tested on": INK}
    for place, (text, color) in enumerate(legend.items()):
        panels[1].text(0.98, 0.62 - 0.04 * place, text, color=color, fontsize=10, ha="right",
                       weight="bold", transform=panels[1].transAxes)  # fmt: skip
    figure.subplots_adjust(left=0.2)
    return figure


def main():
    parser = options(__doc__)
    parser.add_argument("--brief", action="store_true", help="few queries, no page worth keeping")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    labelled, rows = [], []
    for some, used in ((chosen_on(), CHOSEN), (tested_on(), TESTED)):
        for which, found in measured(some, used, arguments.brief):
            labelled.append((which, found))
            rows += table(rows_of(found, which, LABELLED))
    collected, search_rows = [], []
    for found in searched(arguments.brief):
        collected.append(found)
        search_rows += table(rows_of(found, CHOSEN, SEARCHED))
    tables = {
        "Means over the labelled sets": table(summary(labelled)),
        "Search": search_rows,
        "Every labelled set": rows,
    }
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold", "scikit-learn")]
    alt = "By default no set is below plain distance at ten results by more than chance."
    publish("quality", "quality of the defaults", intro, tables, judge(labelled, collected),
            picture(labelled), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
