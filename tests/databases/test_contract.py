"""What every database has to do, in the words of `rankfold.databases.contract`."""

from contextlib import suppress
from threading import Thread

import numpy as np
import pytest
from databases.tables import (
    COLUMNS,
    WIDTH,
    change,
    fill,
    no_points,
    points,
    rows,
    rows_of,
    same_rows,
    settings,
)

from rankfold.check import DatabaseError, InputError, MovedError

EVERYBODY = np.arange(20)


@pytest.fixture
def filled(database, name):
    """Return an open table, its points and its rows."""
    given, true = fill(database, name)
    table = database.open(name)
    yield table, given, true
    table.close()


def test_a_head_says_what_there_is(filled):
    table, _, _ = filled
    with table.reading() as session:
        head = session.head
        assert (head.n_points, head.n_alive) == (20, 20)
        assert head.settings == settings()
        assert head.columns == COLUMNS
        assert session.round_trips >= 0
    assert "password" not in table.place


def test_rows_are_those_that_were_written(filled):
    table, _, true = filled
    with table.reading() as session:
        same_rows(session.rows(EVERYBODY), true)
        before = session.round_trips
        same_rows(session.rows(np.array([3, 7, 11])), rows_of(true, [3, 7, 11]))
        assert session.round_trips > before
        assert len(session.rows(np.array([99, 1000]))) == 0
        same_rows(session.rows(np.array([99, 5])), rows_of(true, [5]))


def test_rows_around_are_those_of_the_points_and_of_all_that_list_them(filled):
    table, _, true = filled
    chosen = np.array([2, 9])
    expected = np.union1d(chosen, true.sources_of(chosen))
    with table.reading() as session:
        same_rows(session.rows(chosen, around=True), rows_of(true, expected))
        assert len(session.rows(np.empty(0, dtype=np.int64), around=True)) == 0


def test_a_search_finds_the_nearest(filled):
    table, given, _ = filled
    queries = points(np.arange(4), seed=5).vectors
    with table.reading() as session:
        found = session.search(queries, 6)
        everybody = session.search(queries[:1], 100)
    assert len(found) == 4
    for query, (slots, vectors) in zip(queries, found, strict=True):
        order = np.argsort(((given.vectors - query) ** 2).sum(axis=1))
        assert set(slots[:6].tolist()) == set(order[:6].tolist())
        np.testing.assert_array_equal(vectors, given.vectors[slots])
        assert vectors.dtype == np.float32
    assert sorted(everybody[0][0].tolist()) == list(range(20))


CONDITIONS = {
    "price > 40": lambda row: row["price"] is not None and row["price"] > 40,
    "not price > 40": lambda row: row["price"] is None or row["price"] <= 40,
    "color = 'it''s' or sold": lambda row: row["color"] == "it's" or row["sold"] is True,
    "color like 'R%'": lambda row: row["color"] == "red",
    "size is null": lambda row: row["size"] is None,
    "size between -1 and 0.5": lambda row: row["size"] is not None and -1 <= row["size"] <= 0.5,
    "id = 3": lambda row: row["id"] == 3,
    "id in ('3', '5')": lambda row: row["id"] in ("3", "5"),
    "price > 1000": lambda row: False,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions(filled, where):
    table, given, _ = filled
    names = list(given.payload)
    values = zip(given.ids, *given.payload.values(), strict=True)
    table_rows = [dict(zip(["id", *names], row, strict=True)) for row in values]
    true = [slot for slot, row in enumerate(table_rows) if CONDITIONS[where](row)]
    with table.reading() as session:
        assert session.matching(where).tolist() == true
        some = np.arange(0, 20, 3)
        assert session.matching(where, some).tolist() == [s for s in true if s % 3 == 0]
        ((slots, _),) = session.search(np.zeros((1, 3), dtype=np.float32), 100, where)
        assert sorted(slots.tolist()) == true
        ((nearest, _),) = session.search(given.vectors[:1], 2, where)
    order = [s for s in np.argsort(((given.vectors - given.vectors[0]) ** 2).sum(1)) if s in true]
    assert set(order[:2]) <= set(nearest.tolist()) <= set(true)


def test_conditions_that_cannot_be_read(filled):
    table, _, _ = filled
    with table.reading() as session:
        with pytest.raises(InputError, match="no column 'prize'"):
            session.matching("prize > 3")
        with pytest.raises(InputError, match="expected"):
            session.search(np.zeros((1, 3), dtype=np.float32), 3, "price >")


def test_listers_are_all_that_would_list_a_vector(filled):
    table, given, true = filled
    queries = points(np.arange(5), seed=6).vectors
    with table.reading() as session:
        found = session.listers(queries)
    assert found is not None  # the settings ask for exact search
    for query, (slots, vectors) in zip(queries, found, strict=True):
        near = ((given.vectors.astype(np.float64) - query) ** 2).sum(axis=1)
        entered = np.flatnonzero(near < true.lists.sq_distances[:, -1])
        assert set(entered.tolist()) <= set(slots.tolist())
        np.testing.assert_array_equal(vectors, given.vectors[slots])


def test_lists_that_hold_all_others_let_everybody_in(database, name):
    fill(database, name, n=WIDTH)
    table = database.open(name)
    with table.reading() as session:
        ((slots, _),) = session.listers(np.full((1, 3), 1e6, dtype=np.float32))
        assert sorted(slots.tolist()) == list(range(WIDTH))
    table.close()


def test_points_in_the_order_that_is_asked_for(filled):
    table, given, _ = filled
    chosen = np.array([7, 2, 19])
    with table.reading() as session:
        np.testing.assert_array_equal(session.vectors(chosen), given.vectors[chosen])
        np.testing.assert_array_equal(session.places(chosen), given.places[chosen])
        assert session.slots().tolist() == list(range(20))
        ids, payload = session.points(chosen, (COLUMNS[3], COLUMNS[0]))
        assert ids == [given.ids[slot] for slot in chosen]
        assert payload == {n: [given.payload[n][s] for s in chosen] for n in ("sold", "price")}
        assert list(map(type, ids)) == [int, str, int]
        _, everything = session.points(EVERYBODY, COLUMNS)
        assert everything == given.payload
        assert session.points(chosen, ())[1] == {}
        assert session.largest_number() == 19


def test_ids_are_found_to_the_letter(filled):
    table, _, _ = filled
    with table.reading() as session:
        assert session.find([3, "3", "5", 5, "nobody", 4]).tolist() == [3, 4, 6, 5, -1, -1]
        assert session.find([]).tolist() == []


def test_a_scan_passes_by_everybody(filled):
    table, given, _ = filled
    with table.reading() as session:
        blocks = list(session.scan())
    assert np.concatenate([slots for slots, _ in blocks]).tolist() == list(range(20))
    np.testing.assert_array_equal(np.concatenate([x for _, x in blocks]), given.vectors)


def test_a_change_is_made_at_once(filled):
    table, given, true = filled
    new = points([20, 21, 22], seed=3)._replace(ids=[given.ids[4], "new", 77])
    made, after = change(given, [4, 9], new)
    with table.reading() as before, table.writing() as writing:
        version = before.head.version
        same_rows(writing.rows(EVERYBODY), true)
        assert writing.commit(made) == version + 1
        with suppress(MovedError):  # who keeps no older state says so
            same_rows(before.rows(EVERYBODY), true)
            assert before.find([given.ids[4]]).tolist() == [4]
    with table.reading() as session:
        assert session.head[:3] == (version + 1, 23, 21)
        same_rows(session.rows(np.arange(30)), rows(after.slots, after.vectors))
        assert session.slots().tolist() == after.slots.tolist()
        np.testing.assert_array_equal(session.vectors(after.slots), after.vectors)
        np.testing.assert_array_equal(session.places(after.slots), after.places)
        assert session.points(after.slots, COLUMNS) == (after.ids, after.payload)
        assert session.find([given.ids[9], given.ids[4], 77]).tolist() == [-1, 20, 22]
        assert session.largest_number() == 77
        changed = session.changed_since(version)
        assert set(np.union1d(made.removed, made.rows.slots).tolist()) <= set(changed.tolist())
        assert session.changed_since(version + 1).tolist() == []
        ((slots, _),) = session.search(new.vectors[1:2], 1)
        assert 21 in slots


def test_removing_everybody_leaves_a_table(filled):
    table, given, _ = filled
    made, _ = change(given, given.slots, no_points())
    with table.writing() as writing:
        writing.commit(made)
    with table.reading() as session:
        assert session.head[1:3] == (20, 0)
        assert len(session.rows(EVERYBODY)) == len(session.slots()) == 0
        assert session.largest_number() is None
        assert list(session.scan()) == []
        ((slots, vectors),) = session.search(np.zeros((1, 3), dtype=np.float32), 3)
        assert (len(slots), vectors.shape) == (0, (0, 3))
        assert [len(slots) for slots, _ in session.listers(np.zeros((1, 3), np.float32))] == [0]
    with table.writing() as writing:
        again = points([20])
        writing.commit(change(given, given.slots, again)[0]._replace(removed=np.empty(0, int)))
    with table.reading() as session:
        assert session.points(np.array([20]), COLUMNS) == (again.ids, again.payload)


def test_a_block_that_fails_changes_nothing(filled):
    table, given, true = filled
    made, _ = change(given, [1], no_points())

    def fail():
        with table.writing() as writing:
            assert writing.head.version == version
            raise KeyError

    with table.reading() as session:
        version = session.head.version
    with pytest.raises(KeyError):
        fail()
    with table.writing() as writing:
        assert writing.head.version == version
        same_rows(writing.rows(EVERYBODY), true)
        writing.commit(made)


def test_payload_is_changed_where_it_is(filled):
    table, given, true = filled
    with table.writing() as writing:
        version = writing.head.version
        writing.change_payload(np.array([5, 2]), {"color": ["blue", None]}, COLUMNS)
    wider = (COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3])
    with table.reading() as session:
        assert session.head.version == version
        same_rows(session.rows(EVERYBODY), true)
        _, payload = session.points(np.array([2, 5, 6]), wider)
    assert payload["color"] == [None, "blue", given.payload["color"][6]]
    assert payload["price"] == [given.payload["price"][slot] for slot in (2, 5, 6)]


def test_whole_numbers_become_others(filled):
    table, given, _ = filled
    wider = (COLUMNS[0].__class__("price", "number", 0), *COLUMNS[1:])
    with table.writing() as writing:
        writing.change_payload(np.array([5]), {"price": [2.5]}, wider)
    with table.reading() as session:
        assert session.head.columns == wider
        _, payload = session.points(EVERYBODY, wider)
        assert session.matching("price = 2.5").tolist() == [5]
    expected = [2.5 if slot == 5 else price for slot, price in enumerate(given.payload["price"])]
    assert payload["price"] == expected
    assert {type(price) for price in payload["price"]} <= {float, type(None)}


def test_versions_long_ago_are_forgotten_or_told_right(filled):
    table, given, _ = filled
    with table.reading() as session:
        first = session.head.version
    for number in range(3):
        new = points([20 + number], seed=number)._replace(ids=[f"new {number}"])
        made, given = change(given, [number], new)
        with table.writing() as writing:
            writing.commit(made)
    with table.reading() as session:
        assert {0, 1, 2, 20, 21, 22} <= set(session.changed_since(first).tolist())
        assert session.changed_since(first - 1000) is None


def test_two_tables_on_one_index_see_each_other(filled, database, name):
    table, given, _ = filled
    other = database.open(name)
    made, _ = change(given, [3], no_points())
    with other.writing() as writing:
        writing.commit(made)
    with table.reading() as session:
        assert session.find([3]).tolist() == [-1]
    other.close()


def test_writers_wait_for_each_other(filled):
    table, _, _ = filled
    versions = []

    def add(number):
        with table.writing() as writing:
            head = writing.head
            new = points([head.n_points], seed=number)._replace(ids=[f"new {number}"])
            only = rows(new.slots, new.vectors)
            versions.append(writing.commit(change(no_points(), [], new)[0]._replace(rows=only)))

    threads = [Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with table.reading() as session:
        assert sorted(versions) == list(range(session.head.version - 3, session.head.version + 1))
        assert sorted(session.find([f"new {i}" for i in range(4)]).tolist()) == [20, 21, 22, 23]


def test_nobody_sees_a_table_in_the_making(database, name):
    given = points(np.arange(10))
    true = rows(given.slots, given.vectors)
    with database.create(name, settings(), COLUMNS, replace=False) as filling:
        filling.add(given, None)
        assert name not in database.names()
        with filling.session() as session:
            ((slots, vectors),) = session.search(given.vectors[3:4], 1)
            assert 3 in slots
            np.testing.assert_array_equal(vectors, given.vectors[slots])
            assert np.concatenate([slots for slots, _ in session.scan()]).tolist() == [*range(10)]
        filling.write_rows(rows_of(true, np.arange(4)))
        filling.write_rows(rows_of(true, np.arange(4, 10)))
        filling.finish()
    assert name in database.names()
    table = database.open(name)
    with table.reading() as session:
        same_rows(session.rows(given.slots), true)
    table.close()


def test_without_an_end_nothing_is_left(database, name):
    with database.create(name, settings(), COLUMNS, replace=False) as filling:
        filling.add(points(np.arange(4)), None)
    assert name not in database.names()

    def fail():
        with database.create(name, settings(), COLUMNS, replace=False) as filling:
            filling.add(points(np.arange(4)), None)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert name not in database.names()
    database.check_place(name, replace=False)


def test_a_table_takes_the_place_of_another_only_if_it_may(filled, database, name):
    table, _, true = filled
    with pytest.raises(InputError, match="replace"):
        database.check_place(name, replace=False)
    with pytest.raises(InputError, match="replace"):
        fill(database, name)
    with table.reading() as session:
        version = session.head.version
        same_rows(session.rows(EVERYBODY), true)
    _, others = fill(database, name, n=12, replace=True)
    with table.reading() as session:
        assert session.head.version > version
        assert session.changed_since(version) is None
        assert session.head.n_points == 12
        same_rows(session.rows(EVERYBODY), others)


def test_what_is_not_there(database, name):
    for ask in (database.open, database.drop):
        with pytest.raises(DatabaseError, match=name):
            ask(name)


def test_a_table_can_be_dropped(database, name):
    fill(database, name)
    database.drop(name)
    assert name not in database.names()
    database.check_place(name, replace=False)


def test_another_table_of_a_name_is_not_taken_for_the_dropped_one(filled, database, name):
    table, _, _ = filled
    with table.reading() as session:
        version = session.head.version
    database.drop(name)
    with pytest.raises(DatabaseError, match=name), table.reading():
        pass
    fill(database, name, n=12)
    with table.reading() as session:
        assert session.head.version > version
        assert session.changed_since(version) is None


def test_lists_in_single_precision(database, name):
    given = points(np.arange(9))
    true = rows(given.slots, given.vectors, precision=np.float32)
    with database.create(name, settings(precision="single"), COLUMNS, replace=False) as filling:
        filling.add(given, true)
        filling.finish()
    table = database.open(name)
    with table.reading() as session:
        found = session.rows(given.slots)
        assert found.lists.sq_distances.dtype == np.float32
        same_rows(found, true)
    table.close()
