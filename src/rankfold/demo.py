"""The demonstration: one digit, ranked by plain distance and by the shape of the data."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from shutil import which

import numpy as np
from rich.console import Console
from rich.table import Table

from rankfold.datasets import load
from rankfold.drawing import Strip, draw_strips, require_matplotlib
from rankfold.errors import InputError
from rankfold.index import Index
from rankfold.metrics import precision
from rankfold.rankers import RAN, Distance
from rankfold.rankers.base import Ranker
from rankfold.storage import Store
from rankfold.types import BoolArray, Dataset, FloatArray, IntArray, Ranking

TOP = 20
"""Results of the one query that is shown."""

CUTOFFS = (10, TOP, 50, 100)
"""Where the precision over all queries is measured."""

IMAGES = {"images": {"size": [8, 8], "colour": False, "scale": 16}}
"""How the vectors of the digits are pictures."""

EXPLANATIONS = {"Distance": "by plain distance", "RAN": "by the shape of the data"}


@dataclass(frozen=True, eq=False)
class Precisions:
    """Precision of every query: ``plain[cutoff][row]`` and ``shape[cutoff][row]``."""

    plain: dict[int, FloatArray]
    shape: dict[int, FloatArray]

    def gains(self, cutoff: int) -> FloatArray:
        """Return what shape adds to the precision of every query."""
        # Rounded, because 0.95 - 0.25 and 1.0 - 0.3 must tie.
        return np.round(self.shape[cutoff] - self.plain[cutoff], 9)

    def from_harm_to_help(self) -> IntArray:
        """Return the queries from the most harmed by shape to the most helped.

        Equal gains are ordered by the precision that shape reaches.
        """
        return np.lexsort((self.shape[TOP], self.gains(TOP)))


def run(out: Path, query: int | None = None, console: Console | None = None) -> Path:
    """Rank scikit-learn's digits from one image, print the comparison, write a picture.

    The digits are left as an index, to be asked further.

    Parameters
    ----------
    out : Path
        Folder for ``demo.png`` and the index ``digits``; made when missing.
    query : int, optional
        Row of the image to ask for; by default the one that shape helps most.
    console : Console, optional
        Where to print; standard output by default.

    Returns
    -------
    Path
        The picture.
    """
    require_matplotlib()
    console = console or Console()
    digits = load("digits")
    last = len(digits.labels) - 1
    if query is not None and not 0 <= query <= last:
        raise InputError(
            f"query is {query}, but must be a row of the digits, from 0 to {last}.", "query"
        )
    out.mkdir(parents=True, exist_ok=True)
    index = out / "digits"
    Store.check_place(index, replace=True)
    with console.status(f"Ranking {last + 1:,} images from each of them ..."):
        rankers: dict[str, Ranker] = {"Distance": Distance(), "RAN": RAN()}
        precisions = Precisions(
            *(_measure(rankers[name].fit(digits.X), digits) for name in rankers)
        )
    ordered = precisions.from_harm_to_help()
    row = int(ordered[-1]) if query is None else query
    rankings = {name: ranker.rank(row, top=TOP) for name, ranker in rankers.items()}
    reason = reason_for(precisions, row, chosen=query is None)
    console.print(example_table(digits, row, rankings, signs(console)))
    console.print(reason, end="\n\n", highlight=False)
    console.print(_means_table(precisions))
    path = out / "demo.png"
    _draw(path, digits, row, rankings, (reason, _summary(precisions)))
    with console.status(f"Keeping the images as an index with a map, in {index} ..."):
        _keep(index, digits, row)
    command = "rankfold"
    if which(command) is None and Path(sys.argv[0]).name == command:
        command = quote(os.path.relpath(sys.argv[0]))  # as it was called, in a virtual environment
    for line in (
        f"\nPicture: {path}",
        f"Index: {index}",
        f"The demo has ended. The query that shape harms most: {command} demo --query {ordered[0]}",
        f"Ask the index in a browser: {command} serve {quote(str(index))}",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return path


def _keep(path: Path, digits: Dataset, row: int) -> None:
    """Build the index that the page shows, which begins with the query of the demo."""
    Index.build(
        digits.X,
        payload={"digit": digits.labels},
        path=path,
        replace=True,
        layout="auto",
        source={**IMAGES, "query": row},
    ).close()


def _measure(ranker: Ranker, data: Dataset) -> dict[int, FloatArray]:
    """Return the precision of every query at every cutoff."""
    indices, _ = ranker.search(k=max(CUTOFFS))
    right = data.labels[indices] == data.labels[:, None]
    return {cutoff: np.array([precision(row, cutoff) for row in right]) for cutoff in CUTOFFS}


def _right(data: Dataset, row: int, ranking: Ranking) -> BoolArray:
    right: BoolArray = data.labels[ranking.indices] == data.labels[row]
    return right


def signs(console: Console) -> tuple[str, str]:
    """Return the signs for wrong and right that the console can show."""
    if console.options.ascii_only:
        return "x", "ok"
    return "[red]✗[/]", "[green]✓[/]"


def reason_for(precisions: Precisions, row: int, chosen: bool) -> str:
    """Say why a query is shown, or what shape does for it."""
    if chosen:
        return f"Row {row} was chosen to show where shape helps: no other query gains more from it."
    before, after = precisions.plain[TOP][row], precisions.shape[TOP][row]
    if before == after:
        return f"Shape neither helps nor harms here: precision@{TOP} stays at {after:.0%}."
    effect, course = ("helps", "rises") if after > before else ("harms", "falls")
    return f"Shape {effect} here: precision@{TOP} {course} from {before:.0%} to {after:.0%}."


def _summary(precisions: Precisions) -> str:
    plain, shape = precisions.plain[TOP], precisions.shape[TOP]
    return (
        f"Mean precision@{TOP} over all {len(plain):,} queries: Distance {plain.mean():.1%}, "
        f"RAN {shape.mean():.1%}. RAN is worse for {(shape < plain).mean():.1%} of them."
    )


def example_table(
    data: Dataset, row: int, rankings: dict[str, Ranking], marks: tuple[str, str]
) -> Table:
    """Return the first results of all methods side by side, each marked as wrong or right."""
    title = f"Which images show the same digit as row {row} (digit {data.labels[row]})?"
    table = Table(title=title, show_footer=True, title_style="bold", footer_style="bold")
    # Folding instead of an ellipsis, which not every console can print.
    add_column = partial(table.add_column, justify="right", overflow="fold")
    add_column("\nrank", f"precision@{TOP}")
    columns = [[str(place) for place in range(1, TOP + 1)]]
    for name, ranking in rankings.items():
        right = _right(data, row, ranking)
        add_column(f"{name}\nrow", f"{precision(right, TOP):.0%}")
        add_column("\ndigit")
        add_column("")
        columns.append([str(found) for found in ranking.indices])
        columns.append([str(label) for label in data.labels[ranking.indices]])
        columns.append([marks[int(hit)] for hit in right])
    add_column("RAN\nscore")
    columns.append([f"{score:.4f}" for score in rankings["RAN"].scores])
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


def _means_table(precisions: Precisions) -> Table:
    n_queries = len(precisions.plain[TOP])
    table = Table(title=f"Mean over all {n_queries:,} queries", title_style="bold")
    for header in ("", "Distance", "RAN", "RAN better", "RAN worse"):
        table.add_column(header, justify="right", overflow="fold")
    for cutoff in CUTOFFS:
        gains = precisions.gains(cutoff)
        means = (precisions.plain[cutoff], precisions.shape[cutoff], gains > 0, gains < 0)
        table.add_row(f"precision@{cutoff}", *(f"{values.mean():.1%}" for values in means))
    return table


def _draw(
    path: Path,
    data: Dataset,
    row: int,
    rankings: dict[str, Ranking],
    footnotes: tuple[str, str],
) -> None:
    images = data.X.reshape(-1, 8, 8)
    plain, shape = (
        Strip(
            name,
            EXPLANATIONS[name],
            images[ranking.indices],
            data.labels[ranking.indices],
            _right(data, row, ranking),
        )
        for name, ranking in rankings.items()
    )
    draw_strips(
        path,
        "Which images show the same digit?",
        f"The {TOP} best of {len(images) - 1:,} handwritten digits, best first. "
        "A cross marks another digit; the numbers below are the true ones.",
        (images[row], f"row {row}, digit {data.labels[row]}"),
        (plain, shape),
        footnotes,
    )
