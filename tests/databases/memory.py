"""A collection in plain dictionaries: what every database has to do, in the fewest words."""

from contextlib import nullcontext

import numpy as np

from rankfold.databases.protocol import Edges, Hits, Page


class MemoryCollection:
    """Points by key, in memory; a filter is a function of a point's payload."""

    exact = True

    def __init__(self, points, payload=None, metric="euclidean"):
        self.points = {key: np.asarray(vector, np.float32) for key, vector in points.items()}
        self.fields = payload or {}
        self.name, self.metric = "memory", metric
        self.n_features = len(next(iter(self.points.values())))
        self.manifest, self.stored, self.round_trips = None, {}, 0

    def count(self):
        return len(self.points)

    def scan(self, size):
        keys = sorted(self.points)
        for start in range(0, len(keys), size):
            self.round_trips += 1
            yield self._page(keys[start : start + size])

    def vectors(self, keys):
        self.round_trips += 1
        return self._page([key for key in keys if key in self.points])

    def search(self, vectors, k, where=None):
        self.round_trips += 1
        keys = sorted(
            key for key in self.points if where is None or where(self.fields.get(key, {}))
        )
        found = []
        for vector in np.atleast_2d(vectors):
            distances = self._measured(vector, keys)
            order = np.argsort(distances, kind="stable")[:k]
            found.append(Hits([keys[place] for place in order], distances[order]))
        return found

    def distances(self, vector, keys):
        self.round_trips += 1
        there = [key for key in keys if key in self.points]
        return Hits(there, self._measured(vector, there))

    def payload(self, keys):
        self.round_trips += 1
        return {key: dict(self.fields.get(key, {})) for key in keys if key in self.points}

    def matching(self, keys, where):
        self.round_trips += 1
        there = (key for key in keys if key in self.points)
        return {key for key in there if where is None or where(self.fields.get(key, {}))}

    def begin(self, keys):
        manifest, rows = self.read_manifest(), self.rows(keys)
        self.round_trips -= 1  # both come in one exchange
        return manifest, rows

    def read_manifest(self):
        self.round_trips += 1
        return self.manifest

    def write_manifest(self, manifest):
        self.manifest = dict(manifest)

    def edges(self, keys):
        return {key: Edges(row.neighbors, row.weights) for key, row in self.rows(keys).items()}

    def around(self, key, n):
        (hits,) = self.search([self.points[key]], n) if key in self.points else ([],)
        return {key: self.stored[key] for key in hits.keys if key in self.stored} if hits else {}

    def rows(self, keys):
        self.round_trips += 1
        return {key: self.stored[key] for key in keys if key in self.stored}

    def scan_rows(self, size):
        self.round_trips += 1
        yield list(self.stored.values())

    def write_rows(self, rows):
        self.stored |= {row.key: row for row in rows}

    def remove_rows(self, keys):
        for key in keys:
            self.stored.pop(key, None)

    def detach(self):
        self.manifest, self.stored = None, {}

    def transaction(self):
        return nullcontext()

    def close(self):
        pass

    def _page(self, keys):
        vectors = [self.points[key] for key in keys]
        return Page(list(keys), np.array(vectors, np.float32).reshape(-1, self.n_features))

    def _measured(self, vector, keys):
        points, vector = self._page(keys).vectors.astype(float), np.asarray(vector, float)
        if self.metric == "cosine":
            points /= np.linalg.norm(points, axis=1)[:, None]
            vector = vector / np.linalg.norm(vector)
        return ((points - vector) ** 2).sum(axis=1)
