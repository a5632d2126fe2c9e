"""Two moons: plain distance jumps the gap between them, RAN goes along the moon of the query."""

from pathlib import Path

import numpy as np
from _frame import draw_answer, mark_query, new_panels, run, save

from rankfold import RAN, Distance, datasets, evaluate

NAMES = {"plain": "By plain distance", "ran": "By RAN"}


def main(out: Path) -> dict[str, float]:
    """Draw both rankings from the query that plain distance serves worst."""
    moons = datasets.load("moons")
    rankers = {"plain": Distance(), "ran": RAN()}
    found = evaluate(rankers, moons, "r_precision")
    query = int(np.argmin(found.plain["r_precision"]))
    same = moons.labels == moons.labels[query]
    n_same = int(same.sum()) - 1  # without the query itself
    answers = {name: ranker.fit(moons.X).rank(query).indices for name, ranker in rankers.items()}
    wrong = {name: int((~same[ids[:n_same]]).sum()) for name, ids in answers.items()}
    figure, panels = new_panels(
        "Which points lie on the moon of the query?",
        f"The first {n_same} results: dark blue comes first, orange lies on the other moon.",
        [(NAMES[name], f"{wrong[name]} of the first {n_same} are wrong") for name in answers],
        height=690,
    )
    for axes, ids in zip(panels, answers.values(), strict=True):
        draw_answer(axes, moons.X, ids[:n_same], same[ids[:n_same]])
        mark_query(axes, moons.X[query], shift=(41, -9))
    save(figure, out, "two_moons")
    means = {name: found.mean(name, "r_precision") for name in rankers}
    print(f"The query is point {query}, for which plain distance does worst.")
    for name, mean in means.items():
        print(f"{NAMES[name]}: {mean:.1%} right over all queries, {wrong[name]} wrong for this one")
    return {"wrong_plain": wrong["plain"], "wrong_ran": wrong["ran"], **means}


if __name__ == "__main__":
    run(main)
