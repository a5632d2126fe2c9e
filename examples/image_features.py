"""Views of objects, compared by what a network sees: who gains by shape, and who loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _frame import MARGIN, WIDTH, draw_tile, run, save
from matplotlib.axes import Axes
from sources.image_model import ImageModel
from sources.image_sets import enlarged, images_of

from rankfold import RAN, Distance, datasets
from rankfold.drawing import GREY, INK, LINE, RIGHT, WRONG, new_page, write
from rankfold.types import FloatArray, IntArray

VIEWS, STEP = 72, 6
HEIGHT, LEFT, TILE = 1010, 404, 64
METHODS = {"plain distance": Distance, "RAN": RAN}


def main(out: Path) -> dict[str, float]:
    """Ask for every view of COIL-20 by pixels and by features, and draw three answers."""
    data = datasets.load("coil20")
    images = images_of(data)
    features = ImageModel.load().features(enlarged(images))
    spaces = {"pixels": (data.X, "euclidean"), "features": (features, "cosine")}
    figures, answers, shares = {"images": float(len(images))}, {}, {}
    for space, (X, metric) in spaces.items():
        for name, method in METHODS.items():
            indices, _ = method(metric=metric).fit(X).search(k=VIEWS - 1)
            share = (data.labels[indices] == data.labels[:, None]).mean(axis=1)
            answers[space, name], shares[space, name] = indices, share
            figures[f"{space} by {name}"] = float(share.mean())
    plain, shape = (shares["features", name] for name in METHODS)
    figures |= {"better": float((shape > plain).mean()), "worse": float((shape < plain).mean())}
    order = np.argsort(shape - plain, kind="stable")
    best, middle, worst = order[[-1, len(order) // 2, 0]]
    chosen = {"Gains most": best, "In the middle": middle, "Loses most": worst}
    found = {name: answers["features", name] for name in METHODS}
    draw(out, chosen, images, data.labels, found, figures)
    for name, value in figures.items():
        print(f"{name}: {value:,.0f}" if value > 1 else f"{name}: {value:.1%}")
    return figures


def draw(out: Path, chosen: dict[str, int], images: FloatArray, labels: IntArray,
         found: dict[str, IntArray], figures: dict[str, float]) -> None:  # fmt: skip
    """Draw three queries with every sixth of their results."""
    subtitle = f"The first {VIEWS - 1}, every sixth, by features of a network. Orange: wrong."
    title = f"Which images show the same object, out of {len(images):,}?"
    figure, page = new_page(WIDTH, HEIGHT, title, subtitle, MARGIN)
    for place, (what, query) in enumerate(chosen.items()):
        top = 184 + 240 * place
        write(page, MARGIN, top + 22, what, 27, weight="bold")
        write(page, WIDTH - MARGIN, top + 22, f"right of {VIEWS - 1}", 21, GREY, ha="right")
        draw_tile(page, -images[query], MARGIN + 4, top + 40, 136)
        for line, (name, indices) in enumerate(found.items()):
            draw_answer(
                page, name, top + 38 + 78 * line, images, indices[query], labels, labels[query]
            )
    page.plot([MARGIN, WIDTH - MARGIN], [HEIGHT - 106] * 2, color=LINE, linewidth=1)
    for line, space in enumerate(("pixels", "features")):
        parts = [f"{figures[f'{space} by {name}']:.1%} by {name}" for name in METHODS]
        sentence = f"All images as queries, compared by {space}: {', '.join(parts)} are right."
        write(page, MARGIN, HEIGHT - 68 + 36 * line, sentence, 23, INK)
    page.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), aspect="auto")
    save(figure, out, "image_features")


def draw_answer(page: Axes, name: str, top: int, images: FloatArray, indices: IntArray,
                labels: IntArray, wanted: int) -> None:  # fmt: skip
    """Draw some of the results of one method, and say how many of all are right."""
    right = labels[indices] == wanted
    write(page, MARGIN + 164, top + 36, name, 24, INK)
    for place, (row, hit) in enumerate(zip(indices[::STEP], right[::STEP], strict=True)):
        draw_tile(page, -images[row], LEFT + 75 * place, top, TILE, RIGHT if hit else WRONG)
    write(page, WIDTH - MARGIN, top + 36, f"{right.sum()}", 28, INK, weight="bold", ha="right")


if __name__ == "__main__":
    run(main)
