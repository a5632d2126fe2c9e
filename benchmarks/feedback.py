"""Does marking results help, and what should a wrong one weigh? Three rounds of feedback.

A query is asked; of the first 10 results that are not marked yet, those of its class are marked as
right and become positive examples of weight 1, the others are marked as wrong and become negative
examples, and it is asked again: three rounds. "Positives only" makes no use of the wrong ones. The
same random points of every set are the queries of all methods; the weight of wrong ones
is chosen for each method on one half of them and reported on the other.

Two figures, both in per cent. *With marks* is what a user sees: right ones stay at the top,
wrong ones go to the end, and precision is measured at the number of relevant points, the first
query left out. *Unmarked* is precision on points without a mark alone, at the number of relevant
ones among them. The marked ones were the easy ones, so it may fall from round to round; its gain is
over the first ranking on the same points. Needs the folder RANKFOLD_DATA.
"""

import os
import warnings

import numpy as np
from joblib import Parallel, delayed
from kit.pictures import GREEN, GREY, INK, RIGHT, WRONG, plot
from kit.report import Goal, options, publish, table, versions
from sklearn.exceptions import ConvergenceWarning

from rankfold import RAN, Distance, ExactEngine, ManifoldRanking, Query, datasets
from rankfold.types import NEGATIVE_WEIGHT

SETS = ("usps", "coil20", "digits")
N_QUERIES, N_ROUNDS, N_MARKED = 200, 3, 10
METHODS = {"RAN": RAN, "plain distance": Distance, "manifold ranking": ManifoldRanking}
WEIGHTS = {
    "RAN": (None, 0.0, -0.1, -0.25, -0.5, -1.0),
    "plain distance": (None, -0.25, -0.5, -1.0),
    "manifold ranking": (None, -0.25, -0.5, -1.0),
}
HALVES = {"chosen on": slice(0, None, 2), "checked on": slice(1, None, 2)}


def described(weight):
    return "positives only" if weight is None else f"{weight:g}"


def distances(dataset):
    """Measure all squared distances once; many queries with many examples need them."""
    engine = ExactEngine(dataset.X)
    ids = np.arange(engine.n_points)
    return np.array(list(engine.sq_distances(ids, np.empty((0, engine.n_features)))))


def ask(ranker, right, wrong, weight):
    """Return the unmarked points, best first."""
    query = Query(right) if weight is None else Query.from_feedback(right, wrong, weight)
    found = ranker.rank_many([query])[0].indices
    return found[~np.isin(found, wrong)]


def course(ranker, relevant, point, weight):
    """Yield after every round: precision with marks, on unmarked points, and of the first there."""
    right, wrong, first = [int(point)], [], None
    n_relevant = int(relevant.sum()) - 1
    for _ in range(N_ROUNDS + 1):
        found = ask(ranker, right, wrong, weight)
        first = found if first is None else first[~np.isin(first, [*right, *wrong])]
        n_left = n_relevant + 1 - len(right)
        hits, hits_before = (int(relevant[order[:n_left]].sum()) for order in (found, first))
        share = 1.0 / n_left if n_left else np.nan
        yield (n_relevant - n_left + hits) / n_relevant, hits * share, hits_before * share
        marked = found[:N_MARKED]
        right += marked[relevant[marked]].tolist()
        wrong += marked[~relevant[marked]].tolist()


def measure(name, squared, labels, method, weight):
    """Return figures by query, round and measure, in per cent."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    ranker = METHODS[method](metric="precomputed_sq").fit(squared)
    queries = np.random.default_rng(0).permutation(len(labels))[:N_QUERIES]
    courses = [list(course(ranker, labels == labels[q], q, weight)) for q in queries]
    print(f"{name}: {method}, {described(weight)}", flush=True)
    return (name, method, weight), 100 * np.array(courses)


def compare(found):
    """Yield the mean over sets and rounds for every weight and each half of the queries."""
    for method, weights in WEIGHTS.items():
        for weight in weights:
            row = {"method": method, "wrong ones": described(weight)}
            for half, queries in HALVES.items():
                means = [found[name, method, weight][queries, 1:, 0].mean() for name in SETS]
                row[f"{half} half"] = round(float(np.mean(means)), 2)
            yield row


def choose(found, method):
    """Return the weight of wrong ones that is best on the half to choose on."""
    queries = HALVES["chosen on"]

    def quality(weight):
        return np.mean([found[name, method, weight][queries, 1:, 0].mean() for name in SETS])

    return max(WEIGHTS[method][1:], key=quality)


def rows_of(found, name):
    for (of, method, weight), values in found.items():
        if of == name:
            row = {"method": method, "wrong ones": described(weight)}
            means = np.nanmean(values, axis=0)
            for done in range(N_ROUNDS + 1):
                row[f"with marks, {done}"] = round(float(means[done, 0]), 2)
            for done in range(1, N_ROUNDS + 1):
                after, before = means[done, 1:]
                row[f"unmarked, {done} (gain)"] = f"{after:.1f} ({after - before:+.1f})"
            yield row


def judge(found):
    goals = [
        Goal("weight chosen here, and NEGATIVE_WEIGHT of the library: difference",
             abs(choose(found, "RAN") - NEGATIVE_WEIGHT), most=0.0),
    ]  # fmt: skip
    checked = HALVES["checked on"]
    for name in SETS:
        values = found[name, "RAN", NEGATIVE_WEIGHT]
        steps = np.diff(values[:, :, 0].mean(axis=0))
        what = f"{name}: gain of a round over the one before, with marks, at least"
        goals.append(Goal(what, float(steps.min()), least=0.01, unit="points"))
        gains = np.nanmean(values[:, 1:, 1] - values[:, 1:, 2], axis=0)
        what = f"{name}: gain of a round over the first ranking, unmarked, at least"
        goals.append(Goal(what, float(gains.min()), least=0.01, unit="points"))
        both = (found[name, "RAN", weight][checked, 1:, 0].mean() for weight in
                (NEGATIVE_WEIGHT, None))  # fmt: skip
        what = f"{name}: negatives beside positives only, with marks, queries not chosen on"
        goals.append(Goal(what, float(next(both) - next(both)), least=0.0, unit="points"))
    return goals


def picture(found):
    figure, panels = plot(
        "Three rounds of feedback: wrong results teach as well",
        f"Mean of {N_QUERIES} queries, {N_MARKED} results marked a round; precision at the number "
        "of relevant points in per cent, marks kept",
        n_panels=len(SETS),
        size=(11.5, 4.9),
    )
    best = {method: choose(found, method) for method in METHODS}
    colors = {"RAN": RIGHT, "plain distance": WRONG, "manifold ranking": GREEN}
    for axes, name in zip(panels, SETS, strict=True):
        for method, color in colors.items():
            for weight, style in ((best[method], "-o"), (None, ":o")):
                y = found[name, method, weight][:, :, 0].mean(axis=0)
                axes.plot(range(len(y)), y, style, color=color, markersize=4,
                          linewidth=2.2 if weight is not None else 1.4)  # fmt: skip
        axes.set_title(name, color=INK, fontsize=11, loc="left")
        axes.set(xlabel="rounds", xticks=range(N_ROUNDS + 1), ylim=(45, 100))
    panels[0].set_ylabel("precision")
    for (method, color), place in zip(colors.items(), (0.06, 0.25, 0.52), strict=True):
        text = f"{method}, wrong ones weigh {best[method]:g}"
        figure.text(place, 0.035, f"● {text}", color=color, fontsize=9)
    figure.text(0.82, 0.035, "dotted: positives only", color=GREY, fontsize=9)
    figure.subplots_adjust(left=0.06, right=0.97, top=0.77, bottom=0.2, wspace=0.16)
    return figure


def main():
    arguments = options(__doc__).parse_args()
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    loaded = {name: datasets.load(name) for name in SETS}
    known = {name: (distances(dataset), dataset.labels) for name, dataset in loaded.items()}
    tasks = [
        delayed(measure)(name, *known[name], method, weight)
        for name in SETS
        for method, weights in WEIGHTS.items()
        for weight in weights
    ]
    found = dict(Parallel(n_jobs=os.cpu_count())(tasks))
    heading = "The weight of wrong ones: mean over the sets and rounds 1 to 3, with marks"
    tables = {heading: table(compare(found))}
    for name in SETS:
        tables[f"{name}, after 0 to {N_ROUNDS} rounds"] = table(rows_of(found, name))
    intro = [
        *"\n\n".join(__doc__.split("\n\n")[1:]).rstrip().splitlines(),
        "",
        f"{N_QUERIES} queries a set. " + versions("rankfold", "numpy", "scipy"),
    ]
    alt = "Precision after 0 to 3 rounds of feedback on three sets, with and without negatives."
    publish("feedback", "relevance feedback", intro, tables, judge(found),
            picture(found), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
