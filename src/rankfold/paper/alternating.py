"""What further alternations of graph and scores do, which the paper does not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from rankfold.drawing import RIGHT, WRONG
from rankfold.evaluation.tasks import choose_queries
from rankfold.metrics import precision
from rankfold.paper import curves
from rankfold.paper.curves import Curve, Panel
from rankfold.paper.measuring import Datasets, Pieces, Results
from rankfold.paper.section import Grid, Picture, Section
from rankfold.paper.tables import Table, once
from rankfold.rankers import RAN
from rankfold.types import Dataset, FloatArray

N_ALTERNATIONS, N_QUERIES = 8, 165
SCALES: dict[str, Literal["natural"] | None] = {"raw": None, "natural": "natural"}


class Course(NamedTuple):
    """Mean precision in per cent after each alternation, and the share that the guard stops."""

    free: FloatArray
    guarded: FloatArray
    stopped: float


def follow(ranker: RAN, data: Dataset, cutoff: int, n_queries: int, n_alternations: int) -> Course:
    """Rank some queries after every alternation, with and without the guard.

    The guard returns an earlier alternation and changes nothing else, so that one walk
    shows both.
    """
    ranker.set_params(metric=data.metric, guard=True, max_iter=n_alternations).fit(data.X)
    queries = choose_queries(data, min(n_queries, len(data.labels)), True, seed=0)
    free = np.empty((len(queries), n_alternations))
    guarded = np.empty_like(free)
    traces = [ranking.trace for ranking in ranker.rank_many(queries.tolist(), top=1)]
    stopped = np.array([trace is not None and trace.stopped == "collapse" for trace in traces])
    steps = np.arange(n_alternations)
    for place, query in enumerate(queries):
        walk = ranker.alternations(int(query), top=cutoff, include_query=True)
        for step, ranking in enumerate(islice(walk, n_alternations)):
            same = data.labels[ranking.ids] == data.labels[query]
            free[place, step] = 100 * precision(same, cutoff)
        trace = traces[place]
        last = n_alternations
        if trace is not None and stopped[place]:
            last = trace.n_alternations
        guarded[place] = free[place, np.minimum(steps, last - 1)]
    return Course(free.mean(axis=0), guarded.mean(axis=0), float(100 * stopped.mean()))


def work(
    tables: Sequence[Table],
    datasets: Datasets,
    n_queries: int = N_QUERIES,
    n_alternations: int = N_ALTERNATIONS,
) -> Pieces:
    """Return a walk for every data set and unit of distance."""
    return {
        ("alternations", table.dataset, scale): partial(
            follow, ranker, datasets[table.dataset], table.cutoff, n_queries, n_alternations
        )
        for table in reversed(once(tables))
        for scale, ranker in _rankers(table).items()
    }


def _rankers(table: Table) -> dict[str, RAN]:
    """Return RAN as the paper states it, in the unit of the data and in the natural one."""
    rankers: dict[str, RAN] = {}
    for row in table.rows:
        if row.settings["class"] == "RAN":
            for name, scale in SCALES.items():
                made: Any = row.ranker(**{**row.as_printed, "scale": scale or "none"})
                rankers[name] = made
    return rankers


def section(tables: Sequence[Table], results: Results) -> Section | None:
    """Return curves and figures of every data set that was followed."""
    courses = {
        table: {scale: results["alternations", table.dataset, scale] for scale in SCALES}
        for table in once(tables)
        if ("alternations", table.dataset, "raw") in results
    }
    if not courses:
        return None
    n_alternations = max(len(course["raw"].free) for course in courses.values())
    text = (
        f"Precision after each of {n_alternations} alternations of graph and scores, for "
        f"{N_QUERIES} queries of each set (all of YALE, drawn at random elsewhere), with the "
        "paper's k and lambda. In the raw unit, distances are as given, as in the paper; in the "
        "natural one, the mean squared distance to the neighbour after the k-th is one. The guard "
        "returns the last alternation before a query cuts itself off from its neighbours; the last "
        "column says for how many queries it did."
    )
    figure = curves.draw(
        "More alternations, or one?",
        "Mean precision in per cent after each alternation of graph and scores; dashed: guarded.",
        [_panel(table, **course) for table, course in courses.items()],
        "alternations",
        names=240,
        height=520,
    )
    return Section(
        "Beyond the paper: further alternations",
        (text,),
        (Picture("alternations", "Precision over the number of alternations.", figure),),
        (_grid(courses, n_alternations),),
    )


def _panel(table: Table, raw: Course, natural: Course) -> Panel:
    steps = range(1, len(raw.free) + 1)
    lines = (
        Curve("natural", steps, natural.free, RIGHT),
        Curve("natural, guard", steps, natural.guarded, RIGHT, dashed=True),
        Curve("raw", steps, raw.free, WRONG),
        Curve("raw, guard", steps, raw.guarded, WRONG, dashed=True),
    )
    title = f"{table.title}, P@{table.cutoff}"
    return Panel(title, lines, ticks=tuple(steps), least_span=4.0)


def _grid(courses: Mapping[Table, Mapping[str, Course]], n_alternations: int) -> Grid:
    shown = [step for step in (1, 2, 3, 5, 8) if step <= n_alternations]
    rows = tuple(
        (
            table.title,
            scale,
            *(f"{course.free[step - 1]:.2f}" for step in shown),
            f"{course.guarded[-1]:.2f}",
            f"{course.stopped:.0f} %",
        )
        for table, by_scale in courses.items()
        for scale, course in by_scale.items()
    )
    after = (f"after {step}" for step in shown)
    header = ("data", "unit", *after, f"guarded, {n_alternations}", "stopped")
    return Grid(header, rows, n_words=2)
