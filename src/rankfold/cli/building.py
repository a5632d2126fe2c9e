"""``rankfold index build``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from rankfold.cli.errors import STOPPED, Command, interruptible
from rankfold.cli.facts import summary
from rankfold.cli.images import source_of
from rankfold.cli.options import FILE, LAYOUT, NEIGHBORS, RECALL, size
from rankfold.cli.places import OUTPUT, Place, placed
from rankfold.cli.reading import read, reading_options


@click.command(cls=Command)
@FILE
@placed(OUTPUT)
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
@NEIGHBORS
@RECALL
@LAYOUT
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def build(
    file: Path,
    place: Place,
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

        place.check_free(replace)
        points = read(file, **options)
        chosen: Any = metric or points.metric or "euclidean"
        with Index.build(
            points.vectors,
            points.ids,
            points.payload,
            path=place.name,
            metric=chosen,
            n_neighbors=n_neighbors,
            recall=recall,
            layout=layout,
            replace=replace,
            source=source_of(file, **options),
            progress=sys.stderr.isatty(),
        ) as made:
            click.echo(f"{place}: {summary(made.info())}")
