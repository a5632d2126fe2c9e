"""``rankfold index``: build an index, change it, look after it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from rankfold.cli.errors import Command, interruptible
from rankfold.cli.ids import find_ids
from rankfold.cli.images import source_of
from rankfold.cli.options import count_or_auto, size
from rankfold.cli.reading import described, moved, read, read_like, reading_options
from rankfold.cli.tables import counted, pairs

NAME = click.argument("name", type=click.Path(path_type=Path))
FILE = click.argument("file", type=click.Path(path_type=Path))
LAYOUT = click.option(
    "--layout",
    type=click.Choice(["auto", "graph", "pca", "none"]),
    default="auto",
    show_default=True,
    help="How the map is drawn; auto is graph up to 200,000 points if rankfold[map] is installed.",
)
STOPPED = "Stopped: nothing is half-written."
CHANGE_STOPPED = "Stopped: the change was made completely, or not at all; look with index info."


@click.group()
def index() -> None:
    """Build an index, change it, look after it.

    An index is a folder. NAME is its path.
    """


@index.command(cls=Command)
@FILE
@click.option(
    "-o",
    "--output",
    "name",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder to make.",
)
@reading_options
@click.option(
    "--size", type=size, metavar="WxH", help="Size that images are brought to; else 32x32."
)
@click.option("--colour", is_flag=True, default=None, help="Keep the colours of images.")
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    help="Else that of the file if it names one, else euclidean.",
)
@click.option(
    "--neighbors",
    "n_neighbors",
    type=count_or_auto,
    metavar="NUMBER",
    default="auto",
    show_default=True,
    help="Neighbours in the graph; auto looks at the data.",
)
@click.option(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.99,
    show_default=True,
    help="Share of true neighbours that the lists of many points must hold.",
)
@LAYOUT
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def build(
    file: Path,
    name: Path,
    metric: str | None,
    n_neighbors: Any,
    recall: float,
    layout: Any,
    replace: bool,
    **options: Any,
) -> None:
    """Build an index of the points in FILE.

    FILE is an .npy, .npz, .csv, .tsv, .parquet, .hdf5 or .h5 file, or a folder of images.
    """
    with interruptible(STOPPED):
        from rankfold.index import Index
        from rankfold.storage import Store

        Store.check_place(name, replace=replace)
        points = read(file, **options)
        chosen: Any = metric or points.metric or "euclidean"
        with Index.build(
            points.vectors,
            points.ids,
            points.payload,
            path=name,
            metric=chosen,
            n_neighbors=n_neighbors,
            recall=recall,
            layout=layout,
            replace=replace,
            source=source_of(file, **options),
            progress=sys.stderr.isatty(),
        ) as made:
            click.echo(f"{name}: {summary(made.info())}")


@index.command(cls=Command)
@NAME
@FILE
@reading_options
def add(name: Path, file: Path, **options: Any) -> None:
    """Add the points in FILE to an index.

    Images are brought to the size of those that the index was built from.
    """
    from rankfold.index import Index

    with interruptible(CHANGE_STOPPED):
        points = read_like(name, file, options)
        with Index.open(name, write=True) as changed:
            changed.add(points.vectors, points.ids, points.payload)
            click.echo(f"{name}: added {counted(len(points), 'point')}, now {len(changed)}")


@index.command(cls=Command)
@NAME
@click.argument("file", type=click.Path(path_type=Path), required=False)
@reading_options
def update(name: Path, file: Path | None, **options: Any) -> None:
    """Give points of an index the vectors and the payload in FILE.

    FILE names them by their ids. Columns that it does not have stay as they are. With --payload
    and no FILE, vectors stay as they are, too.
    """
    with interruptible(CHANGE_STOPPED):
        ids, vectors, payload = described(**options) if file is None else moved(name, file, options)
        from rankfold.index import Index

        with Index.open(name, write=True) as changed:
            changed.update(find_ids(changed, ids), vectors, payload)
        click.echo(f"{name}: updated {counted(len(ids), 'point')}")


@index.command(cls=Command)
@NAME
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option("--ids", metavar="FILE", help="A file of ids, one per line; - reads them.")
def remove(name: Path, names: tuple[str, ...], ids: str | None) -> None:
    """Remove points from an index.

    Before ids that begin with a dash, write --.
    """
    from rankfold.index import Index
    from rankfold.inputs import read_ids

    if bool(names) == bool(ids):
        raise click.UsageError("Give ids, or a file of them with --ids.")
    with interruptible(CHANGE_STOPPED):
        typed = read_ids(ids) if ids else names
        with Index.open(name, write=True) as changed:
            gone = list(dict.fromkeys(find_ids(changed, typed)))
            changed.remove(gone)
            click.echo(f"{name}: removed {counted(len(gone), 'point')}, now {len(changed)}")


@index.command(cls=Command)
@NAME
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def info(name: Path, form: str) -> None:
    """Say what an index holds."""
    from rankfold.index import Index

    with Index.open(name) as opened:
        known = opened.info()
    if form == "json":
        click.echo(json.dumps(known, indent=2, ensure_ascii=False))
    else:
        click.echo(pairs(known))


@index.command(cls=Command)
@NAME
def check(name: Path) -> None:
    """Look at every byte of an index for damage."""
    from rankfold.index import Index
    from rankfold.storage import Store

    with Store.open(name) as store:
        store.verify()
    with Index.open(name) as opened:
        click.echo(f"{name}: {counted(len(opened), 'point')}, no damage found")


@index.command(cls=Command)
@NAME
def merge(name: Path) -> None:
    """Merge changes, so that the index opens faster."""
    from rankfold.index import Index

    with interruptible(CHANGE_STOPPED), Index.open(name, write=True) as opened:
        waiting = opened.info()["pending_changes"]
        opened.save()
        click.echo(f"{name}: merged {counted(waiting, 'change')}")


@index.command("map", cls=Command)
@NAME
@LAYOUT
def lay_out(name: Path, layout: Any) -> None:
    """Draw the map of an index anew.

    Points that came after it was drawn were put among their neighbours; now they count, too.
    """
    from rankfold.index import Index

    with interruptible(CHANGE_STOPPED), Index.open(name, write=True) as opened:
        opened.lay_out(layout, progress=sys.stderr.isatty())
        click.echo(f"{name}: {counted(len(opened), 'point')}, {map_of(opened.info())}")


def map_of(known: dict[str, Any]) -> str:
    """Name the map of an index.

    Examples
    --------
    >>> map_of({"layout": "graph"}), map_of({"layout": None})
    ('graph map', 'no map')
    """
    return f"{known['layout'] or 'no'} map"


def summary(known: dict[str, Any]) -> str:
    """Say in one line what an index holds."""
    columns = known["columns"]
    named = f" ({', '.join(columns)})" if 0 < len(columns) <= 5 else ""
    return ", ".join(
        [
            counted(known["points"], "point"),
            counted(known["features"], "feature"),
            counted(len(columns), "column") + named,
            known["metric"],
            f"{known['n_neighbors']} neighbours",
            map_of(known),
        ]
    )
