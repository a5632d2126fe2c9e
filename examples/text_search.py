"""Search the documentation of NumPy, SciPy and scikit-learn with questions in plain words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _frame import MARGIN, WIDTH, run, save
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle
from sources.docstrings import load
from sources.questions import QUESTIONS
from sources.sentences import embed

from rankfold import RAN, Distance
from rankfold.drawing import GREY, INK, LINE, RIGHT, WRONG, new_page, write
from rankfold.types import BoolArray

SHOWN, JUDGED = 20, 50
ROW, LEFT, SQUARE = 54, 680, 26
METHODS = {
    "cosine": Distance(metric="cosine"),
    "RAN": RAN(metric="cosine"),
}


def main(out: Path) -> dict[str, float]:
    """Ask a question about every subject, and draw which of the first results are of it."""
    texts = load()
    subjects = np.array([text.subject for text in texts])
    X, asked = embed([text.words for text in texts]), embed(list(QUESTIONS))
    figures, right = {"texts": float(len(texts))}, {}
    for name, ranker in METHODS.items():
        ranker.fit(X)
        found = [ranker.rank(vectors=vector, top=SHOWN).indices for vector in asked]
        right[name] = subjects[found] == np.array(list(QUESTIONS.values()))[:, None]
        neighbors, _ = ranker.search(k=JUDGED)
        figures[f"questions by {name}"] = float(right[name].mean())
        figures[f"texts by {name}"] = float((subjects[neighbors] == subjects[:, None]).mean())
    gains = right["RAN"].sum(axis=1) - right["cosine"].sum(axis=1)
    figures |= {"better": float((gains > 0).sum()), "worse": float((gains < 0).sum())}
    draw(out, np.argsort(-gains, kind="stable"), right, figures)
    for name, value in figures.items():
        print(f"{name}: {value:,.0f}" if value > 1 else f"{name}: {value:.1%}")
    return figures


def draw(
    out: Path, order: np.ndarray, right: dict[str, BoolArray], figures: dict[str, float]
) -> None:
    """Draw a row for every question, from those that gain to those that lose."""
    height = 220 + ROW * len(order) + 130
    subtitle = f"The first {SHOWN} of {figures['texts']:,.0f}. Blue: of the subject that is meant."
    figure, page = new_page(WIDTH, height, "Which functions answer the question?", subtitle, MARGIN)
    write(page, LEFT, 188, "cosine above, RAN below", 21, GREY)
    questions = list(QUESTIONS.items())
    for place, row in enumerate(order):
        top = 206 + ROW * place
        asked, subject = questions[row]
        write(page, MARGIN, top + 19, asked, 22)
        write(page, MARGIN, top + 42, subject, 19, GREY)
        for line, found in enumerate(right.values()):
            draw_strip(page, top + 22 * line, found[row])
        before, after = (int(found[row].sum()) for found in right.values())
        color = RIGHT if after > before else WRONG if after < before else GREY
        score = f"{before} → {after}"
        write(page, WIDTH - MARGIN, top + 30, score, 26, color, weight="bold", ha="right")
    page.plot([MARGIN, WIDTH - MARGIN], [height - 114] * 2, color=LINE, linewidth=1)
    for line, (what, top) in enumerate({"questions": SHOWN, "texts": JUDGED}.items()):
        who = "All questions" if what == "questions" else "Every text as a query"
        shares = [f"{figures[f'{what} by {name}']:.1%} by {name}" for name in right]
        sentence = f"{who}: of the first {top}, {' and '.join(shares)} are of the subject."
        write(page, MARGIN, height - 74 + 36 * line, sentence, 23, INK)
    save(figure, out, "text_search")


def draw_strip(page: Axes, top: float, right: BoolArray) -> None:
    """Draw a square for every result, best first."""
    squares = [Rectangle((LEFT + SQUARE * i, top), SQUARE - 4, 18) for i in range(len(right))]
    colors = [RIGHT if hit else "#f3c9ac" for hit in right]
    page.add_collection(PatchCollection(squares, facecolors=colors, linewidths=0))


if __name__ == "__main__":
    run(main)
