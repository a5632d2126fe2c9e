"""The command line: ``rankfold``."""

from __future__ import annotations

from pathlib import Path

import click


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
    """Rank scikit-learn's digits by shape and by plain distance, as table and picture."""
    from rankfold.demo import run

    run(out, query)
