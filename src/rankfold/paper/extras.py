"""What the paper does not show: the diagonal, tuning, other data sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sklearn.base import clone

from rankfold.evaluation import evaluate, tune
from rankfold.paper.measuring import Datasets, Pieces, Results, measure
from rankfold.paper.section import Grid, Section
from rankfold.paper.tables import Row, Table, once
from rankfold.rankers import (
    RAN,
    RANKERS,
    GraphTransduction,
    ManifoldRanking,
    PersonalizedPageRank,
    Ranker,
    SelfDiffusion,
)
from rankfold.types import Dataset

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


def diagonal_section(tables: Sequence[Table], results: Results) -> Section | None:
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
    found = tune(RAN(fusion="none"), data, GRID, metric=name, metrics=[name], include_query=True)
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


def tuned_section(tables: Sequence[Table], results: Results) -> Section | None:
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


def others_section(results: Results) -> Section | None:
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


def baselines(tables: Sequence[Table]) -> list[tuple[Table, Row]]:
    """Return the rows of methods that run on a Gaussian graph."""
    return [(table, row) for table in tables for row in table.rows if "graph" in row.settings]
