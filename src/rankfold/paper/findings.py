"""The findings in words; every number in them comes from the results."""

from __future__ import annotations

from collections.abc import Sequence

from rankfold.paper.extras import LONG_RUNS, baselines
from rankfold.paper.measuring import Results
from rankfold.paper.outcomes import compare, outcomes
from rankfold.paper.section import Section
from rankfold.paper.tables import STATUSES, Row, Table, once
from rankfold.rankers import RAN

NOTICEABLE = 1.0
"""Difference in points of a per cent that is worth a word."""


def section(tables: Sequence[Table], results: Results) -> Section | None:
    """Return how much agrees, what RAN's rows are, and what the rivals' rows are."""
    if not tables:
        return None
    # A file of other tables need not hold RAN, or rivals on a graph.
    followed = [table for table in tables if ("alternations", table.dataset, "raw") in results]
    first = next(iter(LONG_RUNS))
    bared = [table for table in followed if ("diagonal", table.name, first, "off") in results]
    paragraphs = [_agreement(tables, results)]
    paragraphs += [_alternations(followed, results)] if followed else []
    paragraphs += [_rivals(bared, results)] if bared else []
    return Section("What we found", tuple(paragraphs))


def _agreement(tables: Sequence[Table], results: Results) -> str:
    found = outcomes(tables, results)
    counts = [sum(outcome.status == status for outcome in found) for status in STATUSES]
    return (
        f"Of {len(found)} printed figures, {counts[0]} are met to the printed digits, {counts[1]} "
        f"within 0.1, and {counts[2]} differ. The protocol is settled by the paper's "
        "Euclidean rows: every point is a query, which counts as found and as relevant. Some "
        "printed figures are rounded, some are cut off. Settings that the paper does not state "
        "were searched for, as the remark on each row says."
    )


def _alternations(tables: Sequence[Table], results: Results) -> str:
    stated = [
        table.title
        for table in once(tables)
        for row in table.rows
        if not _is_rival(row)
        and not row.as_printed
        and all(outcome.status == "exact" for outcome in compare(table, row, results))
    ]
    names = " and ".join(stated) or "no data set"
    courses = {table.title: results["alternations", table.dataset, "raw"] for table in once(tables)}
    parts = ", ".join(
        f"on {title} from {course.free[0]:.2f} to {course.free[-1]:.2f} (with the guard "
        f"{course.guarded[-1]:.2f})"
        for title, course in courses.items()
    )
    n_alternations = max(len(course.free) for course in courses.values())
    return (
        "RAN's rows are those of a single alternation: a graph from the distances alone, then "
        f"the scores. With the paper's k and lambda they are met on {names}. Learning the graph "
        "from the scores in turn, the paper's main idea, is not what its tables measure. Over "
        f"{n_alternations} alternations precision goes {parts}."
    )


def _rivals(tables: Sequence[Table], results: Results) -> str:
    above: list[str] = []
    others: list[str] = []
    for table in tables:
        best, name = max(
            (float(results["diagonal", table.name, name, "off"].precision), name)
            for name in (*LONG_RUNS, *(row.method for _, row in baselines([table])))
        )
        printed = max(row.figures["precision"].printed for row in table.rows if _is_rival(row))
        ran = float(results[table.name, "RAN"].precision)
        text = f"{table.name} ({printed:.2f}; now {best:.2f} by {name}; RAN's row {ran:.2f})"
        (above if best > printed + NOTICEABLE else others).append(text)
    kept = f" It does not in {' and '.join(others)}." if others else ""
    return (
        "The rivals' rows, where they are met, keep every point's weight to itself on the diagonal "
        "of the graph, and most of them end after a few steps; the paper says neither. Without the "
        "diagonal, with the same steps or run for long, the best rival rises more than "
        f"{NOTICEABLE:g} above the best printed one in {' and '.join(above) or 'no table'}.{kept}"
    )


def _is_rival(row: Row) -> bool:
    return not isinstance(row.ranker(), RAN)
