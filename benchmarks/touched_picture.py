"""Draws the points that one query touches in ever larger databases.

Two moons of 4,000, 20,000 and 100,000 points; scores are solved until none can be off by more than
0.01. With ``--docs`` it is written into the docs.
"""

import numpy as np
from kit.graphs import region_solver, solved
from kit.pictures import keep
from kit.report import options
from sklearn.neighbors import KNeighborsTransformer

from rankfold import RAN
from rankfold.datasets.synthetic import moons
from rankfold.drawing import GREY, INK, RIGHT, WRONG, new_page, write
from rankfold.graph.adaptive import symmetrize

WIDTH, HEIGHT, MARGIN, GAP = 1760, 690, 72, 40
SIZES, NOISE, NEIGHBORS, SMOOTHNESS, TOL, SAMPLE = (
    (4_000, 20_000, 100_000),
    0.07,
    10,
    10.0,
    0.01,
    50,
)
PLACE, VIEW = (0.0, 1.0), 0.42
PANEL, UPPER, LOWER = (WIDTH - 2 * MARGIN - 2 * GAP) / 3, 250, 560


def solver_of(X):
    """Return the solver on RAN's first graph, of neighbours that scikit-learn finds."""
    finder = KNeighborsTransformer(n_neighbors=NEIGHBORS + 1, algorithm="kd_tree")
    ranker = RAN(NEIGHBORS, SMOOTHNESS, metric="precomputed", solver="region")
    weights = symmetrize(ranker.fit(finder.fit_transform(X)).affinity_)
    return region_solver(weights, SMOOTHNESS)


def touched(solver, query):
    """Return the other points that a query touches."""
    points = solved(solver, query, TOL).points
    return points[points != query]


def draw(figure, left, X, points, query):
    """Draw the points around the query, those that it touches in blue."""
    axes = figure.add_axes(
        (left / WIDTH, 1 - LOWER / HEIGHT, PANEL / WIDTH, (LOWER - UPPER) / HEIGHT)
    )
    axes.set_axis_off()
    middle = np.array([PLACE[0], PLACE[1] - 0.06])
    axes.set(xlim=middle[0] + np.array([-VIEW, VIEW]), ylim=middle[1] + np.array([-VIEW, VIEW])
             * (LOWER - UPPER) / PANEL)  # fmt: skip
    axes.scatter(*X.T, s=3, color="#c4cad4", linewidth=0)
    axes.scatter(*X[points].T, s=3, color=RIGHT, linewidth=0, zorder=2)
    axes.scatter(*X[query], s=26, color=WRONG, edgecolor="white", linewidth=0.8, zorder=3)


def main():
    arguments = options(__doc__).parse_args()
    figure, page = new_page(
        WIDTH, HEIGHT, "What one query touches",
        "The top of the upper moon. In blue: points touched until no score can be off by more "
        f"than {TOL:g}. k = {NEIGHBORS}, λ = {SMOOTHNESS:g}.", MARGIN,
    )  # fmt: skip
    for place, size in enumerate(SIZES):
        X = moons(size, NOISE).X
        query = int(np.argmin(np.abs(X - PLACE).sum(axis=1)))
        solver, left = solver_of(X), MARGIN + place * (PANEL + GAP)
        points = touched(solver, query)
        draw(figure, left, X, points, query)
        sample = np.random.default_rng(0).choice(size, SAMPLE)
        mean = np.mean([len(touched(solver, one)) for one in sample])
        write(page, left, 208, f"{size:,} points", 28, INK, weight="bold")
        write(page, left, LOWER + 50, f"{len(points)} touched", 26, RIGHT, weight="bold")
        write(page, left, LOWER + 88, f"{mean:.0f} in the mean of {SAMPLE} queries", 22, GREY)
        print(f"{size} points: {len(points)} touched, {mean:.0f} in the mean")
    keep(figure, "touched.png", arguments.docs)


if __name__ == "__main__":
    main()
