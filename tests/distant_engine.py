"""An engine that keeps its lists out of reach: rows come in exchanges, which are counted."""

import threading

import numpy as np

from rankfold.neighbors import Rows


class FarEngine:
    """A LivingEngine behind the contract of a database.

    Asking which of all points are alive is an error, unless it is made with ``tells_alive``.
    ``fetched`` has the rows of every exchange.
    """

    def __init__(self, living, tells_alive=False, exact=True):
        self._living, self._tells_alive = living, tells_alive
        self._here = threading.local()
        self.metric, self.n_features, self.width = living.metric, living.n_features, living.width
        self.exact, self.fetched = exact, []
        self.version = 0
        self.refresh()

    def refresh(self):
        """Take up changes of the engine behind."""
        self.version += 1
        everything = np.arange(self._living.n_points)
        self._rows = Rows.of(everything, self._living._stored.take(everything))

    @property
    def n_points(self):
        return self._living.n_points

    @property
    def n_alive(self):
        return self._living.n_alive

    @property
    def alive(self):
        assert self._tells_alive, "this would fetch something of every point"
        return self._living.alive

    @property
    def round_trips(self):
        return getattr(self._here, "trips", 0)

    def around(self, slots):
        self._exchange()
        asked = np.unique(slots)
        asked = asked[self._living.alive[asked]]
        slots = np.union1d(asked, self._rows.sources_of(asked)).astype(np.int64)
        self.fetched.append(slots)
        starts, rows = self._rows.starts, self._rows
        counts = starts[slots + 1] - starts[slots]
        ends = np.concatenate([[0], np.cumsum(counts)])
        return Rows(slots, rows.lists.take(slots), ends, rows.sources_of(slots))

    def search(self, vectors, k):
        self._exchange()
        return self._living.search(vectors, k)

    def rows(self, ids, k):
        self._exchange()
        return self._living.rows(ids, k)

    def nearest(self, query, k):
        self._exchange()
        return self._living.nearest(query, k)

    def sq_distances(self, ids, vectors):
        self._exchange()
        return self._living.sq_distances(ids, vectors)

    def between(self, query, points):
        self._exchange()
        return self._living.between(query, points)

    def pairs(self, ids):
        self._exchange()
        return self._living.pairs(ids)

    def _exchange(self):
        self._here.trips = self.round_trips + 1
