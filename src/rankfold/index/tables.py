"""Indexes in databases: built there, opened, and copied into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, Literal

from rankfold.check import InputError, check_choice
from rankfold.databases.addresses import database_of
from rankfold.databases.contract import Database
from rankfold.databases.engine import held
from rankfold.databases.keeper import TableKeeper
from rankfold.databases.loading import SEARCHES, load
from rankfold.index.building import built
from rankfold.index.filling import fill_table
from rankfold.index.keeping import State
from rankfold.inputs import Points
from rankfold.layout import Layout

LONGEST = 100

LISTS = ("memory", "database")
"""Who searches the lists of an index that is built in a database."""


def open_table(engine: str | Database, name: str | Path | None, write: bool) -> TableKeeper:
    """Open an index in a database."""
    return TableKeeper(database_of(engine).open(checked_name(name)), write)


def build_table(
    engine: str | Database,
    name: str | Path | None,
    points: Points,
    metric: str,
    n_neighbors: int | Literal["auto"],
    recall: float,
    layout: Layout,
    source: dict[str, Any],
    progress: bool,
    *,
    lists: str,
    search: str,
    replace: bool,
) -> TableKeeper:
    """Build an index of points as a database stores them, and write it there."""
    check_choice(lists, "lists", LISTS)
    check_choice(search, "search", SEARCHES)
    database, checked = database_of(engine), checked_name(name)
    database.check_place(checked, replace=replace)
    if lists == "database":
        how = (metric, n_neighbors, recall, layout, source, progress)
        fill_table(database, checked, points, *how, search=search, replace=replace)
        return TableKeeper(database.open(checked), write=True)
    shape = {"metric": metric, "n_features": points.vectors.shape[1]}
    stored = replaced(points, vectors=held(points.vectors, shape, "X"))
    arrays, settings = built(stored, metric, n_neighbors, recall, layout, progress)
    ids = range(len(points)) if points.ids is None else points.ids
    everything = {**settings, "source": source}
    state = (arrays, everything, ids, points.payload)
    load(database, checked, *state, replace=replace, search=search, progress=progress)
    return TableKeeper(database.open(checked), write=True)


def copy_table(
    engine: str | Database,
    name: str | Path,
    state: Callable[[], State],
    *,
    replace: bool,
    progress: bool,
) -> None:
    """Write all of an index into a database."""
    database, checked = database_of(engine), checked_name(name)
    database.check_place(checked, replace=replace)
    load(database, checked, *state(), replace=replace, progress=progress)


def checked_name(name: str | Path | None) -> str:
    """Require the name of an index in a database.

    Examples
    --------
    >>> checked_name(Path("digits"))
    'digits'
    """
    text = "" if name is None else str(name)
    if not 0 < len(text) <= LONGEST or not text.isprintable():
        raise InputError(
            f"the name of the index is {name!r}, but in a database it must be a text of 1 to "
            f"{LONGEST} printable characters; give it as path.",
            "path",
        )
    return text
