"""Draws which objects of COIL-20 the plain graph joins, and which the learned one.

The objects stand on a circle; a line between two is as wide as the edges between their pictures
weigh together. Needs the folder RANKFOLD_DATA. With ``--docs`` it is written into the docs.
"""

import numpy as np
from kit.report import DOCS, OUT, options

from rankfold import RAN, datasets
from rankfold.drawing import GREY, INK, WRONG, new_page, save_png, write
from rankfold.graph.adaptive import symmetrize

WIDTH, HEIGHT, MARGIN = 1600, 1010, 72
RADIUS, TILE, MIDDLE = 318, 62, 600
WIDEST = 9.0


def joined(weights, labels):
    """Return what the edges between every two classes weigh together."""
    member = np.eye(labels.max() + 1)[labels]
    return member.T @ (weights @ member)


def draw_circle(page, center, name, images, between):
    """Draw the classes on a circle, and lines between those that edges join."""
    angles = 2 * np.pi * np.arange(len(images)) / len(images) - np.pi / 2
    places = center + RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])
    inner = center + (RADIUS - 0.72 * TILE) * np.column_stack([np.cos(angles), np.sin(angles)])
    for one, other in zip(*np.nonzero(np.triu(between, 1)), strict=True):
        width = WIDEST * np.sqrt(between[one, other] / 40)
        page.plot(*inner[[one, other]].T, color=WRONG, linewidth=width, alpha=0.75,
                  solid_capstyle="round")  # fmt: skip
    for image, (x, y) in zip(images, places, strict=True):
        half = TILE / 2
        page.imshow(image, cmap="gray", extent=(x - half, x + half, y + half, y - half), zorder=3)
    n_pairs = np.count_nonzero(np.triu(between, 1))
    share = 100 * (between.sum() - np.trace(between)) / between.sum()
    write(page, center[0], 192, name, 30, INK, ha="center", weight="bold")
    found = f"{n_pairs} pairs of objects joined, by {share:.2g} % of the weight"
    write(page, center[0], 228, found, 23, GREY, ha="center")


def main():
    arguments = options(__doc__).parse_args()
    coil = datasets.load("coil20")
    labels = np.unique(coil.labels, return_inverse=True)[1]
    first = [np.flatnonzero(labels == label)[0] for label in range(labels.max() + 1)]
    images = coil.X[first].reshape(len(first), 32, 32).transpose(0, 2, 1)
    figure, page = new_page(
        WIDTH, HEIGHT, "What the learned graph cuts",
        "COIL-20: 20 objects, 72 views of each. "
        "Lines are edges between views of different objects.",
        MARGIN,
    )  # fmt: skip
    graphs = {"plain graph": RAN(), "learned for all queries": RAN(adapt="collective")}
    for place, (name, ranker) in enumerate(graphs.items()):
        center = np.array([WIDTH * (1 + 2 * place) / 4, MIDDLE])
        weights = symmetrize(ranker.fit(coil.X).affinity_)
        draw_circle(page, center, name, images, joined(weights, labels))
    page.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), aspect="auto")
    folder = DOCS / "images" if arguments.docs else OUT
    folder.mkdir(parents=True, exist_ok=True)
    save_png(figure, folder / "collective_graph.png")
    print(f"wrote {folder / 'collective_graph.png'}")


if __name__ == "__main__":
    main()
