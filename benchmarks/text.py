"""Does shape help where texts are searched by meaning? Two corpora, and questions in plain words.

Two corpora of short texts become vectors of 256 numbers by WordLlama, a small model that averages
what it knows of words. *Functions*: what the public functions and classes of NumPy, SciPy and
scikit-learn are for, in the first paragraph of their documentation, without the names of modules
and without duplicates; right is what has the same subject (the name of the subpackage).
*Diagnoses*: the categories of ICD-10-CM; right is what is in the same chapter. Subjects and
chapters with fewer than 20 texts are left out.

A random half of the texts, the same share of every label, are the queries on which the number of
neighbours is chosen by R-precision; all figures of the first table are from the other half.
Gain is the mean difference from plain search by cosine, with its interval; harm and helped
are the shares of queries that come out worse and better than it. The questions in
plain words are one for each subject, and RAN has the chosen number of neighbours there, too.
"""

import sys
from pathlib import Path

import numpy as np
from kit import diagnoses
from kit.gains import gain_rows
from kit.pictures import GREY, INK, RIGHT, WRONG, plot
from kit.report import options, publish, table, versions

from rankfold import RAN, AdaptiveGraph, Dataset, Euclidean, ManifoldRanking, evaluate, tune

sys.path.append(str(Path(__file__).parents[1] / "examples"))  # what it searches in is there

from sources import docstrings
from sources.questions import QUESTIONS
from sources.sentences import embed

METRICS = ("precision@10", "r_precision")
NEIGHBORS = (5, 10, 20, 40)
SHOWN, DEEPEST = 10, 100
DEFAULTS = {"cosine": Euclidean(), "RAN": RAN(), 'RAN, adapt="collective"': RAN(adapt="collective")}

READING = """
What it says: deep in the list shape gains on both corpora. At its top it gains little, and with the
defaults nothing: `n_neighbors="auto"` takes five neighbours here, which is right for thin curves,
while texts on one subject are a wide cloud. Twenty are better on both. The very first result is a
little more often right by cosine. So use shape for "show me all that there is about this", with 20
neighbours, and plain search where only the first few results count; and expect some queries to get
worse either way. A collective graph is not learned here: its rule keeps the plain one. Manifold
ranking on the same graph does less harm in the first ten, and gains less below.
"""


def corpora():
    """Yield every corpus as a data set."""
    texts = docstrings.load()
    yield labelled("functions", [text.words for text in texts], [text.subject for text in texts])
    yield labelled("diagnoses", *diagnoses.load())


def labelled(name, texts, labels):
    numbers = np.unique(labels, return_inverse=True)[1]
    return Dataset(name, embed(texts), numbers, metric="cosine")


def measure(dataset):
    """Return rows of the held-out half, rows of the half for choosing, and the choice."""
    grid = {"n_neighbors": list(NEIGHBORS)}
    tuning = tune(RAN(), dataset, grid, metric="r_precision", metrics=METRICS)
    chosen = tuning.best["n_neighbors"]
    others = DEFAULTS | {
        f"manifold ranking, k = {chosen}": ManifoldRanking(graph=AdaptiveGraph(chosen))
    }
    found = evaluate(others, dataset, METRICS, queries=tuning.held_out.queries)
    if not (tuning.complete and found.complete):
        raise KeyboardInterrupt
    named = {name: (found, name) for name in others}
    named[f"RAN, k = {chosen}"] = tuning.held_out, "tuned"
    also = {"corpus": dataset.name, "texts": len(dataset.X), "labels": len(set(dataset.labels))}
    choices = {f"k = {tuning.parameters[name]['n_neighbors']}": (tuning.candidates, name)
               for name in tuning.parameters}  # fmt: skip
    return list(gain_rows(named, **also)), list(gain_rows(choices, corpus=dataset.name)), chosen


def by_depth(dataset, ranker):
    """Return the share of right results among the first 1, 2, ... with every text as a query."""
    ids, _ = ranker.set_params(metric=dataset.metric).fit(dataset.X).rank_all(top=DEEPEST)
    right = (dataset.labels[ids] == dataset.labels[:, None]).mean(axis=0)
    return np.cumsum(right) / np.arange(1, DEEPEST + 1)


def picture(curves):
    figure, panels = plot(
        "Among texts, shape pays further down the list",
        "Right results among the first, per cent; every text is a query once", len(curves),
    )  # fmt: skip
    for axes, (name, lines) in zip(panels, curves.items(), strict=True):
        places = np.arange(1, DEEPEST + 1)
        for (method, line), color in zip(lines.items(), (GREY, WRONG, RIGHT), strict=True):
            axes.plot(places, 100 * line, color=color, linewidth=2, label=method)
        axes.set_title(name, loc="left", color=INK, fontsize=11, weight="bold")
        axes.set_xlabel("results")
        axes.set_ylim(0, 100)
        axes.legend(frameon=False, labelcolor="linecolor", fontsize=10)
    return figure


def ask(neighbors):
    """Return how many results of each question are right, and results side by side."""
    texts = docstrings.load()
    X, subjects = embed([text.words for text in texts]), np.array([text.subject for text in texts])
    rankers = {"cosine": Euclidean(metric="cosine"), "RAN": RAN(neighbors, metric="cosine")}
    rows, lists = [], {}
    found = {name: [ranker.fit(X).rank(vectors=one, top=2 * SHOWN).ids for one in
             embed(list(QUESTIONS))] for name, ranker in rankers.items()}  # fmt: skip
    for place, (question, subject) in enumerate(QUESTIONS.items()):
        ids = {name: answers[place] for name, answers in found.items()}
        right = {name: int((subjects[rows] == subject).sum()) for name, rows in ids.items()}
        rows.append({"question": question, "subject": subject, **right})
        lists[question] = [
            {name: f"`{texts[row].name}`" for name, row in zip(ids, pair, strict=True)}
            for pair in zip(*(each[:SHOWN] for each in ids.values()), strict=True)
        ]
    gain = [row["RAN"] - row["cosine"] for row in rows]
    return rows, {list(QUESTIONS)[place]: lists[list(QUESTIONS)[place]]
                  for place in (int(np.argmax(gain)), int(np.argmin(gain)))}  # fmt: skip


def main():
    arguments = options(__doc__.splitlines()[0]).parse_args()
    held_out, choices, curves, chosen = [], [], {}, {}
    for dataset in corpora():
        rows, choosing, chosen[dataset.name] = measure(dataset)
        held_out += table(rows)
        choices += choosing
        best = f"RAN, k = {chosen[dataset.name]}"
        rankers = {"cosine": Euclidean(), "RAN": RAN(), best: RAN(chosen[dataset.name])}
        curves[dataset.name] = {name: by_depth(dataset, each) for name, each in rankers.items()}
    rows, lists = ask(chosen["functions"])
    depths = [{"corpus": name, "method": method,
               **{f"first {n}": f"{100 * line[n - 1]:.1f}" for n in (1, 5, 10, 20, 50, DEEPEST)}}
              for name, lines in curves.items() for method, line in lines.items()]  # fmt: skip
    tables = {
        "Gain and harm": held_out,
        "By the number of neighbours, on the half that it is chosen on": choices,
        "By depth, per cent, every text a query": depths,
        f"Questions: right among the first {2 * SHOWN}": table(rows),
        **{f"First {SHOWN}: “{question}”": found for question, found in lists.items()},
    }
    packages = ("rankfold", "wordllama", "numpy", "scipy", "scikit-learn", "simple-icd-10-cm")
    intro = [*__doc__.splitlines()[2:], *READING.splitlines(), "", versions(*packages)]
    alt = "The share of right results falls with depth; more slowly by RAN with more neighbours"
    publish("text", "text", intro, tables, [], picture(curves), alt, arguments.docs)


if __name__ == "__main__":
    main()
