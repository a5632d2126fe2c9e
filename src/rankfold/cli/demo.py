"""``rankfold demo``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the picture and the index.",
)
@click.option("--query", type=int, default=None, help="Row of the digit to ask for.")
def demo(out: Path, query: int | None) -> None:
    """Rank handwritten digits by shape and by distance."""
    from rankfold.demo import run

    run(out, query)
