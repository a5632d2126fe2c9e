"""Points for an index, what an index must hold, and the index that is built anew of it."""

from dataclasses import dataclass, field

import numpy as np

from rankfold import Index

COLUMNS = ("price", "size", "color", "sold")


def backend_of(index):
    """Return what an index keeps its points in, which is no part of its interface."""
    return index._backend


def fitted_rankers(index):
    """Return the fitted rankers that an index has at hand, by what they were fitted with."""
    return index._executor.rankers.kept


def vectors(rng, n):
    """Two clouds in three dimensions; whole numbers now and then, so that some are tied."""
    centres = np.array([[0.0, 0, 0], [6, 1, 2]])
    found = centres[rng.integers(0, 2, n)] + rng.normal(size=(n, 3))
    found = np.where(rng.random((n, 1)) < 0.3, np.round(found), found)
    found[~found.any(axis=1)] = 1.0  # zero has no direction
    return found


def payload(rng, n):
    """Columns of every kind, with values missing."""

    def some(values):
        return [None if rng.random() < 0.1 else value for value in values]

    return {
        "price": some(rng.integers(0, 100, n).tolist()),
        "size": some(rng.normal(size=n).tolist()),
        "color": some(rng.choice(["red", "green", "blue"], n).tolist()),
        "sold": some((rng.random(n) < 0.5).tolist()),
    }


@dataclass
class Expected:
    """What an index must hold, in the order of arrival."""

    ids: list = field(default_factory=list)
    vectors: dict = field(default_factory=dict)
    payload: dict = field(default_factory=dict)
    names: list = field(default_factory=lambda: list(COLUMNS))

    def add(self, ids, X, columns):
        for place, name in enumerate(ids):
            self.ids.append(name)
            self.vectors[name] = X[place]
            values = {c: columns[c][place] for c in columns}
            self.payload[name] = {**dict.fromkeys(self.names), **values}

    def add_columns(self, ids, columns):
        self.names += columns
        for values in self.payload.values():
            values |= dict.fromkeys(columns)
        for place, name in enumerate(ids):
            self.payload[name] |= {c: columns[c][place] for c in columns}

    def remove(self, ids):
        for name in ids:
            self.ids.remove(name)
            del self.vectors[name], self.payload[name]

    def move(self, ids, X):
        columns = {c: [self.payload[name][c] for name in ids] for c in self.names}
        self.remove(ids)
        self.add(ids, X, columns)

    def columns(self):
        return {c: [self.payload[name][c] for name in self.ids] for c in self.names}

    def anew(self, index):
        """Build an index of it, with as many neighbours as another one has."""
        X = np.array([self.vectors[name] for name in self.ids])
        facts = index.info()
        return Index.build(
            X, self.ids, self.columns(), metric=facts["metric"], n_neighbors=facts["n_neighbors"]
        )


def stored_payload(index):
    """Return the payload of all points, in the order of arrival."""
    backend = backend_of(index)
    with backend.current() as engine:
        return backend.store.payload_of(np.flatnonzero(engine.alive))


def lists(index):
    """Return neighbour lists and distances, with places in the order of arrival for slots."""
    with backend_of(index).current() as engine:
        alive = np.flatnonzero(engine.alive)
        found = engine.rows(alive, engine.width)
        places = np.cumsum(engine.alive) - 1
        indices = found.indices.astype(np.int64)
        return np.where(indices < 0, -1, places[indices]), found.sq_distances


def check_places(index):
    """Require a place for every point; that of its vector where the map is a projection."""
    with backend_of(index).current():
        ids, places = index.places()
        assert ids == index.ids
        assert places.shape == (len(ids), 2)
        assert np.isfinite(places).all()
        drawn = backend_of(index)._map
        if drawn is not None and drawn.kind != "graph":
            projected = drawn.projection.places(index.vectors(ids))
            np.testing.assert_allclose(places, projected, rtol=1e-5, atol=1e-6)


def check_holds(index, expected):
    """Require ids, payload, places, vectors and neighbour lists."""
    assert index.ids == expected.ids
    assert len(index) == len(expected.ids)
    assert stored_payload(index) == expected.columns()
    backend_of(index).store.verify()
    check_places(index)
    if not expected.ids:
        return
    with expected.anew(index) as fresh:
        (indices, distances), (true_indices, true_distances) = lists(index), lists(fresh)
        np.testing.assert_array_equal(indices, true_indices)
        np.testing.assert_allclose(distances, true_distances, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            index.vectors(expected.ids), fresh.vectors(expected.ids), rtol=1e-12, atol=1e-15
        )


def built(n=40, seed=0, **settings):
    """Return an index and what it must hold."""
    rng = np.random.default_rng(seed)
    expected = Expected()
    expected.add(
        [*range(n // 2), *(f"p{i}" for i in range(n - n // 2))], vectors(rng, n), payload(rng, n)
    )
    X = np.array([expected.vectors[name] for name in expected.ids])
    return Index.build(X, expected.ids, expected.columns(), **settings), expected
