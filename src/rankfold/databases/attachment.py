"""How a graph comes to lie beside a collection, and follows what changes there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy import sparse

from rankfold.check import check_neighbors, check_share
from rankfold.databases.backend import Database, Key, StoredRow
from rankfold.errors import DatabaseError, InputError
from rankfold.graph import ClosedForm, candidate_lists
from rankfold.neighbors import DynamicEngine, choose_engine
from rankfold.neighbors.lists import lengths, without
from rankfold.solvers import GraphFacts
from rankfold.types import DEFAULT_RECALL, NOBODY, BoolArray, FloatArray, IntArray, Neighbors

FORMAT = 1
"""Of what is stored; another is not read."""

PAGE_BYTES = 2**24
"""Size of the vectors that are read at once."""

WRITTEN_ROWS = 2_000
"""Rows that are read or written at once."""

MANY = 0.2
"""Share of the lists beyond which all are made anew."""


class ScannedPoints(NamedTuple):
    """The points of a collection in the order of the scan: keys, checksums, vectors in a file."""

    keys: list[Key]
    checksums: IntArray
    vectors: FloatArray


class Stored(NamedTuple):
    """What is stored for points, by their places in the scan; entries that are gone left out."""

    lists: Neighbors
    checksums: IntArray
    there: BoolArray
    beside_gone: BoolArray
    gone: list[Key]


class Graph:
    """The lists of points, and the graph W that they make, in single precision as it is stored."""

    def __init__(self, points: ScannedPoints, lists: Neighbors, n_neighbors: int) -> None:
        self.points, self.lists, self.n_neighbors = points, lists, n_neighbors
        self.weights: sparse.csr_array = ClosedForm.of(lists, n_neighbors).symmetric()
        self.weights.data = self.weights.data.astype(np.float32)

    def rows(self, places: IntArray) -> Iterator[StoredRow]:
        """Yield what is stored for some of the points."""
        keys, weights = self.points.keys, self.weights
        for place in places.tolist():
            near = self.lists.indices[place]
            near = near[near != NOBODY]
            entries = slice(weights.indptr[place], weights.indptr[place + 1])
            yield StoredRow(
                keys[place],
                int(self.points.checksums[place]),
                [keys[other] for other in near],
                self.lists.sq_distances[place, : len(near)].astype(np.float32),
                [keys[other] for other in weights.indices[entries]],
                weights.data[entries],
            )

    def write(self, database: Database, places: IntArray, bars: Progress) -> None:
        """Write the rows of some of the points."""
        task = bars.add_task("writing", total=len(places))
        for start in range(0, len(places), WRITTEN_ROWS):
            some = places[start : start + WRITTEN_ROWS]
            database.write_rows(self.rows(some))
            bars.advance(task, len(some))

    def manifest(self, database: Database, before: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return what is recorded beside the rows."""
        degrees = np.asarray(self.weights.astype(np.float64).sum(axis=1)).ravel()
        facts = GraphFacts.of(np.diff(self.weights.indptr), degrees)
        return {
            "format": FORMAT,
            "state": "complete",
            "generation": 1 + (0 if before is None else int(before["generation"])),
            "points": len(self.points.keys),
            "features": database.n_features,
            "metric": database.metric,
            "n_neighbors": self.n_neighbors,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "graph": facts._asdict(),
        }


def build_graph(
    database: Database,
    n_neighbors: int | Literal["auto"] = "auto",
    recall: float = DEFAULT_RECALL,
    replace: bool = False,
    progress: bool = False,
) -> None:
    """Build the graph of a collection and store it there; `Collection.attach` says how."""
    check_neighbors(n_neighbors)
    check_share(recall, "recall", one=True)
    before = database.read_manifest()
    if before is not None and before["state"] == "complete" and not replace:
        raise InputError(
            f"{database.name} has a graph of {before['points']} points already, of "
            f"{before['date']}; refresh() follows what has changed since, and replace=True builds "
            "it anew."
        )
    with _reading(database, progress) as (points, bars):
        if len(points.keys) < 2:
            raise InputError(
                f"{database.name} has {len(points.keys)} points with a vector; a graph needs at "
                "least two."
            )
        engine = choose_engine(points.vectors, database.metric, recall, progress)
        lists, k = candidate_lists(engine, n_neighbors, 2)
        graph = Graph(points, lists.head(k + 1), k)
        manifest = graph.manifest(database, before)
        with database.transaction():
            database.write_manifest({**manifest, "state": "attaching"})
            if before is not None:  # rows that stay are replaced one by one, so that readers go on
                known = set(points.keys)
                for rows in list(database.scan_rows(WRITTEN_ROWS)):
                    database.remove_rows([row.key for row in rows if row.key not in known])
            graph.write(database, np.arange(len(points.keys)), bars)
            database.write_manifest(manifest)


def refresh_graph(
    database: Database, recall: float = DEFAULT_RECALL, progress: bool = False
) -> dict[str, int]:
    """Let the graph follow what has changed; `Collection.refresh` says how."""
    before = attached(database)
    k = int(before["n_neighbors"])
    with _reading(database, progress) as (points, bars):
        stored = _stored(database, points.keys, k + 1, bars)
        moved = stored.there & (stored.checksums != points.checksums)
        counts = {
            "new": int(np.count_nonzero(~stored.there)),
            "removed": len(stored.gone),
            "moved": int(np.count_nonzero(moved)),
        }
        if not any(counts.values()) and before["state"] == "complete":
            return {**counts, "rewritten": 0}
        fresh = ~stored.there | moved
        lists, changed = _followed(
            stored.lists, fresh, points.vectors, database.metric, recall, progress
        )
        graph = Graph(points, lists, k)
        targets = np.concatenate([old.indices[changed] for old in (stored.lists, lists)])
        touched = changed | stored.beside_gone | (before["state"] == "refreshing")
        touched[targets[targets != NOBODY]] = True
        rewritten = np.flatnonzero(touched)
        rewritten = rewritten[np.argsort(fresh[rewritten], kind="stable")]
        with database.transaction():
            # Where there are no transactions, one that is stopped begins again: points that have
            # changed are written last, so that they are found again, and all rows are rewritten.
            database.write_manifest({**before, "state": "refreshing"})
            graph.write(database, rewritten, bars)
            database.remove_rows(stored.gone)
            database.write_manifest(graph.manifest(database, before))
    return {**counts, "rewritten": len(rewritten)}


def attached(database: Database) -> dict[str, Any]:
    """Return what is recorded of the graph; it must be there."""
    return checked_manifest(database, database.read_manifest())


def checked_manifest(database: Database, manifest: dict[str, Any] | None) -> dict[str, Any]:
    """Require a graph that this version can read, and that suits the collection."""
    if manifest is None:
        raise InputError(f"{database.name} has no graph yet; attach it first: `rankfold attach`.")
    if manifest.get("format") != FORMAT:
        raise DatabaseError(
            f"the graph of {database.name} has format {manifest.get('format')!r}, but this version "
            f"reads format {FORMAT}; attach it again with replace=True."
        )
    if manifest["state"] == "attaching":
        raise DatabaseError(
            f"the graph of {database.name} is being built, or its building was stopped; wait, or "
            "attach it again."
        )
    for name, now in (("metric", database.metric), ("features", database.n_features)):
        if manifest[name] != now:
            raise InputError(
                f"the graph of {database.name} was built for {name} {manifest[name]!r}, but is "
                f"asked for {now!r}; give the same, or attach it again with replace=True."
            )
    return manifest


def estimate(database: Database, n_neighbors: int | Literal["auto"] = "auto") -> dict[str, Any]:
    """Return what `build_graph` would write, and about how large it is; nothing is written."""
    check_neighbors(n_neighbors)
    n_points, k = database.count(), 20 if isinstance(n_neighbors, str) else int(n_neighbors)
    # A list of k + 1, and twice k entries of W at most on average, of 16 letters each.
    row = 16 * (k + 1) + 16 * 2 * k + 40
    return {
        "name": database.name,
        "points": n_points,
        "features": database.n_features,
        "metric": database.metric,
        "n_neighbors": n_neighbors,
        "rows": n_points,
        "bytes": n_points * row,
        "temporary_bytes": 4 * n_points * database.n_features,
    }


def checksum(vector: FloatArray) -> int:
    """Return 64 bits, signed, that tell a vector in single precision from others.

    Examples
    --------
    >>> checksum(np.zeros(2, dtype=np.float32)) == checksum(np.ones(2, dtype=np.float32))
    False
    """
    data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


@contextmanager
def _reading(database: Database, progress: bool) -> Iterator[tuple[ScannedPoints, Progress]]:
    """Read all points, vectors into a temporary file; beside them, bars on stderr."""
    keys: list[Key] = []
    checksums: list[int] = []
    width = database.n_features
    with (
        Progress(console=Console(stderr=True), transient=True, disable=not progress) as bars,
        tempfile.TemporaryFile(prefix="rankfold-") as file,
    ):
        task = bars.add_task("reading", total=None)
        for some, vectors in database.scan(max(1, PAGE_BYTES // (4 * width))):
            keys += some
            checksums += map(checksum, vectors)
            file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
            bars.advance(task, len(some))
        bars.update(task, total=len(keys))
        file.flush()
        mapped: FloatArray = np.empty((0, width), np.float32)
        if keys:
            mapped = np.memmap(file, dtype="<f4", mode="r", shape=(len(keys), width))
        yield ScannedPoints(keys, np.array(checksums, dtype=np.int64), mapped), bars


def _stored(database: Database, keys: list[Key], width: int, bars: Progress) -> Stored:
    """Read what is stored, and find out which points it speaks of that are gone."""
    n, places = len(keys), {key: place for place, key in enumerate(keys)}
    indices = np.full((n, width), NOBODY, dtype=np.int32)
    sq_distances = np.full((n, width), np.inf, dtype=np.float32)
    checksums = np.zeros(n, dtype=np.int64)
    there, beside_gone = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    gone: set[Key] = set()
    task = bars.add_task("comparing", total=n)
    for rows in database.scan_rows(WRITTEN_ROWS):
        for row in rows:
            missing = [key for key in (row.key, *row.neighbors) if key not in places]
            gone.update(missing)
            if row.key in gone:
                continue
            place = places[row.key]
            there[place], checksums[place] = True, row.checksum
            beside_gone[place] = bool(missing)
            kept = [at for at, key in enumerate(row.nearest) if key in places]
            indices[place, : len(kept)] = [places[row.nearest[at]] for at in kept]
            sq_distances[place, : len(kept)] = np.asarray(row.sq_distances)[kept]
        bars.advance(task, len(rows))
    return Stored(Neighbors(indices, sq_distances), checksums, there, beside_gone, list(gone))


def _followed(
    lists: Neighbors,
    fresh: BoolArray,
    vectors: FloatArray,
    metric: str,
    recall: float,
    progress: bool,
) -> tuple[Neighbors, BoolArray]:
    """Return all lists after points have come, gone or moved, and which are different.

    Points that are neither new nor moved keep their lists, as far as these are complete without
    the others. Then the others come.
    """
    n, width = lists.indices.shape
    kept, new = np.flatnonzero(~fresh), np.flatnonzero(fresh)
    old = without(lists, ~fresh).take(kept)
    short = lengths(old) < min(width, len(kept) - 1)
    if len(new) + np.count_nonzero(short) > MANY * n:
        every = choose_engine(vectors, metric, recall, progress).rows(np.arange(n), width)
        return every, np.ones(n, dtype=bool)
    engine = choose_engine(vectors[kept], metric, recall, progress)
    # Points in the order in which they come there, which is not that of the scan.
    order = np.concatenate([kept, new])
    numbers = np.full(n + 1, NOBODY, dtype=np.int32)  # the last is that of nobody
    numbers[order] = np.arange(n)
    old = Neighbors(numbers[old.indices], old.sq_distances)
    if short.any():
        found = engine.rows(np.flatnonzero(short), width)
        old.indices[short], old.sq_distances[short] = found.indices, found.sq_distances
    following = DynamicEngine.of_lists(engine, old, width, recall)
    changed = np.zeros(n, dtype=bool)
    changed[kept[short]] = True
    if len(new):
        changed[order[following.add(vectors[new]).rows]] = True
    after = following.rows(numbers[:-1], width)
    return Neighbors(np.append(order, NOBODY)[after.indices], after.sq_distances), changed
