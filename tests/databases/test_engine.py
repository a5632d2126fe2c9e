"""A table as an engine, beside the exact engine of the same points."""

import numpy as np
import pytest
from databases.memory import MemoryDatabase

from rankfold import Index, Query
from rankfold.check import InputError, check_query
from rankfold.databases.addresses import database_of, without_password
from rankfold.neighbors import DistantEngine, LivingEngine

RNG = np.random.default_rng(5)
CLOUD = RNG.normal(size=(90, 4)).astype(np.float32)
TIED = np.round(RNG.normal(size=(120, 2)) * 1.5).astype(np.float32)  # many copies, many ties
DATA = {"cloud": CLOUD, "tied": np.where(TIED.any(axis=1)[:, None], TIED, 1.0).astype(np.float32)}


@pytest.fixture(params=[(data, metric) for data in DATA for metric in ("euclidean", "cosine")])
def engines(request):
    """Return the engine of a table and an engine in memory, after the same changes."""
    data, metric = request.param
    X = DATA[data]
    true = LivingEngine.build(X, metric, 20)
    with Index.build(
        X, path="x", engine=MemoryDatabase(), metric=metric, n_neighbors=6, layout="none"
    ) as index:
        index.remove([3, 4, 50])
        true.remove([3, 4, 50])
        with index._keeper.current() as engine:
            yield engine, true


def same(found, true, exact=True):
    """Require the same lists; where rounding decides between ties, the same distances."""
    np.testing.assert_allclose(found.sq_distances, true.sq_distances, rtol=1e-6, atol=1e-6)
    if exact:
        np.testing.assert_array_equal(found.indices, true.indices)


def test_engines_agree(engines):
    engine, true = engines
    exact = true.metric == "euclidean"  # lengths are rounded for cosine
    ids, queries = np.array([7, 3, 1, 7]), RNG.normal(size=(5, true.n_features))
    assert (engine.n_points, engine.n_alive) == (true.n_points, true.n_alive)
    np.testing.assert_array_equal(engine.alive, true.alive)
    for k in (1, 10, 20, 40, 500):
        same(engine.search(queries, k), true.search(queries, k), exact)
        same(engine.rows(ids, k), true.rows(ids, k), exact)
    for ours, theirs in zip(
        engine.sq_distances(ids, queries), true.sq_distances(ids, queries), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    live = np.flatnonzero(true.alive)[:10]
    np.testing.assert_allclose(engine.pairs(live), true.pairs(live), rtol=1e-6, atol=1e-6)
    assert isinstance(engine, DistantEngine)


QUERIES = {
    "a point": Query(7),
    "points": Query([7, 1, 30], weights=[1.0, 0.5, 0.25]),
    "against": Query([7, 1, 30], weights=[1.0, 0.5, -1.0]),
    "both": Query([7], np.ones(4), [0.2, 1.0]),
}


@pytest.mark.parametrize("query", QUERIES)
def test_the_nearest_to_several(engines, query):
    engine, true = engines
    asked = QUERIES[query]
    if asked.vectors is not None:
        asked = Query(asked.ids, np.ones(true.n_features), asked.weights)
    checked = check_query(asked, true.n_points, true.n_features)
    for k in (1, 15, 200):
        exact = true.metric == "euclidean"
        same(engine.nearest(checked, k), true.nearest(checked, k), exact)


ADDRESSES = {
    "postgresql://ann:secret@host:5432/db": "postgresql://ann@host:5432/db",
    "postgresql://ann:se@cret@host/db": "postgresql://ann@host/db",
    "postgresql://ann:se/cret@host/db": "postgresql://ann@host/db",
    "postgres:ann:secret@host/db": "postgres:ann@host/db",
    "postgresql://host/db?user=ann&password=secret&sslmode=require": (
        "postgresql://host/db?user=ann&sslmode=require"
    ),
    "postgresql://host/db?password=secret": "postgresql://host/db",
    "milvus://ann:secret@host:19530/db": "milvus://ann@host:19530/db",
    "milvus:///folder/file.db": "milvus:///folder/file.db",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_passwords_are_not_shown(address):
    assert without_password(address) == ADDRESSES[address]


@pytest.mark.parametrize("address", ["", "digits", "mysql://host/db", "http://ann:secret@host"])
def test_addresses_of_no_database(address):
    with pytest.raises(InputError, match="names no database") as raised:
        database_of(address)
    assert "secret" not in str(raised.value)


def test_copies_of_a_point_are_searched_for_once():
    """Each of them is as near to all others as to the last of its list."""
    X = np.concatenate([np.full((60, 2), 3.0), CLOUD[:, :2] - 9.0]).astype(np.float32)
    database, asked = MemoryDatabase(), []
    with Index.build(X, path="x", engine=database, n_neighbors=5, layout="none") as index:
        with index._keeper.changing():
            session = index._keeper._sessions.held
            found = session.search
            session.search = lambda vectors, *more: (
                asked.append(len(vectors)) or found(vectors, *more)
            )
            index._keeper.change(np.arange(30))
        true = LivingEngine.build(X, "euclidean", 20)
        true.remove(np.arange(30))
        with index._keeper.current() as engine:
            live = np.arange(30, len(X))
            same(engine.rows(live, 20), true.rows(live, 20))
    assert len(asked) > 1  # for more than the first time
    assert max(asked) == 1


def test_blocks_of_a_change_are_as_good_as_all_at_once(monkeypatch):
    monkeypatch.setattr("rankfold.databases.planning.BLOCK_ADDED", 2)
    monkeypatch.setattr("rankfold.databases.searching.MOST_FOUND", 1)
    true = LivingEngine.build(CLOUD[:60], "euclidean", 20)
    with Index.build(
        CLOUD[:60], path="x", engine=MemoryDatabase(), n_neighbors=6, layout="none"
    ) as index:
        for some in (np.arange(5, 15), np.arange(20, 50)):
            index.remove(some.tolist())
            true.remove(some)
        index.add(CLOUD[60:])
        true.add(CLOUD[60:])
        with index._keeper.current() as engine:
            live = np.flatnonzero(true.alive)
            same(engine.rows(live, 20), true.rows(live, 20))
