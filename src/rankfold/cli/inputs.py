"""Options that say how points and ids are read, and the reading."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankfold.cli.options import comma_separated
from rankfold.cli.output import counted

if TYPE_CHECKING:
    from rankfold.cli.options import Target
    from rankfold.databases import Collection
    from rankfold.index import Index
    from rankfold.inputs import Points
    from rankfold.types import FloatArray


Id = str | int

OPTIONS = [
    click.option("--id-column", metavar="NAME", help="Column of the ids; else 'id'."),
    click.option(
        "--vector-columns",
        type=comma_separated,
        metavar="NAMES",
        help="Columns of the vector, comma-separated; else those that look like one.",
    ),
    click.option(
        "--payload-columns",
        type=comma_separated,
        metavar="NAMES",
        help="Columns to keep as payload; else all others. '' keeps none.",
    ),
    click.option(
        "--payload",
        type=click.Path(path_type=Path),
        help="A table (.csv, .tsv, .parquet, .jsonl) of payload: a row for each point, in the "
        "same order or with a column id.",
    ),
    click.option("--ids", metavar="FILE", help="A file of ids, one per line; - reads them."),
    click.option("--dataset", metavar="NAME", help="Data set of an HDF5 file; else 'train'."),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether a table of text begins with names; else it is guessed.",
    ),
]


def whole(text: str) -> int | None:
    """Return the whole number that a text is, if it would be written in the same way.

    Examples
    --------
    >>> whole("7"), whole("-7"), whole("007"), whole("7.0")
    (7, -7, None, None)
    """
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def other_reading(name: Id) -> Id | None:
    """Return the number for a text, and the text for a number."""
    return whole(name) if isinstance(name, str) else str(name)


def find_ids(index: Index | Collection, names: Iterable[Id]) -> list[Id]:
    """Return ids as the index knows them.

    An id is taken as it stands if a point has it: text from a command line as text. Else it
    is read the other way, 7 for the text "7" and the text for the number, if a point has that.

    Parameters
    ----------
    index : Index
    names : ids, as they were typed or read
    """
    given = list(names)
    if not given:
        return []
    others = [other_reading(name) for name in given]
    held = index.holds([*given, *others])
    return [
        name if there or other is None or not other_there else other
        for name, other, there, other_there in zip(
            given, others, held[: len(given)], held[len(given) :], strict=True
        )
    ]


def read_new_ids(path: str | Path) -> list[Id]:
    """Read ids of new points, one per line: whole numbers if all are, else texts."""
    from rankfold.inputs import read_ids

    texts = read_ids(path)
    numbers = [whole(text) for text in texts]
    found = [number for number in numbers if number is not None]
    return list(found) if len(found) == len(texts) else list(texts)


def source_of(file: Path, size: Any, colour: bool | None, **_: Any) -> dict[str, Any]:
    """Return what an index of images must know to read another one."""
    from rankfold.inputs.images import SIZE

    if not file.is_dir():
        return {}
    return {"images": {"size": list(size or SIZE), "colour": bool(colour)}}


def images_of(index: Index | Collection, file: Path) -> dict[str, Any]:
    """Return how images become vectors of an index; nothing for files that are none."""
    from rankfold.errors import InputError
    from rankfold.inputs.images import SUFFIXES

    if not file.is_dir() and file.suffix.lower() not in SUFFIXES:
        return {}
    known = index.info()["source"].get("images")
    if known is None:
        raise InputError(
            f"{str(file)!r} is an image or a folder, but the index was not built from images and "
            "cannot tell how they become vectors; give vectors."
        )
    return {"size": tuple(known["size"]), "colour": known["colour"]}


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
    from rankfold.errors import InputError
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
    from rankfold.errors import InputError
    from rankfold.inputs import as_columns
    from rankfold.inputs.points import plain_ids

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


def read_texts(
    path: Path,
    column: str,
    *,
    ids: str | None,
    id_column: str | None,
    payload_columns: list[str] | None,
    **others: Any,
) -> tuple[list[Id] | None, dict[str, Any]]:
    """Read a table without vectors: ids if it has any, and payload with a column of texts."""
    from rankfold.inputs import as_columns
    from rankfold.inputs.points import plain_ids
    from rankfold.inputs.tables import ID_COLUMNS, check_named

    given = [name for name, value in others.items() if value is not None]
    if given:
        option = given[0].replace("_", "-")
        raise click.UsageError(f"--{option} means nothing where vectors are made of texts.")
    columns: dict[str, Any] = dict(as_columns(path, None))
    name, found = repr(str(path)), id_column or next((n for n in ID_COLUMNS if n in columns), None)
    check_named(name, columns, "text_column", [column])
    check_named(name, columns, "id_column", [id_column] if id_column else [])
    check_named(name, columns, "payload_columns", payload_columns or ())
    n_points = len(columns[column])
    names = None if found is None else list(plain_ids(columns.pop(found), n_points, name))
    if payload_columns is not None:
        columns = {one: columns[one] for one in dict.fromkeys([column, *payload_columns])}
    return (names if ids is None else read_new_ids(ids)), columns


def read_like(
    place: Target, file: Path, options: dict[str, Any]
) -> tuple[list[Id] | None, Any, Any]:
    """Read ids, vectors and payload that fit to those of an index; nothing is locked meanwhile.

    Where the index makes vectors of texts, and the file is a table that has their column, there
    are no vectors.
    """
    from rankfold.inputs.files import COLUMN_READERS

    with place.open() as there:
        column = (there.info()["embedder"] or {}).get("column")
        is_table = file.suffix.lower() in COLUMN_READERS
        if column is not None and is_table and options["vector_columns"] is None:
            names, columns = read_texts(file, column, **options)
            return names, None, columns
        points = read(file, **options, **images_of(there, file))
        check_width(points.vectors, str(file), there)
    return points.ids, points.vectors, points.payload


def moved(place: Target, file: Path, options: dict[str, Any]) -> tuple[list[Id], Any, Any]:
    """Read ids, vectors and payload of points that the index has already."""
    from rankfold.errors import InputError

    ids, vectors, payload = read_like(place, file, options)
    if ids is None:
        raise InputError(f"{str(file)!r} has no ids; name them with --id-column or --ids.")
    return list(ids), vectors, payload


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


def read_columns(path: Path, id_column: str | None) -> tuple[list[Id] | None, dict[str, Any]]:
    """Read a table without vectors: the ids of its rows, if it has any, and its columns."""
    from rankfold.errors import InputError
    from rankfold.inputs import as_columns
    from rankfold.inputs.points import plain_ids
    from rankfold.inputs.tables import check_named

    columns: dict[str, Any] = dict(as_columns(path, None))
    name, chosen = repr(str(path)), id_column or "id"
    check_named(name, columns, "id_column", [id_column] if id_column else [])
    found = columns.pop(chosen, None)
    if not columns:
        raise InputError(f"{name} has no column beside {chosen!r}; give those to add.")
    return (None if found is None else list(plain_ids(found, len(found), name))), columns


def check_width(vectors: FloatArray, file: str, index: Index | Collection) -> None:
    """Require vectors as wide as those of the index."""
    from rankfold.errors import InputError

    width, n_features = vectors.shape[1], index.info()["features"]
    if width != n_features:
        name = "standard input" if file == "-" else repr(file)
        raise InputError(
            f"{name} has vectors of {counted(width, 'number')}, but those of the index have "
            f"{n_features}; make them in the same way."
        )
