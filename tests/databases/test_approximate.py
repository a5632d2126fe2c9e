"""Tables of approximate lists, and of searches that are not exact."""

from dataclasses import replace

import numpy as np
from databases.memory import MemoryDatabase
from databases.pairs import built, check_sources, lists

from rankfold import Index
from rankfold.databases.loading import load
from rankfold.neighbors import FaissEngine, LivingEngine

RNG = np.random.default_rng(2)


def test_lists_follow_where_the_database_cannot_tell_who_lists():
    database = MemoryDatabase()
    folder, table = built(database, "x", RNG.normal(size=(200, 3)), n_neighbors=5, layout="pca")
    there = database.tables["x"]
    there.state = replace(there.state, settings={**there.state.settings, "search": "hnsw"})
    for step in range(8):
        X = RNG.normal(size=(6, 3)).astype(np.float32)
        gone = RNG.choice(folder.ids, 5, replace=False).tolist()
        for index in (folder, table):
            index.add(X)
            index.remove(gone)
        check_sources(table)
        (found, _), (true, _) = lists(table), lists(folder)
        common = [len(np.intersect1d(*pair)) for pair in zip(found, true, strict=True)]
        assert np.mean(common) >= 0.99 * true.shape[1], step
    folder.close()
    table.close()


def test_lists_in_single_precision_stay_so():
    database = MemoryDatabase()
    X = RNG.normal(size=(300, 8)).astype(np.float32)
    living = LivingEngine.build(X, "cosine", 20, engine=FaissEngine(X, "cosine"))
    arrays, settings = living.state()
    state = {"engine": settings, "n_neighbors": 5, "numbered": True, "layout": None}
    load(database, "x", arrays, state, range(300), None, replace=False)
    with Index.open("x", write=True, engine=database) as table:
        new = RNG.normal(size=(4, 8)).astype(np.float32)
        table.remove([1, 2, 3])
        table.add(new)
        living.remove([1, 2, 3])
        living.add(new)
        with table._keeper.current() as engine:
            found, true = (one.rows(np.arange(304), 20) for one in (engine, living))
        assert found.sq_distances.dtype == np.float32
        np.testing.assert_array_equal(found.indices, true.indices)
        np.testing.assert_allclose(found.sq_distances, true.sq_distances, rtol=1e-5)
        check_sources(table)
