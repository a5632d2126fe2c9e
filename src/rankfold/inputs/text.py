"""Tables as text: values separated by commas (.csv) or tabs (.tsv)."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankfold.check import InputError
from rankfold.inputs.cells import header_is_there, is_number, typed
from rankfold.inputs.columns import Choice, check_names, choose
from rankfold.inputs.plain import Columns
from rankfold.inputs.points import Points, checked_points, reading
from rankfold.types import FloatArray

Row = tuple[int, list[str]]
"""A line number and the cells of that line."""


class _Table(NamedTuple):
    names: list[str]
    rows: Iterator[Row]


def read_text(
    path: Path,
    *,
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
    header: bool | None = None,
) -> Points:
    """Read a table line by line; columns whose first cell is a number make the vector.

    Columns of a file without names are called ``column_0``, ``column_1`` and so on.
    """
    if header is None and (id_column or vector_columns or payload_columns):
        header = True
    with reading(path, "a table of text"), _opened(path, header) as table:
        first = next(table.rows, None)
        if first is None:
            raise InputError(f"{str(path)!r} has a header but no rows; write one line per point.")
        cells = zip(table.names, first[1], strict=True)
        choice = choose(
            repr(str(path)),
            table.names,
            {name for name, cell in cells if is_number(cell)},
            frozenset(),
            id_column,
            vector_columns,
            payload_columns,
        )
        rows = table._replace(rows=chain([first], table.rows))
        vectors, texts = _collected(path, rows, choice)
    ids = typed(texts[choice.id]) if choice.id is not None else None
    return checked_points(path, vectors, ids, {name: typed(texts[name]) for name in choice.payload})


def _collected(
    path: Path, table: _Table, choice: Choice
) -> tuple[FloatArray, dict[str, list[str]]]:
    place_of = {name: place for place, name in enumerate(table.names)}
    places = [place_of[name] for name in choice.vector]
    texts: dict[str, list[str]] = {name: [] for name in choice.beside}
    kept = [(texts[name], place_of[name]) for name in choice.beside]
    values = array("d")
    for line, cells in table.rows:
        try:
            values.extend([float(cells[place]) for place in places])
        except ValueError:
            raise _not_a_number(path, line, cells, table.names, places) from None
        for column, place in kept:
            column.append(cells[place])
    return np.frombuffer(values).reshape(-1, len(places)), texts


def read_text_columns(path: Path) -> Columns:
    """Read every column of a table that begins with their names."""
    with reading(path, "a table of text"), _opened(path, header=True) as table:
        check_names(repr(str(path)), table.names)
        cells = [row for _, row in table.rows]
    return {name: typed([row[place] for row in cells]) for place, name in enumerate(table.names)}


@contextmanager
def _opened(path: Path, header: bool | None) -> Iterator[_Table]:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        lines = ((reader.line_num, cells) for cells in reader if cells)
        start = list(islice(lines, 2))
        if not start:
            raise InputError(f"{str(path)!r} is empty; write one line per point.")
        first, second = start[0][1], start[1][1] if start[1:] else []
        names = [f"column_{place}" for place in range(len(first))]
        if header_is_there(first, second) if header is None else header:
            # pandas writes the index of a frame as a first column without a name.
            names = [
                name or other for name, other in zip(first, ["index", *names[1:]], strict=True)
            ]
            del start[0]
        yield _Table(names, _even(chain(start, lines), len(names), path))


def _even(rows: Iterator[Row], width: int, path: Path) -> Iterator[Row]:
    for line, cells in rows:
        if len(cells) != width:
            raise InputError(
                f"line {line} of {str(path)!r} has {len(cells)} cells, but the first line has "
                f"{width}; every line needs as many."
            )
        yield line, cells


def _not_a_number(
    path: Path, line: int, cells: list[str], names: list[str], places: list[int]
) -> InputError:
    place = next(place for place in places if not is_number(cells[place]))
    return InputError(
        f"line {line} of {str(path)!r} has {cells[place]!r:.80} in column {names[place]!r}, which "
        "is part of the vector and must hold numbers; mend it, or name the columns of the vector "
        "with vector_columns."
    )
