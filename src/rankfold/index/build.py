"""What an index is built of: checked points, embedded texts, lists, a map, a learned graph."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal, NamedTuple

import numpy as np

from rankfold.check import (
    about,
    as_list,
    check_as_many,
    check_choice,
    check_matrix,
    check_share,
)
from rankfold.errors import InputError
from rankfold.files import replacing
from rankfold.graph.adaptive import ClosedForm, Empty, choose_from_sample, stored_width
from rankfold.graph.collective import Learning, Stage, learning_of
from rankfold.inputs import Embedder, Points, as_columns
from rankfold.layout import Layout, check_layout, lay_out
from rankfold.neighbors import DynamicEngine, KeptGraph, Learned, Round, choose_engine
from rankfold.storage import Version
from rankfold.storage.columns import checked_payload, distinct_ids
from rankfold.types import FloatArray, Neighbors

FEW_LISTS = 20_000
"""Up to so many points the graph is not kept, but made of the lists with the first query."""

TEXT = "text"
"""The column of texts that come in a list."""

STAGE = "learning.npz"
"""The file beside the store that a stopped learning goes on from."""

PARTIAL = re.compile(rf"\.{re.escape(STAGE)}\.\d+-[0-9a-f]{{8}}\.partial")
"""What `replacing` calls it while it is written."""

ROOM = 2**16
"""Bytes that its description and the frame of the file may take."""


def checked_input(
    X: Any, ids: Any, payload: Any, metric: str, recall: float, layout: str
) -> Points:
    """Check everything before any work is done with it."""
    check_choice(metric, "metric", ("euclidean", "cosine"))
    check_share(recall, "recall", one=True)
    vectors = check_matrix(X, "X")
    check_layout(layout, vectors.shape[1])
    if not len(vectors):
        raise InputError("X has no rows; give at least one point.")
    names = None if ids is None else distinct_ids(ids)
    if names is not None:
        check_as_many(vectors, names)
    columns = as_columns(payload, len(vectors))
    checked_payload(columns, len(vectors))
    return Points(vectors, names, columns)


def built(
    points: Points,
    metric: str,
    n_neighbors: int | Literal["auto"],
    recall: float,
    layout: Layout,
    progress: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Search the lists of all points and draw their map; return arrays and settings."""
    engine = choose_engine(points.vectors, metric, recall, progress)
    chosen = choose_from_sample(engine, n_neighbors)
    width = stored_width(chosen, np.iinfo(np.int32).max)
    dynamic = DynamicEngine.build(
        points.vectors, metric, width, recall=recall, progress=progress, engine=engine
    )
    arrays, settings = dynamic.state()
    places, drawn = mapped(dynamic, layout, chosen, progress)
    everything = {
        "engine": settings,
        "n_neighbors": chosen,
        "numbered": points.ids is None,
        **drawn,
    }
    return {**arrays, **places, **plain_graph(arrays, chosen)}, everything


def plain_graph(
    arrays: dict[str, Any], n_neighbors: int, empty: Empty = np.empty
) -> dict[str, Any]:
    """Return the arrays of RAN's graph of some lists; nothing where it is made in no time.

    All that is made on the way and has the size of the lists is made by ``empty(shape, dtype)``.
    """
    indices = arrays["list_indices"]
    if len(indices) <= FEW_LISTS or indices.shape[1] <= n_neighbors:
        return {}
    lists = Neighbors(indices, arrays["list_sq_distances"])
    form = ClosedForm.of(lists.head(n_neighbors + 1), n_neighbors, empty=empty)
    graph = form.symmetric(empty)
    return KeptGraph(n_neighbors, graph.indptr, graph.indices, graph.data).arrays()


def mapped(
    engine: DynamicEngine, layout: Layout, n_neighbors: int, progress: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a map of points of which none was removed; return its arrays and settings."""
    drawn = lay_out(engine, layout, n_neighbors, progress)
    if drawn is None:
        return {}, {"layout": None}
    return drawn.arrays(np.arange(engine.n_points)), {"layout": drawn.kind}


def learned_graph(
    engine: DynamicEngine,
    n_neighbors: int,
    smoothness: float,
    folder: Path,
    version: Version,
    progress: bool,
) -> Learned:
    """Learn a graph for all points of an engine; go on where the same was stopped before.

    Parameters
    ----------
    engine : DynamicEngine
        Without removed slots.
    n_neighbors : int
        Neighbours in the plain graph.
    smoothness : float
        That of the queries that will be asked.
    folder : Path
        Of the store, where stages are kept.
    version : Version
        The state of the store that the engine holds.
    progress : bool
        Whether to show a bar on stderr.
    """
    chosen = min(n_neighbors, max(1, engine.n_alive - 2))
    learning = learning_of(engine, chosen, smoothness, progress=progress)
    stages = Stages.of(folder, learning, version)
    return replace(learning, keep=stages.write).run(stages.read())


@dataclass(frozen=True)
class Stages:
    """Keeps the last stage of a learning in a file, which nobody else writes meanwhile.

    Parameters
    ----------
    path : Path
    state : dict
        What a stage belongs to, as JSON can hold it; stages of another are ignored.
    shape : tuple of int
        That of the candidates.
    """

    path: Path
    state: dict[str, Any]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path, learning: Learning, version: Version) -> Stages:
        """Return the stages of a learning in a state of a store."""
        state = {
            "generation": version.generation,
            "sequence": version.sequence,
            "n_neighbors": learning.n_neighbors,
            "smoothness": float(learning.smoothness),
            "attempts": [list(attempt) for attempt in learning.attempts],
            "weight": learning.weight,
            "profile_smoothness": learning.profile_smoothness,
            "profile_tol": learning.profile_tol,
            "candidates": _checksum(learning.candidates),
        }
        return cls(folder / STAGE, state, learning.candidates.indices.shape)

    def write(self, stage: Stage) -> None:
        """Put a stage into the place of the one before."""
        rounds = [asdict(made) for made in stage.rounds]
        text = json.dumps({"state": self.state, "attempt": stage.attempt, "rounds": rounds})
        described = np.frombuffer(text.encode(), dtype=np.uint8)
        with replacing(self.path) as partial, partial.open("wb") as file:
            np.savez(file, described=described, lifted=stage.lifted)

    def read(self) -> Stage | None:
        """Return the stage to go on from; sweep what is left of any other."""
        try:
            stage = self._read()
        except Exception:  # a file that is damaged or not ours raises almost anything
            stage = None
        if stage is None:
            sweep(self.path.parent)
        return stage

    def _read(self) -> Stage | None:
        found = self.path.lstat()  # a link is none of ours, and what is no file may never end
        most = 8 * int(np.prod(self.shape)) + ROOM
        if not S_ISREG(found.st_mode) or found.st_size > most:
            return None
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if sum(part.file_size for part in archive.zip.infolist()) > most:  # once unpacked
                return None
            described = json.loads(archive["described"].tobytes())
            if described["state"] != self.state:
                return None
            lifted = archive["lifted"]
        attempt = described["attempt"]
        rounds = tuple(Round(**made) for made in described["rounds"])
        fits = lifted.shape == self.shape and lifted.dtype == np.float64 and (lifted >= 0).all()
        known = isinstance(attempt, int) and attempt in range(len(self.state["attempts"]))
        if not (fits and known):
            return None
        return Stage(attempt, lifted, rounds)


def _checksum(lists: Neighbors) -> int:
    """Sum up lists: a search that is not exact may find others in the same state of a store."""
    found = zlib.crc32(np.ascontiguousarray(lists.indices).data)
    return zlib.crc32(np.ascontiguousarray(lists.sq_distances).data, found)


def sweep(folder: Path) -> None:
    """Delete a stage, and what a process that was killed left behind while it wrote one.

    Folders, links and files of other names are left alone.
    """
    for left in (folder / STAGE, *folder.glob(f".{STAGE}.*.partial")):
        named = left.name == STAGE or PARTIAL.fullmatch(left.name)
        if named and left.is_file() and not left.is_symlink():
            left.unlink(missing_ok=True)


class EmbedderSettings(NamedTuple):
    """What an index keeps of the embedder that makes its vectors.

    Parameters
    ----------
    name : str or None
        None for a callable, which is given again when the index is opened.
    column : str or None
        The column of the texts; None where they are not kept.
    """

    name: str | None
    column: str | None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> EmbedderSettings | None:
        """Read them from the settings of an index; None where it has no embedder."""
        found = settings.get("embedder")
        if found is None:
            return None
        name, column = found["name"], found["column"]
        if name is not None:
            Embedder(name)  # checks the name; nothing is loaded
        if column is not None and not isinstance(column, str):
            raise InputError(f"the column of its texts is {column!r}")
        return cls(name, column)


def text_input(
    X: Any, ids: Any, payload: Any, texts: Any, embedder: Any, progress: bool
) -> tuple[Any, Any, EmbedderSettings | None]:
    """Return vectors and payload to build an index of, and what is kept of its embedder.

    `Index.build` says what is given. All that can be wrong is said before texts are embedded.
    """
    if embedder is None:
        if texts is not None:
            raise InputError(
                "texts are given, but nothing that makes vectors of them; name an embedder, such "
                "as 'wordllama', or leave texts out and give X.",
                "embedder",
            )
        if X is None:
            raise InputError("there are no vectors; give X, or texts and an embedder.", "X")
        return X, payload, None
    model = Embedder(embedder)
    if texts is None:
        if X is None:
            raise InputError("an embedder is given, but nothing to embed; give texts, or X.")
        _check_fits(model, X)
        return X, payload, EmbedderSettings(model.name, None)
    column = texts if isinstance(texts, str) else TEXT
    if X is not None and column != texts:
        raise InputError(
            "both X and a list of texts are given; leave X out to have the texts embedded, or name "
            "their column of the payload, such as texts='body'.",
            "texts",
        )
    columns = as_columns(payload, None if column == texts else len(texts))
    if column == texts and column not in columns:
        raise InputError(
            f"texts is {texts!r}, but the payload has the columns {', '.join(columns) or 'none'}; "
            "name one of them, or give a list of texts.",
            "texts",
        )
    if column != texts:
        columns = with_texts(columns, column, texts)
    values: list[Any] = columns[column]
    settings = EmbedderSettings(model.name, column)
    if X is not None:
        _check_fits(model, X)
        return X, columns, settings
    checked_payload(columns, len(values))
    if ids is not None:
        check_as_many(values, distinct_ids(ids))
    with about("texts"):
        return model(values, progress), columns, settings


def _check_fits(model: Embedder, X: Any) -> None:
    """Require that an embedder makes vectors as wide as those that are given."""
    width = model(["width"]).shape[1]
    if np.ndim(X) == 2 and np.shape(X)[1] != width:
        raise InputError(
            f"{model} makes vectors of {width} numbers, but X has {np.shape(X)[1]}; name the one "
            "that X was made by.",
            "embedder",
        )


def with_texts(columns: Mapping[str, Any], column: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return payload with a column of texts, which it must not have already."""
    if column in columns:
        raise InputError(
            f"the payload has a column {column!r}, which is that of the texts; give them once.",
            "texts",
        )
    return {column: list(texts), **columns}


class TextVectors:
    """Makes vectors of the texts that an open index is given.

    Parameters
    ----------
    settings : callable
        Returns those of the index, as they are now.
    given : str or callable, optional
        The embedder that was given when the index was opened; else the one that it names.
    """

    def __init__(self, settings: Callable[[], Mapping[str, Any]], given: Any = None) -> None:
        self._settings = settings
        self._given = None if given is None else Embedder(given)
        self._named: Embedder | None = None

    @property
    def kept(self) -> EmbedderSettings | None:
        """What the index keeps of its embedder."""
        return EmbedderSettings.of(self._settings())

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return a vector for each text."""
        model, kept = self._given, self.kept
        if model is None and kept is not None and kept.name is not None:
            if self._named is None or self._named.name != kept.name:
                self._named = Embedder(kept.name)
            model = self._named
        if model is not None:
            return model(texts)
        if kept is not None:
            raise InputError(
                "the vectors of this index were made by a function, which it cannot keep; give it "
                "again: Index.open(path, embedder=function).",
                "embedder",
            )
        raise InputError(
            "this index has no embedder that makes vectors of texts; build it with one "
            "(`rankfold index build --embedder wordllama`), or give it when the index is opened: "
            "Index.open(path, embedder='wordllama').",
            "embedder",
        )

    def of_query(self, text: Any) -> FloatArray:
        """Return a vector for each text of a query."""
        with about("text"):
            return self.embed(as_list(text))

    def of_points(self, vectors: Any, payload: Any, texts: Any, n_points: int | None) -> Any:
        """Return vectors and payload of points; texts that come without vectors are embedded.

        Vectors are None where neither they nor texts are given.
        """
        if vectors is not None and texts is None:
            return vectors, payload
        kept = self.kept
        column = None if kept is None else kept.column
        if vectors is not None:
            raise InputError(
                "both vectors and texts are given; leave vectors out to have the texts "
                f"embedded, or give the texts as a column of the payload ({column or TEXT!r}).",
                "texts",
            )
        n_points = n_points if texts is None else len(as_list(texts))
        columns: Mapping[str, Any] = as_columns(payload, n_points)
        if texts is not None and column is not None:
            columns = with_texts(columns, column, as_list(texts))
        elif texts is None and column is not None and column in columns:
            texts = columns[column]
        with about("texts"):
            return (None if texts is None else self.embed(as_list(texts))), columns


def required(vectors: Any) -> Any:
    """Require vectors, which may have been made of texts."""
    if vectors is None:
        raise InputError(
            "points need vectors; give them, or texts where the index has an embedder."
        )
    return vectors
