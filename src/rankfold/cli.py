"""The command line: ``rankfold``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

INTERRUPTED = 130
"""Status of a command that was ended by Ctrl-C, as shells report it."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rankfold")
def main() -> None:
    """Rank by the shape of the data."""


@main.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the picture.",
)
@click.option("--query", type=int, default=None, help="Row of the digit to ask for.")
def demo(out: Path, query: int | None) -> None:
    """Rank handwritten digits by shape and by distance."""
    from rankfold.demo import run

    with clear_errors():
        run(out, query)


@main.command()
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
    with clear_errors(), interruptible():
        from rankfold.datasets import load
        from rankfold.evaluation import evaluate as measure

        result = measure(
            _rankers(methods),
            load(dataset, folder),
            _words(metrics),
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


@main.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/paper"),
    show_default=True,
    help="Folder for the report, its figures and results.json.",
)
@click.option("--only", default="", help="Data sets to keep to, parted by commas; else all.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How the figures are written to standard output.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the data files; else that of RANKFOLD_DATA, the cache, or a download.",
)
@click.option(
    "--tables",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another file of printed figures; else those of the paper.",
)
@click.option("--jobs", type=int, help="Processes; else one for every processor.")
def reproduce(
    out: Path, only: str, form: str, folder: Path | None, tables: Path | None, jobs: int | None
) -> None:
    """Make the paper's tables and figures anew, and compare them with the printed ones.

    Ends with status 1 if a figure is no longer as near to the printed one as recorded, and with
    130 after Ctrl-C, which leaves no file half-written.
    """
    with clear_errors(), interruptible("Stopped: every file is complete, or as it was."):
        from rich.console import Console

        from rankfold.files import check_folder
        from rankfold.paper.report import to_json
        from rankfold.paper.reproduce import print_tables, reproduce, write_report

        check_folder(out)
        found = reproduce(_words(only), folder, tables, jobs)
        files = write_report(found, out)
    if form == "json":
        click.echo(to_json(found.outcomes()), nl=False)
    else:
        print_tables(found, Console())
        click.echo(f"Report: {files[-1]}")
    moved = found.moved()
    if moved:
        lines = "\n".join(moved)
        raise click.ClickException(f"figures that have moved: {len(moved)}\n{lines}")


def _words(text: str) -> list[str]:
    """Return the words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _rankers(names: str) -> dict[str, Any]:
    """Return the named methods with their default parameters."""
    from rankfold.check import InputError
    from rankfold.rankers import RANKERS

    chosen = list(RANKERS) if names == "all" else _words(names)
    for name in chosen or [names]:
        if name not in RANKERS:
            raise InputError(
                f"method {name!r} is not known; choose from all, {', '.join(RANKERS)}."
            )
    return {name: RANKERS[name]() for name in chosen}


@contextmanager
def interruptible(message: str = "Stopped before anything was done.") -> Iterator[None]:
    """End with the status of Ctrl-C when it comes before there is anything to show."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(message, err=True)
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what users can mend into one line instead of a traceback."""
    from rankfold.check import InputError, MissingExtraError

    try:
        yield
    except (InputError, MissingExtraError, OSError) as error:
        raise click.ClickException(str(error)) from error
