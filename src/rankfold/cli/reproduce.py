"""``rankfold reproduce``: recompute the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path

import click

from rankfold.cli.errors import Command, interruptible
from rankfold.cli.options import comma_separated


@click.command(cls=Command)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/paper"),
    show_default=True,
    help="Folder for the report, its figures and results.json.",
)
@click.option("--only", default="", help="Data sets to keep to, comma-separated; else all.")
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
@click.option("--jobs", type=click.IntRange(1), help="Processes; else one for every processor.")
def reproduce(
    out: Path, only: str, form: str, folder: Path | None, tables: Path | None, jobs: int | None
) -> None:
    """Recompute the paper's tables and figures, and compare them with the printed ones.

    Ends with status 1 if a figure is no longer as near to the printed one as recorded, and with
    130 after Ctrl-C, which leaves no file half-written.
    """
    with interruptible("Stopped: every file is complete, or as it was."):
        from rich.console import Console

        from rankfold.files import check_folder
        from rankfold.paper.report import to_json
        from rankfold.paper.reproduce import print_tables, reproduce, write_report

        check_folder(out)
        found = reproduce(comma_separated(only), folder, tables, jobs)
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
