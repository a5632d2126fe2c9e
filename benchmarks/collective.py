"""One graph that is learned for all queries, beside the plain one.

All points are queries; precision at the number of relevant points in per cent, the query
left out, and the same settings everywhere. Gain is over one alternation, which is `RAN()`; harm
is the share of queries in per cent that come out worse than under plain distance. All queries of
a set are solved at once, by a dense inverse; on the smaller sets the library's own answers are
checked to be the same. Points of mnist are random, but the same in every run. Settings were
chosen on these sets, on the others and on moons and rings, so that none of them is a test of the
choice. Fresh samples of the same data, and the patterns drawn after all had been settled, were
not looked at before.

Needs the folder RANKFOLD_DATA. ``--brief`` takes 2,000 points of mnist in place of 10,000.
"""

import warnings

import numpy as np
from kit.all_queries import Judge, of_library, percent
from kit.collective_sets import drawn, drawn_later, fresh, others, seven
from kit.learned_graphs import SMOOTHNESS
from kit.pictures import GREEN, GREY, INK, RIGHT, WRONG, plot
from kit.report import Goal, options, publish, table, versions
from sklearn.exceptions import ConvergenceWarning

from rankfold import RAN
from rankfold.graph.adaptive import symmetrize

LARGE, SMALL, CHECKED = 10_000, 2_000, 600


def compare(dataset):
    """Return a row: plain distance, one alternation, the learned graph."""
    judge, found = Judge(dataset), []
    rankers = [RAN(adapt=adapt, metric=dataset.metric) for adapt in ("query", "collective")]
    for ranker in rankers:
        ranker.fit(dataset.X)
        found.append(judge.precisions(symmetrize(ranker.affinity_), SMOOTHNESS))
        if judge.n_points <= CHECKED:
            answered = of_library(ranker, dataset, np.arange(judge.n_points))
            if not np.allclose(answered, found[-1], atol=1e-9):
                raise SystemExit(f"{dataset.name}: the library answers otherwise than was solved")
    one, learned = found
    collective = rankers[1].collective_
    kept = [made.reach for made in collective.rounds if made.kept]
    return {
        "set": dataset.name,
        "points": judge.n_points,
        "k": rankers[0].n_neighbors_,
        "plain distance": percent(judge.plain),
        "one alternation": percent(one),
        "collective": percent(learned),
        "gain": percent(learned) - percent(one),
        "harm, one alternation": judge.harm(one),
        "harm, collective": judge.harm(learned),
        "rounds kept": collective.n_rounds,
        "k'": collective.n_neighbors,
        "reach": kept[-1] if kept else None,
        "reach of rounds not kept": ", ".join(
            f"{made.reach:.2f} (k' = {made.n_neighbors})"
            for made in collective.rounds if not made.kept
        ),
    }  # fmt: skip


def with_means(rows):
    """Return rows as they are printed, and their means below."""
    means = {
        key: float(np.mean([row[key] for row in rows]))
        for key in rows[0]
        if key not in ("points", "k", "k'", "rounds kept") and isinstance(rows[0][key], float)
        and key != "reach"
    }  # fmt: skip
    printed = [*rows, {**dict.fromkeys(rows[0]), "set": "mean", **means}]
    return [{key: shown(key, value) for key, value in row.items()} for row in printed]


def shown(key, value):
    if not isinstance(value, float):
        return value
    return f"{value:+.2f}" if key == "gain" else f"{value:.{1 if 'harm' in key else 2}f}"


def judged(rows):
    gains = [row["gain"] for row in rows]
    worst = min(rows, key=lambda row: row["gain"])
    more_harm = np.mean([row["harm, collective"] - row["harm, one alternation"] for row in rows])
    return [
        Goal("mean gain over one alternation", float(np.mean(gains)), least=2, unit="points"),
        Goal(f"gain on the worst set ({worst['set']})", min(gains), least=-0.5, unit="points"),
        Goal("harm, less that of one alternation, mean", float(more_harm), most=0, unit="points"),
    ]


LOOKS = {"plain distance": (GREY, "o"), "one alternation": (RIGHT, "o"), "collective": (GREEN, "D")}


def draw_rows(axes, rows):
    """Draw a line of three points for every set, and what is gained beside it."""
    for place, row in enumerate(reversed(rows)):
        values = [row[name] for name in LOOKS]
        axes.plot([min(values), max(values)], [place, place], color=GREY, linewidth=0.8, zorder=1)
        for name, (color, marker) in LOOKS.items():
            axes.plot(row[name], place, marker, color=color, markersize=7 if marker == "o" else 5)
        text, color = f"{row['gain']:+.1f}", WRONG if row["gain"] < -0.05 else GREEN
        if not row["rounds kept"]:
            text, color = "plain graph kept", GREY
        axes.annotate(text, (max(values), place), (9, -3.5), textcoords="offset points",
                      color=color, fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(rows)), [row["set"] for row in reversed(rows)], color=INK)
    axes.grid(axis="y", visible=False)
    axes.set_xlim(36, 118)
    axes.set_xticks(range(40, 101, 10))


def picture(chosen_on, new):
    """Return the figure: sets that settings were chosen on, and others."""
    figure, panels = plot(
        "One graph for every query",
        "Precision at the number of relevant points, per cent, every point a query; "
        "the number is the gain over one alternation",
        n_panels=2,
        size=(13.0, 7.6),
    )
    titles = ("settings were chosen on these", "looked at later: fresh samples, and patterns")
    for axes, rows, title in zip(panels, (chosen_on, new), titles, strict=True):
        draw_rows(axes, rows)
        axes.set_title(title, color=INK, fontsize=11, loc="left")
    handles = [panels[0].plot([], [], mark, color=color)[0] for color, mark in LOOKS.values()]
    figure.legend(handles, list(LOOKS), loc="lower center", ncols=3, frameon=False, fontsize=10,
                  labelcolor=GREY)  # fmt: skip
    figure.subplots_adjust(left=0.12, right=0.98, top=0.8, bottom=0.1, wspace=0.48)
    return figure


def main():
    parser = options(__doc__)
    parser.add_argument("--brief", action="store_true", help="with mnist 2,000")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = table(map(compare, seven(SMALL if arguments.brief else LARGE)))
    more = table(map(compare, others()))
    new, patterns = table(map(compare, fresh())), table(map(compare, drawn()))
    later = table(map(compare, drawn_later()))
    tables = {
        "Seven sets": with_means(rows),
        "Others": with_means(more),
        "Fresh samples": with_means(new),
        "Patterns that settings were chosen on": with_means(patterns),
        "Patterns drawn later": with_means(later),
    }
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions("rankfold")]
    alt = "Precision of plain distance, one alternation and the learned graph, for every set."
    publish("collective", "one graph for every query", intro, tables, judged(rows),
            picture(rows + more, new + later), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
