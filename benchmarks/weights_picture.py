"""Draws how one point shares its weight: distances under the water level d_{k+1}.

Left, a point of the two moons and its neighbours; right, what Eq. (14) and (18) make of their
distances. With ``--docs`` it is written into the docs.
"""

import numpy as np
from kit.pictures import keep
from kit.report import options

from rankfold import ExactEngine, datasets
from rankfold.drawing import GREY, INK, LINE, RIGHT, WRONG, new_page, write
from rankfold.graph.adaptive import adaptive_weights

WIDTH, HEIGHT, MARGIN, TOP = 1760, 940, 72, 210
POINT, NEIGHBORS, SHOWN = 286, 6, 9
PLANE, BARS = 700, 780
BOTTOM, PALE = 810, "#bfdcec"


def draw_plane(figure, X, near, sq_distances, weights):
    """Draw the neighbours of the point, their edges, and the circle where weights end."""
    center, end = X[POINT], np.sqrt(sq_distances[NEIGHBORS])
    axes = figure.add_axes((MARGIN / WIDTH, 1 - BOTTOM / HEIGHT, PLANE / WIDTH, 600 / HEIGHT))
    axes.set_axis_off()
    half = 1.3 * end
    axes.set(xlim=center[0] + np.array([-half, half]) * PLANE / 600,
             ylim=center[1] + np.array([-half, half]))  # fmt: skip
    from matplotlib.patches import Circle

    axes.add_patch(Circle(center, end, facecolor=PALE, alpha=0.25, edgecolor=RIGHT,
                          linewidth=1.4, linestyle=(0, (5, 3))))  # fmt: skip
    axes.scatter(*X.T, s=60, color="#c4cad4", edgecolor="white", linewidth=0.8, zorder=2)
    for place, (other, weight) in enumerate(zip(near[:NEIGHBORS], weights, strict=True)):
        axes.plot(*X[[POINT, other]].T, color=RIGHT, linewidth=1 + 26 * weight, zorder=1,
                  solid_capstyle="round", alpha=0.85)  # fmt: skip
        axes.scatter(*X[other], s=330, color=RIGHT, edgecolor="white", linewidth=1.2, zorder=3)
        write(axes, *X[other], str(place + 1), 20, "white", ha="center", va="center_baseline",
              weight="bold", zorder=4)  # fmt: skip
    last = X[near[NEIGHBORS]]
    axes.scatter(*last, s=330, color="white", edgecolor=RIGHT, linewidth=1.6, zorder=3)
    write(axes, *last, str(NEIGHBORS + 1), 20, RIGHT, ha="center", va="center_baseline",
          weight="bold", zorder=4)  # fmt: skip
    axes.scatter(*center, s=420, color=WRONG, edgecolor="white", linewidth=1.2, zorder=5)
    write(axes, *center, "i", 24, "white", ha="center", va="center_baseline", weight="bold",
          zorder=6)  # fmt: skip


def draw_bars(figure, sq_distances, weights):
    """Draw distances as ground and what is missing to the level as water."""
    level = sq_distances[NEIGHBORS]
    left = WIDTH - MARGIN - BARS
    axes = figure.add_axes((left / WIDTH, 1 - BOTTOM / HEIGHT, BARS / WIDTH, 540 / HEIGHT))
    places = np.arange(1, SHOWN + 1)
    axes.bar(places, sq_distances[:SHOWN], width=0.8, color="#d5d9e0")
    axes.bar(places[:NEIGHBORS], level - sq_distances[:NEIGHBORS], width=0.8, color=RIGHT,
             bottom=sq_distances[:NEIGHBORS])  # fmt: skip
    axes.axhline(level, color=RIGHT, linewidth=1.4, linestyle=(0, (5, 3)))
    top = 1.06 * sq_distances[SHOWN - 1]
    axes.set(xlim=(0.4, SHOWN + 0.6), ylim=(0, top), xticks=[], yticks=[])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    for place in places:
        ink = RIGHT if place <= NEIGHBORS else GREY
        share = f"{weights[place - 1]:.2f}" if place <= NEIGHBORS else "0"
        write(axes, place, level + 0.015 * top if place <= NEIGHBORS else sq_distances[place - 1]
              + 0.015 * top, share, 22, ink, ha="center", weight="bold")  # fmt: skip
        write(axes, place, -0.02 * top, str(place), 22, GREY, ha="center", va="top")
    write(axes, 0.5, level + 0.1 * top, f"water level: the distance to neighbour {NEIGHBORS + 1}",
          22, RIGHT)  # fmt: skip


def main():
    arguments = options(__doc__).parse_args()
    X = datasets.load("moons").X
    lists = ExactEngine(X).rows(np.array([POINT]), SHOWN)
    weights, gamma, _ = adaptive_weights(lists.sq_distances, NEIGHBORS)
    figure, page = new_page(
        WIDTH, HEIGHT, "How a point shares its weight",
        f"k = {NEIGHBORS} neighbours of one point. Near ones get more, and at neighbour k + 1 it "
        "ends.", MARGIN,
    )  # fmt: skip
    write(page, MARGIN, TOP, "In the plane", 28, INK, weight="bold")
    write(page, WIDTH - MARGIN - BARS, TOP, "Squared distances, and the weights in blue", 28,
          INK, weight="bold")  # fmt: skip
    draw_plane(figure, X, lists.indices[0], lists.sq_distances[0], weights[0])
    draw_bars(figure, lists.sq_distances[0], weights[0])
    write(page, WIDTH - MARGIN - BARS, HEIGHT - 52,
          "neighbours by distance; a weight is its share of the blue", 22,
          GREY)  # fmt: skip
    keep(figure, "weights.png", arguments.docs)
    print(f"gamma = {gamma[0]:.4g}, weights {weights[0].round(3)}")


if __name__ == "__main__":
    main()
