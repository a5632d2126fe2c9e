"""Payload from whatever holds columns: a dict, a frame, a table or a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankfold.errors import InputError
from rankfold.inputs.files import check_file
from rankfold.inputs.json_lines import read_json_columns
from rankfold.inputs.points import Columns, plain_columns, plain_ids
from rankfold.inputs.tables import (
    check_names,
    read_parquet_columns,
    read_text_columns,
    table_columns,
)

COLUMN_READERS = {
    ".parquet": read_parquet_columns,
    ".csv": read_text_columns,
    ".tsv": read_text_columns,
    ".jsonl": read_json_columns,
    ".ndjson": read_json_columns,
}


def as_columns(payload: Any, n_rows: int | None) -> Columns:
    """Return payload as lists of plain values, one per row.

    Parameters
    ----------
    payload : dict of sequences, pandas.DataFrame, pyarrow.Table, str or path, optional
        Columns, or the name of a .parquet, .csv, .tsv or .jsonl file of them. None is no column.
    n_rows : int or None
        The number of points, and so of values in every column; None for that of the first.

    Returns
    -------
    dict of str to list
        Of int, float, bool, str and None. Missing values (NaN, NaT) are None, dates and
        times are ISO strings, decimals are floats.

    Examples
    --------
    >>> import numpy as np
    >>> as_columns({"price": np.array([2.5, np.nan]), "name": ["tea", "milk"]}, n_rows=2)
    {'price': [2.5, None], 'name': ['tea', 'milk']}
    """
    if payload is None:
        return {}
    if isinstance(payload, str | Path):
        columns, name = _from_file(Path(payload)), repr(str(payload))
    else:
        columns, name = _from_memory(payload), "the payload"
    if n_rows is None:
        n_rows = next((len(values) for values in columns.values() if hasattr(values, "__len__")), 0)
    return plain_columns(columns, n_rows, name)


def read_payload(path: Path, id_column: str | None = None) -> tuple[list[int | str], Columns]:
    """Read ids, and columns of payload for them, from a table without vectors.

    Parameters
    ----------
    path : Path
        A .parquet, .csv, .tsv or .jsonl file.
    id_column : str, optional
        Else "id".
    """
    chosen, name = id_column or "id", repr(str(path))
    columns = dict(_from_file(path))
    if chosen not in columns or len(columns) == 1:
        raise InputError(
            f"{name} has the columns {', '.join(map(repr, columns))}, but must have {chosen!r}, "
            "which names the points, and others to give them; name the first with id_column."
        )
    names = columns.pop(chosen)
    ids = plain_ids(names, len(names), name)
    return ids, plain_columns(columns, len(ids), name)


def _from_file(path: Path) -> Mapping[str, Any]:
    check_file(path)
    if path.suffix.lower() not in COLUMN_READERS:
        raise InputError(
            f"{str(path)!r} ends in {path.suffix!r}, but payload comes from files that end in "
            f"{', '.join(COLUMN_READERS)}."
        )
    return COLUMN_READERS[path.suffix.lower()](path)


def _from_memory(payload: Any) -> Mapping[Any, Any]:
    if isinstance(payload, Mapping):
        return payload
    pyarrow = sys.modules.get("pyarrow")  # who hands in a table has imported it
    if pyarrow is not None and isinstance(payload, pyarrow.Table):
        return table_columns(payload, "the payload")
    if hasattr(payload, "columns") and hasattr(payload, "__getitem__"):
        names = list(payload.columns)
        check_names("the payload", names)
        return {name: payload[name] for name in names}
    raise InputError(
        f"payload is {type(payload).__name__}, but must be a dict of columns, a pandas.DataFrame, "
        "a pyarrow.Table or the name of a .parquet, .csv, .tsv or .jsonl file."
    )
