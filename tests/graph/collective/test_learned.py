"""Learned lists of points that come and go."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from learning_cases import ALWAYS
from ran_cases import sheet

from rankfold.graph.collective import CANDIDATES, learning_of
from rankfold.neighbors import DynamicEngine, Learned, Round, changed_rows
from rankfold.neighbors.given import without
from rankfold.types import NOBODY, Neighbors


@cache
def state():
    engine = DynamicEngine.build(sheet(90), "euclidean", CANDIDATES)
    engine.learned = replace(learning_of(engine, 3, 3.0), attempts=ALWAYS).run()
    assert engine.learned.n_rounds
    return engine.state()


def learned_engine():
    return DynamicEngine.restore(*state())


def lists_of(engine):
    found, _ = engine.learned.current(engine)
    return found


def row(lists, i):
    """The list of a point as pairs, without what fills it up."""
    there = lists.indices[i] != NOBODY
    return list(zip(lists.indices[i][there], lists.sq_distances[i][there], strict=True))


def expected_row(engine, i):
    """The learned list without removed points; the plain one where it is too short or unknown."""
    learned = engine.learned
    if i < len(learned.lists.indices):
        left = [(j, d) for j, d in row(learned.lists, i) if engine.alive[j]]
        if len(left) > learned.n_neighbors:
            return left, True
    plain = engine.rows(np.array([i]), learned.lists.width)
    scaled = Neighbors(plain.indices, plain.sq_distances / learned.unit)
    return row(scaled, 0), False


def check_current(engine):
    lists, plain = engine.learned.current(engine)
    for i in range(engine.n_points):
        if not engine.alive[i]:
            assert row(lists, i) == []
            assert i not in plain
            continue
        expected, is_learned = expected_row(engine, i)
        assert row(lists, i) == expected
        assert (i in plain) == (not is_learned)
    assert (np.diff(np.nan_to_num(lists.sq_distances, posinf=1e300), axis=1) >= 0).all()


def test_without_changes_it_is_what_was_learned():
    engine = learned_engine()
    lists, plain = engine.learned.current(engine)
    assert not len(plain)
    np.testing.assert_array_equal(lists.indices, engine.learned.lists.indices)
    np.testing.assert_array_equal(lists.sq_distances, engine.learned.lists.sq_distances)


@examples(25)
@given(seed=st.integers(0, 1000), n_removed=st.integers(0, 70), n_added=st.integers(0, 10))
def test_points_come_and_go(seed, n_removed, n_added):
    engine, rng = learned_engine(), np.random.default_rng(seed)
    engine.remove(rng.permutation(90)[:n_removed])
    if n_added:
        engine.add(sheet(n_added, seed))
    check_current(engine)


@examples(25)
@given(seed=st.integers(0, 1000), n_removed=st.integers(0, 70), n_added=st.integers(0, 10))
def test_compacting_changes_numbers_alone(seed, n_removed, n_added):
    engine, rng = learned_engine(), np.random.default_rng(seed)
    engine.remove(rng.permutation(90)[:n_removed])
    if n_added:
        engine.add(sheet(n_added, seed))
    arrays, kept_settings, slots = engine.compacted()
    fresh = DynamicEngine.restore(arrays, kept_settings)
    before, plain = engine.learned.current(engine)
    after, plain_after = fresh.learned.current(fresh)
    np.testing.assert_array_equal(slots[plain_after], plain)
    for new, old in enumerate(slots):
        named = [(slots[j], d) for j, d in row(after, new)]
        assert named == row(before, old)


def test_new_points_are_in_nobodys_learned_list():
    engine = learned_engine()
    engine.add(sheet(5, 1))
    lists, plain = engine.learned.current(engine)
    np.testing.assert_array_equal(plain, np.arange(90, 95))
    assert lists.indices[:90].max() < 90


def test_a_row_that_lost_too_many_has_its_plain_list():
    engine = learned_engine()
    k, width = engine.learned.n_neighbors, engine.learned.lists.width
    mine = engine.learned.lists.indices[7]
    engine.remove(mine[: width - k - 1])
    assert 7 not in engine.learned.current(engine)[1]
    engine.remove(mine[width - k - 1 : width - k])
    assert 7 in engine.learned.current(engine)[1]
    check_current(engine)


def test_restored_state_is_the_same():
    engine = learned_engine()
    arrays, given_settings = engine.state()
    other = DynamicEngine.restore(arrays, json.loads(json.dumps(given_settings))).learned
    assert other.settings() == engine.learned.settings()
    assert other.rounds == engine.learned.rounds
    np.testing.assert_array_equal(other.lists.indices, engine.learned.lists.indices)
    np.testing.assert_array_equal(other.lists.sq_distances, engine.learned.lists.sq_distances)


def test_nothing_learned_is_nothing_restored():
    engine = DynamicEngine.build(sheet(30), "euclidean", 10)
    arrays, given_settings = engine.state()
    assert DynamicEngine.restore(arrays, given_settings).learned is None
    assert Learned.restore({}, None) is None


def test_where_nothing_was_kept_all_lists_are_plain():
    engine = DynamicEngine.build(sheet(30), "euclidean", 20)
    nobody = engine.rows(np.empty(0, dtype=int), 20)
    engine.learned = Learned(nobody, 4, 4, 1.0, (Round(4, 1, 0.1, 0.1, False),))
    engine.remove([3, 5])
    engine.add(sheet(2, 1))
    assert engine.learned.n_rounds == 0
    lists, plain = engine.learned.current(engine)
    np.testing.assert_array_equal(plain, np.flatnonzero(engine.alive))
    expected = engine.rows(np.arange(32), 20)
    np.testing.assert_array_equal(lists.indices, expected.indices)
    np.testing.assert_array_equal(lists.sq_distances, expected.sq_distances)
    assert len(engine.learned.kept(np.arange(4)).lists.indices) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_closed_up_in_their_own_precision(dtype):
    lists = Neighbors(
        np.array([[1, 2, 3], [2, 3, NOBODY]], dtype=np.int32),
        np.array([[1, 2, 3], [1, 2, np.inf]], dtype=dtype),
    )
    left = without(lists, np.array([False, False, True, False]))
    np.testing.assert_array_equal(left.indices, [[1, 3, NOBODY], [3, NOBODY, NOBODY]])
    np.testing.assert_array_equal(left.sq_distances, [[1, 3, np.inf], [2, np.inf, np.inf]])
    assert left.sq_distances.dtype == dtype
    assert left.indices.dtype == np.int32
    assert without(lists, np.zeros(4, dtype=bool)) is lists


@examples(25)
@given(seed=st.integers(0, 1000), n_removed=st.integers(0, 40), n_added=st.integers(0, 6))
def test_rows_that_are_not_named_have_not_changed(seed, n_removed, n_added):
    engine, rng = learned_engine(), np.random.default_rng(seed)
    for _ in range(2):
        before = lists_of(engine)
        engine.remove(rng.permutation(np.flatnonzero(engine.alive))[:n_removed])
        if n_added:
            engine.add(sheet(n_added, seed))
        after, plain = engine.learned.current(engine)
        named = changed_rows(before, after, plain)
        same = np.setdiff1d(np.arange(engine.n_points), named)
        assert same.max(initial=-1) < len(before.indices)
        np.testing.assert_array_equal(after.indices[same], before.indices[same])
        np.testing.assert_array_equal(after.sq_distances[same], before.sq_distances[same])
        assert np.isin(plain, named).all()
        assert (np.diff(named) > 0).all()


def test_a_plain_row_is_named_even_where_its_neighbours_are_the_same():
    """Its distances may be others."""
    before = Neighbors(np.array([[1, 2], [0, 2], [0, 1]]), np.full((3, 2), 1.0))
    distances = np.array([[1.0, 1.0], [2.0, 2.0], [1.0, 1.0], [1.0, 1.0]])
    after = Neighbors(np.array([[1, 2], [0, 2], [1, 0], [0, 1]]), distances)
    np.testing.assert_array_equal(changed_rows(before, after, np.array([1])), [1, 2, 3])
