"""What the paper does not show: the diagonal, tuning, other data sets, further alternations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from rankfold.drawing import RIGHT, WRONG
from rankfold.evaluation import evaluate, tune
from rankfold.evaluation.tasks import choose_queries
from rankfold.metrics import precision
from rankfold.paper import figures
from rankfold.paper.figures import Curve, CurvePanel
from rankfold.paper.tables import (
    Datasets,
    Grid,
    Measurements,
    Picture,
    Pieces,
    PrintedRow,
    Section,
    Table,
    measure,
    once,
)
from rankfold.rankers import (
    RAN,
    RANKERS,
    GraphTransduction,
    ManifoldRanking,
    PersonalizedPageRank,
    Ranker,
    SelfDiffusion,
)
from rankfold.types import Dataset, FloatArray

N_ALTERNATIONS, N_QUERIES = 8, 165
SCALES: dict[str, Literal["natural"] | None] = {"raw": None, "natural": "natural"}

LONG_RUNS: dict[str, Ranker] = {
    "SD, 50 steps": SelfDiffusion(50),
    "PPR, limit, alpha 0.99": PersonalizedPageRank(0.99),
    "Manifold Ranking, limit, alpha 0.99": ManifoldRanking(0.99),
    "GT, 300 steps": GraphTransduction(300),
}
"""The same methods, run for long on the same graph."""

GRID: dict[str, list[Any]] = {
    "n_neighbors": [3, 5, 10, 15],
    "smoothness": [0.1, 1.0, 10.0, 30.0, 100.0],
}

OTHERS = {"coil20": 240, "umist": 240, "digits": 240}
"""Data sets that the paper does not use, and how many queries are drawn."""


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
            same = data.labels[ranking.indices] == data.labels[query]
            free[place, step] = 100 * precision(same, cutoff)
        trace = traces[place]
        last = n_alternations
        if trace is not None and stopped[place]:
            last = trace.n_alternations
        guarded[place] = free[place, np.minimum(steps, last - 1)]
    return Course(free.mean(axis=0), guarded.mean(axis=0), float(100 * stopped.mean()))


def alternation_work(
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


def alternation_section(tables: Sequence[Table], results: Measurements) -> Section | None:
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
    figure = figures.draw(
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
        (_alternation_grid(courses, n_alternations),),
    )


def _panel(table: Table, raw: Course, natural: Course) -> CurvePanel:
    steps = range(1, len(raw.free) + 1)
    lines = (
        Curve("natural", steps, natural.free, RIGHT),
        Curve("natural, guard", steps, natural.guarded, RIGHT, dashed=True),
        Curve("raw", steps, raw.free, WRONG),
        Curve("raw, guard", steps, raw.guarded, WRONG, dashed=True),
    )
    title = f"{table.title}, P@{table.cutoff}"
    return CurvePanel(title, lines, ticks=tuple(steps), least_span=4.0)


def _alternation_grid(courses: Mapping[Table, Mapping[str, Course]], n_alternations: int) -> Grid:
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


def diagonal_work(tables: Sequence[Table], datasets: Datasets) -> Pieces:
    """Return the baselines with and without self-affinity: as printed, and run for long."""
    pieces: Pieces = {}
    for table, row in baselines(tables):
        arguments = (datasets[table.dataset], table.cutoff, row.metric)
        bare = row.ranker().set_params(graph__self_affinity=False)
        pieces["diagonal", table.name, row.method, "off"] = partial(measure, bare, *arguments)
        for name, ranker in LONG_RUNS.items():
            for key, kept in (("on", True), ("off", False)):
                graph = row.ranker().set_params(graph__self_affinity=kept).graph
                made = clone(ranker).set_params(graph=graph)
                # The graph is the same in all rows of a table: the first one measures it.
                name_of_run = ("diagonal", table.name, name, key)
                pieces.setdefault(name_of_run, partial(measure, made, *arguments))
    return pieces


def diagonal_section(tables: Sequence[Table], results: Measurements) -> Section | None:
    """Return precision with and without self-affinity, side by side."""
    grids = []
    for table in tables:
        rows = []
        for _, row in baselines([table]):
            kept = results[table.name, row.method].precision
            bare = results["diagonal", table.name, row.method, "off"].precision
            rows.append((f"{row.method}, as in {table.name}", kept, bare))
        for name in LONG_RUNS:
            if ("diagonal", table.name, name, "on") in results:
                pair = (
                    results["diagonal", table.name, name, key].precision for key in ("on", "off")
                )
                rows.append((name, *pair))
        cells = tuple(
            (name, f"{kept:.2f}", f"{bare:.2f}", f"{bare - kept:+.2f}") for name, kept, bare in rows
        )
        header = ("method", "with self-affinity", "without", "difference")
        title = f"{table.title}, sigma = {table.sigma:g}, precision@{table.cutoff}"
        if cells:
            grids.append(Grid(header, cells, title=title))
    text = (
        "With the settings above, the baselines agree with the printed figures only where every "
        "point keeps the weight 1 to itself on the diagonal of the kernel, which can hold walks "
        "back. Here it is removed, with all else as it was; then the same methods are run for long."
    )
    title = "Beyond the paper: self-affinity on the diagonal"
    return Section(title, (text,), grids=tuple(grids)) if grids else None


def tuned_work(tables: Sequence[Table], datasets: Datasets) -> Pieces:
    """Return a search for the best k and lambda on half of the queries."""
    return {
        ("tuned", table.dataset): partial(_tuned, datasets[table.dataset], table.cutoff)
        for table in once(tables)
    }


def _tuned(data: Dataset, cutoff: int) -> dict[str, Any]:
    name = f"precision@{cutoff}"
    found = tune(RAN(fusion="none"), data, GRID, scoring=name, metrics=[name], include_query=True)
    if not found.complete:
        raise KeyboardInterrupt
    held_out = found.held_out
    return {
        "queries": len(held_out.queries),
        "plain": 100 * float(held_out.plain[name].mean()),
        "given": 100 * held_out.mean("given", name),
        "tuned": 100 * held_out.mean("tuned", name),
        "best": found.best,
    }


def tuned_section(tables: Sequence[Table], results: Measurements) -> Section | None:
    """Return what tuning gains on queries that were not tuned on."""
    rows = {}
    for table in once(tables):
        found = results["tuned", table.dataset]
        best = found["best"]
        rows[table.dataset] = (
            f"{table.title}, P@{table.cutoff}",
            str(found["queries"]),
            *(f"{found[key]:.2f}" for key in ("plain", "given", "tuned")),
            f"k = {best['n_neighbors']}, lambda = {best['smoothness']:g}",
        )
    header = ("data", "queries", "plain distance", "RAN, defaults", "RAN, tuned", "chosen")
    text = (
        "The paper states one k and one lambda per data set, and does not say how they were "
        "found. Here they are chosen on a random half of the queries, the same share of every "
        "class, and all figures are from the other half."
    )
    grids = (Grid(header, tuple(rows.values())),)
    return (
        Section("Beyond the paper: tuned on other queries", (text,), grids=grids) if rows else None
    )


def others_work(datasets: Datasets) -> Pieces:
    """Return all methods on data that the paper does not use."""
    return {
        ("other", name, method): partial(_at_class_size, made(), datasets[name], queries)
        for name, queries in OTHERS.items()
        if name in datasets
        for method, made in RANKERS.items()
    }


def _at_class_size(ranker: Ranker, data: Dataset, queries: int) -> tuple[float, float]:
    found = evaluate({"it": ranker}, data, "r_precision", queries=queries, include_query=True)
    if not found.complete:
        raise KeyboardInterrupt
    (row,) = found.table()
    return 100 * row.mean, 100 * row.harm


def others_section(results: Measurements) -> Section | None:
    """Return a column of figures for every other data set."""
    names = [name for name in OTHERS if ("other", name, "ran") in results]
    cells = tuple(
        (
            method,
            *(
                text
                for name in names
                for text in map("{:.2f}".format, results["other", name, method])
            ),
        )
        for method in RANKERS
    )
    header = ("method", *(text for name in names for text in (name, "harm")))
    sizes = {OTHERS[name] for name in names}
    text = (
        "Precision at the size of the class in per cent, the query counted, with the defaults of "
        "this library for every method. Harm is the share of queries in per cent that come out "
        f"worse than under plain distance. {' and '.join(sorted(map(str, sizes)))} queries of each "
        "set, drawn at random."
    )
    title = "Beyond the paper: other data sets"
    return Section(title, (text,), grids=(Grid(header, cells),)) if names else None


def baselines(tables: Sequence[Table]) -> list[tuple[Table, PrintedRow]]:
    """Return the rows of methods that run on a Gaussian graph."""
    return [(table, row) for table in tables for row in table.rows if "graph" in row.settings]
