"""The command line: ``rankfold``.

Commands import what they need when they run, so that help and completion come at once.
"""

from __future__ import annotations

import click

from rankfold.cli.cluster import cluster
from rankfold.cli.databases import attach, detach, info, refresh
from rankfold.cli.demo import demo
from rankfold.cli.embed import embed
from rankfold.cli.errors import Commands
from rankfold.cli.evaluate import evaluate
from rankfold.cli.index import index
from rankfold.cli.query import query
from rankfold.cli.reproduce import reproduce
from rankfold.cli.serve import serve

EXIT_STATUS = """\b
Exit status:
  0    all went well
  1    something could not be done; standard error says what and why
  2    the command line itself was wrong
  130  ended by Ctrl-C; no file is left half-written
"""


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_STATUS
)
@click.version_option(package_name="rankfold")
def main() -> None:
    """Rank by the shape of the data."""


COMMANDS = (
    attach, cluster, demo, detach, embed, evaluate, index, info, query, refresh, reproduce, serve
)  # fmt: skip
for command in COMMANDS:
    main.add_command(command)
