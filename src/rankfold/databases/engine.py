"""A table as an engine: who is near whom, asked of a database."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from rankfold.check import check_matrix, check_single_precision
from rankfold.databases.cache import RowCache
from rankfold.databases.contract import Session
from rankfold.databases.searching import nearest
from rankfold.databases.sessions import Sessions
from rankfold.neighbors import Rows, positive_shares
from rankfold.neighbors.exact import as_held
from rankfold.neighbors.measure import sq_distances_between
from rankfold.storage.conditions import translate
from rankfold.types import NOBODY, BoolArray, FloatArray, IntArray, Neighbors, Query

TOGETHER = 16
"""Examples that are measured in one pass over all points."""


def held(vectors: Any, settings: dict[str, Any], name: str = "vectors") -> FloatArray:
    """Check vectors and bring them into the form in which a table stores them."""
    checked = check_matrix(vectors, name, settings["n_features"])
    if settings["metric"] == "euclidean":
        check_single_precision(checked, name)
    return as_held(checked, settings["metric"], name).astype(np.float32)


class TableEngine:
    """The engine of a table; each thread reads in its own session.

    Lists are stored, and searched beyond their stored length. Points and lists stay in the
    database, but rows that were read are remembered for as long as they stay as they are.
    Distances are measured here, in double precision, between vectors in single precision.

    Parameters
    ----------
    sessions : Sessions
    settings : dict
        Of the table.
    """

    def __init__(self, sessions: Sessions, settings: dict[str, Any]) -> None:
        self._sessions, self._settings = sessions, settings
        self.metric: str = settings["metric"]
        self.n_features: int = settings["n_features"]
        self.width: int = settings["width"]
        self.exact: bool = settings["search"] == "exact"
        self._cache = RowCache(settings["stored_width"], settings["precision"])
        self._living: tuple[int, BoolArray] = (NOBODY, np.empty(0, dtype=bool))
        self._turn = Lock()

    @property
    def round_trips(self) -> int:
        """How often this thread has waited for an answer from there."""
        return self._sessions.round_trips

    @property
    def version(self) -> int:
        """The number of the state that this thread reads."""
        with self._sessions.current() as session:
            return session.head.version

    @property
    def n_points(self) -> int:
        """The number of slots that were ever given."""
        with self._sessions.current() as session:
            return session.head.n_points

    @property
    def n_alive(self) -> int:
        """The number of points that are there."""
        with self._sessions.current() as session:
            return session.head.n_alive

    @property
    def alive(self) -> BoolArray:
        """Which slots have a point; fetched once for a version."""
        with self._sessions.current() as session, self._turn:
            version, alive = self._living
            if version != session.head.version:
                alive = np.zeros(session.head.n_points, dtype=bool)
                alive[session.slots()] = True
                self._living = session.head.version, alive
            return alive

    def search(self, vectors: FloatArray, k: int) -> Neighbors:
        """Find the ``k`` nearest points of the database for vectors from anywhere."""
        with self._sessions.current() as session:
            return nearest(session, self._held(vectors), k)

    def rows(self, ids: IntArray, k: int) -> Neighbors:
        """Return the ``k`` nearest neighbours of points; searched only beyond ``width``."""
        ids = np.asarray(ids, dtype=np.int64)
        with self._sessions.current() as session:
            known = self._rows(session, np.unique(ids))
            places = known.places_of(ids)
            there = places != NOBODY
            if k <= self.width:
                found = known.lists.head(k)
            else:
                vectors = session.vectors(known.slots)
                found = nearest(session, vectors, k, own=known.slots)
        lists = Neighbors(
            np.full((len(ids), k), NOBODY, dtype=np.int32),
            np.full((len(ids), k), np.inf, dtype=found.sq_distances.dtype),
        )
        lists.indices[there] = found.indices[places[there]]
        lists.sq_distances[there] = found.sq_distances[places[there]]
        return lists

    def around(self, slots: IntArray) -> Rows:
        """Return the rows of some points, and those of all that list them."""
        slots = np.unique(np.asarray(slots, dtype=np.int64))
        with self._sessions.current() as session:
            found, known = self._cache.known(session, slots)
            listers = np.setdiff1d(known.sources, slots)
            listing, others = self._cache.known(session, listers)
            known = known.joined(others)
            if found.all() and listing.all():
                return known
            if found.all():
                fresh = session.rows(listers[~listing])
            else:  # rows of some that are known come again, but in one exchange with all others
                fresh = session.rows(self._incomplete(slots, known), around=True)
            self._cache.remember(session, fresh)
            return known.joined(fresh)

    def _incomplete(self, slots: IntArray, known: Rows) -> IntArray:
        """Return the points that are not known with all that list them."""
        places = known.places_of(slots)
        there = np.flatnonzero(places != NOBODY)
        counts = np.diff(known.starts)[places[there]]
        missing = known.places_of(known.sources_of(places[there])) == NOBODY
        lacking = np.bincount(np.repeat(there, counts)[missing], minlength=len(slots)) > 0
        incomplete: IntArray = slots[lacking | (places == NOBODY)]
        return incomplete

    def nearest(self, query: Query, k: int, where: str | None = None) -> Neighbors:
        """Find the ``k`` points nearest to a checked query, its own points left out.

        The mean of the squared distances to several examples is the squared distance to their
        centre and a constant, so one search around the centre finds them.

        Parameters
        ----------
        query : Query
        k : int
        where : str, optional
            A condition that all have to meet.
        """
        shares = positive_shares(query)
        with self._sessions.current() as session:
            examples = self._examples(session, query)
            centre = (shares @ examples.astype(np.float64)).astype(np.float32)[None, :]

            def measure(place: int, vectors: FloatArray) -> FloatArray:
                between = cdist(examples[shares > 0], vectors, "sqeuclidean")
                return _total(shares[shares > 0], between)

            return nearest(session, centre, k, gone=query.ids, where=where, measure=measure)

    def sq_distances(self, ids: IntArray, vectors: FloatArray) -> Iterator[FloatArray]:
        """Measure everything, which reads all points; empty slots are at distance inf."""
        ids = np.asarray(ids, dtype=np.int64)
        with self._sessions.current() as session:
            there = np.isin(ids, session.rows(np.unique(ids)).slots)
            examples = np.zeros((len(ids), self.n_features), dtype=np.float32)
            examples[there] = session.vectors(ids[there])
            examples = np.concatenate([examples, self._held(vectors)])
            lost = np.concatenate([~there, np.zeros(len(examples) - len(ids), dtype=bool)])
            for start in range(0, len(examples), TOGETHER):
                block = slice(start, start + TOGETHER)
                yield from self._measured(session, examples[block], lost[block])

    def _measured(self, session: Session, examples: FloatArray, lost: BoolArray) -> FloatArray:
        measured = np.full((len(examples), session.head.n_points), np.inf)
        for slots, vectors in session.scan():
            measured[:, slots] = cdist(examples, vectors, "sqeuclidean")
        measured[lost] = np.inf
        return measured

    def between(self, query: Query, points: IntArray) -> FloatArray:
        """Measure the squared distances of some points to each example of a checked query."""
        points, n_ids = np.asarray(points, dtype=np.int64), len(query.ids)
        with self._sessions.current() as session:
            stored = session.vectors(np.concatenate([query.ids, points]).astype(np.int64))
        examples = np.concatenate([stored[:n_ids], self._held(query.vectors)])
        return sq_distances_between(examples, stored, np.arange(n_ids, len(stored)))

    def pairs(self, ids: IntArray) -> FloatArray:
        """Measure the squared distances of a few points of the database to each other."""
        vectors = self.vectors(ids)
        return sq_distances_between(vectors, vectors, np.arange(len(vectors)))

    def vectors(self, slots: IntArray) -> FloatArray:
        """Return points as they are stored; scaled to length one for cosine."""
        with self._sessions.current() as session:
            return session.vectors(np.asarray(slots, dtype=np.int64))

    def matching(self, where: str, slots: IntArray) -> IntArray:
        """Return those of some points that meet a condition, ascending."""
        with self._sessions.current() as session:
            return session.matching(where, np.asarray(slots, dtype=np.int64))

    def check_condition(self, where: str) -> None:
        """Require a condition that can be read, of columns that are there."""
        with self._sessions.current() as session:
            translate(where, session.head.columns)

    def _rows(self, session: Session, slots: IntArray) -> Rows:
        found, known = self._cache.known(session, slots)
        if found.all():
            return known
        fresh = session.rows(slots[~found])
        self._cache.remember(session, fresh)
        return known.joined(fresh)

    def _examples(self, session: Session, query: Query) -> FloatArray:
        stored = session.vectors(np.asarray(query.ids, dtype=np.int64))
        return np.concatenate([stored, self._held(query.vectors)])

    def _held(self, vectors: Any) -> FloatArray:
        return held(vectors, self._settings)


def _total(shares: FloatArray, between: FloatArray) -> FloatArray:
    """Add up row by row, so that what is tied for one engine is tied for all."""
    total: FloatArray = np.zeros(between.shape[1])
    for share, row in zip(shares, between, strict=True):
        total += share * row
    return total
