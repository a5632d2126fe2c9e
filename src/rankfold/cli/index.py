"""``rankfold index``: build an index, change it, look after it."""

from __future__ import annotations

import click

from rankfold.cli.building import build
from rankfold.cli.changing import add, remove, update
from rankfold.cli.databases import copy, drop, names
from rankfold.cli.upkeep import check, info, lay_out, learn, merge


@click.group()
def index() -> None:
    """Build an index, change it, look after it.

    An index is a folder, and NAME its path; or it is in a database, and NAME its name there.
    """


for command in (build, add, update, remove, info, check, merge, lay_out, learn, copy, names, drop):
    index.add_command(command)
