"""How a graph comes to lie beside a collection, and follows what changes there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy import sparse

from rankfold.check import check_neighbors, check_share
from rankfold.databases.backend import Database, Key, Page, StoredRow
from rankfold.embedding import ShapeEmbedding
from rankfold.errors import DatabaseError, InputError
from rankfold.graph import ClosedForm, candidate_lists
from rankfold.neighbors import Engine, choose_engine
from rankfold.neighbors.lists import lengths, without
from rankfold.solvers import Adjacency, GraphFacts
from rankfold.types import DEFAULT_RECALL, NOBODY, BoolArray, FloatArray, IntArray, Neighbors

FORMAT = 1
"""Of what is stored; another is not read."""

MANY = 0.2
"""Share of the lists beyond which all are made again."""


class ScannedPoints(NamedTuple):
    """The points of a collection in the order of the scan, vectors in a file."""

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
            away = self.lists.sq_distances[place, : len(near)].astype(np.float32)
            entries = slice(weights.indptr[place], weights.indptr[place + 1])
            beside = [keys[other] for other in weights.indices[entries]]
            yield StoredRow(
                keys[place],
                int(self.points.checksums[place]),
                Adjacency([keys[other] for other in near], away),
                Adjacency(beside, weights.data[entries]),
            )

    def write(self, database: Database, places: IntArray, bars: Progress) -> None:
        """Write the rows of some of the points."""
        rows = bars.track(self.rows(places), len(places), description="writing")
        database.write_rows(rows)

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
    **workers: Any,
) -> None:
    """Build the graph of a collection and store it there; `Collection.attach` says how."""
    check_neighbors(n_neighbors)
    check_share(recall, "recall", one=True)
    before = database.read_manifest()
    if before is not None and before["state"] == "complete" and not replace:
        raise InputError(
            f"{database.name} has a graph of {before['points']} points already, of "
            f"{before['date']}; refresh() follows what has changed since, and replace=True builds "
            "it again."
        )
    with _reading(database, progress) as (points, bars):
        if len(points.keys) < 2:
            raise InputError(
                f"{database.name} has {len(points.keys)} points with a vector; a graph needs at "
                "least two."
            )
        if workers:
            from rankfold.cluster.build import find_neighbors  # of the extra cluster

            workers |= {"metric": database.metric, "recall": recall, "progress": progress}
            lists, k = find_neighbors(points.vectors, n_neighbors=n_neighbors, **workers)
        else:
            engine = choose_engine(points.vectors, database.metric, recall, progress)
            lists, k = candidate_lists(engine, n_neighbors, 2)
        graph = Graph(points, lists.head(k + 1), k)
        manifest = graph.manifest(database, before)
        with database.transaction():
            database.write_manifest({**manifest, "state": "attaching"})
            if before is not None:  # rows that stay are replaced one by one, so that readers go on
                known = set(points.keys)
                for rows in list(database.scan_rows()):
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
        search = partial(choose_engine, metric=database.metric, recall=recall, progress=progress)
        lists, changed = _followed(stored.lists, fresh, points.vectors, search)
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


def write_shape(database: Database, name: str, n_components: int, progress: bool) -> ShapeEmbedding:
    """Write shape vectors beside the collection's own; `Collection.write_shape` says how."""
    k, metric = int(attached(database)["n_neighbors"]), database.metric
    database.check_vectors(name, min(n_components, database.count()))
    with _reading(database, progress) as (points, _):
        n = min(n_components, len(points.keys))
        how: dict[str, Any] = {"n_neighbors": k, "metric": metric, "progress": progress}
        embedding = ShapeEmbedding(n, **how).fit(points.vectors)
        shape, step = embedding.vectors(), database.points_at_once
        starts = range(0, len(shape), step)
        pages = (Page(points.keys[at : at + step], shape[at : at + step]) for at in starts)
        database.write_vectors(name, shape.shape[1], pages)
        return embedding


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
        for some, vectors in database.pages():
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
    for rows in database.scan_rows():
        for row in rows:
            missing = [key for key in (row.key, *row.edges.neighbors) if key not in places]
            gone.update(missing)
            if row.key in gone:
                continue
            place = places[row.key]
            there[place], checksums[place] = True, row.checksum
            beside_gone[place] = bool(missing)
            near, away = row.nearest
            kept = [at for at, key in enumerate(near) if key in places]
            indices[place, : len(kept)] = [places[near[at]] for at in kept]
            sq_distances[place, : len(kept)] = away[kept]
        bars.advance(task, len(rows))
    return Stored(Neighbors(indices, sq_distances), checksums, there, beside_gone, list(gone))


def _followed(
    lists: Neighbors, fresh: BoolArray, vectors: FloatArray, search: Callable[[FloatArray], Engine]
) -> tuple[Neighbors, BoolArray]:
    """Return all lists after points have come, gone or moved, and which are different.

    ``search`` makes an engine. Points that are new or moved, and lists that lack a point which has
    gone, are searched for again; into the others go the nearest of those that are ``fresh``.
    """
    n, width = lists.indices.shape
    new, old = np.flatnonzero(fresh), without(lists, ~fresh)
    stale = fresh | (lengths(old) < min(width, n - len(new) - 1))
    if np.count_nonzero(stale) > MANY * n:
        return search(vectors).rows(np.arange(n), width), np.ones(n, dtype=bool)
    found = search(vectors).rows(places := np.flatnonzero(stale), width)
    indices, sq_distances = old.indices.astype(np.int32), old.sq_distances.astype(np.float32)
    indices[places], sq_distances[places] = found.indices, found.sq_distances
    changed, rest = stale.copy(), np.flatnonzero(~stale)
    if len(new) and len(rest):
        came = search(vectors[new]).search(vectors[rest], min(width, len(new)))
        both = np.hstack([indices[rest], np.append(new, NOBODY)[came.indices]])
        away = np.hstack([sq_distances[rest], came.sq_distances.astype(np.float32)])
        order = np.lexsort((both, away))[:, :width]
        after = np.take_along_axis(both, order, 1)
        changed[rest] = (after != indices[rest]).any(axis=1)
        indices[rest], sq_distances[rest] = after, np.take_along_axis(away, order, 1)
    return Neighbors(indices, sq_distances), changed
