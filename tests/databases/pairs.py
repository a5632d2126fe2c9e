"""An index in a folder and the same in a database, and what has to be alike in both."""

from dataclasses import replace

import numpy as np

from rankfold import Index


def built(database, name, X, ids=None, payload=None, **settings):
    """Build both, of vectors in single precision, which is what databases keep."""
    X = np.asarray(X, dtype=np.float32)
    folder = Index.build(X, ids, payload, **settings)
    return folder, Index.build(X, ids, payload, path=name, engine=database, **settings)


def lists(index):
    """Return neighbour lists and distances, with places in the order of arrival for slots."""
    with index._keeper.current() as engine:
        alive = np.flatnonzero(engine.alive)
        found = engine.rows(alive, engine.width)
        places = np.cumsum(engine.alive) - 1
        indices = found.indices.astype(np.int64)
        return np.where(indices < 0, -1, places[indices]), found.sq_distances


def check_same(folder, table):
    """Require the same ids, payload, places, vectors and lists, and that sources fit lists."""
    assert table.ids == folder.ids
    assert len(table) == len(folder)
    assert table.columns == folder.columns
    assert table.payload(table.ids) == folder.payload(folder.ids)
    assert table.places()[0] == folder.places()[0]
    np.testing.assert_allclose(table.places()[1], folder.places()[1], rtol=1e-4, atol=1e-5)
    if not len(folder):
        return
    vectors = [index.vectors(folder.ids) for index in (table, folder)]
    np.testing.assert_allclose(*vectors, rtol=1e-6, atol=1e-7)
    (indices, distances), (true_indices, true_distances) = lists(table), lists(folder)
    np.testing.assert_array_equal(indices, true_indices)
    np.testing.assert_allclose(distances, true_distances, rtol=1e-5, atol=1e-6)
    check_sources(table)


def check_sources(table):
    """Require that every stored row knows exactly those that list it."""
    with table._keeper._sessions.current() as session:
        slots = session.slots()
        rows = session.rows(slots)
    named = rows.lists.indices
    links = {(int(t), int(s)) for s, row in zip(slots, named, strict=True) for t in row if t >= 0}
    told = np.repeat(rows.slots, np.diff(rows.starts))
    assert list(zip(told.tolist(), rows.sources.tolist(), strict=True)) == sorted(links)


def check_answers(folder, table, **query):
    """Require the same results, with scores to 1e-6; what is tied may change places."""
    true, found = folder.query(**query), table.query(**query)
    check_results(true, found)
    if query.get("where"):
        slots = folder._keeper.store.matching(query["where"])
        assert set(found.ids) <= set(folder._keeper.store.ids_of(slots))
    return true, found


def check_results(true, found):
    """Require the scores of a folder at every place, and for every point."""
    folder = true.index
    plain = replace(true.asked, top=len(folder), offset=0, diversity=0.0, where=None)
    everybody = folder._ask(plain)
    scores = dict(zip(everybody.ids, everybody.scores, strict=True))
    most = 1e-6 * np.abs(everybody.scores).max(initial=1.0)
    np.testing.assert_allclose(found.scores, true.scores, rtol=0, atol=most)
    own = [scores[name] for name in found.ids]
    np.testing.assert_allclose(found.scores, own, rtol=0, atol=most)
    assert len(set(found.ids)) == len(found)
    assert found.payload == found.index.payload(found.ids)
