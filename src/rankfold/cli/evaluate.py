"""``rankfold evaluate``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from rankfold.cli.errors import INTERRUPTED
from rankfold.cli.options import words


@click.command()
@click.argument("dataset")
@click.option(
    "--methods", default="all", show_default=True, help="Names of methods, parted by commas."
)
@click.option(
    "--metrics",
    default="r_precision,average_precision,ndcg@10",
    show_default=True,
    help="Measures, parted by commas.",
)
@click.option("--queries", type=int, help="Draw this many queries at random; else all.")
@click.option("--include-query", is_flag=True, help="Let a query be one of its own results.")
@click.option("--base", help="Method that the paired test compares with; else plain distance.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "latex", "csv", "json"]),
    default="table",
    show_default=True,
    help="How the result is written to standard output.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the data files; else that of RANKFOLD_DATA, the cache, or a download.",
)
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes to share the work.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all random draws.")
def evaluate(
    dataset: str,
    methods: str,
    metrics: str,
    queries: int | None,
    include_query: bool,
    base: str | None,
    form: str,
    folder: Path | None,
    jobs: int,
    seed: int,
) -> None:
    """Measure methods side by side on DATASET, with intervals, tests and harm.

    Ctrl-C prints what is done so far and ends with status 130.
    """
    from rankfold.datasets import load
    from rankfold.evaluation import evaluate as measure

    data = load(dataset, folder)
    result = measure(
        _rankers(methods, data.metric),
        data,
        words(metrics),
        queries=queries,
        include_query=include_query,
        base=base,
        n_jobs=jobs,
        progress=True,
        seed=seed,
    )
    write = {
        "table": lambda: result.to_text(shutil.get_terminal_size((100, 24)).columns),
        "markdown": result.to_markdown,
        "latex": result.to_latex,
        "csv": result.to_csv,
        "json": result.to_json,
    }
    click.echo(write[form](), nl=False)
    if not result.complete:
        click.echo("Stopped early: the table holds only what was done until then.", err=True)
        raise SystemExit(INTERRUPTED)


def _rankers(names: str, metric: str) -> dict[str, Any]:
    """Return the named methods with their default parameters; all are those that can be used."""
    from rankfold.check import InputError
    from rankfold.neighbors import GIVEN_METRICS
    from rankfold.rankers import RANKERS

    usable = [
        name
        for name, ranker in RANKERS.items()
        if metric not in GIVEN_METRICS or not ranker.needs_vectors
    ]
    chosen = usable if names == "all" else words(names)
    for name in chosen or [names]:
        if name not in RANKERS:
            raise InputError(
                f"method {name!r} is not known; choose from all, {', '.join(RANKERS)}."
            )
    return {name: RANKERS[name]() for name in chosen}
