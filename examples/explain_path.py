"""Why is this image here? The path of images that leads from the query to a result far away."""

from pathlib import Path

import numpy as np
from _frame import MARGIN, WIDTH, draw_tile, run, save
from matplotlib.axes import Axes
from scipy.spatial.distance import cdist

from rankfold import RAN, datasets
from rankfold.drawing import GREY, RIGHT, WRONG, new_page, write
from rankfold.explanation import Explanation, explain
from rankfold.types import BoolArray, FloatArray, IntArray

TOP, TILE = 50, 112


def main(out: Path) -> dict[str, float]:
    """Take the early, right result that is furthest away by plain distance, and explain it."""
    digits = datasets.load("digits")
    ranker = RAN().fit(digits.X)
    found = ranker.search(k=TOP)[0]
    right = digits.labels[found] == digits.labels[:, None]
    query, point = furthest(found, right, cdist(digits.X, digits.X))
    explanation = explain(ranker, query, point)
    path = explanation.path
    if path is None or path.share is None:
        raise RuntimeError(f"no path leads from {query} to {point}, which is among the best.")
    figure, page = new_page(
        WIDTH, 600, "Why is this image here?",
        f"Image {point} is result {explanation.score_rank} by RAN, "
        f"and result {explanation.distance_rank:,} of {explanation.n_ranked:,} by plain distance.",
        MARGIN,
    )  # fmt: skip
    draw_path(page, digits.X.reshape(-1, 8, 8), query, explanation)
    page.set(xlim=(0, WIDTH), ylim=(600, 0))
    save(figure, out, "explain_path")
    print(explanation.to_text())
    return {
        "place by RAN": explanation.score_rank,
        "place by plain distance": explanation.distance_rank,
        "steps": len(path.steps),
        "share of the path": path.share,
        "same digit": float(digits.labels[query] == digits.labels[point]),
    }


def furthest(found: IntArray, right: BoolArray, distances: FloatArray) -> tuple[int, int]:
    """Return the query and its right result whose place by plain distance is the last of all."""
    places = np.argsort(np.argsort(distances, axis=1, kind="stable"), axis=1)
    of_found = np.where(right, np.take_along_axis(places, found, axis=1), -1)
    query, place = np.unravel_index(np.argmax(of_found), found.shape)
    return int(query), int(found[query, place])


def draw_path(page: Axes, images: FloatArray, query: int, explanation: Explanation) -> None:
    """Draw the query and every step after it, with scores below and what passes on between."""
    steps = explanation.path.steps if explanation.path else ()
    lefts = np.linspace(MARGIN, WIDTH - MARGIN - TILE, len(steps) + 1)
    y, middle = 290, 290 + TILE / 2
    over = [lefts[0] + TILE / 2, lefts[-1] + TILE / 2]
    page.plot([over[0], *over, over[1]], [276, 214, 214, 276], color=WRONG, linestyle=(0, (4, 3)))
    distance = f" plain distance {explanation.distance:.0f}: place {explanation.distance_rank:,} "
    write(page, WIDTH / 2, 223, distance, 26, WRONG, ha="center", backgroundcolor="white")
    for start, step in zip(lefts, steps, strict=False):
        tip, tail = start + lefts[1] - lefts[0] - 8, start + TILE + 8
        arrow = {"arrowstyle": "-|>", "color": RIGHT}
        page.annotate("", (tip, middle), (tail, middle), arrowprops=arrow)
        write(page, (tip + tail) / 2, middle - 16, f"{step.factor:.2f}", 22, RIGHT, ha="center")
    for name, left in (("query", lefts[0]), ("result", lefts[-1])):
        write(page, left + TILE / 2, y + TILE + 74, name, 25, ha="center", weight="bold")
    tiles = [(query, 1.0), *((step.end, step.score) for step in steps)]
    for (row, score), left in zip(tiles, lefts, strict=True):
        draw_tile(page, images[row], left, y, TILE)
        write(page, left + TILE / 2, y + TILE + 38, f"{score:.2g}", 25, ha="center")
    remark = "Below an image: its score by shape. On an arrow: the part of it that is passed on."
    write(page, MARGIN, 560, remark, 24, GREY)


if __name__ == "__main__":
    run(main)
