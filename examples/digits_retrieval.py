"""Handwritten digits: who gains most from shape, who gains as usual, and who loses most."""

from pathlib import Path

import numpy as np
from _frame import MARGIN, WIDTH, draw_tile, run, save
from matplotlib.axes import Axes

from rankfold import RAN, Dataset, Distance, datasets
from rankfold.drawing import GREY, INK, RIGHT, WRONG, new_page, write
from rankfold.types import FloatArray, IntArray

SHOWN, JUDGED = 10, 50
METHODS = {"plain distance": Distance(), "RAN": RAN()}


def main(out: Path) -> dict[str, float]:
    """Ask for every digit, and show three queries with their first ten results."""
    digits = datasets.load("digits")
    answers = {name: ranker.fit(digits.X).search(k=JUDGED)[0] for name, ranker in METHODS.items()}
    hits = {name: digits.labels[ids] == digits.labels[:, None] for name, ids in answers.items()}
    plain, shape = (found.mean(axis=1) for found in hits.values())
    before, after = (found[:, :SHOWN].sum(axis=1) for found in hits.values())
    chosen = choose(after - before, shape - plain)
    figure, page = new_page(
        WIDTH, 1010, "Which images show the same digit?",
        f"The first {SHOWN} of {len(digits.X) - 1:,} results, best first. Orange: another digit.",
        MARGIN,
    )  # fmt: skip
    for place, (name, query) in enumerate(chosen.items()):
        top = 196 + 270 * place
        share = f"{plain[query]:.0%} of its first {JUDGED} are right by plain distance, "
        write(page, MARGIN, top, name, 29, weight="bold")
        write(page, 480, top, share + f"{shape[query]:.0%} by RAN", 24, GREY)
        draw_answers(page, digits, query, {key: ids[query] for key, ids in answers.items()}, top)
    page.set(xlim=(0, WIDTH), ylim=(1010, 0))
    save(figure, out, "digits_retrieval")
    figures = {
        "plain": float(plain.mean()),
        "ran": float(shape.mean()),
        "better": float((shape > plain).mean()),
        "worse": float((shape < plain).mean()),
    }
    print(
        f"Of the first {JUDGED}, over all queries: {figures['plain']:.1%} right by plain distance,"
    )
    print(f"  {figures['ran']:.1%} by RAN; {figures['better']:.1%} get better, ", end="")
    print(f"{figures['worse']:.1%} get worse")
    for name, row in chosen.items():
        print(f"{name}: image {row}, {before[row]} of the first {SHOWN} right, then {after[row]}")
        figures |= {f"{name} before": float(before[row]), f"{name} after": float(after[row])}
    return figures


def choose(first_gains: IntArray, gains: FloatArray) -> dict[str, int]:
    """Return the best and the worst by what is shown, and one in the middle of all gains."""
    order = np.lexsort((gains, first_gains))
    middle = np.argsort(gains, kind="stable")[len(gains) // 2]
    return {"Gains most": int(order[-1]), "In the middle": int(middle), "Loses most": int(order[0])}


def draw_answers(
    page: Axes, digits: Dataset, query: int, answers: dict[str, IntArray], top: int
) -> None:
    """Draw the query at the left, and beside it one line of results for each method."""
    images = digits.X.reshape(-1, 8, 8)
    draw_tile(page, images[query], MARGIN + 4, top + 32, 164)
    for line, (name, ids) in enumerate(answers.items()):
        y = top + 32 + 90 * line
        right = digits.labels[ids[:SHOWN]] == digits.labels[query]
        write(page, MARGIN + 212, y + 46, name, 24, INK)
        for place, (result, hit) in enumerate(zip(ids[:SHOWN], right, strict=True)):
            draw_tile(page, images[result], 480 + 76 * place, y, 68 - 4, RIGHT if hit else WRONG)
        write(page, 1252, y + 46, f"{right.sum()} of {SHOWN}", 26, INK, weight="bold")


if __name__ == "__main__":
    run(main)
