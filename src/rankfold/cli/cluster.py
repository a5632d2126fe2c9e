"""``rankfold cluster``: heavy work on the workers of Dask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rankfold.cli.errors import STOPPED, Command, interruptible
from rankfold.cli.inputs import find_ids
from rankfold.cli.options import (
    METHOD,
    NEIGHBORS,
    OUTPUT,
    RECALL,
    SETTINGS,
    Target,
    comma_separated,
    targeted,
)
from rankfold.cli.output import counted, summary
from rankfold.cli.query import check_parameters, read_all

WORKERS = [
    click.option(
        "--scheduler", metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786."
    ),
    click.option(
        "--workers",
        "n_workers",
        type=click.IntRange(1),
        metavar="NUMBER",
        help="Processes on this machine, without a scheduler; else one for each core.",
    ),
]


def worker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say who does the work."""
    for option in reversed(WORKERS):
        command = option(command)
    return command


@click.group()
def cluster() -> None:
    """Do heavy work on many machines, or on all cores of this one.

    It takes workers of Dask, which share the folders of shards and indexes.
    """


@cluster.command(cls=Command)
@click.argument("shards", nargs=-1, required=True)
@targeted(OUTPUT)
@worker_options
@click.option("--id-column", metavar="NAME", help="Column of the ids; else 'id'.")
@click.option(
    "--vector-columns",
    type=comma_separated,
    metavar="NAMES",
    help="Columns of the vector, comma-separated; else those that look like one.",
)
@click.option(
    "--payload-columns",
    type=comma_separated,
    metavar="NAMES",
    help="Columns to keep as payload; else all others. '' keeps none.",
)
@click.option(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    default="euclidean",
    show_default=True,
)
@NEIGHBORS
@RECALL
@click.option(
    "--layout",
    type=click.Choice(["pca", "none"]),
    default="pca",
    show_default=True,
    help="How the map is drawn; index map can draw another later.",
)
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    help="A folder that all workers share; else that of the index.",
)
@click.option("--replace", is_flag=True, help="Replace the index that is there.")
def build(shards: tuple[str, ...], place: Target, **options: Any) -> None:
    """Build an index of vectors that may be larger than memory.

    SHARDS are .npy files, Parquet files, Zarr arrays, or folders of such files.
    """
    with interruptible(STOPPED):
        from rankfold.cluster import build_index

        shown = sys.stderr.isatty()
        made = build_index(list(shards), place.name, progress=shown, **options)
        click.echo(f"{place}: {summary(asdict(made))}, recall {made.recall:.4g}")


@cluster.command(cls=Command)
@targeted()
@click.option("--ids", metavar="FILE", help="A file of ids, one per line; each is a query.")
@click.option("--vectors", metavar="FILE", help="A file of vectors; each is a query.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .npz or .parquet, with query, rank, id and score.",
)
@worker_options
@click.option("--top", type=int, default=10, show_default=True, help="How many results.")
@click.option("--where", metavar="CONDITION", help="On payload, such as 'price < 10 and not sold'.")
@METHOD
@SETTINGS
def rank(
    place: Target,
    ids: str | None,
    vectors: str | None,
    output: Path,
    settings: tuple[tuple[str, Any], ...],
    **options: Any,
) -> None:
    """Rank the points of an index for each of many queries."""
    if not ids and not vectors:
        raise click.UsageError("Give a file of ids with --ids, or of vectors with --vectors.")
    parameters = dict(settings)
    check_parameters(options["method"], parameters)
    with interruptible(STOPPED):
        from rankfold.cluster import rank_many
        from rankfold.cluster.ranking import check_output
        from rankfold.inputs import read_ids

        check_output(output)
        with place.open() as index:
            names = find_ids(index, read_ids(ids)) if ids else None
            rows = read_all(index, (vectors,)) if vectors else None
        asked = {"progress": sys.stderr.isatty(), **options, **parameters}
        rankings = rank_many(place.name, names, rows, **asked)
        rankings.save(output)
        click.echo(f"{output}: {counted(len(rankings), 'ranking')}")
