"""Iris, two of whose kinds touch: which queries get worse, and what k and the guard do there."""

from itertools import islice
from pathlib import Path

import numpy as np
from _frame import new_panels, open_chart, run, save
from matplotlib.axes import Axes
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from rankfold import RAN, Dataset, evaluate, tune
from rankfold.drawing import GREY, INK, RIGHT, WRONG
from rankfold.types import FloatArray

SIZES, TURNS = [3, 5, 8, 12, 20, 30, 60], 10
GRID: dict[str, list[float]] = {"n_neighbors": [5, 10, 20, 30], "smoothness": [1.0, 10.0, 30.0]}


def main(out: Path) -> dict[str, float]:
    """Measure every k, tune k and smoothness, and watch the worst of every fifth flower."""
    flowers = load_iris()
    iris = Dataset("iris", StandardScaler().fit_transform(flowers.data), flowers.target)
    found = evaluate({f"k = {k}": RAN(k) for k in SIZES}, iris, "r_precision")
    plain, rows = 100 * found.plain["r_precision"].mean(), found.table()
    tuned = tune(RAN(), iris, GRID, scoring="r_precision", metrics=["r_precision"])
    ranker = RAN(max_iter=TURNS).fit(iris.X)
    courses = {query: alternate(ranker, iris, query) for query in range(0, len(iris.X), 5)}
    query = max(courses, key=lambda row: float(courses[row][1][0] - courses[row][1][-1]))
    trace = ranker.rank(query).trace
    stop = trace.n_alternations if trace is not None and trace.stopped == "collapse" else TURNS
    figure, (means, harms, turns) = new_panels(
        "When shape hurts, and how to see it",
        "Iris: 150 flowers of three kinds, two of which touch. Every flower is a query.",
        [
            ("Right results (%)", "dashed: plain distance"),
            ("Queries made worse (%)", "some, with every k"),
            (f"Flower {query}, by turns (%)", f"the guard stops after turn {stop}"),
        ], height=760,
    )  # fmt: skip
    draw_sizes(means, [100 * row.mean for row in rows], RIGHT)
    means.axhline(plain, color=GREY, linestyle=(0, (4, 3)))
    draw_sizes(harms, [100 * row.harm for row in rows], WRONG)
    harms.set_ylim(0, None)
    reach, right = courses[query]
    draw_turns(turns, reach, right, stop)
    save(figure, out, "when_it_hurts")
    given, chosen = tuned.held_out.table()
    print(f"Right by plain distance: {plain:.1f} %. Tuned on half of the queries: {tuned.best}")
    for name, row in [(row.method, row) for row in rows] + [("default", given), ("tuned", chosen)]:
        print(f"{name}: {row.mean:.1%} right, {row.harm:.1%} of {row.n_queries} queries worse")
    print(f"Flower {query}: {right[0]:.0%} right, {right[stop - 1]:.0%} where the guard stops,")
    print(f"  {right[-1]:.0%} after {TURNS} turns, when scores reach {reach[-1]:.0%} as far")
    tuning = {"default": given.mean, "tuned": chosen.mean, "harm": given.harm, "less": chosen.harm}
    return {"plain": plain / 100, **tuning, "guarded": right[stop - 1], "unguarded": right[-1]}


def alternate(ranker: RAN, data: Dataset, query: int) -> tuple[FloatArray, FloatArray]:
    """Return after every turn how far scores reach, and how many results are right; unguarded."""
    rankings = list(islice(ranker.alternations(query, include_query=True), TURNS))
    reach = np.array([turn.scores.sum() ** 2 / (turn.scores**2).sum() for turn in rankings])
    same = data.labels == data.labels[query]
    return reach / reach[0], np.array(
        [same[turn.indices[1 : same.sum()]].mean() for turn in rankings]
    )


def draw_sizes(axes: Axes, values: list[float], color: str) -> None:
    """Draw one value for every k."""
    open_chart(axes, "neighbours k", left=0.08)
    axes.plot(SIZES, values, "o-", color=color)
    axes.set(xscale="log", xticks=SIZES[::2], xticklabels=SIZES[::2], xlim=(2.7, 67))
    axes.minorticks_off()


def draw_turns(axes: Axes, reach: FloatArray, right: FloatArray, stop: int) -> None:
    """Draw what becomes of one query, and where the guard would stop."""
    open_chart(axes, "alternations", left=0.08)
    for values, color, name in ((reach, INK, "reach"), (right, RIGHT, "right")):
        axes.plot(range(1, TURNS + 1), 100 * values, "o-", color=color)
        axes.text(TURNS, 100 * values[-1] + 4, name, color=color, fontsize=13, ha="right")
    axes.axvline(stop, color=GREY, linestyle=(0, (4, 3)))
    axes.set(ylim=(0, 105), xticks=range(1, TURNS + 1, 3))


if __name__ == "__main__":
    run(main)
