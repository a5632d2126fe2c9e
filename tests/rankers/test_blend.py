import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankfold.neighbors import ExactEngine
from rankfold.rankers.ordering import Fusion, Neighborhood, ordered
from rankfold.types import Query, Solution

N = 60
FUSION = Fusion.of("auto")


def in_two_ways(engine, query, near, degrees, solution, top):
    """Return an answer by compiled code, and step by step."""
    hood = Neighborhood.of(query, *near, degrees.take)
    up = solution.scores > 0
    most = hood.most_shape(query, solution.points[up], solution.scores[up])
    candidates = FUSION.fuse(engine, query, hood, solution, top, most)
    by_steps = ordered(engine, query, solution, top, False, candidates)
    return FUSION.best(engine, query, *near, degrees, solution, top), by_steps


@given(
    seed=st.integers(0, 2**32 - 1),
    whole=st.booleans(),
    unseen=st.booleans(),
    top=st.integers(1, 12),
    width=st.integers(1, 8),
    n_scored=st.integers(15, 40),
    hubness=st.floats(0.9, 1.5),
    certified=st.booleans(),
    nearest_has_a_score=st.booleans(),
)
def test_compiled_code_answers_as_the_steps_do(
    seed, whole, unseen, top, width, n_scored, hubness, certified, nearest_has_a_score
):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (N, 2)).astype(float) if whole else rng.normal(size=(N, 2))
    engine = ExactEngine(X)
    if unseen:
        query = Query(vectors=rng.normal(size=(1, 2)), weights=[1.0])
        query = Query(np.empty(0, dtype=np.int64), query.vectors, np.ones(1))
        lists = engine.search(query.vectors, width)
    else:
        query = Query(np.array([3]), np.empty((0, 2)), np.ones(1))
        lists = engine.rows(query.indices, width)
    near = lists.indices[0], lists.sq_distances[0]
    others = np.setdiff1d(np.arange(N), query.indices)
    if not nearest_has_a_score:
        others = np.setdiff1d(others, near[0][:1])
    points = rng.permutation(others)[:n_scored]
    shape = rng.integers(1, 20, n_scored) / 20 if whole else rng.random(n_scored)
    order = np.lexsort((points, -shape))
    solution = Solution(
        np.concatenate([points[order], query.indices]),
        np.concatenate([shape[order], np.ones(len(query.indices))]),
        1e-3,
        certified=certified,
        complete=False,
    )
    degrees = np.full(N, hubness)
    quick, by_steps = in_two_ways(engine, query, near, degrees, solution, top)
    if quick is None:  # copies of the query fill its list
        assert len(np.unique(near[1])) == 1
        return
    np.testing.assert_allclose(quick.scores, by_steps.scores, rtol=1e-12)
    clear = np.abs(np.diff(by_steps.scores)) > 1e-12
    if clear.all():
        assert quick.points.tolist() == by_steps.points.tolist()
        np.testing.assert_allclose(quick.shape, by_steps.shape, rtol=1e-12)
    np.testing.assert_allclose(quick.distances**2, engine.between(query, quick.points)[0])
    assert quick.bound == pytest.approx(by_steps.bound, rel=1e-12)
    assert quick.certified == by_steps.certified
    assert quick.complete == by_steps.complete
    assert quick.fused.kind == by_steps.fused.kind
    assert quick.fused.horizon == pytest.approx(by_steps.fused.horizon)
    assert quick.fused.hubness == pytest.approx(by_steps.fused.hubness)


def test_it_leaves_to_the_steps_what_it_cannot_tell():
    engine = ExactEngine(np.random.default_rng(0).normal(size=(N, 2)))
    query = Query(np.array([3]), np.empty((0, 2)), np.ones(1))
    lists = engine.rows(query.indices, 5)
    near, degrees = (lists.indices[0], lists.sq_distances[0]), np.ones(N)
    few = Solution(np.array([1, 2, 3]), np.array([0.5, 0.25, 1.0]), 1e-6, complete=False)
    two = Query(np.array([3, 4]), np.empty((0, 2)), np.ones(2))
    given = (*near, degrees)
    assert FUSION.best(engine, query, *given, few, 2) is not None
    assert FUSION.best(engine, query, *given, few, 3) is None
    assert FUSION.best(engine, two, *given, few, 1) is None
    assert Fusion.of("reciprocal_rank").best(engine, query, *given, few, 2) is None
