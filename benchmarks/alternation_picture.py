"""Draws the graph around a query of the two moons before and after alternations, and its reach.

With a small smoothness the query cuts itself off; with the default one it does not. With
``--docs`` it is written into the docs.
"""

from itertools import islice

import numpy as np
from kit.pictures import keep
from kit.report import options

from rankfold import RAN, datasets
from rankfold.drawing import GREY, INK, LINE, RIGHT, WRONG, new_page, write
from rankfold.graph.adaptive import symmetrize
from rankfold.rankers.alternation import HEALTHY_REACH
from rankfold.rankers.graph_step import CandidateLists, GraphStep

WIDTH, HEIGHT, MARGIN = 1760, 850, 72
QUERY, NEIGHBORS, LAST = 100, 10, 6
COLLAPSING, HEALTHY = 1.0, 30.0
PANEL, GAP, LEVEL = 470, 60, 250


def course(X, smoothness):
    """Return the scores and the graph W of every alternation, and their reach."""
    ranker = RAN(NEIGHBORS, smoothness).fit(X)
    step = GraphStep(
        NEIGHBORS, smoothness, ranker.unit_, ranker.mean_gamma_ / ranker.unit_, "own", "all"
    )
    stored = ranker.neighbors_
    nobody = stored.take(np.empty(0, dtype=int))
    lists = CandidateLists(ranker.engine_, stored, np.empty((0, X.shape[1])), nobody)
    scores, graphs, reach = np.zeros(len(X)), [], []
    for ranking in islice(ranker.alternations(QUERY, include_query=True), LAST):
        graphs.append(symmetrize(step(lists, scores, np.arange(len(X))).affinity))
        scores = np.zeros(len(X))
        scores[ranking.indices] = ranking.scores
        reach.append(scores.sum() ** 2 / (scores @ scores))
    return graphs, np.array(reach)


def draw_graph(figure, left, X, weights, half):
    """Draw the edges around the query, its own in orange."""
    axes = figure.add_axes(
        (left / WIDTH, 1 - (LEVEL + PANEL) / HEIGHT, PANEL / WIDTH, PANEL / HEIGHT)
    )
    center = X[QUERY]
    axes.set(xlim=center[0] + np.array([-half, half]), ylim=center[1] + np.array([-half, half]),
             xticks=[], yticks=[])  # fmt: skip
    for spine in axes.spines.values():
        spine.set_color(LINE)
    near = np.abs(X - center).max(axis=1) < 1.5 * half
    edges = weights.tocoo()
    for one, other, weight in zip(*edges.coords, edges.data, strict=True):
        if one < other and near[one] and near[other]:
            own = QUERY in (one, other)
            axes.plot(*X[[one, other]].T, color=WRONG if own else RIGHT, zorder=2 if own else 1,
                      linewidth=24 * weight, alpha=0.9 if own else 0.45)  # fmt: skip
    axes.scatter(*X.T, s=46, color=INK, edgecolor="white", linewidth=0.8, zorder=3)
    axes.scatter(*center, s=190, color=WRONG, edgecolor="white", linewidth=1.4, zorder=4)


def draw_reach(figure, left, courses):
    """Draw the reach after every alternation as a share of the first."""
    width = WIDTH - MARGIN - left
    axes = figure.add_axes(
        (left / WIDTH, 1 - (LEVEL + PANEL) / HEIGHT, width / WIDTH, PANEL / HEIGHT)
    )
    axes.set(xlim=(0.7, LAST + 0.3), ylim=(0, 1.12), xticks=range(1, LAST + 1),
             yticks=[0, 0.5, 1], yticklabels=["0", "½", "1"])  # fmt: skip
    axes.tick_params(colors=GREY, labelsize=11, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.axhline(HEALTHY_REACH, color=GREY, linewidth=1.2, linestyle=(0, (4, 3)))
    write(axes, LAST + 0.25, HEALTHY_REACH - 0.075, f"the guard stops below {HEALTHY_REACH:g}", 20,
          GREY, ha="right")  # fmt: skip
    for (smoothness, reach), color in zip(courses.items(), (WRONG, RIGHT), strict=True):
        share = reach / reach[0]
        axes.plot(np.arange(1, LAST + 1), share, "o-", color=color, linewidth=2, markersize=6)
        place = 0.035 if share[-1] > HEALTHY_REACH else -0.085
        write(axes, LAST + 0.25, share[-1] + place,
              f"λ = {smoothness:g}: from {reach[0]:.1f} to {reach[-1]:.1f} points", 20, color,
              ha="right", weight="bold")  # fmt: skip


def main():
    arguments = options(__doc__).parse_args()
    X = datasets.load("moons").X
    graphs, reach = course(X, COLLAPSING)
    courses = {COLLAPSING: reach, HEALTHY: course(X, HEALTHY)[1]}
    figure, page = new_page(
        WIDTH, HEIGHT, "Learning the graph again",
        f"Around a query of the two moons, k = {NEIGHBORS}. Its score stands above all others: "
        "where that counts too much, it cuts itself off.", MARGIN,
    )  # fmt: skip
    lefts = [MARGIN, MARGIN + PANEL + GAP, MARGIN + 2 * (PANEL + GAP)]
    titles = [f"First graph, λ = {COLLAPSING:g}", f"Graph {LAST}, λ = {COLLAPSING:g}",
              "Reach, as a share of the first"]  # fmt: skip
    for left, title in zip(lefts, titles, strict=True):
        write(page, left, LEVEL - 26, title, 28, INK, weight="bold")
    for left, graph in zip(lefts, (graphs[0], graphs[-1]), strict=False):
        draw_graph(figure, left, X, graph, half=0.2)
        degree = graph.sum(axis=1)[QUERY]
        write(page, left, LEVEL + PANEL + 46, f"the query's edges weigh {degree:.2f}", 24, WRONG)
    draw_reach(figure, lefts[2] + 20, courses)
    write(page, lefts[2] + 20, LEVEL + PANEL + 66, "alternations", 22, GREY)
    keep(figure, "collapse.png", arguments.docs)
    print({name: found.round(1).tolist() for name, found in courses.items()})


if __name__ == "__main__":
    main()
