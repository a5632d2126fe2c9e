"""``rankfold index copy``, ``list`` and ``drop``: indexes in databases."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rankfold.cli.errors import STOPPED, Command, interruptible
from rankfold.cli.places import ENGINE, OUTPUT, Place, placed
from rankfold.cli.tables import counted


@click.command(cls=Command)
@click.argument("original", metavar="NAME", type=click.Path())
@placed(OUTPUT)
@click.option("--from", "source", metavar="ADDRESS", help="The database that it is in, if any.")
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def copy(original: str, place: Place, source: str | None, replace: bool) -> None:
    """Copy an index into a database, or from one into a folder.

    Neighbour lists are copied, so that nothing is searched again.
    """
    if not source and not Path(original).exists():
        raise click.UsageError(
            f"There is no folder {original!r}. For an index in a database, give its address as "
            "--from."
        )
    with interruptible(STOPPED):
        place.check_free(replace)
        with Place(original, source or None).open() as opened:
            opened.copy(
                place.name, engine=place.engine, replace=replace, progress=sys.stderr.isatty()
            )
            click.echo(f"{place}: copied {counted(len(opened), 'point')} of {original}")


@click.command("list", cls=Command)
@ENGINE
def names(engine: str | None) -> None:
    """List the names of all indexes in a database."""
    for name in Place("", engine or None).database().names():
        click.echo(name)


@click.command(cls=Command)
@placed()
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(place: Place, yes: bool) -> None:
    """Delete an index from a database, for good."""
    database = place.database()
    if not yes and place.name in database.names():
        click.confirm(f"Delete the index {place.name!r}, for good?", abort=True, err=True)
    database.drop(place.name)
    click.echo(f"{place}: deleted")
