"""How much recall do neighbour lists need? Rankings along lists of less and less of it.

Lists are found by the index of FAISS with less and less effort, an inverted file or a graph (HNSW),
and the share of true neighbours in them is measured on a sample of the points. RAN ranks with its
defaults, and by shape alone, on the graph of these lists and on that of the true ones. *Agreement*
is the share of the same points among the first ten and the first hundred. P@10, P@100 and
R-precision count points with the label of the query; where classes are larger than a thousand,
R-precision is left out. Queries are the same in every row.

The default recall was chosen on the first group of sets and is reported on the second.
"""

import json
import os
from pathlib import Path

import numpy as np
from kit.pictures import GREY, INK, RIGHT, WRONG, plot
from kit.report import OUT, Goal, options, publish, table, versions

from rankfold import RAN, FaissEngine, datasets
from rankfold.types import DEFAULT_RECALL

CHOSEN, TESTED = "chosen on", "tested on"
TARGETS = (0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 0.999)
KINDS = ("ivf", "hnsw")
WAYS = {"defaults": {}, "shape alone": {"fusion": "none"}}
N_QUERIES, TOP, LARGEST = 500, 100, 1000
SPAN = 6
"""Points of per cent from the lower to the upper edge of each picture."""


def sets():
    """Yield the sets: group, name, vectors, labels and metric."""
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    data = Path(os.environ["RANKFOLD_DATA"])
    debian = np.load(data / "debian_minilm384.npz")
    yield CHOSEN, "Debian, MiniLM", debian["X"], debian["y"], "cosine"
    mnist = datasets.load("mnist")
    yield CHOSEN, "MNIST", mnist.X, mnist.labels, "euclidean"
    reuters = np.load(data / "text_reuters_r8_wl256.npz")
    yield TESTED, "Reuters R8, WordLlama", reuters["X"], reuters["y"], "cosine"
    spoken = np.load(data / "fsdd_mfcc.npz")
    yield TESTED, "spoken digits", spoken["X"], spoken["y"], "euclidean"


class Answers:
    """Rankings along the lists of an engine, in every way."""

    def __init__(self, engine, metric, queries, depth):
        self.recall = engine.recall_
        self.found = {}
        for way, settings in WAYS.items():
            ranker = RAN(metric=metric, **settings).fit(engine)
            rankings = ranker.rank_many(queries, top=depth, n_jobs=2)
            self.found[way] = [ranking.indices for ranking in rankings]

    def agreement(self, true, way, depth):
        """Return the share of the same points among the first."""
        pairs = zip(self.found[way], true.found[way], strict=True)
        return np.mean([len(np.intersect1d(a[:depth], b[:depth])) / depth for a, b in pairs])

    def precision(self, labels, queries, way, depths):
        """Return the share of right points among the first, to a depth for each query."""
        shares = [
            (labels[found[:depth]] == labels[query]).mean()
            for query, found, depth in zip(queries, self.found[way], depths, strict=True)
            if depth
        ]
        return float(np.mean(shares))


def measure(group, name, X, labels, metric):
    """Yield a row for every index, effort and way."""
    X, labels = np.asarray(X, dtype=np.float32), np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(labels)[labels] - 1
    queries = np.random.default_rng(0).choice(len(X), N_QUERIES, replace=False)
    relevant = sizes[queries]
    small = bool(relevant.max() <= LARGEST)
    depth = max(TOP, int(relevant.max())) if small else TOP
    true = Answers(FaissEngine(X, metric, index="flat"), metric, queries.tolist(), depth)
    known = {("exact", 1.0): true}
    for kind in KINDS:
        for target in TARGETS:
            engine = FaissEngine(X, metric, target, kind)
            if engine.index_ == kind and (kind, engine.recall_) not in known:
                known[kind, engine.recall_] = Answers(engine, metric, queries.tolist(), depth)
    for way in WAYS:
        for (kind, recall), answers in sorted(known.items(), key=lambda item: item[0][1]):
            yield {
                "group": group, "set": name, "way": way, "index": kind, "recall": recall,
                "agreement @10": answers.agreement(true, way, 10),
                "agreement @100": answers.agreement(true, way, TOP),
                "P@10": 100 * answers.precision(labels, queries, way, [10] * N_QUERIES),
                "P@100": 100 * answers.precision(labels, queries, way, [TOP] * N_QUERIES),
                "R-precision": 100 * answers.precision(labels, queries, way, relevant)
                if small else None,
            }  # fmt: skip


def losses(rows):
    """Yield what is lost at or above the default recall, beside exact lists."""
    for row in rows:
        if DEFAULT_RECALL <= row["recall"] < 1:
            same = ("set", "way")
            (exact,) = (
                other for other in rows
                if other["index"] == "exact" and all(other[k] == row[k] for k in same)
            )  # fmt: skip
            for measure in ("P@10", "P@100", "R-precision"):
                if row[measure] is not None:
                    yield {**row, "measure": measure, "loss": exact[measure] - row[measure]}


def picture(rows):
    names = list(dict.fromkeys(row["set"] for row in rows))
    figure, panels = plot(
        "Lists need not have all true neighbours",
        "P@100 with the defaults over the recall of the lists, per cent; a line at the default",
        len(names),
    )  # fmt: skip
    for axes, name in zip(panels, names, strict=True):
        for kind, color in zip(KINDS, (GREY, RIGHT), strict=True):
            of_kind = [row for row in rows if row["index"] in (kind, "exact")]
            line = [
                (row["recall"], row["P@100"]) for row in of_kind
                if row["set"] == name and row["way"] == "defaults"
            ]  # fmt: skip
            axes.plot(*zip(*line, strict=True), color=color, marker="o", linewidth=2, label=kind)
        own = [row for row in rows if row["set"] == name and row["way"] == "defaults"]
        shown = [row["P@100"] for row in own]
        middle = (min(shown) + max(shown)) / 2
        axes.set_ylim(middle - SPAN / 2, middle + SPAN / 2)
        axes.axvline(DEFAULT_RECALL, color=WRONG, linewidth=1)
        axes.set_title(name.split(",")[0], loc="left", color=INK, fontsize=11, weight="bold")
        axes.set_xlabel("recall")
        axes.legend(frameon=False, labelcolor="linecolor", fontsize=10)
    return figure


def main():
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true", help="print the results of the last run")
    arguments = parser.parse_args()
    if arguments.again:
        known = json.loads((OUT / "list_recall.json").read_text())
        rows = table(row for group in (CHOSEN, TESTED) for row in known[group])
    else:
        rows = table(row for one in sets() for row in measure(*one))
    goals = []
    for group in (CHOSEN, TESTED):
        lost = [row["loss"] for row in losses(rows) if row["group"] == group]
        what = (
            f"{group}: most that is lost with recall {DEFAULT_RECALL} or more, points of per cent"
        )
        goals.append(Goal(what, max(lost, default=0.0), most=0.5))
    intro = [*__doc__.splitlines(), versions("rankfold", "faiss-cpu")]
    tables = {group: [r for r in rows if r["group"] == group] for group in (CHOSEN, TESTED)}
    publish(
        "list_recall", "recall of neighbour lists", intro, tables, goals, picture(rows),
        "Precision over the recall of neighbour lists.", arguments.docs,
    )  # fmt: skip


if __name__ == "__main__":
    main()
