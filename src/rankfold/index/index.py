"""The index: points with ids that come and go, kept on disk, and ranked by shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import finalize

import numpy as np

from rankfold.check import (
    as_list,
    check_as_many,
    check_choice,
    check_count,
    check_positive,
    check_rows,
    check_vectors,
)
from rankfold.embedding import ShapeEmbedding
from rankfold.errors import InputError, StorageError
from rankfold.index.backend import FolderBackend, built, checked_input
from rankfold.index.query import IndexQuery, QueryExecutor, Reason, Results
from rankfold.index.ranker_cache import adapted
from rankfold.inputs import as_columns
from rankfold.layout import Layout
from rankfold.neighbors import Learned, live_points
from rankfold.rankers import RANKERS, Ranker
from rankfold.storage import Store
from rankfold.storage.columns import distinct_ids
from rankfold.types import FloatArray, IntArray

if TYPE_CHECKING:
    from rankfold.evaluation import Evaluation


class Index:
    """Vectors, ids, payload and neighbour lists in a folder.

    Made by `build` or `open`. A change that has returned is on disk: it is there after a crash.
    One process at a time may change it, any number may ask it. Each answer is that of the last
    change. Threads ask at the same time. A block of ``with`` closes it at its end.

    Examples
    --------
    >>> import numpy as np
    >>> from rankfold import Index, datasets
    >>> moons = datasets.load("moons")
    >>> index = Index.build(moons.X, payload={"moon": moons.labels})
    >>> results = index.query(0, top=5, where="moon = 1")
    >>> results.payload["moon"]
    [1, 1, 1, 1, 1]
    >>> index.add([[0.0, 1.0]], ids=["new"], payload={"moon": [0]})
    ['new']
    >>> index.remove("new")
    >>> len(index)
    400
    """

    writable, outsiders_filter = True, True

    def __init__(self, backend: FolderBackend, temporary: Path | None = None) -> None:
        self._backend, self._executor = backend, QueryExecutor(backend)
        self._discard = None if temporary is None else finalize(self, rmtree, temporary, True)

    @classmethod
    def build(
        cls,
        X: Any,
        ids: Any = None,
        payload: Any = None,
        *,
        path: str | Path | None = None,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        n_neighbors: int | Literal["auto"] = "auto",
        recall: float = 0.99,
        layout: Layout = "pca",
        replace: bool = False,
        source: dict[str, Any] | None = None,
        progress: bool = False,
    ) -> Self:
        """Build an index.

        Parameters
        ----------
        X : array, shape (n_points, n_features)
        ids : sequence of str and int, optional
            All different; row numbers by default.
        payload : dict, DataFrame, Arrow table or path of a Parquet or csv file, optional
            Columns of whole numbers, numbers, texts, truth values or None.
        path : str or Path, optional
            The folder to keep it in; without, it is kept in a temporary one until it is saved.
        metric : {"euclidean", "cosine"}
        n_neighbors : int or "auto"
            Neighbours in the graph of every method, where a query does not ask for another
            number. "auto" chooses 10 on clean manifolds and 20 in diffuse data, now and for good.
        recall : float
            Share of true neighbours that the lists of many points must hold.
        layout : {"pca", "graph", "auto", "none"}
            How `places` are found; `lay_out` says what each means. "pca" costs next to nothing.
        replace : bool
            Whether an index at ``path`` may be replaced.
        source : dict, optional
            Notes to keep, as JSON can hold them: how the vectors were made, for example the size
            of images. ``info`` returns them.
        progress : bool
            Whether to show bars on stderr.
        """
        points = checked_input(X, ids, payload, metric, recall, layout)
        if path is not None:
            Store.check_place(path, replace=replace)
        arrays, settings = built(points, metric, n_neighbors, recall, layout, progress)
        settings["source"] = source or {}
        temporary = None
        if path is None:
            temporary = Path(mkdtemp(prefix="rankfold-"))
            path = temporary / "index"
        names = range(len(points)) if points.ids is None else points.ids
        try:
            Store.create(path, arrays, settings, names, points.payload, replace=replace)
            return cls(FolderBackend(Store.open(path, write=True)), temporary)
        except BaseException:
            if temporary is not None:
                rmtree(temporary, ignore_errors=True)
            raise

    @classmethod
    def open(cls, path: str | Path, write: bool = False) -> Self:
        """Open an index; its arrays are mapped into memory.

        Parameters
        ----------
        path : str or Path
            The folder.
        write : bool
            Whether it is to be changed. One process at a time may open a folder so.
        """
        backend = FolderBackend(Store.open(path, write))
        try:
            backend.follow()  # reads all that queries need
            index = cls(backend)
        except BaseException:
            backend.close()
            raise
        return index

    def query(
        self,
        ids: Any = None,
        vectors: Any = None,
        weights: Any = None,
        *,
        negative: Any = None,
        negative_vectors: Any = None,
        where: str | None = None,
        top: int = 10,
        offset: int = 0,
        diversity: float = 0.0,
        method: str = "ran",
        include_query: bool = False,
        **parameters: Any,
    ) -> Results:
        """Rank the points of the index.

        Parameters
        ----------
        ids : id or list of ids, optional
            Points that serve as examples.
        vectors : array, shape (n_features,), or list of such arrays, optional
            Examples that are not in the index. `query_batch` takes an array of many queries.
        weights : sequence of float, optional
            How much each example counts, ids first, then vectors.
        negative : id or list of ids, optional
            Examples of what is not looked for.
        negative_vectors : array, optional
            Such examples that are not in the index.
        where : str, optional
            A condition such as ``price < 10 and not sold``. Only points that meet it are
            returned; the graph stays whole.
        top, offset : int
            How many results, and how many to skip before.
        diversity : float
            From 0, as ranked, to 1, as different from each other as can be.
        method : str
            A name of RANKERS.
        include_query : bool
            Whether the query's own points may be among the results.
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
        return Results(*self._executor.answer(asked), asked, self)

    def query_batch(
        self,
        ids: Any = None,
        vectors: Any = None,
        *,
        where: str | None = None,
        top: int = 10,
        offset: int = 0,
        diversity: float = 0.0,
        method: str = "ran",
        include_query: bool = False,
        n_jobs: int = 1,
        progress: bool = False,
        **parameters: Any,
    ) -> list[Results]:
        """Rank the points of the index for many queries of one example each.

        All of them see the same state. The answers are those of `query`.

        Parameters
        ----------
        ids : id or list of ids, optional
            One query for each.
        vectors : array, shape (n_queries, n_features), optional
            One query for each row; they follow those of the ids.
        where, top, offset, diversity, method, include_query, **parameters
            As for `query`, for every query.
        n_jobs : int
            Threads that share the queries.
        progress : bool
            Whether to show a bar on stderr.

        Examples
        --------
        >>> from rankfold import Index, datasets
        >>> X = datasets.load("moons").X
        >>> with Index.build(X[5:]) as index:
        ...     batch = index.query_batch([7, 8], vectors=X[:5], top=3)
        >>> [len(results) for results in batch]
        [3, 3, 3, 3, 3, 3, 3]
        """
        check_count(n_jobs, "n_jobs")
        given: list[tuple[Any, Any]] = [(one, None) for one in as_list(ids)]
        given += [(None, one) for one in (() if vectors is None else check_rows(vectors))]
        settings = (where, top, offset, diversity, method, include_query, parameters)
        asked = [IndexQuery(i, v, None, None, None, *settings) for i, v in given]
        if not asked:
            return []
        answers = self._executor.answer_many(asked, n_jobs, progress)
        return [Results(*answer, one, self) for one, answer in zip(asked, answers, strict=True)]

    def search(
        self, X: Any, k: int = 10, *, n_jobs: int = 1, progress: bool = False, **parameters: Any
    ) -> tuple[list[list[Any]], FloatArray]:
        """Rank the points of the index for many vectors, one query each.

        Parameters
        ----------
        X : array, shape (n_queries, n_features)
        k : int
            Length of each answer, at most.
        n_jobs, progress, **parameters
            As for `query_batch`.

        Returns
        -------
        ids : list of list
            Best first.
        scores : array of float, shape (n_queries, k)
            Filled up with nan where an answer is shorter.
        """
        check_count(k, "k")
        found = self.query_batch(vectors=X, top=k, n_jobs=n_jobs, progress=progress, **parameters)
        scores = np.full((len(found), max(map(len, found), default=0)), np.nan)
        for row, results in enumerate(found):
            scores[row, : len(results)] = results.scores
        return [results.ids for results in found], scores

    def evaluate(
        self,
        label: str | None = None,
        *,
        vectors: Any = None,
        vector_ids: Sequence[Any] | None = None,
        qrels: Mapping[Any, Mapping[Any, int]] | None = None,
        methods: Sequence[str] = ("distance", "ran"),
        metrics: str | Sequence[str] | None = None,
        queries: Any = None,
        base: str | None = None,
        name: str | None = None,
        progress: bool = False,
        seed: int = 0,
    ) -> Evaluation:
        """Measure methods side by side on the graph that is there, with harm and intervals.

        Either points ask for those that share their label, or vectors for what was judged
        relevant to them. Nothing is searched or learned anew: methods rank as in `query`. The
        index does not change meanwhile.

        Parameters
        ----------
        label : str, optional
            A column of the payload; points that share its value are relevant to each other. Where
            it is missing, points are neither queries nor relevant.
        vectors : array, shape (n_queries, n_features), optional
            Questions that are not in the index.
        vector_ids : sequence, optional
            What ``qrels`` calls them; row numbers by default.
        qrels : dict of dict, optional
            ``qrels[query][id]`` is a grade, as `read_qrels` gives it; above zero is relevant. Ids
            are compared as text.
        methods : sequence of str
            Names of RANKERS.
        metrics, base, progress, seed
            As for `rankfold.evaluate`.
        queries : int, sequence of ids or "all", optional
            What to ask, or how much of it; by default everything, and 500 queries where there are
            more than 5,000 points.
        name : str, optional
            Stands for the index in the table; the name of its folder by default.

        Examples
        --------
        >>> from rankfold import Index, datasets
        >>> moons = datasets.load("moons")
        >>> index = Index.build(moons.X, payload={"moon": moons.labels}, n_neighbors=10)
        >>> found = index.evaluate("moon", metrics="precision@100", queries=50)
        >>> for row in found.table():
        ...     print(f"{row.method}: {row.mean:.2f}")
        distance: 0.81
        ran: 1.00
        """
        if (label is None) == (qrels is None) or (vectors is None) != (qrels is None):
            raise InputError(
                "give either label, the column of the payload that says what belongs together, or "
                "vectors and qrels, questions and judgements of what answers them."
            )
        from rankfold.evaluation.run import run_task
        from rankfold.index.evaluation import by_judgements, by_label

        check_count(seed, "seed", least=0)
        names = [methods] if isinstance(methods, str) else list(methods)
        for method in names:
            check_choice(method, "method", tuple(RANKERS))
        with self._backend.current() as engine:
            if label is not None:
                task = by_label(self._backend, engine, label, metrics, queries, seed)
            else:
                judged = vectors, vector_ids, qrels or {}
                task = by_judgements(self._backend, engine, *judged, metrics, queries, seed)
            task = task if name is None else replace(task, name=name)
            fitted: dict[str | None, Ranker] = {}
            for one in (None, *names):
                fitted[one] = self._executor.fitted(one or "distance", {}, engine)
            return run_task(fitted, task, base=base, progress=progress, seed=seed)

    def add(self, vectors: Any, ids: Any = None, payload: Any = None) -> list[Any]:
        """Add points and return their ids.

        Parameters
        ----------
        vectors : array, shape (n_points, n_features)
        ids : sequence of str and int, optional
            May be left out where the index was built without; then numbers go on from the largest.
        payload : as for `build`, optional
            Columns that the index has; what is left out is missing.
        """
        with self._backend.changing() as engine:
            checked = check_vectors(vectors, engine.n_features)
            names = self._next_ids(len(checked)) if ids is None else as_list(ids)
            check_as_many(checked, names)
            columns = as_columns(payload, len(names))
            if names:
                self._backend.change((), checked, names, columns)
            return names

    def upsert(self, vectors: Any, ids: Any, payload: Any = None) -> None:
        """Add points, in the place of those that have the same ids; in one step.

        Parameters
        ----------
        vectors : array, shape (n_points, n_features)
        ids : id or list of ids
        payload : as for `build`, optional
            Columns that the index has; what is left out is missing. `update` keeps what is there.
        """
        names = as_list(ids)
        with self._backend.changing() as engine:
            checked = check_vectors(vectors, engine.n_features)
            check_as_many(checked, names)
            columns = as_columns(payload, len(names))
            store = self._backend.store
            known = store.holds(distinct_ids(names))
            there = [name for name, held in zip(names, known, strict=True) if held]
            if names:
                self._backend.change(store.slots_of(there), checked, names, columns)

    def remove(self, ids: Any) -> None:
        """Remove points.

        Parameters
        ----------
        ids : id or list of ids
        """
        with self._backend.changing():
            slots = self._slots(as_list(ids))
            if len(slots):
                self._backend.change(slots)

    def update(self, ids: Any, vectors: Any = None, payload: Any = None) -> None:
        """Give points other vectors, another payload, or both.

        Points with other vectors are then the last to have arrived; payload alone is changed
        where it is.

        Parameters
        ----------
        ids : id or list of ids
        vectors : array, optional
            Without, they stay where they are.
        payload : as for `build`, optional
            Columns to change; the others stay as they are.
        """
        names = as_list(ids)
        with self._backend.changing() as engine:
            store = self._backend.store
            slots = self._slots(names)
            columns = as_columns(payload, len(names))
            if vectors is None:
                store.change_payload(slots, columns)
                return
            checked = check_vectors(vectors, engine.n_features)
            check_as_many(checked, names)
            if names:
                everything = {**store.payload_of(slots), **columns}
                self._backend.change(slots, checked, names, everything)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let everything that this thread reads inside belong to one state.

        Changes wait until the block ends; the thread itself can change nothing inside.

        Examples
        --------
        >>> from rankfold import Index
        >>> with Index.build([[0.0], [1.0]], payload={"name": ["a", "b"]}) as index:
        ...     with index.reading():
        ...         index.payload(index.ids)
        {'name': ['a', 'b']}
        """
        with self._backend.current():
            yield

    @property
    def columns(self) -> dict[str, str]:
        """Names of the payload's columns, and of what kind each is."""
        with self._backend.current():
            return self._backend.store.columns

    @property
    def layout(self) -> str | None:
        """How the map was drawn: "graph", "pca" or "plane"; None where none is kept."""
        with self._backend.current():
            return self._backend.layout

    @property
    def ids(self) -> list[Any]:
        """All ids, in the order of arrival."""
        with self._backend.current() as engine:
            return self._backend.store.ids_of(live_points(engine))

    def info(self) -> dict[str, Any]:
        """Return what there is to know about it."""
        return self._backend.info()

    def places(self, most: int | None = None) -> tuple[list[Any], FloatArray]:
        """Return ids, in the order of arrival, and a place in the plane for each: x and y.

        When the map was drawn, its longer side spanned -1 to 1. A point keeps its place for as
        long as its vector stays. Points that came later lie among their neighbours, or where
        the projection puts them. An index without a map is projected when it is asked.

        Parameters
        ----------
        most : int, optional
            How many points at most, spread evenly over the index; all by default.
        """
        with self._backend.current() as engine:
            slots = live_points(engine)
            if most is not None and len(slots) > most:
                slots = slots[np.linspace(0, len(slots) - 1, most).astype(int)]
            return self._backend.store.ids_of(slots), self._backend.places(slots)

    def vectors(self, ids: Any) -> FloatArray:
        """Return the vectors of points; scaled to length one for cosine."""
        with self._backend.current() as engine:
            return engine.vectors(self._backend.store.slots_of(as_list(ids)))

    def payload(self, ids: Any, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Return the payload of points, column by column; all columns if none are named."""
        with self._backend.current():
            store = self._backend.store
            return store.payload_of(store.slots_of(as_list(ids)), columns)

    def get(self, ids: Any, *, vectors: bool = False) -> list[dict[str, Any]]:
        """Return points: ``id``, ``payload`` and, where asked for, ``vector`` of each.

        Parameters
        ----------
        ids : id or list of ids
        vectors : bool
            Whether to return vectors; of length one for cosine.

        Examples
        --------
        >>> from rankfold import Index
        >>> with Index.build([[0.0], [1.0]], payload={"name": ["a", "b"]}) as index:
        ...     index.get(1)
        [{'id': 1, 'payload': {'name': 'b'}}]
        """
        with self._backend.current() as engine:
            slots = self._backend.store.slots_of(as_list(ids))
            names, payload = self._backend.store.points_of(slots)
            found = [
                {"id": name, "payload": {column: payload[column][row] for column in payload}}
                for row, name in enumerate(names)
            ]
            if vectors:
                for point, vector in zip(found, engine.vectors(slots), strict=True):
                    point["vector"] = vector
            return found

    def holds(self, ids: Any) -> list[bool]:
        """Tell of each id whether a point has it; one question, however many there are."""
        with self._backend.current():
            return self._backend.store.holds(as_list(ids))

    def copy(self, path: str | Path, *, replace: bool = False) -> None:
        """Copy everything into another folder; lists are copied, not searched.

        Parameters
        ----------
        path : str or Path
        replace : bool
            Whether an index that is there may be replaced.
        """
        Store.check_place(path, replace=replace)
        Store.create(path, *self._backend.state(), replace=replace)

    def save(self, path: str | Path | None = None, *, replace: bool = False) -> None:
        """Write everything into a folder, where the index is kept from then on.

        Parameters
        ----------
        path : str or Path, optional
            Another folder; the one it was in stays as it is, a temporary one is deleted. Without,
            changes that wait to be merged are merged where they are, which makes opening faster.
        replace : bool
            Whether an index at ``path`` may be replaced.
        """
        backend = self._backend
        if path is None or (Path(path).exists() and backend.store.folder.samefile(path)):
            backend.merge()
            return
        Store.check_place(path, replace=replace)
        backend.move(path, replace=replace)
        if self._discard is not None:
            self._discard()

    def lay_out(self, layout: Layout = "auto", *, progress: bool = False) -> None:
        """Draw the map anew: give all points other places.

        Changes that wait are merged with it, in one step: a map is there completely or not at all.

        Parameters
        ----------
        layout : {"auto", "graph", "pca", "none"}
            "pca" looks along the two directions in which the points spread most. "graph" lets
            neighbours in RAN's graph come to lie together; it needs ``rankfold[map]``, and takes
            seconds for ten thousand points. "auto" is "graph" for 100 to 200,000 points
            where that is installed, else "pca". Points of one or two features lie where
            they lie ("plane"). "none" forgets the map.
        progress : bool
            Whether to show a bar on stderr.
        """
        self._backend.lay_out(layout, progress)

    def learn(self, *, smoothness: float = 30.0, progress: bool = False) -> Learned:
        """Learn one graph for all queries of RAN, which they start from then on.

        Where it would part or join too much the plain graph is kept. Changes that wait
        are merged with it, in one step: it is there completely or not at all. When it was
        stopped, and nothing has changed, the next call goes on after the last finished round.

        Parameters
        ----------
        smoothness : float
            That of the queries that will be asked: how far they reach at it decides what is kept.
            Queries of another smoothness start from the same graph, which was not judged for them.
        progress : bool
            Whether to show bars on stderr.

        Returns
        -------
        learned : Learned
            ``n_rounds`` made the graph, zero where the plain one is kept; ``reach`` is how many
            points queries reach on it, relative to the plain one; ``rounds`` are all that
            were tried.

        Examples
        --------
        >>> from rankfold import Index, datasets
        >>> index = Index.build(datasets.load("rings").X)
        >>> learned = index.learn()
        >>> index.info()["learned"]["rounds"] == learned.n_rounds
        True
        >>> plain = index.query(0, adapt="query")
        >>> index.unlearn()
        """
        check_positive(smoothness, "smoothness", most=1e9)
        return self._backend.learn(float(smoothness), progress)

    def unlearn(self) -> None:
        """Forget the learned graph; queries start from the plain one again."""
        self._backend.unlearn()

    def embed(
        self, n_components: int = 256, *, progress: bool = False, **parameters: Any
    ) -> tuple[list[Any], FloatArray]:
        """Return ids, in the order of arrival, and a vector of the graph's shape for each.

        The dot product of two of them is about RAN's score by shape, so that any vector database
        can rank by it; see `ShapeEmbedding`. The graph is that of the index, the learned one if
        there is one.

        Parameters
        ----------
        n_components : int
            Length of the vectors, at most.
        progress : bool
            Whether to show a bar on stderr.
        **parameters
            Of `ShapeEmbedding`, such as ``smoothness``.

        Examples
        --------
        >>> from rankfold import Index, datasets
        >>> with Index.build(datasets.load("moons").X) as index:
        ...     ids, vectors = index.embed(32)
        >>> len(ids), vectors.shape
        (400, (400, 32))
        """
        backend = self._backend
        with backend.current() as engine:
            k = min(backend.n_neighbors, max(1, engine.n_alive - 2))
            own = {"n_neighbors": k, "metric": engine.metric, **parameters}
            chosen = adapted("ran", own, engine, k)
            embedding = ShapeEmbedding(n_components, progress=progress, **chosen).fit(engine)
            live = live_points(engine)
            return backend.store.ids_of(live), embedding.vectors()[live]

    def close(self) -> None:
        """Close it; without a folder of its own it is gone."""
        self._backend.close()
        if self._discard is not None:
            self._discard()

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
        try:
            facts = self.info()
        except StorageError:
            return "Index(closed)"
        return (
            f"Index({facts['path']!r}, {facts['points']} points x {facts['features']}, "
            f"{facts['metric']}, {facts['n_neighbors']} neighbours)"
        )

    def __contains__(self, point: Any) -> bool:
        return self.holds([point])[0]

    def __len__(self) -> int:
        with self._backend.current() as engine:
            return engine.n_alive

    def _ask(self, asked: IndexQuery) -> Results:
        """Answer a query."""
        return Results(*self._executor.answer(asked), asked, self)

    def _reason(self, asked: IndexQuery, point: Any) -> Reason:
        """Explain the place of a point in the answer to a query."""
        return self._executor.reason(asked, point)

    def _next_ids(self, n_ids: int) -> list[Any]:
        store = self._backend.store
        if not store.settings["numbered"]:
            raise InputError("the points of this index have ids of their own; give ids.")
        last = store.largest_number
        first = 0 if last is None else last + 1
        return list(range(first, first + n_ids))

    def _slots(self, names: list[Any]) -> IntArray:
        """Return the slots of ids that are all different."""
        return self._backend.store.slots_of(distinct_ids(names))
