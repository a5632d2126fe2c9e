"""Does the rule that chooses between push and gradients choose well? Smoothness from 0.1 to 100.

The region solver, here without a budget, pushes until that passes the edges of the region too
often, and then lets conjugate gradients on the region do the bulk. Beside it, in turns: push
alone, gradients on the region alone, and SciPy's conjugate gradients on the whole graph, to the
same tolerance. Those on regions stop when the best 100 are certain or no score can be off by more
than 1e-6.
Push that took 15 times as long as the rule is left out for larger values, where it falls
further behind; gradients, which gain there, are measured everywhere.

Needs the folder RANKFOLD_DATA.
"""

from math import inf

import numpy as np
from kit.graphs import (
    GlobalGradients,
    draw,
    many_sheets,
    mnist,
    region_solver,
    solved,
    whole_system,
)
from kit.pictures import GREEN, GREY, INK, RIGHT, WRONG, label_ends, plot, pretty
from kit.report import Goal, options, publish, table, versions
from kit.timing import take_turns

from rankfold.graph import AdaptiveGraph

SMOOTHNESS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
NEIGHBORS, TOP, TOL = 10, 100, 1e-6
N_QUERIES, MOST_SECONDS, HOPELESS = 50, 6.0, 15
RULE, PUSH, REGION, WHOLE = "the rule", "push alone", "gradients alone", "SciPy, whole graph"
COLORS = {RULE: RIGHT, PUSH: WRONG, REGION: GREEN, WHOLE: GREY}


def methods_for(weights, smoothness):
    """Return a function of the query for every solver."""
    solvers = {
        RULE: region_solver(weights, smoothness),
        PUSH: region_solver(weights, smoothness, patience=inf),
        REGION: region_solver(weights, smoothness, patience=0.0, whole_share=inf),
    }
    methods = {name: lambda q, s=solver: solved(s, q, TOL, TOP) for name, solver in solvers.items()}
    gradients = GlobalGradients(whole_system(weights, smoothness))
    methods[WHOLE] = lambda q: gradients(q, atol=TOL)
    return methods


def measure(name, engine):
    """Yield a row for every smoothness."""
    weights = AdaptiveGraph(NEIGHBORS).build(engine)
    queries, push_is_hopeless = draw(engine.n_points, N_QUERIES), False
    for smoothness in SMOOTHNESS:
        methods = methods_for(weights, smoothness)
        if push_is_hopeless:
            del methods[PUSH]
        timed = take_turns(methods, queries, MOST_SECONDS)
        medians = {method: result.median for method, result in timed.items()}
        single = {method: median for method, median in medians.items() if method != RULE}
        quickest = min(single, key=single.get)
        touched = [found.n_touched for found in timed[RULE].answers.values()]
        certified = [found.certified for found in timed[RULE].answers.values()]
        yield {
            "data": name,
            "smoothness": smoothness,
            **{
                f"{method} ms": 1e3 * medians[method] if method in medians else "-"
                for method in COLORS
            },
            "best single solver": quickest,
            "rule / best single": medians[RULE] / single[quickest],
            "points touched": float(np.median(touched)),
            "certified": float(np.mean(certified)),
        }
        push_is_hopeless |= medians.get(PUSH, 0) > HOPELESS * medians[RULE]


def judge(rows):
    worst = max(rows, key=lambda row: row["rule / best single"])
    where = f"{worst['data']}, smoothness {worst['smoothness']:g}: {worst['best single solver']}"
    what = f"the rule / the best single solver, at worst ({where})"
    return [Goal(what, worst["rule / best single"], most=1.5)]


def picture(rows):
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, panels = plot(
        "The rule, and each solver by itself",
        "Median time of a query for the best 100, by smoothness",
        n_panels=len(names),
        size=(11.0, 5.2),
    )
    for axes, name in zip(panels, names, strict=True):
        ends = []
        for method, color in COLORS.items():
            shown = [row for row in rows if row["data"] == name and row[f"{method} ms"] != "-"]
            x = [row["smoothness"] for row in shown]
            y = [row[f"{method} ms"] for row in shown]
            axes.plot(x, y, "-o", color=color, markersize=4, linewidth=3 if method == RULE else 1.5,
                      zorder=3 if method == RULE else 2)  # fmt: skip
            if x[-1] == SMOOTHNESS[-1]:
                ends.append((y[-1], f"{method}, {pretty(y[-1] / 1e3)}", color))
            else:
                axes.annotate(method, (x[-1], y[-1]), (-4, 7), textcoords="offset points",
                              color=color, fontsize=9, ha="right")  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="smoothness", ylabel="milliseconds")
        label_ends(axes, SMOOTHNESS[-1], ends)
        axes.set_title(name, color=INK, fontsize=11, loc="left")
        axes.set_xticks(SMOOTHNESS, [f"{value:g}" for value in SMOOTHNESS])
        axes.minorticks_off()
    figure.subplots_adjust(left=0.07, right=0.83, top=0.77, wspace=0.85)
    return figure


def main():
    arguments = options(__doc__).parse_args()
    rows = []
    for name, make in {"MNIST": mnist, "sheets": lambda: many_sheets(100_000)}.items():
        rows += table(measure(name, make()))
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"MNIST (70,000 x 784) and 100,000 points on 10 sheets, graphs of {NEIGHBORS} neighbours. "
        f"Medians over up to {N_QUERIES} queries. " + versions("rankfold", "scipy", "numba"),
    ]
    alt = "Time of a query against smoothness, for the rule and for each solver alone."
    publish("smoothness", "solvers by smoothness", intro, {"All solvers": rows}, judge(rows),
            picture(rows), alt, arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
