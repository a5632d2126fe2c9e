"""Your own collection, ranked by shape: a vector database that exists, and the graph beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from threading import Lock
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from rankfold.check import about, as_list, check_choice, check_vectors, check_weights
from rankfold.databases.attachment import (
    attached,
    build_graph,
    checked_manifest,
    estimate,
    refresh_graph,
)
from rankfold.databases.engine import (
    CollectionDistance,
    CollectionEngine,
    CollectionGraph,
    CollectionRAN,
)
from rankfold.databases.protocol import Database, Key
from rankfold.diversity import n_candidates
from rankfold.errors import InputError
from rankfold.explanation import explain
from rankfold.index.query import IndexQuery, Reason, Results, with_diversity
from rankfold.rankers import RANKERS, Distance, Ranker
from rankfold.types import FloatArray, Query, Ranking

METHODS: dict[str, type[CollectionRAN] | type[CollectionDistance]] = {
    "ran": CollectionRAN,
    "distance": CollectionDistance,
}
"""RankerCache that need no more than the rows which a query reaches."""

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
    address: str,
    table: str,
    *,
    vector: str | None = None,
    key: str | None = None,
    metric: Literal["euclidean", "cosine"] | None = None,
) -> Database:
    """Return a collection at an address, as a `Database`.

    Parameters
    ----------
    address : str
        Such as ``postgresql://user@host/database``.
    table : str
        The name of the table or collection; ``schema.table`` in PostgreSQL.
    vector, key : str, optional
        The columns of vectors and of keys, where they are not plain to see.
    metric : {"euclidean", "cosine"}, optional
        That of the collection by default, else "euclidean".
    """
    scheme, mark, _ = address.partition("://")
    if mark and scheme in BACKENDS and table:
        module, name = BACKENDS[scheme]
        backend = getattr(import_module(f"rankfold.databases.{module}"), name)
        columns: dict[str, Any] = {"key": key, "metric": metric}
        database: Database = backend.open(address, table, vector, **columns)
        return database
    if mark and scheme in BACKENDS:
        raise InputError("the table is '', but must be the name of a table or collection.", "table")
    raise InputError(
        f"the address is {without_password(address)!r}, which names no vector database that is "
        f"known here; give one such as {EXAMPLES}.",
        "address",
    )


def without_password(address: str) -> str:
    """Return an address as it may be shown: whatever may belong to a password is left out.

    Examples
    --------
    >>> without_password("postgresql://ann:secret@host:5432/db?password=secret&sslmode=require")
    'postgresql://ann@host:5432/db?sslmode=require'
    """
    shown = re.sub(r"(?<=:)([^/@:]*|//[^/@:]*):.*@", r"\1@", address)
    shown = re.sub(r"(?<=[?&])(?:ssl)?password=[^&]*&?", "", shown)
    return shown.rstrip("?&")


class Collection:
    """A collection of a vector database, with a graph beside it that ranks by shape.

    Made by `open` or `attach`. Nothing of the user's data is changed. Points are named by the
    user's own keys. Threads ask at the same time; rows that were read are remembered until the
    graph is refreshed, here or elsewhere.

    Parameters
    ----------
    database : Database

    Examples
    --------
    >>> from rankfold import Collection
    >>> collection = Collection.attach("postgresql://user@host/shop", "docs",
    ...                                vector="embedding")  # doctest: +SKIP
    >>> collection.query(170, top=5).ids  # doctest: +SKIP
    [3, 812, 44, 1021, 96]
    """

    writable, outsiders_filter = False, False

    def __init__(self, database: Database) -> None:
        self.database = database
        self._graph: CollectionGraph | None = None
        self._columns: dict[str, str] | None = None
        self._lock = Lock()

    @classmethod
    def open(cls, address: str | Database, table: str = "", **columns: Any) -> Self:
        """Open a collection that has a graph.

        Parameters
        ----------
        address : str or Database
        table : str
        **columns
            ``vector``, ``key`` and ``metric``, as for `connect`.
        """
        collection = cls(_database(address, table, columns))
        try:
            attached(collection.database)
        except BaseException:
            if isinstance(address, str):  # who gives a database closes it
                collection.close()
            raise
        return collection

    @classmethod
    def attach(
        cls,
        address: str | Database,
        table: str = "",
        *,
        vector: str | None = None,
        key: str | None = None,
        metric: Literal["euclidean", "cosine"] | None = None,
        n_neighbors: int | Literal["auto"] = "auto",
        lists: Literal["here", "database"] = "here",
        recall: float = 0.99,
        replace: bool = False,
        progress: bool = False,
    ) -> Self:
        """Build the graph of a collection, and store it there.

        Where the database has transactions, the graph is there as a whole or not at all. Elsewhere
        an attachment that was stopped can be made again.

        Parameters
        ----------
        address, table, vector, key, metric
            As for `connect`; or a `Database`.
        n_neighbors : int or "auto"
            Neighbours of every point. "auto" chooses 10 on clean manifolds and 20 in diffuse data.
        lists : {"here", "database"}
            Where neighbours are searched: here, from vectors that are read once, or by the
            database's own search.
        recall : float
            Share of true neighbours that the lists of many points must hold.
        replace : bool
            Whether a graph that is there may be replaced.
        progress : bool
            Whether to show bars on stderr.
        """
        columns = {"vector": vector, "key": key, "metric": metric}
        collection = cls(_database(address, table, columns))
        try:
            build_graph(collection.database, n_neighbors, lists, recall, replace, progress)
        except BaseException:
            if isinstance(address, str):  # who gives a database closes it
                collection.close()
            raise
        return collection

    @staticmethod
    def estimate(
        address: str | Database,
        table: str = "",
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        **columns: Any,
    ) -> dict[str, Any]:
        """Return what `attach` would write, and about how large it is; nothing is written."""
        database = _database(address, table, columns)
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
        negative: Any = None,
        negative_vectors: Any = None,
        where: Any = None,
        top: int = 10,
        offset: int = 0,
        diversity: float = 0.0,
        method: str = "ran",
        include_query: bool = False,
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
        where : optional
            A filter in the database's own language, passed through: in PostgreSQL an SQL condition,
            or a pair of it and values to bind, such as
            ``("price < %(most)s", {"most": 10})``.
        method : {"ran", "distance"}
        **parameters
            Parameters of the method, such as ``smoothness=10``.
        """
        asked = IndexQuery(
            ids,
            vectors,
            weights,
            negative,
            negative_vectors,
            where,
            top,
            offset,
            diversity,
            method,
            include_query,
            parameters,
        )
        return self._ask(asked)

    def refresh(self, *, recall: float = 0.99, progress: bool = False) -> dict[str, int]:
        """Let the graph follow what has changed in the collection.

        Points that are new, gone or moved are found by key and a checksum of the vector; only
        rows that they touch are written. Returns how many there were, and rows that were rewritten.
        """
        return refresh_graph(self.database, recall, progress)

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

    @property
    def columns(self) -> dict[str, str]:
        """Names of what is kept with points, and of what kind each is; by one of the points."""
        if self._columns is None:
            anywhere = np.ones((1, self.database.n_features), dtype=np.float32)
            (found,) = self.database.search(anywhere, 1)
            payload = self.database.payload(found.keys)
            fields = payload[found.keys[0]] if found.keys else {}
            self._columns = {
                name: KINDS.get(type(value), "other") for name, value in fields.items()
            }
        return self._columns

    def places(self, most: int | None = None) -> tuple[list[Any], FloatArray]:
        """Return ids and places on a map; no map is kept beside a collection."""
        return [], np.empty((0, 2))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read as an index does; other clients of the database may change it meanwhile."""
        yield

    def holds(self, keys: Any) -> list[bool]:
        """Tell of each key whether the collection has a point of it."""
        wanted = as_list(keys)
        there = self.database.matching(wanted, None)
        return [key in there for key in wanted]

    def payload(self, keys: Any, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Return what the user keeps with points, column by column; all if none are named."""
        wanted = as_list(keys)
        found = self.database.payload(wanted)
        _require(wanted, found, self.database, "ids")
        every = _by_column(wanted, found)
        return every if columns is None else {name: every[name] for name in columns}

    def vectors(self, keys: Any) -> FloatArray:
        """Return the vectors of points."""
        wanted = as_list(keys)
        found, vectors = self.database.vectors(wanted)
        known = dict(zip(found, vectors, strict=True))
        _require(wanted, known, self.database, "ids")
        return np.array([known[key] for key in wanted])

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
        graph, query = self._begin(asked)
        hidden: list[int] = []
        for _ in range(MOST_TRIES):
            ranking = self._ranking(asked, query, CollectionEngine(graph, asked.where, hidden))
            shown = ranking.solution.take(slice(asked.offset, None))
            names = graph.keys_of(shown.points)
            payload = self.database.payload(names)
            gone = [place for place, name in enumerate(names) if name not in payload]
            if not gone:
                break
            hidden += shown.points[gone].tolist()
        left = [place for place, name in enumerate(names) if name in payload]
        solution = replace(
            shown.take(left),
            certified=shown.certified and not hidden and not asked.offset,
            round_trips=self.database.round_trips - before,
            n_gone=len(set(hidden)),
        )
        names = [names[place] for place in left]
        ranking = replace(ranking, solution=solution)
        return Results(list(names), _by_column(names, payload), ranking, asked, self)

    def _reason(self, asked: IndexQuery, point: Any) -> Reason:
        """Explain the place of a point; distances to all points are measured for it."""
        graph, query = self._begin(asked, [point])
        (number,) = graph.numbers([point]).tolist()
        if number in query.ids:
            raise InputError(
                f"{point!r} is an example of the query, which is not ranked; ask for another."
            )
        if number in graph.gone:
            raise InputError(f"{point!r} is not part of the graph yet; refresh it first.")
        ranker = self._fitted(asked, CollectionEngine(graph))
        explanation = explain(ranker, query, number, negative_weight=Distance.negative_weight)
        explanation = replace(explanation, method=RANKERS[asked.method].__name__)
        numbers = {number, *(example.point for example in explanation.examples)}
        for step in explanation.path.steps if explanation.path else ():
            numbers |= {step.start, step.end}
        return Reason(explanation, {one: graph.keys[one] for one in numbers if one is not None})

    def _begin(self, asked: IndexQuery, more: Sequence[Key] = ()) -> tuple[CollectionGraph, Query]:
        """Return the graph of the present generation, and the query in its numbers."""
        keys = [*asked.ids, *asked.negative]
        if len(set(keys)) < len(keys):
            twice = next(key for place, key in enumerate(keys) if key in keys[:place])
            raise InputError(
                f"{twice!r} is an example more than once, among ids and negative; name it once, "
                "and give it a larger weight to make it count more."
            )
        wanted = [*keys, *more]
        known = self._known(wanted)
        manifest, rows = self.database.begin([] if known else wanted)
        graph = self._current(checked_manifest(self.database, manifest))
        if known and graph is not known:
            rows = self.database.rows(wanted)
        if not known or graph is not known:
            graph.take(wanted, rows)
        return graph, self._query(asked, graph)

    def _known(self, keys: Sequence[Key]) -> CollectionGraph | None:
        """Return the graph if all is remembered of it that a query begins with."""
        graph = self._graph
        if graph is None or graph.full:
            return None
        numbers = graph.numbers(keys)
        return graph if all(int(number) in graph.lists for number in numbers) else None

    def _current(self, manifest: dict[str, Any]) -> CollectionGraph:
        with self._lock:
            graph = self._graph
            if graph is None or graph.full or graph.generation != manifest["generation"]:
                graph = self._graph = CollectionGraph(self.database, manifest)
            return graph

    def _query(self, asked: IndexQuery, graph: CollectionGraph) -> Query:
        """Return the query: positive examples first; points without a row are unseen vectors."""
        width = self.database.n_features
        with about("vectors"):
            vectors = check_vectors(asked.vectors, width)
        with about("negative_vectors"):
            opposed = check_vectors(asked.negative_vectors, width)
        n_positive = len(asked.ids) + len(vectors)
        if not n_positive:
            raise InputError(
                "the query has no example of what is looked for: give ids of points, vectors, "
                "or both."
            )
        with about("weights"):
            given = check_weights(asked.weights, n_positive)
        if not (given > 0).all():
            raise InputError(
                f"weights is {asked.weights!r}, but those of ids and vectors must be above zero; "
                "name what is not looked for as negative.",
                "weights",
            )
        against = METHODS[asked.method].negative_weight
        keys = [*asked.ids, *asked.negative]
        weights = np.array([*given[: len(asked.ids)], *[against] * len(asked.negative)])
        numbers = graph.numbers(keys)
        new = np.array([int(number) in graph.gone for number in numbers], dtype=bool)
        unseen = self._unseen([key for key, is_new in zip(keys, new, strict=True) if is_new])
        return Query(
            numbers[~new],
            np.concatenate([unseen, vectors, opposed]),
            [*weights[~new], *weights[new], *given[len(asked.ids) :], *[against] * len(opposed)],
        )

    def _unseen(self, keys: list[Key]) -> FloatArray:
        """Return the vectors of points that are not part of the graph yet."""
        if not keys:
            return np.empty((0, self.database.n_features))
        found, vectors = self.database.vectors(keys)
        known = dict(zip(found, vectors, strict=True))
        _require(keys, known, self.database, "ids")
        return np.array([known[key] for key in keys], dtype=np.float64)

    def _fitted(self, asked: IndexQuery, engine: CollectionEngine) -> Ranker:
        method, parameters = METHODS[asked.method], dict(asked.parameters)
        known = [name for name in method().get_params(deep=False) if name != "metric"]
        with about("parameters"):
            for name in parameters:
                if name not in known:
                    raise InputError(
                        f"method {asked.method!r} has no parameter {name!r} here; it has "
                        f"{', '.join(known) or 'none'}.",
                        name,
                    )
            return method(metric=engine.metric, **parameters).fit(engine)

    def _ranking(self, asked: IndexQuery, query: Query, engine: CollectionEngine) -> Ranking:
        ranker = self._fitted(asked, engine)
        length = n_candidates(asked.wanted) if asked.diversity else asked.wanted
        (ranking,) = ranker.rank_many([query], top=length, include_query=asked.include_query)
        if asked.where is not None and asked.include_query:
            passed = self.database.matching(engine.graph.keys_of(ranking.ids), asked.where)
            kept = [key in passed for key in engine.graph.keys_of(ranking.ids)]
            ranking = replace(ranking, solution=ranking.solution.take(np.array(kept, dtype=bool)))
        if not asked.diversity or not len(ranking):
            return ranking
        return with_diversity(engine, ranking, query, asked)


def _database(address: str | Database, table: str, columns: Mapping[str, Any]) -> Database:
    if isinstance(address, str):
        return connect(address, table, **columns)
    return address


def _by_column(
    keys: Sequence[Key], payload: Mapping[Key, Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """Return payload column by column; None where a point has no such field."""
    names = dict.fromkeys(name for key in keys for name in payload.get(key, {}))
    return {name: [payload.get(key, {}).get(name) for key in keys] for name in names}


def _require(keys: Sequence[Key], known: Mapping[Key, Any], database: Database, name: str) -> None:
    for key in keys:
        if key not in known:
            raise InputError(f"{database.name} has no point {key!r}.", name)
