"""No vectors at all: lines that were copied and copied again, compared by edit distance."""

from pathlib import Path
from string import ascii_lowercase

import numpy as np
from _frame import new_panels, open_chart, run, save
from matplotlib.axes import Axes

from rankfold import RAN, Dataset, Distance, evaluate
from rankfold.drawing import GREY, RIGHT, WRONG
from rankfold.types import IntArray

LINES = ("to be or not to be", "call me ishmael", "it was a dark night")
N_COPIES = 50


def copied(line: str, rng: np.random.Generator) -> list[str]:
    """Return the line and its copies, each made from the one before, with one slip."""
    copies = [line]
    while len(copies) < N_COPIES:
        place, letter = rng.integers(len(copies[-1])), rng.choice([*ascii_lowercase, " "])
        before, after = copies[-1][:place], copies[-1][place + 1 :]
        slips = (letter, letter + copies[-1][place], "")  # another letter, one more, one less
        copies.append(before + slips[rng.integers(3)] + after)
    return copies


def edits(one: str, other: str) -> int:
    """Return how many letters must be changed, added or left out between two lines."""
    row = list(range(len(other) + 1))
    for count, mine in enumerate(one, start=1):
        corner, row[0] = row[0], count
        for place, theirs in enumerate(other, start=1):
            step = min(row[place] + 1, row[place - 1] + 1, corner + (mine != theirs))
            corner, row[place] = row[place], step
    return row[-1]


def main(out: Path) -> dict[str, float]:
    """Rank all copies from the first one of a line."""
    rng = np.random.default_rng(0)
    lines = [copy for line in LINES for copy in copied(line, rng)]
    distances = np.array([[edits(one, other) for other in lines] for one in lines], dtype=float)
    family = np.repeat(np.arange(len(LINES)), N_COPIES)
    data = Dataset("copies", distances, family, metric="precomputed")
    rankers = {
        "By edit distance": Distance(metric="precomputed"),
        "By RAN": RAN(metric="precomputed"),
    }
    found = evaluate(rankers, data, "r_precision")
    means = {name: found.mean(name, "r_precision") for name in rankers}
    figure, panels = new_panels(
        "Which lines are copies of copies of this one?",
        f"“{LINES[0]}”: after {N_COPIES - 1} copies with one slip each, “{lines[N_COPIES - 1]}”.",
        [(name, f"{mean:.1%} right over all queries") for name, mean in means.items()],
        height=790,
    )  # fmt: skip
    for axes, ranker in zip(panels, rankers.values(), strict=True):
        draw_places(axes, family, ranker.fit(distances).rank(0, top=3 * N_COPIES // 2).indices)
    save(figure, out, "edit_distance")
    for name, mean in means.items():
        print(f"{name}: {mean:.1%} right over all {len(lines)} queries")
    plain, shape = means.values()
    return {"plain": plain, "ran": shape}


def draw_places(axes: Axes, family: IntArray, ids: IntArray) -> None:
    """Draw for every result how many times its line had been copied."""
    open_chart(axes, "place in the answer", left=0.09)
    places, same = np.arange(1, len(ids) + 1), family[ids] == 0
    for members, color in ((same, RIGHT), (~same, WRONG)):
        axes.scatter(places[members], ids[members] % N_COPIES, s=30, c=color)
    axes.axvline(N_COPIES - 0.5, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_ylabel("times copied", fontsize=12, color=GREY)
    axes.set(xlim=(-2, 1.5 * N_COPIES + 2), ylim=(-2, N_COPIES + 2))
    axes.text(4, 31, "its copies", fontsize=13, color=RIGHT)
    axes.text(52.5, 45, "other lines", fontsize=13, color=WRONG)


if __name__ == "__main__":
    run(main)
