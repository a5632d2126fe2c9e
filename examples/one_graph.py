"""One graph for every query: digits turned all the way round, and the edges that learning cuts."""

from pathlib import Path

import numpy as np
from _frame import new_panels, run, save
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from scipy.ndimage import rotate
from scipy.sparse import triu

from rankfold import RAN, datasets
from rankfold.drawing import INK, RIGHT, WRONG
from rankfold.types import BoolArray, FloatArray, IntArray

N_VIEWS, NOISE = 72, 2.0
LABELS = np.repeat(np.arange(10), N_VIEWS)


def turned_digits() -> FloatArray:
    """Return the first image of each digit in 72 noisy views, as COIL-20 has of its objects."""
    digits = datasets.load("digits")
    chosen = [np.flatnonzero(digits.labels == label)[0] for label in range(10)]
    images = [np.kron(digits.X[row].reshape(8, 8), np.ones((2, 2))) for row in chosen]
    angles = np.arange(N_VIEWS) * 360 / N_VIEWS
    views = np.array(
        [rotate(image, angle, reshape=False, order=1) for image in images for angle in angles]
    )
    noise = np.random.default_rng(0).normal(0, NOISE, views.shape)
    return (views + noise).reshape(len(views), -1)


def judge(ranker: RAN) -> tuple[float, IntArray, BoolArray]:
    """Return how many results are right, the edges, and which of them join different digits."""
    indices, _ = ranker.search(k=N_VIEWS - 1)
    edges = np.stack(triu(ranker.affinity_ + ranker.affinity_.T).coords, axis=1)
    between = LABELS[edges[:, 0]] != LABELS[edges[:, 1]]
    return float((LABELS[indices] == LABELS[:, None]).mean()), edges, between


def main(out: Path) -> dict[str, float]:
    """Compare the plain graph with the one that is learned for all queries."""
    X = turned_digits()
    rankers = {
        "The plain graph": RAN(n_neighbors=5),
        "Learned for all queries": RAN(n_neighbors=5, adapt="collective"),
    }
    found = {name: judge(ranker.fit(X)) for name, ranker in rankers.items()}
    figure, panels = new_panels(
        "What learning one graph for every query cuts",
        f"Ten digits, {N_VIEWS} views of each along the circle. Orange: edges between digits.",
        [
            (name, f"{between.sum()} such edges, {mean:.0%} of the results are right")
            for name, (mean, _, between) in found.items()
        ], height=900,
    )  # fmt: skip
    for axes, (_, edges, between) in zip(panels, found.values(), strict=True):
        draw_circle(axes, X[::N_VIEWS].reshape(10, 16, 16), edges, between)
    save(figure, out, "one_graph")
    for name, (mean, edges, between) in found.items():
        print(f"{name}: {mean:.1%} right, {between.sum()} of {len(edges)} edges join two digits")
    (before, _, wrong), (after, _, left) = found.values()
    return {"plain": before, "learned": after, "wrong edges": wrong.sum(), "left": left.sum()}


def draw_circle(axes: Axes, images: FloatArray, edges: IntArray, between: BoolArray) -> None:
    """Draw every view on a circle, and the edges as lines; a picture of the digit beside it."""
    angles = 2 * np.pi * np.arange(len(LABELS)) / len(LABELS)
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    axes.add_collection(LineCollection(list(places[edges[~between]]), color=RIGHT, linewidth=0.6))
    axes.add_collection(LineCollection(list(places[edges[between]]), color=WRONG, linewidth=0.9))
    for label, image in enumerate(images):
        x, y = 1.17 * places[label * N_VIEWS + N_VIEWS // 2]
        axes.imshow(image, cmap="gray_r", extent=(x - 0.11, x + 0.11, y - 0.11, y + 0.11))
        axes.plot(*np.outer((0.97, 1.05), places[label * N_VIEWS]).T, color=INK, linewidth=1)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")


if __name__ == "__main__":
    run(main)
