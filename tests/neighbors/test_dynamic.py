"""Points come and go, and the lists stay those of an engine built anew."""

import json

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rankfold import ExactEngine, FaissEngine, InputError, Query
from rankfold.check import check_query
from rankfold.neighbors import Change, DynamicEngine, Engine

METRICS = ("euclidean", "cosine")


def whole_numbers(rng, n, n_features=3, values=3):
    """Few different points, none of them zero: duplicates and many ties."""
    return np.column_stack(
        [rng.integers(0, values, (n, n_features - 1)), rng.integers(1, values, n)]
    )


def drawn(rng, n, tied):
    return whole_numbers(rng, n).astype(float) if tied else rng.normal(size=(n, 3))


class Followed:
    """A living engine, the vectors that were given to it, and a second engine that follows."""

    def __init__(self, X, metric, width, engine=None):
        self.engine = DynamicEngine.build(X, metric, width, engine=engine)
        self.follower = DynamicEngine.restore(*saved(self.engine))
        self.X, self.metric = X, metric

    def change(self, rng, tied, most=12):
        alive = np.flatnonzero(self.engine.alive)
        kind = rng.choice(["add", "remove", "update"]) if len(alive) else "add"
        gone = rng.choice(alive, rng.integers(0, min(most, len(alive)) + 1), replace=False)
        new = drawn(rng, len(gone) if kind == "update" else rng.integers(0, most), tied)
        if kind == "add":
            change = self.engine.add(new)
        elif kind == "remove":
            change, new = self.engine.remove(gone), new[:0]
        else:
            change = self.engine.update(gone, new)
        self.X = np.concatenate([self.X, new])
        self.follower.apply(Change.of(change.arrays()))

    def check_lists(self, k):
        """Compare with an engine built anew of the points that are left."""
        alive = np.flatnonzero(self.engine.alive)
        assert self.engine.n_points == len(self.X)
        assert self.engine.n_alive == len(alive)
        lists = self.engine.rows(np.arange(len(self.X)), k)
        gone = ~self.engine.alive
        assert (lists.indices[gone] == -1).all()
        assert np.isinf(lists.sq_distances[gone]).all()
        if len(alive):
            fresh = ExactEngine(self.X[alive], self.metric).rows(np.arange(len(alive)), k)
            named = np.where(fresh.indices < 0, -1, alive[fresh.indices])
            np.testing.assert_array_equal(lists.indices[alive], named)
            np.testing.assert_allclose(
                lists.sq_distances[alive], fresh.sq_distances, rtol=1e-12, atol=1e-12
            )

    def check_follower(self):
        same_state(self.engine, self.follower)


def saved(engine):
    arrays, settings = engine.state()
    return arrays, json.loads(json.dumps(settings))


def same_state(engine, other):
    (arrays, _), (others, _) = engine.state(), other.state()
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.dtype == others[name].dtype
        np.testing.assert_array_equal(array, others[name], err_msg=name)


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    width=st.integers(1, 9),
    metric=st.sampled_from(METRICS),
    tied=st.booleans(),
    n_changes=st.integers(1, 8),
)
def test_lists_are_those_of_an_engine_built_anew(seed, n, width, metric, tied, n_changes):
    rng = np.random.default_rng(seed)
    followed = Followed(drawn(rng, n, tied), metric, width)
    for _ in range(n_changes):
        followed.change(rng, tied)
        followed.check_lists(width)
        followed.check_lists(width + 4)
        followed.check_follower()


@pytest.mark.parametrize("kind", ["exact", "faiss"])
def test_a_planned_change_has_not_happened(kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    chosen = FaissEngine(X) if kind == "faiss" else ExactEngine(X)
    engine = DynamicEngine.build(X, "euclidean", 5, engine=chosen)
    engine.remove([3, 4])
    same = DynamicEngine.restore(*saved(engine))
    change = engine.plan([7, 5], X[:3] + 1)
    same_state(engine, same)
    assert change.removed.tolist() == [5, 7]
    engine.apply(change)
    same.apply(Change.of(change.arrays()))
    same_state(engine, same)
    assert engine.n_alive == 299


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("tied", [True, False])
def test_lists_of_more_points(metric, tied):
    """Enough points for candidates by matrix products."""
    rng = np.random.default_rng(3)
    followed = Followed(drawn(rng, 400, tied), metric, 6)
    for _ in range(6):
        followed.change(rng, tied, most=60)
        followed.check_lists(6)


@examples(25)
@given(seed=st.integers(0, 10_000), left=st.integers(0, 4), metric=st.sampled_from(METRICS))
def test_hardly_anything_is_left(seed, left, metric):
    rng = np.random.default_rng(seed)
    followed = Followed(drawn(rng, 30, True), metric, 5)
    gone = rng.permutation(30)[left:]
    followed.follower.apply(followed.engine.remove(gone))
    for _ in range(4):
        followed.check_lists(5)
        followed.check_follower()
        new = drawn(rng, int(rng.integers(1, 5)), True)
        followed.follower.apply(followed.engine.add(new))
        followed.X = np.concatenate([followed.X, new])
    followed.check_lists(5)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("make", [ExactEngine, FaissEngine])
def test_removed_points_are_never_found(metric, make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    engine = DynamicEngine.build(X[:100], metric, 8, engine=make(X[:100], metric))
    assert isinstance(engine, Engine)
    engine.update(np.arange(0, 40, 2), X[100:])
    alive = np.flatnonzero(engine.alive)
    fresh = make(X[alive], metric)
    vectors = rng.normal(size=(3, 4))
    asked = Query([41, 7], vectors[:1], [1.0, 0.5, 2.0])
    query = check_query(asked, 120, 4, engine.alive)
    placed = check_query(Query(np.searchsorted(alive, [41, 7]), vectors[:1], asked.weights), 100, 4)
    for k in (3, 100, 130):
        pairs = [
            (engine.search(vectors, k), fresh.search(vectors, k)),
            (engine.rows(alive, k), fresh.rows(np.arange(100), k)),
            (engine.nearest(query, k), fresh.nearest(placed, k)),
        ]
        for got, expected in pairs:
            named = np.where(expected.indices < 0, -1, alive[expected.indices])
            np.testing.assert_array_equal(got.indices, named)
            np.testing.assert_allclose(got.sq_distances, expected.sq_distances, rtol=1e-6)
    (own, gone, other) = engine.sq_distances(np.array([41, 2]), vectors[:1])
    assert np.isinf(gone).all()
    assert np.isinf(own[~engine.alive]).all()
    (expected,) = fresh.sq_distances(np.empty(0, dtype=int), vectors[:1])
    np.testing.assert_allclose(other[alive], expected, rtol=1e-6)


def recall(engine, X, width):
    """Return the share of true neighbours in the stored lists."""
    alive = np.flatnonzero(engine.alive)
    true = ExactEngine(X[alive]).rows(np.arange(len(alive)), width)
    found = engine.rows(alive, width)
    assert engine.alive[found.indices].all()
    assert (np.diff(found.sq_distances, axis=1) >= 0).all()
    limit = true.sq_distances[:, -1:] * (1 + 1e-5)
    return float((found.sq_distances <= limit).mean())


def clustered(rng, n):
    """Points near planes that are always the same: an inverted file pays for them."""
    fixed = np.random.default_rng(0)
    centres, planes = fixed.normal(size=(10, 8)) * 4, fixed.normal(size=(10, 2, 8))
    which = rng.integers(0, 10, n)
    across = np.einsum("ni,nij->nj", rng.uniform(-1, 1, (n, 2)), planes[which])
    return centres[which] + across + rng.normal(0, 0.01, (n, 8))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("index", ["ivf", "hnsw", "flat"])
def test_recall_is_kept_over_many_changes(index):
    rng = np.random.default_rng(1)
    X = clustered(rng, 3000).astype(np.float32)
    engine = DynamicEngine.build(X, "euclidean", 10, engine=FaissEngine(X, index=index))
    assert engine.state()[1]["index"] == index
    follower = DynamicEngine.restore(*saved(engine))
    for step in range(10):
        alive = np.flatnonzero(engine.alive)
        n_new = int(rng.integers(1, 400))
        # Now and then from elsewhere, so that cells meet what they were not trained for.
        new = (clustered(rng, n_new) + (step % 3 == 2)).astype(np.float32)
        gone = rng.choice(alive, int(rng.integers(1, 400)), replace=False)
        if step == 5:
            gone = alive[X[alive, 0] > np.quantile(X[alive, 0], 0.7)]
        for change in (engine.remove(gone), engine.add(new)):
            follower.apply(change)
        X = np.concatenate([X, new])
        assert recall(engine, X, 10) >= 0.99
    if index != "hnsw":  # whose levels FAISS draws anew
        same_state(engine, follower)


@pytest.mark.parametrize("index", ["ivf", "hnsw", "flat", None])
def test_saving_and_restoring_changes_nothing(index, tmp_path):
    rng = np.random.default_rng(2)
    X = clustered(rng, 1500)
    made = ExactEngine(X, "cosine") if index is None else FaissEngine(X, "cosine", index=index)
    engine = DynamicEngine.build(X, "cosine", 8, engine=made)
    engine.update(np.arange(50), clustered(rng, 50))
    arrays, settings = saved(engine)
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    files = {name: (tmp_path / f"{name}.npy").read_bytes() for name in arrays}
    maps = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays}
    restored = DynamicEngine.restore(maps, settings)
    same_state(engine, restored)
    new, queries = clustered(rng, 30), clustered(rng, 5)
    for one in (engine, restored):
        one.update(np.arange(60, 90), new)
    same_lists(engine.rows(np.arange(1580), 8), restored.rows(np.arange(1580), 8))
    if index != "hnsw":
        same_state(engine, restored)
        same_lists(engine.search(queries, 20), restored.search(queries, 20))
    for name, before in files.items():
        assert (tmp_path / f"{name}.npy").read_bytes() == before


def same_lists(lists, others):
    np.testing.assert_array_equal(lists.indices, others.indices)
    np.testing.assert_array_equal(lists.sq_distances, others.sq_distances)


@pytest.mark.parametrize("index", ["ivf", "hnsw", "flat", None])
def test_compacting_leaves_what_is_left(index):
    rng = np.random.default_rng(4)
    X = clustered(rng, 1500)
    made = ExactEngine(X) if index is None else FaissEngine(X, index=index)
    engine = DynamicEngine.build(X, "euclidean", 8, engine=made)
    engine.remove(rng.permutation(1500)[:300])
    X = np.concatenate([X, clustered(rng, 200)])
    engine.add(X[1500:])
    arrays, settings, kept = engine.compacted()
    np.testing.assert_array_equal(kept, np.flatnonzero(engine.alive))
    small = DynamicEngine.restore(arrays, json.loads(json.dumps(settings)))
    assert small.n_points == small.n_alive == 1400
    lists, named = engine.rows(kept, 8), small.rows(np.arange(1400), 8)
    np.testing.assert_array_equal(lists.indices, kept[named.indices])
    np.testing.assert_array_equal(lists.sq_distances, named.sq_distances)
    more = clustered(rng, 100)
    small.update(np.arange(100), more)
    assert recall(small, np.concatenate([X[kept], more]), 8) >= 0.99


def test_an_index_that_doubled_is_trained_again():
    rng = np.random.default_rng(5)
    X = clustered(rng, 1000)
    engine = DynamicEngine.build(X, "euclidean", 8, engine=FaissEngine(X, index="ivf"))
    X = np.concatenate([X, clustered(rng, 1500)])
    engine.add(X[1000:])
    arrays, settings, _ = engine.compacted()
    grown = DynamicEngine.restore(arrays, settings)
    more = clustered(rng, 50)
    grown.add(more)
    assert arrays["cells"].max() > engine.state()[0]["cells"].max()
    assert recall(grown, np.concatenate([X, more]), 8) >= 0.99


def test_faiss_takes_over_when_many_points_are_compacted(monkeypatch):
    from rankfold.neighbors import dynamic, exact

    rng = np.random.default_rng(6)
    engine = DynamicEngine.build(rng.normal(size=(90, 3)), "euclidean", 5)
    engine.add(rng.normal(size=(30, 3)))
    for module in (exact, dynamic):
        monkeypatch.setattr(module, "EXACT_LIMIT", 100)
    arrays, settings, kept = engine.compacted()
    assert (settings["engine"], len(kept)) == ("faiss", 120)
    large = DynamicEngine.restore(arrays, settings)
    np.testing.assert_array_equal(
        large.rows(np.arange(120), 5).indices, engine.rows(np.arange(120), 5).indices
    )


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda engine: engine.add(np.zeros((1, 4))), "vectors has shape"),
        (lambda engine: engine.add(np.full((1, 3), np.nan)), "holds NaN"),
        (lambda engine: engine.add(np.full((1, 3), 1e300)), "scale the data"),
        (lambda engine: engine.update([3], np.full((1, 3), np.inf)), "holds NaN or infinity"),
        (lambda engine: engine.update([3, 4], np.zeros((1, 3))), "2 slots to update and 1 vectors"),
        (lambda engine: engine.remove([50]), "slots holds 50, but the database has rows 0 to 49"),
        (lambda engine: engine.remove([3, 3]), "slots holds 3 more than once"),
        (lambda engine: engine.remove([7]), "slots holds 7, which was removed"),
        (lambda engine: engine.update([7], np.zeros((1, 3))), "slots holds 7, which was removed"),
    ],
)
@pytest.mark.parametrize("make", [ExactEngine, FaissEngine])
def test_what_cannot_be_done_changes_nothing(act, message, make):
    X = np.random.default_rng(0).normal(size=(50, 3))
    engine = DynamicEngine.build(X, "euclidean", 5, engine=make(X))
    engine.remove([7])
    before = DynamicEngine.restore(*saved(engine))
    with pytest.raises(InputError, match=message):
        act(engine)
    same_state(engine, before)


@pytest.mark.parametrize("make", [ExactEngine, FaissEngine])
def test_an_error_in_the_middle_changes_nothing(make, monkeypatch):
    from rankfold.neighbors import dynamic

    X = np.random.default_rng(0).normal(size=(50, 3))
    engine = DynamicEngine.build(X, "euclidean", 5, engine=make(X))
    before = DynamicEngine.restore(*saved(engine))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(dynamic, "inserted", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.update([3], np.zeros((1, 3)))
    same_state(engine, before)


@pytest.mark.parametrize("metric", ["precomputed", "precomputed_sq"])
def test_distances_cannot_come_and_go(metric):
    with pytest.raises(InputError, match="must be vectors"):
        DynamicEngine.build(np.zeros((3, 3)), metric, 2)


def test_the_engine_must_measure_the_same():
    X = np.ones((3, 3))
    with pytest.raises(InputError, match="measures 'cosine', but metric is 'euclidean'"):
        DynamicEngine.build(X, "euclidean", 2, engine=ExactEngine(X, "cosine"))


def test_changes_follow_in_their_order():
    X = np.random.default_rng(0).normal(size=(50, 3))
    engine = DynamicEngine.build(X, "euclidean", 5)
    follower = DynamicEngine.restore(*saved(engine))
    changes = [engine.add(X[:2]), engine.remove([3]), engine.add(X[:1])]
    before = DynamicEngine.restore(*saved(follower))
    with pytest.raises(InputError, match="does not follow from this engine of 50 slots"):
        follower.apply(changes[2])
    same_state(follower, before)
    for change in changes:
        follower.apply(change)
    with pytest.raises(InputError, match="does not follow"):
        follower.apply(changes[1])
    same_state(engine, follower)
