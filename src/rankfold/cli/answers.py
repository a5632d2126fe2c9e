"""Answers to queries as table, JSON and csv."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from rankfold.cli.tables import aligned, columns_that_fit, printable, terminal_width

if TYPE_CHECKING:
    from rankfold.index import Reason, Results
    from rankfold.types import Solution

ALWAYS = ("rank", "id", "score")
"""Columns that a table shows in any terminal."""

MEASURED = ("score", "shape", "distance")
OWN_COLUMNS = (*ALWAYS, "shape", "distance")
"""Names that columns of the payload cannot have; the last two are there where both were fused."""

NARROWEST = 60
"""Explanations are not set narrower than this."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Results, and what was explained of them.

    Parameters
    ----------
    results : Results
    reasons : list of Reason or None, optional
        For every result; None for examples of the query.
    extra : Reason, optional
        Of a point that was asked about.
    """

    results: Results
    reasons: list[Reason | None] | None = None
    extra: Reason | None = None

    def columns(self) -> dict[str, list[Any]]:
        """Return rank, id, score, its parts and payload.

        Payload of the same name is ``payload.rank``.
        """
        results = self.results
        first = results.asked.offset + 1
        payload = {
            f"payload.{name}" if name in OWN_COLUMNS else name: values
            for name, values in results.payload.items()
        }
        return {
            "rank": list(range(first, first + len(results))),
            "id": results.ids,
            "score": results.scores.tolist(),
            **{name: values.tolist() for name, values in results.parts().items()},
            **payload,
        }

    def explained(self) -> list[Reason]:
        """Return every explanation, that of the point asked about last."""
        return [reason for reason in [*(self.reasons or []), self.extra] if reason is not None]


def write_table(answer: Answer) -> str:
    """Return a table as wide as the terminal, then explanations."""
    width = terminal_width()
    columns = answer.columns()
    for name in MEASURED:
        if name in columns:
            columns[name] = [f"{value:#.4g}" for value in columns[name]]
    shown, left_out = columns_that_fit(columns, len(ALWAYS), width)
    numbers = [
        name in MEASURED or all(type(value) in (int, float, type(None)) for value in columns[name])
        for name in shown
    ]
    if left_out:
        names = ", ".join(map(printable, left_out))
        click.echo(f"Columns without room: {names}. The formats json and csv have all.", err=True)
    if not len(answer.results):
        click.echo("No results.", err=True)
    solution = answer.results.ranking.solution
    if solution.stopped in ("budget", "max_iter") and not solution.certified:
        click.echo(ending(solution), err=True)
    parts = [aligned(shown, numbers)]
    for reason in answer.explained():
        lines = reason.to_text(max(NARROWEST, width)).splitlines()
        parts.append("\n".join(printable(line) for line in lines))
    return "\n\n".join(parts) + "\n"


def write_csv(answer: Answer) -> str:
    """Return a line of names, then a line for every result."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = answer.columns()
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def write_json(answer: Answer) -> str:
    """Return one object: the query, how far scores can be trusted, and the results."""
    results = answer.results
    asked, solution = results.asked, results.ranking.solution
    rows = results.rows()
    if answer.reasons is not None:
        for row, reason in zip(rows, answer.reasons, strict=True):
            row["explanation"] = None if reason is None else reason.to_dict()
    whole: dict[str, Any] = {
        "query": {
            "ids": asked.ids,
            "vectors": 0 if asked.vectors is None else len(asked.vectors),
            "weights": asked.weights,
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
            "parameters": asked.parameters,
        },
        "solution": {
            "ended": ending(solution),
            "solver": solution.solver,
            "stopped": solution.stopped,
            "bound": solution.bound,
            "certified": solution.certified,
            "converged": solution.converged,
            "touched": solution.n_touched,
            "round_trips": solution.round_trips,
            "fused": None if solution.fused is None else solution.fused._asdict(),
        },
        "results": rows,
    }
    if answer.extra is not None:
        whole["explanation"] = answer.extra.to_dict()
    return json.dumps(_finite(whole), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def ending(solution: Solution) -> str:
    """Say how a solver ended, and whether the results are proven to be the best.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold.types import Solution
    >>> nothing = np.empty(0, dtype=int), np.empty(0)
    >>> ending(Solution(*nothing, bound=0.0123, stopped="budget", n_touched=2500))
    'Ended at its budget, 2,500 points seen; scores are off by at most 0.012. The results are not \
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
