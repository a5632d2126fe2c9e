"""Draws how far scores are from exact ones while push goes on, beside what it can promise.

One query among scikit-learn's digits. With ``--docs`` it is written into the docs.
"""

import numpy as np
from kit.graphs import region_solver, solved
from kit.pictures import keep
from kit.report import options
from scipy.sparse.linalg import spsolve

from rankfold import RAN, datasets
from rankfold.drawing import GREY, INK, LINE, RIGHT, WRONG, new_page, write
from rankfold.graph.adaptive import symmetrize
from rankfold.solvers import System

WIDTH, HEIGHT, MARGIN = 1760, 850, 72
QUERY, TOP, TOL, LEVELS = 170, 10, 1e-6, 10.0 ** -np.arange(0.25, 4.1, 0.25)
LEFT, UPPER, LOWER, RIGHT_EDGE = 170, 190, 740, 1440


def exact_scores(weights, smoothness):
    """Solve Eq. (7) with the query eliminated, to the last digit."""
    matrix = System.ran(weights, smoothness).matrix.tocsc()
    free = np.setdiff1d(np.arange(matrix.shape[0]), [QUERY])
    scores = np.ones(matrix.shape[0])
    scores[free] = spsolve(matrix[free][:, free], -matrix[free][:, [QUERY]].toarray()[:, 0])
    return scores


def measured(weights, smoothness):
    """Return pushes, bound and error at each level of push, and when the best are proven."""
    exact = exact_scores(weights, smoothness)
    solver = region_solver(weights, smoothness, patience=np.inf, whole_share=np.inf)
    rows = []
    for level in LEVELS:
        found = solved(solver, QUERY, level)
        scores = np.zeros(len(exact))
        scores[found.points] = found.scores
        error = np.abs(scores - exact).max()
        rows.append((found.n_iter, found.bound, error))
    best = solved(solver, QUERY, TOL, TOP)
    return np.array(rows).T, best.n_iter, best.certified


def main():
    arguments = options(__doc__).parse_args()
    X = datasets.load("digits").X
    ranker = RAN().fit(X)
    weights = symmetrize(ranker.affinity_)
    rows, n_steps, certified = measured(weights, ranker.smoothness)
    pushes, bound, error = rows
    figure, page = new_page(
        WIDTH, HEIGHT, "What the largest residual proves",
        f"One query among {len(X):,} digits, k = {ranker.n_neighbors_}, "
        f"λ = {ranker.smoothness:g}: push stopped ever later.", MARGIN,
    )  # fmt: skip
    axes = figure.add_axes((LEFT / WIDTH, 1 - LOWER / HEIGHT, (RIGHT_EDGE - LEFT) / WIDTH,
                            (LOWER - UPPER) / HEIGHT))  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.fill_between(pushes, error, bound, color=RIGHT, alpha=0.07)
    axes.plot(pushes, bound, "o-", color=RIGHT, linewidth=2, markersize=6)
    axes.plot(pushes, error, "o-", color=WRONG, linewidth=2, markersize=6)
    axes.tick_params(colors=GREY, labelsize=11, which="both", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.grid(color=LINE, linewidth=0.6)
    if certified:
        axes.axvline(n_steps, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        write(
            axes, 1.04 * n_steps, 1.15 * bound[0], f"the best {TOP} are proven", 22, INK, va="top"
        )
    for values, name, color in ((bound, "the bound:\nlargest residual", RIGHT),
                                (error, "the largest error\nof any score", WRONG)):  # fmt: skip
        write(axes, 1.08 * pushes[-1], values[-1], name, 22, color, va="center", weight="bold")
    write(page, LEFT, HEIGHT - 34, "pushes", 22, GREY)
    keep(figure, "certificate.png", arguments.docs)
    print(f"bound / error from {(bound / error).min():.3g} to {(bound / error).max():.3g}; "
          f"certified after {n_steps} pushes")  # fmt: skip


if __name__ == "__main__":
    main()
