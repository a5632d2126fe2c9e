"""Rankings over points that came and went are those over the points that are left."""

import warnings
from itertools import islice, product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankfold import RANKERS, ExactEngine, FaissEngine, InputError, Query
from rankfold.graph import AdaptiveGraph, GaussianGraph
from rankfold.neighbors import DynamicEngine
from rankfold.rankers import Diffusion

GRAPHS = {
    "adaptive": AdaptiveGraph(n_neighbors=4),
    "gaussian": GaussianGraph(),
    "dense": GaussianGraph(n_neighbors=None, self_affinity=True),
    "fixed": GaussianGraph(bandwidth=1.0, n_neighbors=5),
}

VARIANTS = [
    *((name, {}) for name in RANKERS),
    *(
        (name, {"graph": graph})
        for name in RANKERS
        for graph in GRAPHS
        if "graph" in RANKERS[name]().get_params()
    ),
    ("ran", {"n_neighbors": 500}),
    ("ran", {"gamma": "shared", "max_iter": 3}),
    ("ran", {"candidates": "local", "max_iter": 3, "solver": "cg"}),
    ("ran", {"solver": "region", "tol": 1e-10}),
    ("ran", {"solver": "region", "tol": 1e-10, "max_iter": 3}),
    ("ran", {"solver": "region", "tol": 1e-10, "max_iter": 2, "gamma": "shared"}),
    ("pagerank", {"solver": "region", "tol": 1e-11}),
    ("manifold", {"solver": "region", "tol": 1e-11}),
    ("manifold", {"solver": "cg"}),
    ("transduction", {"n_steps": None}),
    ("lcdp", {"n_neighbors": 3}),
    ("k_reciprocal", {"k1": 5, "k2": 9}),
    ("lhrr", {"n_neighbors": 4, "n_steps": 3}),
    ("query_expansion", {"augment": 4}),
]

every_variant = pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param(
            name,
            settings,
            id=f"{name}-{settings}",
            marks=pytest.mark.slow if settings and settings.get("solver") != "region" else (),
        )
        for name, settings in VARIANTS
    ],
)


def made(name, settings):
    chosen = dict(settings)
    if "graph" in chosen:
        chosen["graph"] = GRAPHS[chosen["graph"]]
    return RANKERS[name](**chosen)


def points(rng, n):
    centres = np.array([[0.0, 0, 0, 0], [5, 1, 0, 2], [-3, 6, 1, 0]])
    return centres[rng.integers(0, 3, n)] + rng.normal(size=(n, 4))


def living(n=70, duplicates=0, width=42):
    """Return an engine with removed points, the slots that are left, and an engine of these."""
    rng = np.random.default_rng(8)
    X = points(rng, n)
    X[:duplicates] = X[0]
    engine = DynamicEngine.build(X, "euclidean", width)
    new = points(rng, 25)
    engine.remove(rng.permutation(n)[:20])
    engine.add(new)
    engine.update([n, n + 3], new[:2] + 0.5)
    X = np.concatenate([X, new, new[:2] + 0.5])
    alive = np.flatnonzero(engine.alive)
    return engine, alive, ExactEngine(X[alive])


def quietly(act):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "n_neighbors=500 is too large")
        return act()


def queries(alive):
    """Return queries by slots, and the same by places among what is left."""
    asked = [
        ([7], None, None),
        ([7, 30], None, [1.0, 0.4]),
        (None, [[0.3, 0.9, 1.1, 0.0]], None),
        ([3], [[0.3, 0.9, 1.1, 0.0], [-0.5, 0.2, 0.1, 3.0]], [1, 2, 0.5]),
    ]
    by_slot = [Query(None if ids is None else alive[ids], *rest) for ids, *rest in asked]
    return by_slot, [Query(*parts) for parts in asked]


def check_same(got, expected, alive, local=False):
    # A local solve ends as soon as the order is certain, and says how far off scores may be.
    known = got.solution.bound + expected.solution.bound if local else 0.0
    np.testing.assert_allclose(got.scores, expected.scores, rtol=0, atol=1e-8 + known)
    named = alive[expected.indices]
    swapped = got.indices != named
    assert set(got.indices) == set(named) or not swapped[:-1].any()
    # Only scores that their bounds, or rounding, cannot tell apart may stand in another order.
    by_id = dict(zip(named.tolist(), expected.scores.tolist(), strict=True))
    for point, score in zip(got.indices[swapped].tolist(), got.scores[swapped], strict=True):
        assert by_id[point] == pytest.approx(score, abs=1e-8 + known)


@every_variant
def test_rankings_are_those_of_the_points_that_are_left(name, settings):
    engine, alive, fresh = living()
    here = quietly(lambda: made(name, settings).fit(engine))
    there = quietly(lambda: made(name, settings).fit(fresh))
    by_slot, by_place = queries(alive)
    for top, include_query in product((None, 6, 500), (False, True)):
        options = {"top": top, "include_query": include_query}
        got = quietly(lambda options=options: here.rank_many(by_slot, **options))
        expected = quietly(lambda options=options: there.rank_many(by_place, **options))
        for one, other in zip(got, expected, strict=True):
            check_same(one, other, alive, settings.get("solver") == "region")
            assert one.solution.certified == other.solution.certified
            if top != 6:
                assert len(one) == len(alive) or not include_query
                assert engine.alive[one.indices].all()


@every_variant
def test_search_leaves_removed_points_out(name, settings):
    engine, alive, fresh = living(duplicates=12)
    here = quietly(lambda: made(name, settings).fit(engine))
    there = quietly(lambda: made(name, settings).fit(fresh))
    indices, scores = quietly(lambda: here.search(k=engine.n_points))
    _, expected_scores = quietly(lambda: there.search(k=engine.n_points))
    assert indices.shape == (engine.n_points, len(alive) - 1)
    np.testing.assert_allclose(scores[alive], expected_scores, atol=1e-8)
    gone = ~engine.alive
    assert (indices[gone] == -1).all()
    assert np.isnan(scores[gone]).all()
    for slot in alive:
        assert sorted([slot, *indices[slot]]) == alive.tolist()


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("left", [1, 2, 3])
def test_hardly_any_points_are_left(name, left):
    X = points(np.random.default_rng(0), 30)
    engine = DynamicEngine.build(X, "euclidean", 10)
    engine.remove(np.arange(left, 30))
    here, there = RANKERS[name](), RANKERS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here.fit(engine)
        there.fit(X[:left])
    for query in (0, Query(vectors=X[5])):
        (got,), (expected,) = here.rank_many([query]), there.rank_many([query])
        check_same(got, expected, np.arange(left))


def test_the_general_diffusion_too():
    engine, alive, fresh = living()
    ranker = Diffusion(transition="symmetric", update="left", alpha=0.9, restart=0.1)
    got = ranker.fit(engine).rank(alive[7])
    expected = Diffusion(**ranker.get_params()).fit(fresh).rank(7)
    check_same(got, expected, alive)


def test_alternations_too():
    engine, alive, fresh = living()
    here, there = RANKERS["ran"]().fit(engine), RANKERS["ran"]().fit(fresh)
    pairs = zip(here.alternations(alive[7]), there.alternations(7), strict=True)
    for got, expected in islice(pairs, 3):
        check_same(got, expected, alive)
    assert here.mean_gamma_ == pytest.approx(there.mean_gamma_, rel=1e-12)
    assert here.unit_ == pytest.approx(there.unit_, rel=1e-12)


@pytest.mark.parametrize("name", RANKERS)
def test_removed_points_cannot_be_asked_for(name):
    engine, _, _ = living()
    gone = int(np.flatnonzero(~engine.alive)[0])
    ranker = RANKERS[name]().fit(engine)
    for query in (gone, Query(indices=[gone])):
        with pytest.raises(InputError, match=f"indices holds {gone}, which was removed"):
            ranker.rank_many([query])


@pytest.mark.parametrize("name", RANKERS)
def test_many_points_in_faiss(name):
    rng = np.random.default_rng(1)
    X = points(rng, 1500).astype(np.float32)
    whole = FaissEngine(X, recall=1.0)
    engine = DynamicEngine.build(X, "euclidean", 42, engine=whole)
    engine.remove(np.arange(0, 1500, 3))
    alive = np.flatnonzero(engine.alive)
    got = RANKERS[name]().fit(engine).rank(alive[5], top=20)
    expected = RANKERS[name]().fit(FaissEngine(X[alive], recall=1.0)).rank(5, top=20)
    np.testing.assert_allclose(got.scores, expected.scores, rtol=1e-5, atol=1e-8)
    assert engine.alive[got.indices].all()
