"""How a graph comes to lie beside a collection, and follows what changes there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy import sparse

from rankfold.check import check_choice, check_neighbors, check_share
from rankfold.databases.protocol import Database, Key, Row
from rankfold.errors import DatabaseError, InputError
from rankfold.graph import ClosedForm, candidate_lists
from rankfold.neighbors import choose_engine
from rankfold.neighbors.distances import measured_candidates
from rankfold.neighbors.exact import as_held
from rankfold.solvers import GraphFacts
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors

FORMAT = 1
"""Of what is stored; another is not read."""

LISTS = ("here", "database")

PAGE_BYTES = 2**24
"""Size of the vectors that are read at once."""

WRITTEN_ROWS = 2_000
"""Rows that are written at once."""

BLOCK_POINTS = 4096
"""Points that are compared with new ones at once."""

ROUNDING = 1e-4
"""Share of a squared distance that single precision may be off by where products cancel."""

MANY = 0.2
"""Share of the lists beyond which all are made anew."""


@dataclass(frozen=True, eq=False)
class Lists:
    """The points of a collection and their lists, by places in the order of the scan."""

    keys: list[Key]
    checksums: IntArray
    neighbors: Neighbors
    n_neighbors: int

    def weights(self) -> sparse.csr_array:
        """Return W in single precision, as rows of it are stored."""
        weights = ClosedForm.of(self.neighbors, self.n_neighbors).symmetric()
        weights.data = weights.data.astype(np.float32)
        return weights

    def rows(self, weights: sparse.csr_array, places: IntArray) -> Iterator[Row]:
        """Yield what is stored for some of the points."""
        keys, width = self.keys, self.n_neighbors + 1
        for place in places.tolist():
            near = self.neighbors.indices[place, :width]
            near = near[near != NOBODY]
            entries = slice(weights.indptr[place], weights.indptr[place + 1])
            yield Row(
                keys[place],
                int(self.checksums[place]),
                [keys[other] for other in near],
                self.neighbors.sq_distances[place, : len(near)].astype(np.float32),
                [keys[other] for other in weights.indices[entries]],
                weights.data[entries],
            )

    def manifest(
        self, database: Database, weights: sparse.csr_array, generation: int
    ) -> dict[str, Any]:
        """Return what is recorded beside the rows."""
        degrees = np.asarray(weights.astype(np.float64).sum(axis=1)).ravel()
        facts = GraphFacts.of(np.diff(weights.indptr), degrees)
        return {
            "format": FORMAT,
            "state": "complete",
            "generation": generation,
            "points": len(self.keys),
            "features": database.n_features,
            "metric": database.metric,
            "n_neighbors": self.n_neighbors,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "graph": facts._asdict(),
        }


def build_graph(
    database: Database,
    n_neighbors: int | Literal["auto"] = "auto",
    lists: Literal["here", "database"] = "here",
    recall: float = 0.99,
    replace: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Build the graph of a collection and store it there; return what is recorded of it.

    Parameters
    ----------
    database : Database
    n_neighbors : int or "auto"
    lists : {"here", "database"}
        Where neighbours are searched: here, from vectors that are read once into a temporary
        file, or by the database's own search.
    recall : float
        Share of true neighbours that the lists of many points must hold.
    replace : bool
        Whether a graph that is there may be replaced.
    progress : bool
        Whether to show bars on stderr.
    """
    check_neighbors(n_neighbors)
    check_share(recall, "recall", one=True)
    check_choice(lists, "lists", LISTS)
    if lists == "database" and isinstance(n_neighbors, str):
        raise InputError(
            "n_neighbors is 'auto', which looks at lists that were searched here; give a number "
            "where the database searches, such as 10.",
            "n_neighbors",
        )
    before = database.read_manifest()
    if before is not None and before["state"] == "complete" and not replace:
        raise InputError(
            f"{database.name} has a graph of {before['points']} points already, of "
            f"{before['date']}; refresh() follows what has changed since, and replace=True builds "
            "it anew."
        )
    with _bars(progress) as bars, tempfile.TemporaryDirectory(prefix="rankfold-") as folder:
        keys, checksums, vectors = read_vectors(database, Path(folder), bars)
        if len(keys) < 2:
            raise InputError(
                f"{database.name} has {len(keys)} points with a vector; a graph needs at least two."
            )
        if lists == "here":
            engine = choose_engine(vectors, database.metric, recall, progress)
            found, k = candidate_lists(engine, n_neighbors, 2)
        else:
            k = min(int(n_neighbors), max(1, len(keys) - 2))
            found = _searched(database, keys, vectors, k + 1, bars)
        made = Lists(keys, checksums, found.head(k + 1), k)
        return _store(database, made, before, bars)


def _store(
    database: Database, made: Lists, before: Mapping[str, Any] | None, bars: Progress
) -> dict[str, Any]:
    """Write a whole graph; a query that comes meanwhile sees the old one, or that it is written."""
    weights = made.weights()
    generation = 1 + (0 if before is None else int(before["generation"]))
    manifest = made.manifest(database, weights, generation)
    with database.transaction():
        database.write_manifest({**manifest, "state": "attaching"})
        if before is not None:  # rows that stay are replaced one by one, so that readers go on
            known = set(made.keys)
            for rows in list(database.scan_rows(WRITTEN_ROWS)):
                database.remove_rows([row.key for row in rows if row.key not in known])
        _write(database, made, weights, np.arange(len(made.keys)), bars)
        database.write_manifest(manifest)
    return manifest


def _write(
    database: Database, made: Lists, weights: sparse.csr_array, places: IntArray, bars: Progress
) -> None:
    task = bars.add_task("writing", total=len(places))
    for start in range(0, len(places), WRITTEN_ROWS):
        some = places[start : start + WRITTEN_ROWS]
        database.write_rows(made.rows(weights, some))
        bars.advance(task, len(some))


def refresh_graph(
    database: Database, recall: float = 0.99, progress: bool = False
) -> dict[str, int]:
    """Let the graph follow what has changed; return how many points were new, gone and moved.

    Parameters
    ----------
    database : Database
    recall, progress
        As for `build_graph`.
    """
    before = attached(database)
    k = int(before["n_neighbors"])
    with _bars(progress) as bars, tempfile.TemporaryDirectory(prefix="rankfold-") as folder:
        keys, checksums, vectors = read_vectors(database, Path(folder), bars)
        places = {key: place for place, key in enumerate(keys)}
        stored = _stored_lists(database, places, k + 1, bars)
        moved = stored.there & (stored.checksums != checksums)
        counts = {
            "new": int(np.count_nonzero(~stored.there)),
            "removed": len(stored.gone),
            "moved": int(np.count_nonzero(moved)),
        }
        if not any(counts.values()) and before["state"] == "complete":
            return {**counts, "rewritten": 0}
        fresh = ~stored.there | moved
        new_lists, changed = _followed(
            stored, vectors, fresh, database.metric, k + 1, recall, progress
        )
        made = Lists(keys, checksums, new_lists, k)
        weights = made.weights()
        targets = np.concatenate([lists.indices[changed] for lists in (stored.lists, new_lists)])
        touched = changed.copy()
        touched[targets[targets != NOBODY]] = True
        touched |= stored.beside_gone | (before["state"] == "refreshing")
        rewritten = np.flatnonzero(touched)
        rewritten = rewritten[np.argsort(fresh[rewritten], kind="stable")]
        manifest = made.manifest(database, weights, int(before["generation"]) + 1)
        with database.transaction():
            # Where there are no transactions, one that is stopped begins again: points that have
            # changed are written last, so that they are found again, and all rows are rewritten.
            database.write_manifest({**before, "state": "refreshing"})
            _write(database, made, weights, rewritten, bars)
            database.remove_rows(stored.gone)
            database.write_manifest(manifest)
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
    # A list of k + 1, and twice k entries of W at most on average, of 12 bytes or so each.
    row = 12 * (k + 1) + 12 * 2 * k + 40
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


def read_vectors(
    database: Database, folder: Path, bars: Progress
) -> tuple[list[Key], IntArray, FloatArray]:
    """Read all vectors into a file; return keys, checksums and a map of the file."""
    path, width = folder / "vectors", database.n_features
    keys: list[Key] = []
    checksums: list[int] = []
    task = bars.add_task("reading", total=None)
    with path.open("wb") as file:
        for some, vectors in database.scan(max(1, PAGE_BYTES // (4 * width))):
            data = np.ascontiguousarray(vectors, dtype="<f4")
            keys += some
            checksums += [checksum(row) for row in data]
            file.write(data.tobytes())
            bars.advance(task, len(some))
    bars.update(task, total=len(keys))
    shape = (len(keys), width)
    mapped: FloatArray = np.empty(shape, np.float32)
    if prod(shape):
        mapped = np.memmap(path, dtype="<f4", mode="r", shape=shape)
    return keys, np.array(checksums, dtype=np.int64), mapped


def checksum(vector: FloatArray) -> int:
    """Return 64 bits, signed, that tell a vector in single precision from others.

    Examples
    --------
    >>> checksum(np.zeros(2, dtype=np.float32)) == checksum(np.zeros(2, dtype=np.float32))
    True
    """
    data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


def _searched(
    database: Database, keys: Sequence[Key], vectors: FloatArray, width: int, bars: Progress
) -> Neighbors:
    """Return lists as the database's own search finds them."""
    places = {key: place for place, key in enumerate(keys)}
    indices = np.full((len(keys), width), NOBODY, dtype=np.int32)
    sq_distances = np.full((len(keys), width), np.inf, dtype=np.float32)
    task = bars.add_task("neighbours", total=len(keys))
    for start in range(0, len(keys), 256):
        block = np.asarray(vectors[start : start + 256])
        for row, hits in enumerate(database.search(block, width + 1), start):
            near = [places.get(key, NOBODY) for key in hits.keys]
            kept = [place for place, other in enumerate(near) if other not in (row, NOBODY)][:width]
            indices[row, : len(kept)] = [near[place] for place in kept]
            sq_distances[row, : len(kept)] = np.asarray(hits.sq_distances)[kept]
        bars.advance(task, len(block))
    return Neighbors(indices, sq_distances)


@dataclass(frozen=True, eq=False)
class _Stored:
    """Lists as they are stored, by places of today's points; entries that are gone left out."""

    lists: Neighbors
    checksums: IntArray
    there: BoolArray
    shortened: BoolArray
    beside_gone: BoolArray
    gone: list[Key]


def _stored_lists(
    database: Database, places: Mapping[Key, int], width: int, bars: Progress
) -> _Stored:
    n = len(places)
    indices = np.full((n, width), NOBODY, dtype=np.int32)
    sq_distances = np.full((n, width), np.inf, dtype=np.float32)
    checksums = np.zeros(n, dtype=np.int64)
    there, shortened, beside_gone = (np.zeros(n, dtype=bool) for _ in range(3))
    gone: list[Key] = []
    task = bars.add_task("comparing", total=n)
    for rows in database.scan_rows(WRITTEN_ROWS):
        for row in rows:
            place = places.get(row.key)
            if place is None:
                gone.append(row.key)
                near = [places.get(key, NOBODY) for key in row.neighbors]
                beside_gone[[other for other in near if other != NOBODY]] = True
                continue
            near = [places.get(key, NOBODY) for key in row.nearest]
            kept = [at for at, other in enumerate(near) if other != NOBODY]
            there[place], checksums[place] = True, row.checksum
            shortened[place] = len(kept) < len(near) or len(near) < min(width, n - 1)
            indices[place, : len(kept)] = [near[at] for at in kept]
            sq_distances[place, : len(kept)] = np.asarray(row.sq_distances)[kept]
        bars.advance(task, len(rows))
    lists = Neighbors(indices, sq_distances)
    return _Stored(lists, checksums, there, shortened, beside_gone, gone)


def _followed(
    stored: _Stored,
    vectors: FloatArray,
    fresh: BoolArray,
    metric: str,
    width: int,
    recall: float,
    progress: bool,
) -> tuple[Neighbors, BoolArray]:
    """Return all lists after points have come, gone or moved, and which are different."""
    lists = stored.lists
    moved = np.flatnonzero(fresh & stored.there)
    anew = fresh | stored.shortened | np.isin(lists.indices, moved).any(axis=1)
    engine = choose_engine(vectors, metric, recall, progress)
    if np.count_nonzero(anew) > MANY * len(anew):
        every = engine.rows(np.arange(len(anew)), width)
        return every, np.ones(len(anew), dtype=bool)
    indices, sq_distances = lists.indices.copy(), lists.sq_distances.copy()
    changed, rows = anew.copy(), np.flatnonzero(anew)
    found = engine.rows(rows, width)
    indices[rows], sq_distances[rows] = found.indices, found.sq_distances
    new = np.flatnonzero(fresh)
    held = as_held(np.asarray(vectors[new], dtype=np.float64), metric, "vectors")
    for start in range(0, len(anew) if len(new) else 0, BLOCK_POINTS):
        others = np.arange(start, min(start + BLOCK_POINTS, len(anew)))
        others = others[~anew[others]]
        block = as_held(np.asarray(vectors[others], dtype=np.float64), metric, "vectors")
        for row, near in _entering(block, held, sq_distances[others, -1]):
            place, candidates = others[row], new[near]
            exact = measured_candidates(held, block[row : row + 1], near[None, :])
            both = Neighbors.merge(
                [
                    Neighbors(indices[place][None, :], sq_distances[place][None, :]),
                    Neighbors(candidates[None, :], exact),
                ],
                width,
            )
            differs = (both.indices[0] != indices[place]).any()
            changed[place] |= differs
            indices[place], sq_distances[place] = both.indices[0], both.sq_distances[0]
    return Neighbors(indices, sq_distances), changed


def _entering(
    block: FloatArray, new: FloatArray, last: FloatArray
) -> Iterator[tuple[int, IntArray]]:
    """Yield points of a block, and the new ones that may be nearer than the last of their list."""
    norms = np.einsum("ij,ij->i", block, block)[:, None] + np.einsum("ij,ij->i", new, new)
    near = norms - 2 * (block @ new.T) <= last[:, None].astype(np.float64) + ROUNDING * norms
    for row in np.flatnonzero(near.any(axis=1)).tolist():
        yield row, np.flatnonzero(near[row])


@contextmanager
def _bars(progress: bool) -> Iterator[Progress]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not progress) as bars:
        yield bars
