"""The command line: ``rankfold``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

    with clear_errors():
        run(out, query)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what users can mend into one line instead of a traceback."""
    from rankfold.check import InputError, MissingExtraError

    try:
        yield
    except (InputError, MissingExtraError, OSError) as error:
        raise click.ClickException(str(error)) from error
