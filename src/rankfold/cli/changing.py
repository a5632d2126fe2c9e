"""``rankfold index add``, ``update`` and ``remove``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rankfold.cli.errors import CHANGE_STOPPED, Command, interruptible
from rankfold.cli.ids import find_ids
from rankfold.cli.options import FILE
from rankfold.cli.places import Place, placed
from rankfold.cli.reading import described, moved, read_like, reading_options
from rankfold.cli.tables import counted


@click.command(cls=Command)
@placed()
@FILE
@reading_options
def add(place: Place, file: Path, **options: Any) -> None:
    """Add the points in FILE to an index.

    Images are brought to the size of those that the index was built from.
    """
    with interruptible(CHANGE_STOPPED):
        points = read_like(place, file, options)
        with place.open(write=True) as changed:
            changed.add(points.vectors, points.ids, points.payload)
            click.echo(f"{place}: added {counted(len(points), 'point')}, now {len(changed)}")


@click.command(cls=Command)
@placed()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@reading_options
def update(place: Place, file: Path | None, **options: Any) -> None:
    """Give points of an index the vectors and the payload in FILE.

    FILE names them by their ids. Columns that it does not have stay as they are. With --payload
    and no FILE, vectors stay as they are, too.
    """
    with interruptible(CHANGE_STOPPED):
        ids, vectors, payload = (
            described(**options) if file is None else moved(place, file, options)
        )
        with place.open(write=True) as changed:
            changed.update(find_ids(changed, ids), vectors, payload)
        click.echo(f"{place}: updated {counted(len(ids), 'point')}")


@click.command(cls=Command)
@placed()
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option("--ids", metavar="FILE", help="A file of ids, one per line; - reads them.")
def remove(place: Place, names: tuple[str, ...], ids: str | None) -> None:
    """Remove points from an index.

    Before ids that begin with a dash, write --.
    """
    from rankfold.inputs import read_ids

    if bool(names) == bool(ids):
        raise click.UsageError("Give ids, or a file of them with --ids.")
    with interruptible(CHANGE_STOPPED):
        typed = read_ids(ids) if ids else names
        with place.open(write=True) as changed:
            gone = list(dict.fromkeys(find_ids(changed, typed)))
            changed.remove(gone)
            click.echo(f"{place}: removed {counted(len(gone), 'point')}, now {len(changed)}")
