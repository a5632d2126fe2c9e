"""``rankfold index``: build an index, change it, look after it."""

from __future__ import annotations

import click

from rankfold.cli.building import build
from rankfold.cli.changing import add, remove, update
from rankfold.cli.upkeep import check, copy, lay_out, learn, merge


@click.group()
def index() -> None:
    """Build an index, change it, look after it.

    An index is a folder, and NAME its path.
    """


for command in (build, add, update, remove, check, merge, lay_out, learn, copy):
    index.add_command(command)
