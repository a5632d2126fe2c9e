"""Tables to test with, and what they must hold."""

import numpy as np

from rankfold.databases.contract import NewPoints, TableChange
from rankfold.neighbors import Rows
from rankfold.storage.columns import Column
from rankfold.types import Neighbors

WIDTH, STORED = 4, 6
COLUMNS = (
    Column("price", "integer", 0),
    Column("size", "number", 1),
    Column("color", "text", 2),
    Column("sold", "boolean", 3),
)


def settings(n_features=3, **others):
    """Return the settings of a small table."""
    return {
        "metric": "euclidean",
        "n_features": n_features,
        "n_neighbors": 2,
        "width": WIDTH,
        "stored_width": STORED,
        "precision": "double",
        "recall": 0.99,
        "numbered": False,
        "layout": "pca",
        "projection": None,
        "source": {"images": {"height": 8}},
        "search": "exact",
        **others,
    }


def points(slots, seed=0, n_features=3):
    """Return points of every kind of id and payload at some slots."""
    rng, slots = np.random.default_rng(seed), np.asarray(slots, dtype=np.int64)
    n = len(slots)
    values = {
        "price": rng.integers(0, 100, n).tolist(),
        "size": rng.normal(size=n).tolist(),
        "color": rng.choice(["red", "green", "it's"], n).tolist(),
        "sold": (rng.random(n) < 0.5).tolist(),
    }
    for column in values.values():
        for place in np.flatnonzero(rng.random(n) < 0.15):
            column[place] = None
    ids = [int(slot) if slot % 2 else f"{slot - 1}" for slot in slots]
    vectors = rng.normal(size=(n, n_features)).astype(np.float32)
    return NewPoints(slots, ids, vectors, values, rng.normal(size=(n, 2)).astype(np.float32))


def rows(slots, vectors, stored=STORED, precision=np.float64):
    """Return the true rows of points that are all there are."""
    wide = vectors.astype(np.float64)
    between = ((wide[:, None] - wide) ** 2).sum(axis=2)
    np.fill_diagonal(between, np.inf)
    order = np.argsort(between, axis=1, kind="stable")[:, :stored]
    near = np.take_along_axis(between, order, 1)
    indices = np.where(np.isinf(near), -1, np.asarray(slots)[order])
    missing = ((0, 0), (0, stored - order.shape[1]))
    lists = Neighbors(
        np.pad(indices, missing, constant_values=-1).astype(np.int32),
        np.pad(near, missing, constant_values=np.inf).astype(precision),
    )
    return Rows.of(np.asarray(slots, dtype=np.int64), lists)


def fill(database, name, n=20, replace=False, **others):
    """Make a table, in two blocks; return its points and rows."""
    given = points(np.arange(n))
    true = rows(given.slots, given.vectors)
    chosen = settings(**others)
    with database.create(name, chosen, COLUMNS, replace=replace) as filling:
        for block in (np.arange(n // 2), np.arange(n // 2, n)):
            filling.add(some(given, block), rows_of(true, block))
        filling.finish()
    return given, true


def some(given, places):
    """Return the points at some places."""
    return NewPoints(
        given.slots[places],
        [given.ids[place] for place in places],
        given.vectors[places],
        {name: [values[place] for place in places] for name, values in given.payload.items()},
        given.places[places],
    )


def joined(one, two):
    """Return the points of both."""
    return NewPoints(
        np.concatenate([one.slots, two.slots]),
        one.ids + two.ids,
        np.concatenate([one.vectors, two.vectors]),
        {name: one.payload[name] + two.payload[name] for name in one.payload},
        np.concatenate([one.places, two.places]),
    )


def rows_of(true, places):
    """Return the rows at some places."""
    parts = [true.sources[true.starts[p] : true.starts[p + 1]] for p in places]
    starts = np.cumsum([0, *map(len, parts)])
    sources = np.concatenate([true.sources[:0], *parts])
    return Rows(true.slots[places], true.lists.take(np.asarray(places)), starts, sources)


def change(given, removed, added, columns=COLUMNS):
    """Return the change that removes points and adds others, and the points afterwards."""
    left = some(given, np.flatnonzero(~np.isin(given.slots, removed)))
    after = joined(left, added)
    true = rows(after.slots, after.vectors)
    return TableChange(np.asarray(removed, dtype=np.int64), added, true, columns), after


def no_points():
    """Return nobody, to be added."""
    return points([])


def same_rows(found, expected):
    """Require the same rows to the last digit."""
    np.testing.assert_array_equal(found.slots, expected.slots)
    np.testing.assert_array_equal(found.lists.indices, expected.lists.indices)
    np.testing.assert_array_equal(found.lists.sq_distances, expected.lists.sq_distances)
    np.testing.assert_array_equal(found.starts, expected.starts)
    np.testing.assert_array_equal(found.sources, expected.sources)
