"""Options that say how points are read from a file, and the reading."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankfold.cli.ids import Id, read_new_ids
from rankfold.cli.images import images_of
from rankfold.cli.options import words
from rankfold.cli.tables import counted

if TYPE_CHECKING:
    from rankfold.cli.places import Place
    from rankfold.databases import Collection
    from rankfold.index import Index
    from rankfold.inputs import Points
    from rankfold.types import FloatArray

OPTIONS = [
    click.option("--id-column", metavar="NAME", help="Column of the ids; else 'id'."),
    click.option(
        "--vector-columns",
        type=words,
        metavar="NAMES",
        help="Columns of the vector, parted by commas; else those that look like one.",
    ),
    click.option(
        "--payload-columns",
        type=words,
        metavar="NAMES",
        help="Columns to keep as payload; else all others. '' keeps none.",
    ),
    click.option(
        "--payload",
        type=click.Path(path_type=Path),
        help="A table (.csv, .tsv, .parquet) of payload: a row for each point, in the same order "
        "or with a column id.",
    ),
    click.option("--ids", metavar="FILE", help="A file of ids, one per line; - reads them."),
    click.option("--dataset", metavar="NAME", help="Data set of an HDF5 file; else 'train'."),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether a table of text begins with names; else it is guessed.",
    ),
]


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that ``read`` takes."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def read(path: Path, *, ids: str | None, payload: Path | None, **options: Any) -> Points:
    """Read points, with ids and payload from files of their own where there are some.

    Parameters
    ----------
    path : Path
    ids : str or None
        A file of ids, or "-"; they replace those of ``path``.
    payload : Path or None
        A file of columns beside those of ``path``.
    **options
        Of `rankfold.inputs.read_points`.
    """
    from rankfold.check import InputError
    from rankfold.inputs import read_points

    points = read_points(path, progress=sys.stderr.isatty(), **options)
    if ids is not None:
        names = read_new_ids(ids)
        if len(names) != len(points):
            raise InputError(
                f"{str(path)!r} has {len(points)} points, but {ids!r} has {len(names)} ids; "
                "give one for each, in the same order."
            )
        points = replace(points, ids=names)
    return points if payload is None else with_payload(points, path, payload)


def with_payload(points: Points, path: Path, payload: Path) -> Points:
    """Add the columns of a table; its rows are in the order of the points, or name their ids.

    Parameters
    ----------
    points : Points
        Where they have no ids, those of the table become theirs.
    path : Path
        The file of the points, for messages.
    payload : Path
    """
    from rankfold.check import InputError
    from rankfold.inputs import as_columns
    from rankfold.inputs.plain import plain_ids

    columns, own = as_columns(payload, len(points)), points.payload or {}
    names = columns.pop("id", None)
    if names is not None:
        checked = plain_ids(names, len(points), repr(str(payload)))
        points = replace(points, ids=points.ids or checked)
        row_of = {name: row for row, name in enumerate(checked)}
        missing = [name for name in points.ids or () if name not in row_of]
        if missing:
            raise InputError(
                f"{str(payload)!r} has no row for the id {missing[0]!r} of {str(path)!r}; give "
                "one for every point, or leave the column 'id' out where rows are in order."
            )
        rows = [row_of[name] for name in points.ids or ()]
        columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    twice = [name for name in columns if name in own]
    if twice:
        raise InputError(
            f"both {str(path)!r} and {str(payload)!r} have a column {twice[0]!r}; leave one "
            "out, for example with --payload-columns."
        )
    return replace(points, payload={**own, **columns})


def read_like(place: Place, file: Path, options: dict[str, Any]) -> Points:
    """Read points that fit to those of an index; nothing is locked meanwhile."""
    with place.open() as there:
        points = read(file, **options, **images_of(there, file))
        check_width(points.vectors, str(file), there)
    return points


def moved(place: Place, file: Path, options: dict[str, Any]) -> tuple[list[Id], Any, Any]:
    """Read ids, vectors and payload of points that the index has already."""
    from rankfold.check import InputError

    points = read_like(place, file, options)
    if points.ids is None:
        raise InputError(f"{str(file)!r} has no ids; name them with --id-column or --ids.")
    return list(points.ids), points.vectors, points.payload


def described(
    payload: Path | None, id_column: str | None, **others: Any
) -> tuple[list[Id], None, Any]:
    """Read ids and payload, where there is no file of vectors."""
    if payload is None:
        raise click.UsageError("Give FILE, or --payload alone to leave vectors as they are.")
    if any(value is not None for value in others.values()):
        raise click.UsageError("Without FILE, only --payload and --id-column can be given.")
    from rankfold.inputs import read_payload

    ids, columns = read_payload(payload, id_column)
    return list(ids), None, columns


def check_width(vectors: FloatArray, file: str, index: Index | Collection) -> None:
    """Require vectors as wide as those of the index."""
    from rankfold.check import InputError

    width, n_features = vectors.shape[1], index.info()["features"]
    if width != n_features:
        name = "standard input" if file == "-" else repr(file)
        raise InputError(
            f"{name} has vectors of {counted(width, 'number')}, but those of the index have "
            f"{n_features}; make them in the same way."
        )
