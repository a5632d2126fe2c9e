"""Rows that were read before are those of the state that is read."""

import numpy as np
import pytest
from databases.memory import MemoryDatabase
from databases.tables import STORED, change, fill, no_points, points, rows_of, same_rows

from rankfold.databases.cache import RowCache
from rankfold.databases.engine import TableEngine
from rankfold.databases.sessions import Sessions

EVERYBODY = np.arange(20)


@pytest.fixture
def filled():
    """Return a table, its points and its rows."""
    database = MemoryDatabase()
    given, true = fill(database, "x")
    return database.open("x"), given, true


def test_what_was_remembered_is_known(filled):
    table, _, true = filled
    cache = RowCache(STORED, "double")
    with table.reading() as session:
        found, known = cache.known(session, EVERYBODY)
        assert not found.any()
        assert len(known) == 0
        cache.remember(session, rows_of(true, [2, 5, 11]))
        cache.remember(session, rows_of(true, [3]))
        found, known = cache.known(session, EVERYBODY)
    assert np.flatnonzero(found).tolist() == [2, 3, 5, 11]
    same_rows(known, rows_of(true, [2, 3, 5, 11]))


@pytest.mark.parametrize("n_lines", [1, 3, 7, 16])
def test_small_caches_forget_but_never_mix_up(filled, n_lines):
    table, _, true = filled
    cache = RowCache(STORED, "double", most_bytes=n_lines * (STORED * 16 + 24))
    rng = np.random.default_rng(0)
    n_known = 0
    with table.reading() as session:
        for _ in range(200):
            places = np.flatnonzero(rng.random(20) < 0.3)
            cache.remember(session, rows_of(true, places))
            found, known = cache.known(session, EVERYBODY)
            same_rows(known, rows_of(true, np.flatnonzero(found)))
            n_known += len(known)
            assert len(known) <= n_lines
    assert n_known > 0


def test_a_later_state_forgets_what_has_changed(filled):
    table, given, true = filled
    cache = RowCache(STORED, "double")
    made, after = change(given, [4], no_points())
    made = made._replace(rows=rows_of(made.rows, np.flatnonzero(made.rows.slots < 9)))
    with table.reading() as before:
        cache.remember(before, true)
        with table.writing() as writing:
            writing.commit(made)
        with table.reading() as session:
            found, known = cache.known(session, EVERYBODY)
            assert np.flatnonzero(found).tolist() == list(range(9, 20))
            same_rows(known, rows_of(true, np.arange(9, 20)))
            cache.remember(session, session.rows(EVERYBODY))
        found, _ = cache.known(before, EVERYBODY)
        assert not found.any()
        cache.remember(before, true)
    with table.reading() as session:
        same_rows(cache.known(session, EVERYBODY)[1], session.rows(EVERYBODY))
    assert 4 not in after.slots


def test_what_is_known_is_not_asked_for_again(filled):
    table, _, true = filled
    engine = TableEngine(Sessions(table), table.state.settings)
    with engine._sessions.current():
        for slots in ([3, 8], [8], [3]):
            expected = np.union1d(slots, true.sources_of(np.array(slots)))
            before = engine.round_trips
            found = engine.around(np.array(slots))
            assert engine.round_trips - before == (slots == [3, 8])
            assert set(expected.tolist()) <= set(found.slots.tolist())
            same_rows(found, rows_of(true, found.slots))


def test_around_has_everybody_who_lists_in_one_exchange(filled):
    table, given, _ = filled
    rng = np.random.default_rng(1)
    for step in range(10):
        new = points([20 + step], seed=step)._replace(ids=[f"new {step}"])
        made, given = change(given, [step], new)
        with table.writing() as writing:
            writing.commit(made)
        engine = TableEngine(Sessions(table), table.state.settings)
        with engine._sessions.current() as session:
            true = session.rows(np.arange(40))
            for _ in range(6):
                slots = rng.choice(true.slots, 3, replace=False)
                before = engine.round_trips
                found = engine.around(slots)
                assert engine.round_trips - before <= 1
                wanted = np.union1d(slots, true.sources_of(true.places_of(slots)))
                assert set(wanted.tolist()) <= set(found.slots.tolist())
                same_rows(found, rows_of(true, true.places_of(found.slots)))
