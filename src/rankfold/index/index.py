"""The index: points with names that change, are kept for good, and can be asked anything."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, Literal, Self
from weakref import finalize

from rankfold.check import check_positive
from rankfold.embedding import ShapeEmbedding
from rankfold.index.building import built, checked_input
from rankfold.index.changing import Changing
from rankfold.index.keeper import Keeper
from rankfold.index.methods import adapted
from rankfold.layout import Layout
from rankfold.neighbors import Learned, live_points
from rankfold.storage import Store
from rankfold.types import FloatArray


class Index(Changing):
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

    def __init__(self, keeper: Keeper, temporary: Path | None = None) -> None:
        super().__init__(keeper)
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
            return cls(Keeper(Store.open(path, write=True)), temporary)
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
        keeper = Keeper(Store.open(path, write))
        try:
            index = cls(keeper)
            _ = len(index)  # reads all that queries need
        except BaseException:
            keeper.close()
            raise
        return index

    def copy(self, path: str | Path, *, replace: bool = False) -> None:
        """Copy everything into another folder; lists are copied, not searched.

        Parameters
        ----------
        path : str or Path
        replace : bool
            Whether an index that is there may be replaced.
        """
        Store.check_place(path, replace=replace)
        Store.create(path, *self._keeper.state(), replace=replace)

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
        keeper = self._keeper
        if path is None or (Path(path).exists() and keeper.store.folder.samefile(path)):
            keeper.merge()
            return
        Store.check_place(path, replace=replace)
        keeper.move(path, replace=replace)
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
        self._keeper.lay_out(layout, progress)

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
        return self._keeper.learn(float(smoothness), progress)

    def unlearn(self) -> None:
        """Forget the learned graph; queries start from the plain one again."""
        self._keeper.unlearn()

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
        keeper = self._keeper
        with keeper.current() as engine:
            k = min(keeper.info()["n_neighbors"], max(1, engine.n_alive - 2))
            own = {"n_neighbors": k, "metric": engine.metric, **parameters}
            chosen = adapted("ran", own, engine, k)
            embedding = ShapeEmbedding(n_components, progress=progress, **chosen).fit(engine)
            live = live_points(engine)
            return keeper.store.ids_of(live), embedding.vectors()[live]

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
