"""The index: points with ids that come and go, kept on disk, and ranked by shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    about,
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
from rankfold.index.backend import FolderBackend
from rankfold.index.build import TextVectors, built, checked_input, required, text_input
from rankfold.index.executor import QueryExecutor, adapted
from rankfold.index.query import IndexQuery, Matches, Reason, Results
from rankfold.inputs import as_columns
from rankfold.layout import Layout
from rankfold.neighbors import Learned, live_points
from rankfold.rankers import RANKERS, Ranker
from rankfold.storage import Store
from rankfold.storage.columns import distinct_ids
from rankfold.types import DEFAULT_RECALL, FloatArray, IntArray

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

    writable, outsiders_filter, has_words, waits_for_network = True, True, True, False

    def __init__(
        self, backend: FolderBackend, temporary: Path | None = None, embedder: Any = None
    ) -> None:
        if not isinstance(backend, FolderBackend):
            raise InputError("an index is made by Index.build(X), or Index.open(path).")
        self._backend, self._executor = backend, QueryExecutor(backend)
        self._texts = TextVectors(lambda: backend.store.settings, embedder)
        self._discard = None if temporary is None else finalize(self, rmtree, temporary, True)

    @classmethod
    def build(
        cls,
        X: Any = None,
        ids: Any = None,
        payload: Any = None,
        *,
        texts: Any = None,
        embedder: str | Callable[[list[str]], Any] | None = None,
        path: str | Path | None = None,
        metric: Literal["euclidean", "cosine"] | None = None,
        n_neighbors: int | Literal["auto"] = "auto",
        recall: float = DEFAULT_RECALL,
        layout: Layout = "pca",
        replace: bool = False,
        source: dict[str, Any] | None = None,
        progress: bool = False,
    ) -> Self:
        """Build an index.

        Parameters
        ----------
        X : array, shape (n_points, n_features), optional
            May be left out where there are texts.
        ids : sequence of str and int, optional
            All different; row numbers by default.
        payload : dict, DataFrame, Arrow table or path of a Parquet or csv file, optional
            Columns of whole numbers, numbers, texts, truth values or None.
        texts : list of str, or str, optional
            A text for each point, of which the embedder makes its vector, kept in the column
            ``text``; or the column of the payload that holds them.
        embedder : str or callable, optional
            "wordllama", "sentence-transformers/NAME", "openai:NAME", or what takes a list of
            texts and returns an array. Then queries, too, may be texts. Its name is kept with
            the index; a callable is given again when the index is opened.
        path : str or Path, optional
            The folder to keep it in; without, it is kept in a temporary one until it is saved.
        metric : {"euclidean", "cosine"}, optional
            "cosine" where there is an embedder, else "euclidean".
        n_neighbors : int or "auto"
            Neighbours in the graph of every method, where a query does not ask for another
            number. "auto" chooses 10 on clean manifolds and 20 in diffuse data, now and for good.
        recall : float
            Share of true neighbours that the lists of many points must hold.
        layout : {"pca", "shape", "graph", "auto", "none"}
            How `places` are found; `lay_out` says what each means. "pca" costs next to nothing.
        replace : bool
            Whether an index at ``path`` may be replaced.
        source : dict, optional
            Notes to keep, as JSON can hold them: how the vectors were made, for example the size
            of images. ``info`` returns them.
        progress : bool
            Whether to show bars on stderr.
        """
        if path is not None:
            Store.check_place(path, replace=replace)
        X, payload, kept = text_input(X, ids, payload, texts, embedder, progress)
        chosen = metric or ("euclidean" if kept is None else "cosine")
        points = checked_input(X, ids, payload, chosen, recall, layout)
        arrays, settings = built(points, chosen, n_neighbors, recall, layout, progress)
        settings["source"] = source or {}
        if kept is not None:
            settings["embedder"] = kept._asdict()
        temporary = None
        if path is None:
            temporary = Path(mkdtemp(prefix="rankfold-"))
            path = temporary / "index"
        names = range(len(points)) if points.ids is None else points.ids
        try:
            Store.create(path, arrays, settings, names, points.payload, replace=replace)
            return cls(FolderBackend(Store.open(path, write=True)), temporary, embedder)
        except BaseException:
            if temporary is not None:
                rmtree(temporary, ignore_errors=True)
            raise

    @classmethod
    def open(
        cls,
        path: str | Path,
        write: bool = False,
        *,
        embedder: str | Callable[[list[str]], Any] | None = None,
    ) -> Self:
        """Open an index; its arrays are mapped into memory.

        Parameters
        ----------
        path : str or Path
            The folder.
        write : bool
            Whether it is to be changed. One process at a time may open a folder so.
        embedder : str or callable, optional
            What makes vectors of texts, as for `build`; by default what the index names.
        """
        backend = FolderBackend(Store.open(path, write))
        try:
            backend.follow()  # reads all that queries need
            index = cls(backend, embedder=embedder)
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
        text: str | Sequence[str] | None = None,
        words: str | None = None,
        negative: Any = None,
        negative_vectors: Any = None,
        where: str | None = None,
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
        """Rank the points of the index.

        Parameters
        ----------
        ids : id or list of ids, optional
            Points that serve as examples.
        vectors : array, shape (n_features,), or list of such arrays, optional
            Examples that are not in the index. `query_batch` takes an array of many queries.
        weights : sequence of float, optional
            How much each example counts, ids first, then vectors, then texts.
        text : str or list of str, optional
            Examples in words, of which the embedder of the index makes vectors.
        words : str, optional
            Words to look for in the payload, as `find` does. What has them, what is near, and
            what the method ranks first are then three lists, fused by reciprocal ranks;
            ``results.lists`` says what each of them added to each score.
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
            From 0, as ranked, to 1, as different from each other as can be: maximal marginal
            relevance (MMR).
        method : str
            A name of RANKERS.
        include_query : bool
            Whether the query's own points may be among the results.
        min_score : float, optional
            The least score of a result. ``results.threshold`` says of which results that is
            proven, and whether it is proven that no other point scores as much.
        group_by : str, optional
            A column of the payload; no more than ``per_group`` results have one value of it.
            Points without a value are left out.
        per_group : int
            How many.
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

    def query_batch(
        self,
        ids: Any = None,
        vectors: Any = None,
        *,
        texts: Sequence[str] | None = None,
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
        texts : list of str, optional
            One query for each; they follow those of the vectors.
        where, top, offset, diversity, method, include_query, **parameters
            As for `query`, for every query.
        n_jobs : int
            Threads that share the queries; with ``where`` or ``diversity`` there is one.
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
        settings = IndexQuery(
            where=where,
            top=top,
            offset=offset,
            diversity=diversity,
            method=method,
            include_query=include_query,
            parameters=parameters,
        )
        rows = () if vectors is None else check_rows(vectors)
        asked = settings.of_each(as_list(ids))
        asked += [replace(settings, vectors=one) for one in rows]
        if texts is not None:
            made = self._texts.of_query(texts)
            pairs = zip(as_list(texts), made, strict=True)
            asked += [replace(settings, text=one, text_vectors=row[None, :]) for one, row in pairs]
        if not asked:
            return []
        return self._executor.answer_many(asked, self, n_jobs, progress)

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
        relevant to them. Nothing is searched or learned again: methods rank as in `query`. The
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

    def find(
        self,
        words: str,
        columns: Sequence[str] | None = None,
        *,
        where: str | None = None,
        top: int = 10,
        offset: int = 0,
    ) -> Matches:
        """Find points by words in the texts of their payload.

        Points that hold any of the words come best first by BM25: rare words count more, and
        more in short texts. Case and accents make no difference.

        Parameters
        ----------
        words : str
            Words, "phrases in quotes", and beginnings of words such as ``che*``.
        columns : list of str, optional
            Text columns to look in; all by default.
        where : str, optional
            A condition, as for `query`.
        top, offset : int
            How many results, and how many to skip before.

        Examples
        --------
        >>> from rankfold import Index
        >>> notes = ["the chess club", "the café is open", "chess openings"]
        >>> with Index.build([[0.0], [1.0], [2.0]], payload={"note": notes}) as index:
        ...     index.find("chess").ids, index.find("Cafe").ids, index.find("open*").ids
        ([2, 0], [1], [2, 1])
        """
        check_count(top, "top")
        check_count(offset, "offset", least=0)
        with self._backend.current():
            store = self._backend.store
            slots, scores = store.find(words, columns, where, offset + top)
            ids, payload = store.points_of(slots[offset:])
            return Matches(ids, payload, scores[offset:], offset)

    def add(
        self,
        vectors: Any = None,
        ids: Any = None,
        payload: Any = None,
        *,
        texts: Sequence[str] | None = None,
    ) -> list[Any]:
        """Add points and return their ids.

        Parameters
        ----------
        vectors : array, shape (n_points, n_features), optional
            May be left out where there are texts.
        ids : sequence of str and int, optional
            May be left out where the index was built without; then numbers go on from the largest.
        payload : as for `build`, optional
            Columns that the index has; what is left out is missing.
        texts : list of str, optional
            A text for each point, of which the embedder of the index makes its vector. They may
            also be in the payload, in the column that the index keeps them in.
        """
        if vectors is None or texts is not None:
            found, payload = self._texts.of_points(vectors, payload, texts, None)
            vectors = required(found)
        with self._backend.changing() as engine:
            checked = check_vectors(vectors, engine.n_features)
            names = self._next_ids(len(checked)) if ids is None else as_list(ids)
            check_as_many(checked, names)
            columns = as_columns(payload, len(names))
            if names:
                self._backend.change((), checked, names, columns)
            return names

    def upsert(
        self,
        vectors: Any = None,
        ids: Any = None,
        payload: Any = None,
        *,
        texts: Sequence[str] | None = None,
    ) -> None:
        """Add points, in the place of those that have the same ids; in one step.

        Parameters
        ----------
        vectors : array, shape (n_points, n_features), optional
            May be left out where there are texts.
        ids : id or list of ids
        payload : as for `build`, optional
            Columns that the index has; what is left out is missing. `update` keeps what is there.
        texts : list of str, optional
            As for `add`.
        """
        names = as_list(ids)
        vectors, payload = self._texts.of_points(vectors, payload, texts, len(names))
        with self._backend.changing() as engine:
            checked = check_vectors(required(vectors), engine.n_features)
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

    def update(
        self,
        ids: Any,
        vectors: Any = None,
        payload: Any = None,
        *,
        texts: Sequence[str] | None = None,
    ) -> None:
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
        texts : list of str, optional
            Other texts, of which the embedder makes other vectors; also where they are in the
            payload, in the column that the index keeps them in.
        """
        names = as_list(ids)
        vectors, payload = self._texts.of_points(vectors, payload, texts, len(names))
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

    def add_columns(self, payload: Any, ids: Any = None) -> None:
        """Add columns to the payload of an index that was built without them.

        Parameters
        ----------
        payload : as for `build`
            Columns of names that the index does not have.
        ids : id or list of ids, optional
            The points that the values are for; all others have none. Without, there is a value
            for every point, in the order in which they arrived.

        Examples
        --------
        >>> from rankfold import Index, datasets
        >>> with Index.build(datasets.load("moons").X) as index:
        ...     index.add_columns({"price": [3, 5]}, ids=[0, 1])
        ...     index.query(0, top=1, where="price > 4").ids
        [1]
        """
        with self._backend.changing() as engine:
            slots = live_points(engine) if ids is None else self._slots(as_list(ids))
            self._backend.store.add_columns(slots, as_columns(payload, len(slots)))

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
        """How the map was drawn: "graph", "shape", "pca" or "plane"; None where none is kept."""
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

    def text_vectors(self, texts: Any) -> FloatArray:
        """Return the vectors that the embedder of the index makes of texts."""
        with about("texts"):
            return self._texts.embed(as_list(texts))

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

    def count(self, where: str | None = None) -> int:
        """Return how many points there are, or how many meet a condition.

        Examples
        --------
        >>> from rankfold import Index
        >>> with Index.build([[0.0], [1.0], [2.0]], payload={"price": [3, 8, None]}) as index:
        ...     index.count(), index.count("price < 5")
        (3, 1)
        """
        with self._backend.current(), about("where"):
            return self._backend.store.count(where)

    def scroll(
        self,
        where: str | None = None,
        *,
        top: int = 100,
        after: Any = None,
        vectors: bool = False,
    ) -> list[dict[str, Any]]:
        """Return points, some at a time, in the order of their ids: numbers, then texts.

        Whatever is added, removed or merged between two calls: a point that is there all the
        time comes exactly once.

        Parameters
        ----------
        where : str, optional
            A condition, as for `query`.
        top : int
            How many points.
        after : id, optional
            The last id that was seen, of a point that need not be there any more.
        vectors : bool
            As for `get`.

        Examples
        --------
        >>> from rankfold import Index
        >>> with Index.build([[0.0], [1.0], [2.0]], ids=["c", "a", "b"]) as index:
        ...     page = index.scroll(top=2)
        ...     rest = index.scroll(top=2, after=page[-1]["id"])
        >>> [point["id"] for point in page], [point["id"] for point in rest]
        (['a', 'b'], ['c'])
        """
        check_count(top, "top")
        with self._backend.current(), about("where"):
            return self.get(self._backend.store.ids_after(after, where, top), vectors=vectors)

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
        """Draw the map again: give all points other places.

        Changes that wait are merged with it, in one step: a map is there completely or not at all.

        Parameters
        ----------
        layout : {"auto", "graph", "shape", "pca", "none"}
            "pca" looks along the two directions in which the points spread most, "shape" along
            those in which their vectors by `embed` do. "graph" lets
            neighbours in RAN's graph come to lie together; it needs the extra ``map``, and takes
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
        """Answer a query; its texts are embedded before anything is locked."""
        if asked.text and asked.text_vectors is None:
            asked = replace(asked, text_vectors=self._texts.of_query(asked.text))
        return self._executor.answer(asked, self)

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
