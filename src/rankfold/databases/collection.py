"""Your own collection, ranked by shape: a vector database that exists, and the graph beside it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from rankfold.check import about, as_list, check_choice
from rankfold.databases.attachment import (
    attached,
    build_graph,
    checked_manifest,
    estimate,
    refresh_graph,
    write_shape,
)
from rankfold.databases.backend import Database, Key, Metric, without_password
from rankfold.databases.engine import (
    CollectionDistance,
    CollectionEngine,
    CollectionGraph,
    CollectionRAN,
)
from rankfold.embedding import ShapeEmbedding
from rankfold.errors import InputError
from rankfold.index.executor import arranged, check_names
from rankfold.index.query import IndexQuery, Reason, Results
from rankfold.inputs.embedder import Embed, Embedder
from rankfold.rankers import RANKERS, Ranker
from rankfold.types import DEFAULT_RECALL, FloatArray, IntArray, Query, Ranking

METHODS: dict[str, type[CollectionRAN] | type[CollectionDistance]] = {
    "ran": CollectionRAN,
    "distance": CollectionDistance,
}
"""Methods that need no more than the rows which a query reaches."""

KINDS = {str: "text", int: "integer", float: "number", bool: "boolean"}

MOST_TRIES = 4
"""How often a query is asked again because results turn out to be gone."""

BACKENDS = {
    "postgresql": ("postgresql", "PostgreSQL"),
    "postgres": ("postgresql", "PostgreSQL"),
    "qdrant": ("qdrant", "Qdrant"),
    "milvus": ("milvus", "Milvus"),
    "lancedb": ("lancedb", "LanceDB"),
}
"""Module and class of every database, by the scheme of its address."""

EXAMPLES = (
    "postgresql://user@host/database, qdrant://host:6333, milvus://host:19530 or "
    "lancedb:///path/of/folder"
)


def connect(
    address: str | Database,
    table: str = "",
    *,
    vector: str | None = None,
    key: str | None = None,
    metric: Metric | None = None,
) -> Database:
    """Return a collection at an address; `Collection.attach` says what each parameter is."""
    if not isinstance(address, str):
        return address
    scheme, mark, _ = address.partition("://")
    if not mark or scheme not in BACKENDS:
        raise InputError(
            f"the address is {without_password(address)!r}, which names no vector database that is "
            f"known here; give one such as {EXAMPLES}.",
            "address",
        )
    if not table:
        raise InputError("the table is '', but must be the name of a table or collection.", "table")
    module, name = BACKENDS[scheme]
    backend: type[Database] = getattr(import_module(f"rankfold.databases.{module}"), name)
    return backend.open(address, table, vector, key=key, metric=metric)


class Collection:
    """A collection of a vector database, with a graph beside it that ranks by shape.

    Made by `open` or `attach`. Nothing of the user's data is changed. Points are named by the
    user's own keys. Threads ask at the same time; rows that were read are remembered until the
    graph is refreshed, here or elsewhere.

    Parameters
    ----------
    database : Database
    embedder : str or callable, optional
        What makes vectors of texts in queries, see `Index.build`. It is not recorded.

    Examples
    --------
    >>> from rankfold import Collection
    >>> collection = Collection.attach("postgresql://user@host/shop", "docs",
    ...                                vector="embedding")  # doctest: +SKIP
    >>> collection.query(170, top=5).ids  # doctest: +SKIP
    [3, 812, 44, 1021, 96]
    """

    writable, outsiders_filter, has_words, waits_for_network = False, False, False, True

    def __init__(self, database: Database, *, embedder: str | Embed | None = None) -> None:
        self.database = database
        self._embedder = None if embedder is None else Embedder(embedder)
        self._graph: CollectionGraph | None = None
        self._lock = Lock()

    @classmethod
    def open(
        cls,
        address: str | Database,
        table: str = "",
        *,
        embedder: str | Embed | None = None,
        **columns: Any,
    ) -> Self:
        """Open a collection that has a graph.

        Parameters
        ----------
        address : str or Database
        table : str
        embedder : str or callable, optional
            What makes vectors of texts in queries, see `Collection`.
        **columns
            ``vector``, ``key`` and ``metric``, as for `attach`; what is left out is as attached.
        """
        return cls._prepared(address, table, columns, embedder, attached)

    @classmethod
    def attach(
        cls,
        address: str | Database,
        table: str = "",
        *,
        vector: str | None = None,
        key: str | None = None,
        metric: Metric | None = None,
        embedder: str | Embed | None = None,
        n_neighbors: int | Literal["auto"] = "auto",
        recall: float = DEFAULT_RECALL,
        replace: bool = False,
        scheduler: Any = None,
        scratch: str | Path | None = None,
        progress: bool = False,
    ) -> Self:
        """Build the graph of a collection, and store it there.

        Where the database has transactions, the graph is there as a whole or not at all. Elsewhere
        an attachment that was stopped can be made again.

        Parameters
        ----------
        address, table : str
            Such as ``postgresql://user@host/database``, or a `Database`; and the name of the
            table or collection, ``schema.table`` in PostgreSQL.
        vector, key : str, optional
            The columns of vectors and of keys, where they are not plain to see.
        metric : {"euclidean", "cosine"}, optional
            That of the collection by default, else "euclidean".
        embedder : str or callable, optional
            What makes vectors of texts in queries, see `Collection`.
        n_neighbors : int or "auto"
            Neighbours of every point. "auto" chooses 10 on clean manifolds and 20 in diffuse data.
        recall : float
            Share of true neighbours that the lists of many points must hold.
        replace : bool
            Whether a graph that is there may be replaced.
        scheduler : str or Client, optional
            The address of a Dask scheduler, or a client, whose workers find the neighbours where
            the vectors do not fit into memory; see `rankfold.cluster.build_index`.
        scratch : str or Path, optional
            A folder that the workers and this process share, with room for the vectors four times;
            that of temporary files by default.
        progress : bool
            Whether to show bars on stderr.
        """
        if scheduler is None and scratch is not None:
            raise InputError("scratch is for the workers of a scheduler: give one.", "scratch")
        workers = {} if scheduler is None else {"scheduler": scheduler, "scratch": scratch}

        def build(database: Database) -> None:
            build_graph(database, n_neighbors, recall, replace, progress, **workers)

        columns = {"vector": vector, "key": key, "metric": metric}
        return cls._prepared(address, table, columns, embedder, build)

    @classmethod
    def _prepared(
        cls,
        address: str | Database,
        table: str,
        columns: Mapping[str, Any],
        embedder: str | Embed | None,
        prepare: Callable[[Database], Any],
    ) -> Self:
        database = connect(address, table, **columns)
        try:
            made = cls(database, embedder=embedder)  # a wrong name is told before any work
            prepare(database)
        except BaseException:
            if isinstance(address, str):  # who gives a database closes it
                database.close()
            raise
        return made

    @staticmethod
    def estimate(
        address: str | Database,
        table: str = "",
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        **columns: Any,
    ) -> dict[str, Any]:
        """Return what `attach` would write, and about how large it is; nothing is written."""
        database = connect(address, table, **columns)
        try:
            return estimate(database, n_neighbors)
        finally:
            if isinstance(address, str):
                database.close()

    def query(
        self,
        ids: Any = None,
        vectors: Any = None,
        weights: Any = None,
        *,
        text: str | Sequence[str] | None = None,
        words: str | None = None,
        negative: Any = None,
        negative_vectors: Any = None,
        where: Any = None,
        top: int = 10,
        offset: int = 0,
        diversity: float = 0.0,
        method: str = "ran",
        include_query: bool = False,
        min_score: float | None = None,
        group_by: str | None = None,
        per_group: int = 1,
        **parameters: Any,
    ) -> Results:
        """Rank the points of the collection; see `Index.query`.

        Points that came after the graph was built are examples like unseen vectors, and are
        results after `refresh`. Results that are gone are left out;
        ``results.ranking.solution.n_gone`` counts them.

        Parameters
        ----------
        ids, vectors, weights, negative, negative_vectors, top, offset, diversity, include_query
            As for `Index.query`.
        text, min_score, group_by, per_group
            As for `Index.query`: texts need an embedder, given to `open` or `attach`; groups are
            by a field that is kept with the points.
        words : str, optional
            Refused: rankfold keeps no texts of a collection. Ask the full-text search of the
            database, and fuse both lists.
        where : optional
            A filter in the database's own language, passed through: in PostgreSQL an SQL condition,
            or a pair of it and values to bind, such as
            ``("price < %(most)s", {"most": 10})``.
        method : {"ran", "distance"}
        **parameters
            Parameters of the method, such as ``smoothness=10``.
        """
        asked = IndexQuery(
            ids=ids,
            vectors=vectors,
            weights=weights,
            text=text,
            words=words,
            negative=negative,
            negative_vectors=negative_vectors,
            where=where,
            top=top,
            offset=offset,
            diversity=diversity,
            method=method,
            include_query=include_query,
            min_score=min_score,
            group_by=group_by,
            per_group=per_group,
            parameters=parameters,
        )
        return self._ask(asked)

    def refresh(self, *, recall: float = DEFAULT_RECALL, progress: bool = False) -> dict[str, int]:
        """Let the graph follow what has changed in the collection.

        Points that are new, gone or moved are found by key and a checksum of the vector; only
        rows that they touch are written. Returns how many there were, and rows that were rewritten.
        """
        return refresh_graph(self.database, recall, progress)

    def write_shape(
        self, name: str, n_components: int = 256, *, progress: bool = False
    ) -> ShapeEmbedding:
        """Write the shape of the collection as a second vector of every point.

        In PostgreSQL it is a new column; Qdrant must have a named vector of that size, by Dot;
        others refuse. From then on the database's own search by dot product ranks by shape.
        `detach` leaves it. Returns the embedding, which makes vectors of new points.

        Parameters
        ----------
        name : str
            Of the column or named vector.
        n_components : int
            Length of the vectors.
        progress : bool
        """
        return write_shape(self.database, name, n_components, progress)

    def detach(self) -> None:
        """Remove the graph without a trace."""
        self.database.detach()
        self._graph = None

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it, in the words of `Index.info` where it can."""
        found = attached(self.database)
        return {
            "path": self.database.name,
            **{name: found[name] for name in ("points", "features", "metric", "n_neighbors")},
            "list_width": found["n_neighbors"] + 1,
            "columns": self.columns,
            "text_columns": [],
            "embedder": None,
            "layout": None,
            "learned": None,
            "source": {},
            "pending_changes": 0,
            "date": found["date"],
            "generation": found["generation"],
            "state": found["state"],
            "edges": found["graph"]["n_edges"] // 2,
            "methods": list(METHODS),
        }

    @cached_property
    def columns(self) -> dict[str, str]:
        """Names of what is kept with points, and of what kind each is; by one of the points."""
        anywhere = np.ones((1, self.database.n_features), dtype=np.float32)
        (found,) = self.database.search(anywhere, 1)
        (fields,) = self.database.payload(found.neighbors).values() or [{}]
        return {name: KINDS.get(type(value), "other") for name, value in fields.items()}

    def places(self, most: int | None = None) -> tuple[list[Any], FloatArray]:
        """Return ids and places on a map; no map is kept beside a collection."""
        return [], np.empty((0, 2))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read as an index does; other clients of the database may change it meanwhile."""
        yield

    def holds(self, keys: Any) -> list[bool]:
        """Tell of each key whether the collection has a point of it."""
        wanted = _keys(keys)
        there = self.database.matching(wanted, None)
        return [key in there for key in wanted]

    def payload(self, keys: Any, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Return what the user keeps with points, column by column; all if none are named."""
        wanted = _keys(keys)
        found = self._required(wanted, self.database.payload(wanted))
        every = _by_column(found)
        return every if columns is None else {name: every[name] for name in columns}

    def vectors(self, keys: Any) -> FloatArray:
        """Return the vectors of points."""
        wanted = _keys(keys)
        found = dict(zip(*self.database.vectors(wanted), strict=True))
        vectors = np.array(self._required(wanted, found), dtype=np.float32)
        return vectors.reshape(-1, self.database.n_features)

    def _required(self, keys: Sequence[Key], known: Mapping[Key, Any]) -> list[Any]:
        """Return what was found for every key."""
        for key in keys:
            if key not in known:
                raise InputError(f"{self.database.name} has no point {key!r}.", "ids")
        return [known[key] for key in keys]

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __len__(self) -> int:
        return int(attached(self.database)["points"])

    def __contains__(self, key: Any) -> bool:
        return self.holds([key])[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Collection({self.database.name!r})"

    def _ask(self, asked: IndexQuery) -> Results:
        """Answer a query."""
        before = self.database.round_trips
        check_choice(asked.method, "method", tuple(METHODS))
        asked = self._embedded(asked)
        graph, query = self._begin(asked)
        kept = KeptFields(self.database, graph)
        hidden: list[int] = []
        for _ in range(MOST_TRIES):
            engine = CollectionEngine(graph, asked.where, hidden)
            ranked = self._ranked(asked, query, engine)
            ranking, threshold = arranged(asked, engine, query, ranked, kept.values_of)
            shown = ranking.solution.take(slice(asked.offset, None))
            fields = kept.of(shown.points)
            left = np.array([one is not None for one in fields], dtype=bool)
            if left.all():
                break
            hidden = kept.gone
        solution = replace(
            shown.take(left),
            certified=shown.certified and not hidden and not asked.offset,
            round_trips=self.database.round_trips - before,
            n_gone=len(kept.gone),
        )
        if threshold is not None:
            threshold = replace(threshold, proven=threshold.proven[asked.offset :][left])
        columns = _by_column([one for one in fields if one is not None])
        answer = replace(ranking, solution=solution)
        names = graph.keys_of(solution.points)
        return Results(names, columns, answer, asked, self, threshold=threshold)

    def _embedded(self, asked: IndexQuery) -> IndexQuery:
        """Return a query with the vectors of its texts."""
        if asked.words is not None:
            raise InputError(
                "words are given, but texts of a collection are not kept here; leave words out, "
                "and fuse the results with those of the database's own full-text search.",
                "words",
            )
        if not asked.text or asked.text_vectors is not None:
            return asked
        if self._embedder is None:
            raise InputError(
                "this collection has no embedder that makes vectors of texts; give it when it is "
                "opened: Collection.open(..., embedder='wordllama').",
                "text",
            )
        with about("text"):
            return replace(asked, text_vectors=self._embedder(asked.text))

    def _reason(self, asked: IndexQuery, point: Any) -> Reason:
        """Explain the place of a point; distances to all points are measured for it."""
        (key,) = _keys([point])
        graph, query = self._begin(asked, [key])
        (number,) = graph.numbers([key]).tolist()
        if number in graph.gone:
            raise InputError(f"{point!r} is not part of the graph yet; refresh it first.")
        ranker = self._fitted(asked, CollectionEngine(graph))
        reason = Reason.of(ranker, query, number, graph.keys_of)
        method = RANKERS[asked.method].__name__
        named = replace(reason, explanation=replace(reason.explanation, method=method))
        return named.scaled(asked.method, self.database.metric)

    def _begin(self, asked: IndexQuery, more: Sequence[Key] = ()) -> tuple[CollectionGraph, Query]:
        """Return the graph of the present generation, and the query in its numbers."""
        keys, before = _keys([*asked.ids, *asked.negative]), self._graph
        wanted = [*keys, *more]
        known = before is not None and before.knows(wanted)
        manifest, rows = self.database.begin([] if known else wanted)
        graph = self._current(checked_manifest(self.database, manifest))
        if not known or graph is not before:
            graph.take(wanted, self.database.rows(wanted) if known else rows)
        return graph, self._query(asked, graph, keys)

    def _current(self, manifest: dict[str, Any]) -> CollectionGraph:
        with self._lock:
            graph = self._graph
            if graph is None or graph.full or graph.generation != manifest["generation"]:
                graph = self._graph = CollectionGraph(self.database, manifest)
            return graph

    def _query(self, asked: IndexQuery, graph: CollectionGraph, keys: Sequence[Key]) -> Query:
        """Return the query; points that are not part of the graph yet are unseen vectors."""
        numbers = graph.numbers(keys)
        of_points, vectors, of_vectors = asked.examples(numbers, self.database.n_features)
        new = np.isin(numbers, list(graph.gone))
        unseen = self.vectors([key for key, is_new in zip(keys, new, strict=True) if is_new])
        return Query(
            numbers[~new],
            np.concatenate([unseen, vectors]),
            np.concatenate([of_points[~new], of_points[new], of_vectors]),
        )

    def _fitted(self, asked: IndexQuery, engine: CollectionEngine) -> Ranker:
        with about("parameters"):
            check_names(asked.method, asked.parameters)
            method = METHODS[asked.method]
            return method(metric=engine.metric, **asked.parameters).fit(engine)

    def _ranked(
        self, asked: IndexQuery, query: Query, engine: CollectionEngine
    ) -> Callable[[int], Ranking]:
        """Return what ranks so many points."""
        ranker, keys, lost = self._fitted(asked, engine), engine.graph.keys, query.indices[:0]
        if asked.where is not None and asked.include_query:
            own = query.indices.tolist()
            passed = self.database.matching(engine.graph.keys_of(own), asked.where)
            lost = np.array([point for point in own if keys[point] not in passed], dtype=np.int64)

        def ranked(length: int) -> Ranking:
            top = length + len(lost)
            found = ranker.rank_query(query, top=top, include_query=asked.include_query)
            if not len(lost):
                return found
            left = np.flatnonzero(~np.isin(found.indices, lost))
            return replace(found, solution=found.solution.take(left[:length]))

        return ranked


class KeptFields:
    """What the user keeps with the points that a query meets, read once.

    Parameters
    ----------
    database : Database
    graph : CollectionGraph
    """

    def __init__(self, database: Database, graph: CollectionGraph) -> None:
        self._database, self._graph = database, graph
        self._known: dict[int, dict[str, Any] | None] = {}

    def of(self, points: IntArray) -> list[dict[str, Any] | None]:
        """Return the fields of each point; None of those that are gone."""
        missing = [point for point in points.tolist() if point not in self._known]
        if missing:
            keys = self._graph.keys_of(missing)
            found = self._database.payload(keys)
            self._known.update(zip(missing, map(found.get, keys), strict=True))
        return [self._known[point] for point in points.tolist()]

    @property
    def gone(self) -> list[int]:
        """Points that turned out to be gone."""
        return [point for point, fields in self._known.items() if fields is None]

    def values_of(self, points: IntArray, column: str) -> list[Any]:
        """Return one field of each point; None where it has none."""
        there = [fields for fields in self.of(points) if fields is not None]
        known = sorted({name for fields in there for name in fields})
        if there and column not in known:
            raise InputError(
                f"{column!r} is no field of these points; they have {', '.join(known) or 'none'}."
            )
        values = [None if fields is None else fields.get(column) for fields in self.of(points)]
        for value in values:
            if not isinstance(value, Hashable):
                raise InputError(
                    f"the field {column!r} holds {value!r}, but groups are by texts or numbers."
                )
        return values


def _keys(value: Any) -> list[Any]:
    """Return one key or several as a list, numbers of NumPy as those of Python."""
    return [key.item() if isinstance(key, np.generic) else key for key in as_list(value)]


def _by_column(payload: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return payload column by column; None where a point has no such field."""
    names = dict.fromkeys(name for fields in payload for name in fields)
    return {name: [fields.get(name) for fields in payload] for name in names}
