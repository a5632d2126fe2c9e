"""Right and wrong: some results are marked, and the ranking no longer flows across the gap."""

from pathlib import Path

import numpy as np
from _frame import draw_answer, mark_query, new_panels, run, save
from matplotlib.axes import Axes

from rankfold import RAN, Dataset, Query
from rankfold.datasets.synthetic import moons
from rankfold.drawing import INK, WRONG
from rankfold.types import FloatArray, IntArray

SEEN, MARKS, JUDGED = 60, 3, 190


def main(out: Path) -> dict[str, float]:
    """Mark a few of the first results of many queries, and show the one that gains most."""
    data = moons(400, noise=0.1)
    ranker = RAN().fit(data.X)
    before, after, marks, queries = [], [], [], []
    for query, ranking in enumerate(ranker.rank_many(range(len(data.X)))):
        right, wrong = mark(data, query, ranking.indices)
        if wrong:  # otherwise there is nothing to complain about
            better = ranker.rank_many([Query.from_feedback([query, *right], wrong)])[0]
            queries.append(query)
            marks.append((right, wrong))
            # Marked results are put into their places by hand, so neither answer is credited.
            before.append(ranking.indices[~np.isin(ranking.indices, right + wrong)][:JUDGED])
            after.append(better.indices[~np.isin(better.indices, wrong)][:JUDGED])
    labels = data.labels[queries][:, None]
    old, new = ((data.labels[np.array(ids)] == labels).mean(axis=1) for ids in (before, after))
    best = int(np.argmax(new - old))
    figure, panels = new_panels(
        "Three marks right, three marks wrong",
        f"The first {JUDGED} unmarked results; orange lies on the other moon. "
        "Rings: marked right, crosses: wrong.",
        [
            ("IndexQuery once", f"{old[best]:.0%} are right"),
            ("IndexQuery again", f"{new[best]:.0%} are right"),
        ],
        height=690,
    )
    for axes, answers in zip(panels, (before, after), strict=True):
        ids, query = answers[best], queries[best]
        draw_answer(axes, data.X, ids, data.labels[ids] == data.labels[query])
        draw_marks(axes, data.X, *marks[best])
        mark_query(axes, data.X[query], shift=(46, -6))
    save(figure, out, "feedback")
    worse = float((new < old).mean())
    print(f"{len(queries)} of {len(data.X)} queries have something wrong in their first {SEEN}.")
    print(f"Marks lift them from {old.mean():.1%} to {new.mean():.1%}; {worse:.1%} get worse.")
    shown = {"shown before": float(old[best]), "shown after": float(new[best])}
    return {"before": float(old.mean()), "after": float(new.mean()), "worse": worse, **shown}


def mark(data: Dataset, query: int, ids: IntArray) -> tuple[list[int], list[int]]:
    """Return the last right and the first wrong ones of what a reader has seen."""
    seen = ids[:SEEN]
    right = data.labels[seen] == data.labels[query]
    return seen[right][-MARKS:].tolist(), seen[~right][:MARKS].tolist()


def draw_marks(axes: Axes, X: FloatArray, right: list[int], wrong: list[int]) -> None:
    """Draw a ring around what was marked right, a cross over what was marked wrong."""
    rings, crosses = X[right].T, X[wrong].T
    axes.plot(*rings, "o", markersize=13, fillstyle="none", color=INK, mew=2, zorder=5)
    for color, width in ((INK, 5), (WRONG, 2)):
        axes.plot(*crosses, "x", markersize=10, color=color, mew=width, zorder=5)


if __name__ == "__main__":
    run(main)
