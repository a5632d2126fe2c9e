"""``rankfold index``: build an index, change it, look after it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from rankfold.cli.errors import (
    CHANGE_STOPPED,
    LEARNING_STOPPED,
    STOPPED,
    Command,
    interruptible,
)
from rankfold.cli.inputs import (
    described,
    find_ids,
    moved,
    read,
    read_columns,
    read_like,
    read_texts,
    reading_options,
    source_of,
)
from rankfold.cli.options import FILE, LAYOUT, NEIGHBORS, OUTPUT, RECALL, Target, size, targeted
from rankfold.cli.output import counted, map_of, outcome_of, summary


@click.command(cls=Command)
@FILE
@targeted(OUTPUT)
@reading_options
@click.option(
    "--size", type=size, metavar="WxH", help="Size that images are brought to; else 32x32."
)
@click.option("--colour", is_flag=True, default=None, help="Keep the colours of images.")
@click.option(
    "--embedder",
    metavar="NAME",
    help="What makes vectors of texts: wordllama, sentence-transformers/NAME or openai:NAME.",
)
@click.option(
    "--text-column",
    metavar="NAME",
    help="Column of the texts that become the vectors; FILE is then a table without any.",
)
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    help="Else that of the file if it names one, else cosine for texts, else euclidean.",
)
@NEIGHBORS
@RECALL
@LAYOUT
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def build(
    file: Path,
    place: Target,
    embedder: str | None,
    text_column: str | None,
    metric: Any,
    n_neighbors: Any,
    recall: float,
    layout: Any,
    replace: bool,
    **options: Any,
) -> None:
    """Build an index of the points in FILE.

    FILE is an .npy, .npz, .csv, .tsv, .parquet, .jsonl, .hdf5 or .h5 file, or a folder of images.
    With --embedder and --text-column it is a table of texts (.csv, .tsv, .parquet, .jsonl), and the
    index can be asked in words.
    """
    if text_column is not None and embedder is None:
        raise click.UsageError("--text-column needs --embedder, which makes vectors of the texts.")
    with interruptible(STOPPED):
        from rankfold.index import Index

        place.check_free(replace)
        vectors: Any = None
        payload: Any
        named: tuple[str, ...] = ()
        if text_column is not None:
            ids, payload = read_texts(file, text_column, **options)
        else:
            points = read(file, **options)
            vectors, ids, payload = points.vectors, points.ids, points.payload
            metric, named = metric or points.metric, points.vector_columns
        n_points = len(payload[text_column] if vectors is None else vectors)
        most = max(1, n_points - 2)
        if n_neighbors != "auto" and n_neighbors > most:
            told = f"{n_points:,} points have up to {most:,} neighbours each in a graph"
            click.echo(f"{told}; {n_neighbors:,} are used once there are more points", err=True)
        with Index.build(
            vectors,
            ids,
            payload,
            texts=text_column,
            embedder=embedder,
            path=place.name,
            metric=metric,
            n_neighbors=n_neighbors,
            recall=recall,
            layout=layout,
            replace=replace,
            source=source_of(file, **options),
            progress=sys.stderr.isatty(),
        ) as made:
            click.echo(f"{place}: {summary(made.info(), named)}")


@click.command(cls=Command)
@targeted()
@FILE
@reading_options
def add(place: Target, file: Path, **options: Any) -> None:
    """Add the points in FILE to an index.

    Where the index makes vectors of texts, a table needs no more than their column. Images are
    brought to the size of those that the index was built from.
    """
    with interruptible(CHANGE_STOPPED):
        ids, vectors, payload = read_like(place, file, options)
        with place.open(write=True) as changed:
            added = changed.add(vectors, ids, payload)
            click.echo(f"{place}: added {counted(len(added), 'point')}, now {len(changed)}")


@click.command(cls=Command)
@targeted()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@reading_options
def update(place: Target, file: Path | None, **options: Any) -> None:
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


@click.group()
def columns() -> None:
    """Change which columns the payload of an index has."""


@columns.command("add", cls=Command)
@targeted()
@FILE
@click.option("--id-column", metavar="NAME", help="Column of the ids; else 'id'.")
def add_columns(place: Target, file: Path, id_column: str | None) -> None:
    """Add the columns of a table to the payload of an index.

    FILE is a .csv, .tsv, .parquet or .jsonl file. A column of ids says which points its rows are
    for, and all others have no value; without, it has a row for each point, in the order in which
    they came.
    """
    with interruptible(CHANGE_STOPPED):
        names, new = read_columns(file, id_column)
        with place.open(write=True) as changed:
            changed.add_columns(new, None if names is None else find_ids(changed, names))
            told = f"added {counted(len(new), 'column')} ({', '.join(new)})"
            n_points = len(changed) if names is None else len(names)
            click.echo(f"{place}: {told} to {counted(n_points, 'point')}")


@click.command(cls=Command)
@targeted()
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option("--ids", metavar="FILE", help="A file of ids, one per line; - reads them.")
def remove(place: Target, names: tuple[str, ...], ids: str | None) -> None:
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


@click.command(cls=Command)
@targeted()
def check(place: Target) -> None:
    """Look for damage, at every byte of the folder."""
    place.verify()
    with place.open() as opened:
        click.echo(f"{place}: {counted(len(opened), 'point')}, no damage found")


@click.command(cls=Command)
@targeted()
def merge(place: Target) -> None:
    """Merge changes, so that the index opens faster."""
    with interruptible(CHANGE_STOPPED), place.open(write=True) as opened:
        waiting = opened.info()["pending_changes"]
        opened.save()
        click.echo(f"{place}: merged {counted(waiting, 'change')}")


@click.command("map", cls=Command)
@targeted()
@LAYOUT
def lay_out(place: Target, layout: Any) -> None:
    """Draw the map of an index again.

    Points that came after it was drawn were put among their neighbours; now they count, too.
    """
    with interruptible(CHANGE_STOPPED), place.open(write=True) as opened:
        opened.lay_out(layout, progress=sys.stderr.isatty())
        click.echo(f"{place}: {counted(len(opened), 'point')}, {map_of(opened.info())}")


@click.command(cls=Command)
@targeted()
@click.option(
    "--smoothness", type=float, default=30.0, show_default=True, help="That of later queries."
)
@click.option("--forget", is_flag=True, help="Forget what was learned; queries are plain again.")
def learn(place: Target, smoothness: float, forget: bool) -> None:
    """Learn one graph for all queries.

    Later queries of the method ran start from it; --set adapt=query asks for the plain one. Where
    that would part or join too much the plain graph is kept.
    """
    with interruptible(LEARNING_STOPPED), place.open(write=True) as opened:
        if forget:
            opened.unlearn()
            click.echo(f"{place}: the learned graph is forgotten")
        else:
            found = opened.learn(smoothness=smoothness, progress=sys.stderr.isatty())
            click.echo(f"{place}: {outcome_of(found)}")


@click.command(cls=Command)
@click.argument("original", metavar="NAME", type=click.Path())
@targeted(OUTPUT)
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def copy(original: str, place: Target, replace: bool) -> None:
    """Copy an index into another folder, also while it is served; nothing is searched again."""
    with interruptible(STOPPED):
        place.check_free(replace)
        with Target(original).open() as opened:
            opened.copy(place.name, replace=replace)
            click.echo(f"{place}: copied {counted(len(opened), 'point')} of {original}")


@click.group()
def index() -> None:
    """Build an index, change it, look after it.

    An index is a folder, and NAME its path.
    """


for command in (build, add, update, remove, columns, check, merge, lay_out, learn, copy):
    index.add_command(command)
