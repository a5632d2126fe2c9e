"""From arrays to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from rankfold.check import check_choice
from rankfold.databases.contract import Database, Filling, NewPoints
from rankfold.databases.payload import table_values
from rankfold.databases.searching import nearest
from rankfold.layout.projection import Projection
from rankfold.neighbors import LivingEngine, Rows
from rankfold.neighbors.choice import EXACT_LIMIT
from rankfold.neighbors.reverse import ReverseLists
from rankfold.storage.columns import Column, Values, checked_payload, new_columns
from rankfold.types import FloatArray, IntArray, Neighbors

Step = TypeVar("Step")

SEARCHES = ("auto", "exact", "hnsw")

BLOCK_BYTES = 2**24
"""Size of the vectors that are written at once."""

BLOCK_SEARCHES = 256
"""Lists that a database is asked for at once."""


class Described(NamedTuple):
    """Ids and checked payload of all points, and a place of each where there is a map."""

    ids: Sequence[Any]
    columns: tuple[Column, ...]
    payload: Mapping[str, Values]
    places: FloatArray | None

    @classmethod
    def of(
        cls, ids: Sequence[Any], payload: Mapping[str, Any] | None, places: FloatArray | None
    ) -> Described:
        """Check the payload of points."""
        checked = checked_payload(payload, len(ids))
        return cls(ids, new_columns(checked), checked, places)

    def points(self, vectors: FloatArray, rows: slice) -> NewPoints:
        """Return some of the points, which have these vectors."""
        some = {
            name: Values(column.kind, column.values[rows]) for name, column in self.payload.items()
        }
        return NewPoints(
            np.arange(rows.start, rows.start + len(vectors)),
            list(self.ids[rows]),
            vectors,
            table_values(self.columns, some, len(vectors)),
            None if self.places is None else self.places[rows],
        )


def table_settings(
    arrays: Mapping[str, Any], settings: Mapping[str, Any], search: str = "auto"
) -> dict[str, Any]:
    """Return the settings of a table from the state of an index: see `Head.settings`."""
    engine, lists = settings["engine"], arrays["list_sq_distances"]
    return {
        "metric": engine["metric"],
        "n_features": arrays["points"].shape[1],
        "n_neighbors": settings["n_neighbors"],
        "width": engine["width"],
        "stored_width": lists.shape[1],
        "precision": "single" if lists.dtype == np.float32 else "double",
        "recall": engine["recall"],
        "numbered": settings["numbered"],
        "layout": settings.get("layout") if "places" in arrays else None,
        "projection": _projection(arrays),
        "source": settings.get("source", {}),
        "search": search_for(len(arrays["points"]), search),
    }


def search_for(n_points: int, wanted: str = "auto") -> str:
    """Return how a database should search among so many points.

    Examples
    --------
    >>> search_for(1000), search_for(1_000_000), search_for(1000, "hnsw")
    ('exact', 'hnsw', 'hnsw')
    """
    check_choice(wanted, "search", SEARCHES)
    if wanted != "auto":
        return wanted
    return "exact" if n_points <= EXACT_LIMIT else "hnsw"


def load(
    database: Database,
    name: str,
    arrays: Mapping[str, Any],
    settings: Mapping[str, Any],
    ids: Sequence[Any],
    payload: Mapping[str, Any] | None,
    *,
    replace: bool,
    search: str = "auto",
    progress: bool = False,
) -> None:
    """Write the state of an index without removed points into a table; nothing is searched.

    Parameters
    ----------
    database : Database
    name : str
        Of the table.
    arrays, settings, ids, payload
        As `Store.create` takes them.
    replace : bool
        Whether a table of that name may be replaced.
    search : {"auto", "exact", "hnsw"}
        How the database searches; "auto" goes by the number of points.
    progress : bool
        Whether to show a bar on stderr.
    """
    engine = LivingEngine.restore(dict(arrays), settings["engine"])
    described = Described.of(ids, payload, arrays.get("places"))
    lists = Neighbors(arrays["list_indices"], arrays["list_sq_distances"])
    reverse = ReverseLists(arrays["reverse_starts"], arrays["reverse_sources"])
    chosen = table_settings(arrays, settings, search)
    with database.create(name, chosen, described.columns, replace=replace) as filling:
        for rows in _shown(_blocks(engine.n_points, engine.n_features), "writing", progress):
            slots = np.arange(rows.start, rows.stop)
            vectors = engine.vectors(slots).astype(np.float32)
            filling.add(described.points(vectors, rows), _some_rows(slots, lists, reverse))
        filling.finish()


def load_searching(
    database: Database,
    name: str,
    vectors: Callable[[slice], FloatArray],
    settings: dict[str, Any],
    described: Described,
    *,
    replace: bool,
    progress: bool = False,
) -> None:
    """Write vectors into a table and let the database search their lists.

    Only the lists are held in memory, and the vectors of one block.

    Parameters
    ----------
    database : Database
    name : str
    vectors : callable
        Returns those of some points that follow each other, in the form of the stored ones.
    settings : dict
        Of the table.
    described : Described
    replace : bool
    progress : bool
    """
    n_points = len(described.ids)
    with database.create(name, settings, described.columns, replace=replace) as filling:
        for rows in _shown(_blocks(n_points, settings["n_features"]), "writing", progress):
            filling.add(described.points(vectors(rows), rows), None)
        lists = _searched(filling, n_points, settings, progress)
        reverse = ReverseLists.of(lists.indices)
        for rows in _shown(_blocks(n_points, lists.width), "lists", progress):
            filling.write_rows(_some_rows(np.arange(rows.start, rows.stop), lists, reverse))
        filling.finish()


def _searched(
    filling: Filling, n_points: int, settings: dict[str, Any], progress: bool
) -> Neighbors:
    """Return the lists of all points, as the database finds them."""
    shape = (n_points, settings["stored_width"])
    lists = Neighbors(np.empty(shape, np.int32), np.empty(shape, settings["precision"]))
    with filling.session() as session:
        starts = range(0, n_points, BLOCK_SEARCHES)
        for start in _shown(starts, "neighbours", progress):
            slots = np.arange(start, min(start + BLOCK_SEARCHES, n_points))
            found = nearest(session, session.vectors(slots), lists.width, own=slots)
            lists.indices[slots], lists.sq_distances[slots] = found.indices, found.sq_distances
    return lists


def _some_rows(slots: IntArray, lists: Neighbors, reverse: ReverseLists) -> Rows:
    """Return the rows of points that follow each other."""
    bounds = np.asarray(reverse.starts[slots[0] : slots[-1] + 2])
    sources = np.asarray(reverse.sorted[bounds[0] : bounds[-1]])
    return Rows(slots, lists.take(slots), bounds - bounds[0], sources)


def _blocks(n_points: int, row_size: int) -> list[slice]:
    step = max(1, BLOCK_BYTES // (4 * max(1, row_size)))
    return [slice(start, min(start + step, n_points)) for start in range(0, n_points, step)]


def _projection(arrays: Mapping[str, Any]) -> dict[str, Any] | None:
    if "places_axes" not in arrays:
        return None
    return Projection(arrays["places_origin"], arrays["places_axes"]).settings()


def _shown(steps: Sequence[Step], what: str, progress: bool) -> Iterable[Step]:
    if not progress or len(steps) < 2:
        return steps
    return track(steps, what, console=Console(stderr=True), transient=True)
