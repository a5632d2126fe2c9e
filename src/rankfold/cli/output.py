"""Answers and facts as tables, JSON and CSV."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rankfold.index import Matches, Reason, Results
    from rankfold.index.scores import Threshold
    from rankfold.neighbors import Learned, Round
    from rankfold.types import Solution


WIDEST_CELL = 32
"""Characters of a cell that are shown; the csv format has all of them."""

NARROWEST_TEXT = 12
"""Characters that the widest text keeps where there is little room."""

MOST_NAMES = 5
"""Names that are all told."""

GAP = 2

ALWAYS = ("rank", "id", "score")
"""Columns that a table shows in any terminal."""

MEASURED = ("score", "shape", "distance")
"""Names that columns of the payload cannot have; the last two are there where both were fused."""

NARROWEST = 60
"""Explanations are not set narrower than this."""


def terminal_width() -> int:
    """Return the columns of the terminal, or of COLUMNS, or 100."""
    return shutil.get_terminal_size((100, 24)).columns


def counted(number: int, thing: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "point"), counted(1797, "point")
    ('1 point', '1797 points')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def printable(value: Any) -> str:
    r"""Return a value in one line, without signs that would steer the terminal.

    Examples
    --------
    >>> printable("two\nlines"), printable(None), printable(0.1 + 0.2)
    ('two lines', '', '0.3')
    """
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "".join(sign if sign.isprintable() else " " for sign in text)


def columns_that_fit(
    columns: Mapping[str, Sequence[Any]], fixed: int, width: int, first: Sequence[str] = ()
) -> tuple[dict[str, list[str]], list[str]]:
    """Cut cells, and return the columns that have room, and the names of those left out.

    The widest text is the last to go, and takes the room that is left: it says most. It makes
    way only for the columns that come ``first``.

    Parameters
    ----------
    columns : dict of name to values
    fixed : int
        How many of them must be shown as they are.
    width : int
    """
    cells = {
        name: [printable(name), *(printable(value) for value in values)]
        for name, values in columns.items()
    }
    natural = {name: max(map(cell_width, column)) for name, column in cells.items()}
    sizes = {name: natural[name] for name in [*columns][:fixed]}
    room = width - sum(sizes.values()) - GAP * (len(sizes) - 1)
    others = [*columns][fixed:]
    texts = [name for name in others if any(isinstance(one, str) for one in columns[name])]
    widest = max(texts, key=natural.__getitem__, default=None)
    reserved, full = sum(natural[name] + GAP for name in first), False
    for name in sorted(others, key=lambda name: name != widest):
        needed = min(natural[name], WIDEST_CELL)
        if name == widest and (first or needed + GAP > room):
            needed = min(natural[name], max(NARROWEST_TEXT, room - GAP - reserved))
        full = full or needed + GAP > room
        if not full:
            sizes[name] = needed
            room -= needed + GAP
    if widest in sizes:
        sizes[widest] = min(natural[widest], sizes[widest] + room)
    shown = {
        name: [cut(cell, sizes[name]) for cell in column]
        for name, column in cells.items()
        if name in sizes
    }
    return shown, [name for name in others if name not in sizes]


def cell_width(text: str) -> int:
    """Return how wide a text is in a terminal."""
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """Return a text, with three dots for what is wider than there is room."""
    from rich.cells import set_cell_size

    return text if cell_width(text) <= width else set_cell_size(text, width - 3).rstrip() + "..."


def aligned(columns: Mapping[str, Sequence[str]], numbers: Sequence[bool]) -> str:
    """Return lines of columns whose first cell is their head; numbers go to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, GAP, 0, 0))
    for number in numbers:
        table.add_column(justify="right" if number else "left", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    screen = StringIO()
    # As wide as it takes: rich would cut ids, which must stay whole.
    console = Console(file=screen, width=10_000, color_system=None, markup=False, emoji=False)
    console.print(table, highlight=False)
    return "\n".join(line.rstrip() for line in screen.getvalue().splitlines())


def pairs(values: Mapping[str, Any]) -> str:
    """Return a line for every name and its value."""
    names = [name.replace("_", " ") for name in values]
    texts = [_flat(value) for value in values.values()]
    return aligned({"name": names, "value": texts}, [False, False])


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(key)} {_flat(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(map(printable, value)) or "none"
    if isinstance(value, list):
        return " x ".join(map(printable, value))
    return "none" if value is None else printable(value)


def map_of(known: dict[str, Any]) -> str:
    """Name the map of an index.

    Examples
    --------
    >>> map_of({"layout": "graph"}), map_of({"layout": None})
    ('graph map', 'no map')
    """
    return f"{known['layout'] or 'no'} map"


def outcome_of(learned: Learned) -> str:
    """Say in one line what came of learning a graph."""
    if not learned.rounds:
        return "kept the plain graph: there are too few points to choose neighbours from"
    if not learned.n_rounds:
        return f"kept the plain graph: {'; '.join(map(_refusal, learned.rounds))}"
    rounds, reach = counted(learned.n_rounds, "round"), f"{learned.reach:.2f}"
    return (
        f"learned a graph of {learned.n_neighbors} neighbours in {rounds}; queries reach {reach} "
        "times as many points as on the graph it began from"
    )


def _refusal(made: Round) -> str:
    k = made.n_neighbors
    reached = f"with {k} neighbours queries would reach {made.reach:.2f} times as many points"
    if made.share == made.reach:  # as many neighbours as in the plain graph
        return reached
    return f"{reached}, {made.share:.2f} times those of a plain graph with {k}"


def summary(known: dict[str, Any], vector: Sequence[str] = ()) -> str:
    """Say in one line what an index holds; ``vector`` are the columns that made its vectors."""
    return ", ".join(
        [
            counted(known["points"], "point"),
            counted(known["features"], "feature") + in_brackets(vector),
            counted(len(known["columns"]), "column") + in_brackets([*known["columns"]]),
            known["metric"],
            f"{known['n_neighbors']} neighbours",
            map_of(known),
        ]
    )


def in_brackets(names: Sequence[str]) -> str:
    """Return names in brackets, of many the first and the last.

    Examples
    --------
    >>> in_brackets(["x", "y"]), in_brackets([f"e{i}" for i in range(384)]), in_brackets([])
    (' (x, y)', ' (e0 to e383)', '')
    """
    if not names:
        return ""
    shown = ", ".join(names) if len(names) <= MOST_NAMES else f"{names[0]} to {names[-1]}"
    return f" ({printable(shown)})"


@dataclass(frozen=True, eq=False)
class ExplainedResults:
    """Results, and what was explained of them.

    Parameters
    ----------
    results : Results or Matches
    reasons : list of Reason or None, optional
        For every result; None for examples of the query.
    extra : Reason, optional
        Of a point that was asked about.
    chosen : list of str, optional
        Columns of the payload that are shown, in this order; else all.
    """

    results: Results | Matches
    reasons: list[Reason | None] | None = None
    extra: Reason | None = None
    chosen: Sequence[str] | None = None

    def columns(self) -> dict[str, list[Any]]:
        """Return the results column by column, with those of the payload that were chosen."""
        columns = self.results.columns()
        if self.chosen is None:
            return columns
        payload = {
            name.removeprefix("payload.") if name not in self.results.payload else name: name
            for name in columns
            if name in self.results.payload or name.startswith("payload.")
        }
        unknown = [name for name in self.chosen if name not in payload]
        if unknown:
            raise click.UsageError(
                f"--columns: the payload has no column {unknown[0]!r}; it has "
                f"{', '.join(map(repr, payload)) or 'none'}."
            )
        own = {name: values for name, values in columns.items() if name not in payload.values()}
        return own | {payload[name]: columns[payload[name]] for name in self.chosen}

    def explained(self) -> list[Reason]:
        """Return every explanation, that of the point asked about last."""
        return [reason for reason in [*(self.reasons or []), self.extra] if reason is not None]


def write_table(answer: ExplainedResults) -> str:
    """Return a table as wide as the terminal, then explanations."""
    width = terminal_width()
    columns = answer.columns()
    for name in MEASURED:
        if name in columns:
            columns[name] = [f"{value:#.4g}" for value in columns[name]]
    lists = getattr(answer.results, "lists", None) or {}
    ranks = [name for name in (f"{one}_rank" for one in lists) if name in columns]
    shown, left_out = columns_that_fit(columns, len(ALWAYS), width, ranks)
    numbers = [
        name in MEASURED or all(type(value) in (int, float, type(None)) for value in columns[name])
        for name in shown
    ]
    if left_out:
        names = ", ".join(map(printable, left_out))
        told = f"Columns without room: {names}. Choose with --columns, or take --format csv."
        click.echo(told, err=True)
    if not answer.results.ids:
        click.echo("No results.", err=True)
    solution = solution_of(answer.results)
    if (
        solution is not None
        and solution.stopped in ("budget", "max_iter")
        and not solution.certified
    ):
        click.echo(ending(solution), err=True)
    threshold = getattr(answer.results, "threshold", None)
    if threshold is not None:
        click.echo(enough(threshold), err=True)
    parts = [aligned(shown, numbers)]
    for reason in answer.explained():
        lines = reason.to_text(max(NARROWEST, width)).splitlines()
        parts.append("\n".join(printable(line) for line in lines))
    return "\n\n".join(parts) + "\n"


def write_csv(answer: ExplainedResults) -> str:
    """Return a line of names, then a line for every result."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = answer.columns()
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def write_json(answer: ExplainedResults) -> str:
    """Return one object: the query, how far scores can be trusted, and the results."""
    rows = answer.results.rows()
    if answer.reasons is not None:
        for row, reason in zip(rows, answer.reasons, strict=True):
            row["explanation"] = None if reason is None else reason.to_dict()
    whole = {**told_of(answer.results), "results": rows}
    if answer.extra is not None:
        whole["explanation"] = answer.extra.to_dict()
    return json.dumps(_finite(whole), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def solution_of(results: Results | Matches) -> Solution | None:
    """Return how far scores can be trusted; None for what was found by words."""
    ranking = getattr(results, "ranking", None)
    return None if ranking is None else ranking.solution


def told_of(results: Results | Matches) -> dict[str, Any]:
    """Return the query of results, and how far scores can be trusted."""
    from rankfold.index import Results

    if not isinstance(results, Results):
        return {}
    solution, asked = results.ranking.solution, results.query
    return {
        "query": {
            "ids": asked.ids,
            "vectors": 0 if asked.vectors is None else len(asked.vectors),
            "weights": asked.weights,
            "text": asked.text,
            "words": asked.words,
            "negative": asked.negative,
            "negative_vectors": (
                0 if asked.negative_vectors is None else len(asked.negative_vectors)
            ),
            "where": asked.where,
            "top": asked.top,
            "offset": asked.offset,
            "diversity": asked.diversity,
            "method": asked.method,
            "include_query": asked.include_query,
            "min_score": asked.min_score,
            "group_by": asked.group_by,
            "per_group": asked.per_group,
            "parameters": asked.parameters,
        },
        "solution": {
            "ended": ending(solution),
            "solver": solution.solver,
            "stopped": solution.stopped,
            "bound": solution.bound,
            "certified": solution.certified,
            "complete": None if results.threshold is None else results.threshold.complete,
            "converged": solution.converged,
            "touched": solution.n_touched,
            "round_trips": solution.round_trips,
            "fused": None if solution.fused is None else solution.fused._asdict(),
        },
    }


def enough(threshold: Threshold) -> str:
    """Say what is proven of the results that score enough.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.index.scores import Threshold
    >>> enough(Threshold(np.array([True, True, False]), complete=True))
    'Of 3 results, 2 are proven to score as much. It is proven that no other point does.'
    """
    n_results, n_proven = len(threshold.proven), int(threshold.proven.sum())
    are = "is" if n_proven == 1 else "are"
    others = "It is proven" if threshold.complete else "It is not proven"
    return (
        f"Of {counted(n_results, 'result')}, {n_proven} {are} proven to score as much. {others} "
        "that no other point does."
    )


def ending(solution: Solution) -> str:
    """Say how a solver ended, and whether the results are proven to be the best.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.types import Solution
    >>> nothing = np.empty(0, dtype=int), np.empty(0)
    >>> ending(Solution(*nothing, bound=0.0123, stopped="budget", n_touched=2000))
    'Ended at its budget, 2,000 points seen; scores are off by at most 0.012. The results are not \
proven to be the best: --budget proven goes on.'
    """
    off = f"scores are off by at most {solution.bound:.2g}"
    how = {
        "exact": "Scores are exact but for rounding.",
        "proven": "Ended when the best points were proven.",
        "tolerance": f"Ended at its tolerance; {off}.",
        "budget": f"Ended at its budget, {solution.n_touched:,} points seen; {off}.",
        "max_iter": f"Gave up before its tolerance; {off}.",
    }[solution.stopped]
    if solution.certified:
        return f"{how} The results are proven to be the best."
    if solution.stopped == "proven":
        return f"{how[:-1]}; this selection of results is not."
    more = ": --budget proven goes on" if solution.stopped == "budget" else ""
    return f"{how} The results are not proven to be the best{more}."


def _finite(value: Any) -> Any:
    """Return null for numbers that JSON cannot hold, and plain values for all others."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
