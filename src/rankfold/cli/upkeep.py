"""``rankfold index check`` and other commands that look after an index."""

from __future__ import annotations

import sys
from typing import Any

import click

from rankfold.cli.compiling import telling_of_compilation
from rankfold.cli.errors import CHANGE_STOPPED, LEARNING_STOPPED, STOPPED, Command, interruptible
from rankfold.cli.facts import map_of, outcome_of
from rankfold.cli.options import LAYOUT
from rankfold.cli.places import OUTPUT, Place, placed
from rankfold.cli.tables import counted


@click.command(cls=Command)
@placed()
def check(place: Place) -> None:
    """Look for damage, at every byte of the folder."""
    place.verify()
    with place.open() as opened:
        click.echo(f"{place}: {counted(len(opened), 'point')}, no damage found")


@click.command(cls=Command)
@placed()
def merge(place: Place) -> None:
    """Merge changes, so that the index opens faster."""
    with interruptible(CHANGE_STOPPED), place.open(write=True) as opened:
        waiting = opened.info()["pending_changes"]
        opened.save()
        click.echo(f"{place}: merged {counted(waiting, 'change')}")


@click.command("map", cls=Command)
@placed()
@LAYOUT
def lay_out(place: Place, layout: Any) -> None:
    """Draw the map of an index anew.

    Points that came after it was drawn were put among their neighbours; now they count, too.
    """
    with interruptible(CHANGE_STOPPED), place.open(write=True) as opened:
        opened.lay_out(layout, progress=sys.stderr.isatty())
        click.echo(f"{place}: {counted(len(opened), 'point')}, {map_of(opened.info())}")


@click.command(cls=Command)
@placed()
@click.option(
    "--smoothness", type=float, default=30.0, show_default=True, help="That of later queries."
)
@click.option("--forget", is_flag=True, help="Forget what was learned; queries are plain again.")
def learn(place: Place, smoothness: float, forget: bool) -> None:
    """Learn one graph for all queries.

    Later queries of the method ran start from it; --set adapt=query asks for the plain one. Where
    that would part or join too much the plain graph is kept.
    """
    with interruptible(LEARNING_STOPPED), place.open(write=True) as opened:
        if forget:
            opened.unlearn()
            click.echo(f"{place}: the learned graph is forgotten")
        else:
            with telling_of_compilation(len(opened)):
                found = opened.learn(smoothness=smoothness, progress=sys.stderr.isatty())
            click.echo(f"{place}: {outcome_of(found)}")


@click.command(cls=Command)
@click.argument("original", metavar="NAME", type=click.Path())
@placed(OUTPUT)
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def copy(original: str, place: Place, replace: bool) -> None:
    """Copy an index into another folder, also while it is served; nothing is searched again."""
    with interruptible(STOPPED):
        place.check_free(replace)
        with Place(original).open() as opened:
            opened.copy(place.name, replace=replace)
            click.echo(f"{place}: copied {counted(len(opened), 'point')} of {original}")
