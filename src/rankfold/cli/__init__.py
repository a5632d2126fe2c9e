"""The command line: ``rankfold``.

Commands import what they need when they run, so that help and completion come at once.
"""

from __future__ import annotations

from pathlib import Path

import click

from rankfold.cli.cluster import cluster
from rankfold.cli.databases import attach, detach, info, refresh
from rankfold.cli.embed import embed
from rankfold.cli.errors import Command, Commands
from rankfold.cli.evaluate import evaluate
from rankfold.cli.index import index
from rankfold.cli.query import find, query
from rankfold.cli.reproduce import reproduce
from rankfold.cli.serve import serve
from rankfold.cli.warm_up import warm_up

EXIT_STATUS = """\b
Exit status:
  0    all went well
  1    something could not be done; standard error says what and why
  2    a command, an option or its value was wrong
  130  ended by Ctrl-C; no file is left half-written
"""


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_STATUS
)
@click.version_option(package_name="rankfold")
def main() -> None:
    """Rank by the shape of the data."""


@click.command(cls=Command)
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


COMMANDS = (
    attach, cluster, demo, detach, embed, evaluate, find, index, info, query, refresh, reproduce,
    serve, warm_up,
)  # fmt: skip
for command in COMMANDS:
    main.add_command(command)
