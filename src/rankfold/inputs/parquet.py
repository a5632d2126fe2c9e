"""Parquet files, through pyarrow (extra ``tables``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankfold.check import InputError, MissingExtraError
from rankfold.inputs.columns import Choice, check_names, choose
from rankfold.inputs.points import Points, checked_points, reading
from rankfold.types import FloatArray

BATCH = 16_384
"""Rows read at once."""


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
            vectors = np.empty((total, block.shape[1]), block.dtype)
        vectors[n_rows : n_rows + len(block)] = block
        n_rows += len(block)
        for name, values in columns.items():
            lists[name].extend(values)
    ids = lists[choice.id] if choice.id is not None else None
    return checked_points(path, vectors, ids, {name: lists[name] for name in choice.payload})


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

    Without columns of the vector, its blocks have no column.
    """
    pyarrow, name, n_rows, width = pyarrow_parquet(), repr(str(path)), 0, None
    with reading(path, "Parquet"), pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH, columns=[*vector, *beside]):
            block = _block(batch, vector, n_rows, name) if vector else np.empty((len(batch), 0))
            width = width or block.shape[1]
            if block.shape[1] != width:
                raise _ragged(name, n_rows, block.shape[1], width)
            n_rows += len(block)
            yield block, {column: values_of(batch.column(column)) for column in beside}


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
