"""A graph that follows its lists is the one made of them anew."""

import numpy as np
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ran_cases import RAN

from rankfold.graph.symmetric import link, relink
from rankfold.neighbors import DynamicEngine
from rankfold.solvers import GraphRows


@examples(100)
@given(st.integers(0, 10_000), st.integers(0, 4), st.integers(1, 12))
def test_following_is_linking_anew(seed, n_new, n_changed):
    rng = np.random.default_rng(seed)
    n_old, width = 20, 3
    n_points = n_old + n_new

    def some_lists(n):
        indices = np.array([rng.permutation(np.delete(np.arange(n), i))[:width] for i in range(n)])
        return indices.astype(np.int32), rng.choice([0.0, 0.3, 1.0], (n, width))

    before, after = some_lists(n_old), some_lists(n_points)
    changed = rng.permutation(n_points)[:n_changed]
    changed = np.union1d(changed, np.arange(n_old, n_points))
    kept = np.setdiff1d(np.arange(n_old), changed)
    after[0][kept], after[1][kept] = before[0][kept], before[1][kept]
    scaled = link(*before)
    scaled.data *= 4.0
    followed = GraphRows.of(scaled)
    relink(followed, changed, lambda rows: (after[0][rows], after[1][rows]), n_points, 4.0)
    found = followed.csr()
    np.testing.assert_allclose(found.toarray(), 4.0 * link(*after).toarray(), atol=1e-15)
    assert found.nnz == followed.n_edges == link(*after).nnz
    np.testing.assert_allclose(followed.sums, found.sum(axis=1), atol=1e-14)


def test_a_ranker_that_follows_answers_like_one_fitted_anew():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_400, 3))
    engine = DynamicEngine.build(X[:5_300], "euclidean", width=20)
    ranker = RAN(5, 3.0, budget=None).fit(engine)
    for _ in range(3):
        rows = []
        for change in (
            engine.remove(rng.choice(np.flatnonzero(engine.alive), 20, replace=False)),
            engine.add(rng.normal(size=(30, 3))),
        ):
            rows += [change.rows, change.removed]
        assert ranker.follow(np.unique(np.concatenate(rows)), engine.width)
        anew = RAN(5, 3.0, budget=None).fit(engine)
        np.testing.assert_allclose(
            [ranker.mean_gamma_, ranker.unit_], [anew.mean_gamma_, anew.unit_], rtol=1e-10
        )
        queries = rng.choice(np.flatnonzero(engine.alive), 10, replace=False).tolist()
        for ours, theirs in zip(
            ranker.rank_many(queries, top=50), anew.rank_many(queries, top=50), strict=True
        ):
            bound = ours.solution.bound + theirs.solution.bound
            assert ours.solution.certified
            assert set(ours.indices) == set(theirs.indices)
            order = np.argsort(ours.indices), np.argsort(theirs.indices)
            assert np.abs(ours.scores[order[0]] - theirs.scores[order[1]]).max() <= bound


def test_where_following_is_not_possible_nothing_happens():
    X = np.random.default_rng(1).normal(size=(60, 3))
    engine = DynamicEngine.build(X, "euclidean", width=20)
    ranker = RAN(5).fit(engine)
    graph = ranker.affinity_.toarray()
    change = engine.remove([3])
    assert not ranker.follow(change.rows, engine.width)
    np.testing.assert_array_equal(ranker.affinity_.toarray(), graph)


def test_lists_that_were_searched_cannot_be_followed():
    X = np.random.default_rng(2).normal(size=(200, 3))
    engine = DynamicEngine.build(X, "euclidean", width=20)
    ranker = RAN(40, solver="region").fit(engine)
    assert ranker.neighbors_.width > engine.width
    change = engine.remove([3])
    assert not ranker.follow(np.union1d(change.rows, change.removed), engine.width)
