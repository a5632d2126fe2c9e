"""The index: points with names that change, are kept on disk, and can be asked anything."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, Literal, Self
from weakref import finalize

from rankfold.check import InputError, check_vectors
from rankfold.databases.contract import Database
from rankfold.index.answering import Answering
from rankfold.index.asked import Asked
from rankfold.index.building import built, check_as_many, checked_input
from rankfold.index.contents import Contents
from rankfold.index.keeper import Keeper
from rankfold.index.keeping import Keeping, State, in_one_state
from rankfold.index.results import Reason, Results, as_list
from rankfold.index.tables import build_table, copy_table, open_table
from rankfold.inputs import as_columns
from rankfold.layout import Layout
from rankfold.storage import Store
from rankfold.storage.ids import distinct_ids
from rankfold.types import FloatArray, IntArray


class Index(Contents):
    """Vectors, ids, payload and neighbour lists, on disk.

    Made by `build` or `open`. A change that has returned is on disk: it is there after a crash.
    One process at a time may change an index, any number may ask it; each answer is that of
    the last change. Threads ask at the same time; a change waits for them, and they for it. A
    block of ``with`` closes it at its end.

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

    def __init__(self, keeper: Keeping, temporary: Path | None = None) -> None:
        super().__init__(keeper)
        self._answering = Answering(keeper)
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
        engine: str | Database | None = None,
        lists: Literal["memory", "database"] = "memory",
        search: Literal["auto", "exact", "hnsw"] = "auto",
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
            The name of the index, where it is kept in a database.
        metric : {"euclidean", "cosine"}
        n_neighbors : int or "auto"
            Neighbours in the graph of every method, where a query does not ask for another
            number. "auto" chooses 5 on clean manifolds and 20 in diffuse data, now and for good.
        recall : float
            Share of true neighbours that the lists of many points must hold.
        layout : {"pca", "graph", "auto", "none"}
            How `places` are found; `lay_out` says what each means. "pca" costs next to nothing.
        replace : bool
            Whether an index at ``path`` may be replaced.
        source : dict, optional
            Notes to keep, as JSON can hold them: how the vectors were made, for example the size
            of images. ``info`` returns them.
        engine : str or Database, optional
            The address of a database to keep it in, such as ``postgresql://user@host/database``
            or ``milvus://host:19530``. Vectors are kept in single precision there.
        lists : {"memory", "database"}
            Where the lists are searched for an index in a database: here, or by searches of the
            database, which takes longer, but ``X`` may be a map of a file that does not fit
            in memory.
        search : {"auto", "exact", "hnsw"}
            How the database searches: among all points, or by an index of its own, which is quicker
            among many. "auto" is "exact" up to 20,000 points.
        progress : bool
            Whether to show bars on stderr.
        """
        points = checked_input(X, ids, payload, metric, recall, layout)
        if engine is not None:
            making = (metric, n_neighbors, recall, layout, source or {}, progress)
            how: dict[str, Any] = {"lists": lists, "search": search, "replace": replace}
            return cls(build_table(engine, path, points, *making, **how))
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
            return cls(Keeper(Store.open(path, write=True)), temporary)
        except BaseException:
            if temporary is not None:
                rmtree(temporary, ignore_errors=True)
            raise

    @classmethod
    def open(
        cls, path: str | Path, write: bool = False, engine: str | Database | None = None
    ) -> Self:
        """Open an index; the arrays of a folder are mapped into memory.

        Parameters
        ----------
        path : str or Path
            The folder; or the name, in a database.
        write : bool
            Whether it is to be changed. One process at a time may open a folder so; who shares
            a database makes one change after the other.
        engine : str or Database, optional
            The address of the database that it is kept in.
        """
        keeper: Keeping
        if engine is None:
            keeper = Keeper(Store.open(path, write))
        else:
            keeper = open_table(engine, path, write)
        try:
            index = cls(keeper)
            _ = len(index)  # reads all that queries need
        except BaseException:
            keeper.close()
            raise
        return index

    def copy(
        self,
        path: str | Path,
        *,
        engine: str | Database | None = None,
        replace: bool = False,
        progress: bool = False,
    ) -> None:
        """Copy everything into another folder or database; lists are copied, not searched.

        Parameters
        ----------
        path : str or Path
            The folder; or the name, in a database.
        engine : str or Database, optional
            The address of a database.
        replace : bool
            Whether an index of that name may be replaced.
        progress : bool
            Whether to show a bar on stderr.
        """
        if engine is None:
            Store.check_place(path, replace=replace)
            Store.create(path, *self._state(), replace=replace)
        else:
            copy_table(engine, path, self._state, replace=replace, progress=progress)

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
        keeper = self._folder("save", "every change is durable there, and copy() writes a folder")
        if path is None or (Path(path).exists() and keeper.store.folder.samefile(path)):
            keeper.merge()
            return
        Store.check_place(path, replace=replace)
        keeper.move(path, replace=replace)
        if self._discard is not None:
            self._discard()

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
        with self._keeper.changing():
            checked = self._checked_vectors(vectors)
            names = self._next_ids(len(checked)) if ids is None else as_list(ids)
            check_as_many(checked, names)
            columns = as_columns(payload, len(names))
            if names:
                self._keeper.change((), checked, names, columns)
            return names

    def remove(self, ids: Any) -> None:
        """Remove points.

        Parameters
        ----------
        ids : id or list of ids
        """
        with self._keeper.changing():
            slots = self._slots(as_list(ids))
            if len(slots):
                self._keeper.change(slots)

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
        with self._keeper.changing():
            store = self._keeper.store
            slots = self._slots(names)
            columns = as_columns(payload, len(names))
            if vectors is None:
                store.change_payload(slots, columns)
                return
            checked = self._checked_vectors(vectors)
            check_as_many(checked, names)
            if names:
                everything = {**store.payload_of(slots), **columns}
                self._keeper.change(slots, checked, names, everything)

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
        keeper = self._folder("lay_out", "copy() it into a folder, draw, and copy it back")
        keeper.lay_out(layout, progress)

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
        vectors : array, shape (n_features,) or (n_vectors, n_features), optional
            Examples that are not in the index.
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
        asked = Asked(
            as_list(ids),
            vectors,
            weights,
            as_list(negative),
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

    def _ask(self, asked: Asked) -> Results:
        """Answer a query."""
        checked = asked.checked()
        return Results(*self._answering.answer(checked), checked, self)

    def _reason(self, asked: Asked, point: Any) -> Reason:
        """Explain the place of a point in the answer to a query."""
        return self._answering.reason(asked, point)

    def close(self) -> None:
        """Close it; without a folder of its own it is gone."""
        self._keeper.close()
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

    @property
    def distant(self) -> bool:
        """Whether it is kept in a database, and points are fetched when they are needed."""
        return not isinstance(self._keeper, Keeper)

    def _folder(self, what: str, instead: str) -> Keeper:
        """Return the keeper of a folder, for what only a folder can do."""
        if isinstance(self._keeper, Keeper):
            return self._keeper
        raise InputError(
            f"{what}() is for an index in a folder, but it is in a database; {instead}."
        )

    @in_one_state
    def _state(self) -> State:
        return self._keeper.state()

    def _next_ids(self, n_ids: int) -> list[Any]:
        store = self._keeper.store
        if not store.settings["numbered"]:
            raise InputError("the points of this index have ids of their own; give ids.")
        last = store.largest_number
        first = 0 if last is None else last + 1
        return list(range(first, first + n_ids))

    def _checked_vectors(self, vectors: Any) -> FloatArray:
        with self._keeper.current() as engine:
            return check_vectors(vectors, engine.n_features)

    def _slots(self, names: list[Any]) -> IntArray:
        """Return the slots of ids that are all different."""
        return self._keeper.store.slots_of(distinct_ids(names))
