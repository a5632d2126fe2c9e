"""Where an index goes that was built in a scratch folder: into a folder, or into a database."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rankfold.databases.addresses import database_of
from rankfold.index.tables import checked_name, copy_table
from rankfold.neighbors.inverted import InvertedIndex
from rankfold.storage import Store
from rankfold.storage.columns import Column
from rankfold.storage.ids import distinct_ids
from rankfold.storage.points import Batch


def check_place(path: str | Path, engine: Any, *, replace: bool) -> None:
    """Require that an index may be written to a place, before work is done for it."""
    if engine is None:
        Store.check_place(path, replace=replace)
    else:
        database_of(engine).check_place(checked_name(path), replace=replace)


def write_folder(
    path: str | Path,
    arrays: dict[str, Any],
    settings: dict[str, Any],
    columns: tuple[Column, ...],
    batches: Iterable[Batch],
    *,
    replace: bool,
) -> None:
    """Write the state of an index into a folder."""
    kept = dict(arrays)
    if "faiss" in kept:  # it is open; an index keeps the points of its cells only once
        kept |= InvertedIndex.over(kept.pop("faiss"), kept["cells"]).state()
    Store.create_in_batches(path, kept, settings, columns, batches, replace=replace)


def write_table(
    name: str | Path,
    engine: Any,
    arrays: dict[str, Any],
    settings: dict[str, Any],
    batches: Iterable[Batch],
    *,
    replace: bool,
) -> None:
    """Write the state of an index into a database; ids and payload are held in memory."""
    ids: list[Any] = []
    payload: dict[str, list[Any]] = {}
    for names, values in batches:
        ids.extend(names)
        for column, some in values.items():
            payload.setdefault(column, []).extend(some.values)
    state = (arrays, settings, distinct_ids(ids), payload)
    copy_table(engine, name, lambda: state, replace=replace, progress=False)
