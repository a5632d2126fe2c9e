"""Tables: CSV, TSV and Parquet, and which column is the id, the vector, or payload."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankfold.errors import InputError, MissingExtraError
from rankfold.inputs.points import LARGEST, Columns, Plain, Points, checked_points, reading
from rankfold.types import FloatArray

PANDAS_HEADER = 4
"""A first line 0,1,2,3,... of at least so many columns is how pandas names unnamed columns."""

ID_COLUMNS = ("id", "index", "__index_level_0__")
"""Columns taken for the ids; the last two are how pandas writes the index of a frame."""

LIST_COLUMNS = ("vector", "embedding")
"""Columns of lists taken for the vector when there are several."""

Row = tuple[int, list[str]]
"""A line number and the cells of that line."""

BATCH = 16_384
"""Rows read at once."""


def header_is_there(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the first line of a table holds the names of its columns.

    It does when none of its cells is a number, when one is text above a number, and when
    they count 0, 1, 2, ... as pandas does for columns without names. ``second`` is the line
    below, empty where there is none.

    Examples
    --------
    >>> header_is_there(["x", "y"], ["1", "2"])
    True
    >>> header_is_there(["1", "2", "cat"], ["3", "4", "dog"])
    False
    """
    if not any(is_number(cell) for cell in first):
        return True
    if any(
        above and not is_number(above) and is_number(below)
        for above, below in zip(first, second, strict=False)
    ):
        return True
    named = list(first[1:] if first[0] == "" else first)
    counted = [str(place) for place in range(len(named))]
    long_enough = first[0] == "" or len(named) >= PANDAS_HEADER
    return bool(second) and long_enough and named == counted


def is_number(cell: str) -> bool:
    """Tell whether a cell can be part of a vector."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def typed(cells: Sequence[str]) -> list[Plain]:
    """Give a whole column one type: whole numbers, numbers, truth values or else text.

    Empty cells are None. Numbers that would not be written back as they stand, like 007,
    stay text.

    Examples
    --------
    >>> typed(["1", "", "3"]), typed(["1", "2.5"]), typed(["007", "8"]), typed(["True", "False"])
    ([1, None, 3], [1.0, 2.5], ['007', '8'], [True, False])
    """
    for convert in (_whole, _finite, _truth):
        try:
            return [None if cell == "" else convert(cell) for cell in cells]
        except ValueError:
            continue
    return [None if cell == "" else cell for cell in cells]


def _whole(cell: str) -> int:
    value = int(cell)
    if str(value) != cell or not -LARGEST <= value < LARGEST:
        raise ValueError
    return value


def _finite(cell: str) -> float:
    if not {".", "e", "E"} & set(cell) or "_" in cell:
        return float(_whole(cell))
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError
    return value


def _truth(cell: str) -> bool:
    if cell.lower() not in ("true", "false"):
        raise ValueError
    return cell.lower() == "true"


@dataclass(frozen=True)
class Choice:
    """The names of the columns to read."""

    id: str | None
    vector: tuple[str, ...]
    payload: tuple[str, ...]

    @property
    def beside(self) -> list[str]:
        """Return what is read beside the vector, each once."""
        return list(dict.fromkeys((*self.payload, *filter(None, [self.id]))))


def check_named(file: str, names: Collection[str], argument: str, wanted: Iterable[str]) -> None:
    """Require that a file has the columns that an argument names."""
    for name in wanted:
        if name not in names:
            raise InputError(f"{file} has no column {name!r}; it has {listed([*names])}.", argument)


def choose(
    file: str,
    names: Sequence[str],
    numbers: Set[str],
    lists: Set[str] = frozenset(),
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
) -> Choice:
    """Decide what each column is; whatever is named by the caller wins.

    Examples
    --------
    >>> choose("f", ["id", "x", "y", "kind"], numbers={"id", "x", "y"})
    Choice(id='id', vector=('x', 'y'), payload=('kind',))
    """
    check_names(file, names)
    check_named(file, names, "id_column", [id_column] if id_column else [])
    check_named(file, names, "vector_columns", vector_columns or ())
    check_named(file, names, "payload_columns", payload_columns or ())
    found = [name for name in ID_COLUMNS if name in names and name not in (vector_columns or ())]
    identity = id_column or next(iter(found), None)
    taken = {*ID_COLUMNS, identity, *(payload_columns or ())}
    free = [name for name in names if name not in taken]
    vector = tuple(vector_columns or ()) or _vector(
        file,
        [name for name in free if name in lists],
        [name for name in free if name in numbers],
    )
    if not vector:
        raise InputError(
            f"{file} has no column of numbers for the vector; it has {listed(names)}. Write the "
            "vectors as numeric columns, and check how columns are separated."
        )
    rest = tuple(name for name in names if name != identity and name not in vector)
    if len(vector) == 1 and not vector_columns and vector[0] in numbers and rest:
        raise InputError(
            f"{file} has a single column of numbers, {vector[0]!r}, beside {listed(rest)}: that "
            "is hardly a vector. If it is one, name it with vector_columns."
        )
    return Choice(identity, vector, rest if payload_columns is None else tuple(payload_columns))


def check_names(file: str, names: Sequence[str]) -> None:
    """Require that no two columns have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{file} has several columns named {name!r}; rename all but one.")
        seen.add(name)


def _vector(file: str, lists: list[str], numbers: list[str]) -> tuple[str, ...]:
    if not lists:
        return tuple(numbers)
    known = [name for name in LIST_COLUMNS if name in lists]
    if not known and len(lists) > 1:
        raise InputError(
            f"{file} has several columns of lists ({listed(lists)}); name the one that holds the "
            "vector with vector_columns."
        )
    return ((known or lists)[0],)


def listed(names: Sequence[str]) -> str:
    """Return the names for a message, the first ten of them."""
    shown = ", ".join(repr(name) for name in names[:10]) or "none"
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


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
    payload = {name: typed(texts[name]) for name in choice.payload}
    return checked_points(path, vectors, ids, payload, vector_columns=choice.vector)


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


def read_parquet(
    path: Path,
    *,
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
) -> Points:
    """Read a column of lists, or several of numbers, as vectors; the rest is payload."""
    choice, total = describe_parquet(path, id_column, vector_columns, payload_columns)
    lists: dict[str, list[Any]] = {name: [] for name in choice.beside}
    vectors, n_rows = np.empty((0, 1)), 0
    for block, columns in parquet_parts(path, choice.vector, choice.beside):
        if not n_rows:
            with reading(path, "Parquet"):  # it may say any number of rows
                vectors = np.empty((total, block.shape[1]), block.dtype)
        vectors[n_rows : n_rows + len(block)] = block
        n_rows += len(block)
        for name, values in columns.items():
            lists[name].extend(values)
    ids = lists[choice.id] if choice.id is not None else None
    payload = {name: lists[name] for name in choice.payload}
    return checked_points(path, vectors, ids, payload, vector_columns=choice.vector)


def describe_parquet(
    path: Path,
    id_column: str | None = None,
    vector_columns: Sequence[str] | None = None,
    payload_columns: Sequence[str] | None = None,
) -> tuple[Choice, int]:
    """Return what the columns of a file are, and the number of its rows; no value is read."""
    pyarrow = pyarrow_parquet()
    with reading(path, "Parquet"), pyarrow.parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        choice = choose(
            repr(str(path)),
            schema.names,
            {field.name for field in schema if _is_number(field.type)},
            {field.name for field in schema if _is_list(field.type)},
            id_column,
            vector_columns,
            payload_columns,
        )
        return choice, int(file.metadata.num_rows)


def parquet_parts(
    path: Path, vector: Sequence[str], beside: Sequence[str]
) -> Iterator[tuple[FloatArray, dict[str, list[Any]]]]:
    """Yield vectors and the values of other columns, some rows at a time.

    Without columns of the vector, its blocks have no column. There are as many rows in all as the
    file says.
    """
    pyarrow, name, n_rows, width = pyarrow_parquet(), repr(str(path)), 0, None
    with reading(path, "Parquet"), pyarrow.parquet.ParquetFile(path) as file:
        total = file.metadata.num_rows
        for batch in file.iter_batches(BATCH, columns=[*vector, *beside]):
            block = _block(batch, vector, n_rows, name) if vector else np.empty((len(batch), 0))
            width = width or block.shape[1]
            if block.shape[1] != width:
                raise _ragged(name, n_rows, block.shape[1], width)
            n_rows += len(block)
            if n_rows > total:
                break
            yield block, {column: values_of(batch.column(column)) for column in beside}
        if n_rows != total:
            found = "more" if n_rows > total else n_rows
            raise InputError(
                f"{name} should have {total} rows, but has {found}; it is damaged: write it again."
            )


def read_parquet_columns(path: Path) -> dict[str, list[Any]]:
    """Read every column."""
    pyarrow = pyarrow_parquet()
    with reading(path, "Parquet"), pyarrow.parquet.ParquetFile(path) as file:
        return table_columns(file.read(), repr(str(path)))


def table_columns(table: Any, name: str) -> dict[str, list[Any]]:
    """Return the columns of a table of pyarrow as lists."""
    check_names(name, table.column_names)
    return {column: values_of(table.column(column)) for column in table.column_names}


def values_of(column: Any) -> list[Any]:
    """Return the values of a column of pyarrow, moments in microseconds."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        # Python's own moments are no finer, and pandas need not be installed.
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return list(column.to_pylist())


def _block(batch: Any, names: Sequence[str], first: int, file: str) -> FloatArray:
    columns = [batch.column(name) for name in names]
    wrong = next(
        (
            name
            for name, column in zip(names, columns, strict=True)
            if not _fits(column, len(names))
        ),
        None,
    )
    if wrong is not None:
        raise InputError(
            f"column {wrong!r} of {file} holds {batch.column(wrong).type}, but a vector is one "
            "column of lists of numbers or several of numbers; name them with vector_columns."
        )
    if _is_list(columns[0].type):
        return _matrix(columns[0], first, file)
    return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)


def _matrix(column: Any, first: int, file: str) -> FloatArray:
    import pyarrow.compute

    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"row {row} of {file} has no vector; fill it in or remove the row.")
    lengths = pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd):
        raise _ragged(file, first + int(odd[0]), int(lengths[odd[0]]), int(lengths[0]))
    values = column.flatten().to_numpy(zero_copy_only=False)
    matrix: FloatArray = values.reshape(len(column), int(lengths[0]))
    return matrix


def _ragged(file: str, row: int, length: int, expected: int) -> InputError:
    return InputError(
        f"row {row} of {file} has a vector of {length} numbers, but row 0 has {expected}; "
        "every row needs as many."
    )


def _fits(column: Any, n_columns: int) -> bool:
    return _is_number(column.type) or (n_columns == 1 and _is_list(column.type))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and _is_number(kind.value_type))


def pyarrow_parquet() -> Any:
    """Return pyarrow with its reader and writer of Parquet, or say what to install."""
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", "tables") from None
    return pyarrow
