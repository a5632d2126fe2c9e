"""Many queries to one index, answered by the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rankfold.check import check_count, check_vectors
from rankfold.cluster.client import working
from rankfold.errors import InputError, MissingExtraError
from rankfold.files import check_parent, replacing
from rankfold.index import Index
from rankfold.types import FloatArray

BLOCK_QUERIES = 64
"""Queries that a worker answers at a time."""

FORMATS = (".npz", ".parquet")


@dataclass(frozen=True, eq=False)
class Rankings:
    """The answers to many queries, in the order of the queries, best first in each.

    Parameters
    ----------
    ids : list of lists of str and int
        What was found for each query.
    scores : list of arrays
        In the order of ``ids``.
    asked : list of str, int and None
        The point of each query; None for a vector.
    """

    ids: list[list[Any]]
    scores: list[FloatArray]
    asked: list[Any]

    def __len__(self) -> int:
        return len(self.ids)

    def columns(self) -> dict[str, Any]:
        """Return a row for every result: number and point of the query, rank, id and score.

        Ids are numbers where all of them are, else texts. A vector is no point: its ``asked`` is
        empty, or -1 among numbers.
        """
        counts = [len(ids) for ids in self.ids]
        ranks = [np.arange(1, count + 1) for count in counts]
        return {
            "query": np.repeat(np.arange(len(self)), counts),
            "asked": np.repeat(_names(self.asked), counts),
            "rank": np.concatenate([np.empty(0, dtype=np.int64), *ranks]),
            "id": _names([name for ids in self.ids for name in ids]),
            "score": np.concatenate([np.empty(0), *self.scores]),
        }

    def save(self, path: str | Path) -> None:
        """Write all columns into an .npz or Parquet file."""
        path = Path(path)
        check_output(path)
        with replacing(path) as partial:
            if path.suffix.lower() == ".npz":
                with partial.open("wb") as file:
                    np.savez(file, **self.columns())
            else:
                import pyarrow.parquet

                pyarrow.parquet.write_table(pyarrow.table(self.columns()), partial)


def _names(ids: list[Any]) -> Any:
    """Return ids as an array."""
    known = [name for name in ids if name is not None]
    if all(isinstance(name, int) for name in known):
        return np.array([-1 if name is None else name for name in ids], dtype=np.int64)
    return np.array(["" if name is None else str(name) for name in ids])


def rank_many(
    index: str | Path,
    ids: Any = None,
    vectors: Any = None,
    *,
    scheduler: Any = None,
    n_workers: int | None = None,
    top: int = 10,
    progress: bool = False,
    **asked: Any,
) -> Rankings:
    """Answer many queries of one example each; every worker opens the index once.

    Parameters
    ----------
    index : str or Path
        The folder of an index, which workers see under the same name.
    ids : list of ids, optional
        Points, each of which is a query.
    vectors : array, shape (n_queries, n_features), optional
        Vectors, each of which is a query; they come after the ids.
    scheduler, n_workers
        As for `build_index`.
    top : int
        How many results for each.
    progress : bool
        Whether to show a bar on stderr.
    **asked
        More arguments of `Index.query`, such as ``method`` and ``where``, the same for all.
    """
    check_count(top, "top")
    path = str(Path(index).absolute())
    names = [] if ids is None else list(ids)
    with Index.open(path) as there:
        there.payload(names, [])  # refuses ids that are not there
        rows = check_vectors(vectors, there.info()["features"])
    if not len(names) + len(rows):
        raise InputError("there are no queries; give ids of points, vectors, or both.")
    options = {**asked, "top": top}
    blocks = [(names[start : start + BLOCK_QUERIES], rows[:0]) for start in _starts(names)]
    blocks += [([], rows[start : start + BLOCK_QUERIES]) for start in _starts(rows)]
    with working(scheduler, n_workers, forget, progress) as work:
        arguments = [(path, *block, options) for block in blocks]
        found = work.run("rankings", answer, arguments)
    answers, scores = ([one for part in found for one in part[place]] for place in (0, 1))
    return Rankings(answers, scores, [*names, *[None] * len(rows)])


def answer(
    path: str, ids: list[Any], vectors: FloatArray, options: dict[str, Any]
) -> tuple[list[list[Any]], list[FloatArray]]:
    """Answer some queries; a task."""
    opened = _opened(path, Path(path).stat().st_ino)
    results = [opened.index.query(one, **options) for one in ids]
    results += [opened.index.query(vectors=one, **options) for one in vectors]
    return [result.ids for result in results], [result.scores for result in results]


class Opened:
    """An index that closes when neither the cache nor a task holds it any more."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def __del__(self) -> None:
        self.index.close()


@lru_cache(maxsize=1)
def _opened(path: str, _inode: int) -> Opened:
    """Open an index, once in each worker; another one at the same place is opened again."""
    return Opened(Index.open(path))


def forget() -> None:
    """Close what was opened, once the tasks that use it are done."""
    _opened.cache_clear()


def check_output(path: Path) -> None:
    """Require a file that rankings can be written to, before work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"{str(path)!r} ends in {path.suffix!r}, but rankings are written to files that end in "
            f"{' or '.join(FORMATS)}.",
            "output",
        )
    check_parent(path)
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ModuleNotFoundError:
            raise MissingExtraError("pyarrow", "tables") from None


def _starts(queries: Any) -> range:
    return range(0, len(queries), BLOCK_QUERIES)
