"""What PostgreSQL does beyond the contract: HNSW searches, few exchanges, names that are data."""

import numpy as np
import pytest
from databases.servers import postgresql, postgresql_address
from databases.tables import COLUMNS, change, fill, no_points, points, rows, same_rows, settings

from rankfold.databases.contract import NewPoints
from rankfold.databases.postgresql import PostgreSQL, portions, reading, schema
from rankfold.storage.columns import Column

EVERYBODY = np.arange(20)


@pytest.fixture(scope="module")
def database():
    return PostgreSQL(postgresql_address())


@pytest.fixture
def table(database):
    fill(database, "small")
    table = database.open("small")
    yield table
    table.close()
    database.drop("small")


@pytest.fixture(scope="module")
def large(database):
    """Return a table that is searched by HNSW, and its points."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 16)).astype(np.float32)
    shade = rng.integers(0, 1000, len(X)).tolist()
    given = NewPoints(np.arange(len(X)), list(range(len(X))), X, {"shade": shade}, None)
    chosen, columns = settings(16, search="hnsw"), (Column("shade", "integer", 0),)
    with database.create("large", chosen, columns, replace=False) as filling:
        filling.add(given, None)
        with filling.session() as session:
            ((slots, _),) = session.search(X[5:6], 1)
            assert slots.tolist() == [5]
        filling.finish()
    table = database.open("large")
    yield table, given
    table.close()
    database.drop("large")


def test_an_index_in_the_making_finds_as_many_as_are_asked_for():
    """By itself HNSW follows no more than a thousand candidates."""
    by_index = "-cenable_seqscan%3Doff%20-cenable_sort%3Doff"
    database, given = PostgreSQL(postgresql().address(options=by_index)), points(np.arange(1600))
    making = database.create("making", settings(search="hnsw"), COLUMNS, replace=False)
    with making as filling:
        filling.add(given, None)
        with filling.session() as session:
            ((slots, _),) = session.search(given.vectors[:1], 1500)
    assert len(np.unique(slots)) == 1500


def test_large_changes_are_told_to_those_who_ask(table, monkeypatch):
    monkeypatch.setattr("rankfold.databases.postgresql.table.FEW_SLOTS", 2)
    given = points(EVERYBODY)
    with table.reading() as session:
        version = session.head.version
    with table.writing() as writing:
        writing.commit(change(given, [4], no_points())[0])
    with table.reading() as session:
        begun = session.round_trips
        assert session.changed_since(version).tolist() == EVERYBODY.tolist()
        assert session.round_trips == begun + 1


def true_nearest(X, vector, k):
    return np.argsort(((X.astype(np.float64) - vector) ** 2).sum(axis=1))[:k]


def test_an_index_is_searched(large):
    table, _ = large
    ((number,),) = postgresql().run("SELECT number FROM rankfold_tables WHERE name = 'large'")
    plan = postgresql().run(
        f"EXPLAIN SELECT slot FROM rankfold_{number}_points "  # noqa: S608
        f"ORDER BY vector <-> '{[0] * 16}' LIMIT 10"
    )
    assert f"Index Scan using rankfold_{number}_vectors" in "".join(line for (line,) in plan)
    with table.reading() as session:
        assert session.listers(np.zeros((1, 16), dtype=np.float32)) is None


@pytest.mark.parametrize("k", [1, 10, 60, 1500, 5000])
def test_an_index_finds_nearly_all_that_are_nearest(large, k):
    table, given = large
    queries = np.random.default_rng(1).normal(size=(5, 16)).astype(np.float32)
    with table.reading() as session:
        found = session.search(queries, k)
    for query, (slots, vectors) in zip(queries, found, strict=True):
        true = true_nearest(given.vectors, query, k)
        assert len(np.unique(slots)) == len(true)
        assert len(np.intersect1d(slots, true)) >= 0.95 * len(true)
        np.testing.assert_array_equal(vectors, given.vectors[slots])


@pytest.mark.parametrize("where", ["shade < 500", "shade < 5", "shade = 3 or id = 17"])
def test_an_index_is_searched_until_enough_meet_a_condition(large, where):
    table, given = large
    query = given.vectors[17] + np.float32(0.01)
    with table.reading() as session:
        matching = session.matching(where)
        ((slots, _),) = session.search(query[None], 8, where)
    true = matching[true_nearest(given.vectors[matching], query, 8)]
    assert len(slots) == len(true)
    assert len(np.intersect1d(slots, true)) >= 0.75 * len(true)


def test_points_that_come_are_found_by_the_index(large):
    table, given = large
    new = NewPoints(np.array([3000]), ["new"], np.full((1, 16), 9, np.float32),
                    {"shade": [1]}, None)  # fmt: skip
    made = change(points(np.arange(3)), [], no_points())[0]
    only = rows(np.arange(3001)[-1:], new.vectors)
    with table.writing() as writing:
        columns = writing.head.columns
        writing.commit(made._replace(added=new, rows=only, columns=columns))
    with table.reading() as session:
        ((slots, _),) = session.search(new.vectors, 1)
        assert slots.tolist() == [3000]
    nobody = NewPoints(np.arange(0), [], new.vectors[:0], {"shade": []}, None)
    gone = made._replace(
        removed=new.slots, rows=rows([], new.vectors[:0]), columns=columns, added=nobody
    )
    with table.writing() as writing:
        writing.commit(gone)
    with table.reading() as session:
        ((slots, _),) = session.search(new.vectors, 1)
        assert slots.tolist() == true_nearest(given.vectors, new.vectors[0], 1).tolist()


def test_each_question_is_one_exchange(large, table):
    with large[0].reading() as session:
        session.search(np.zeros((9, 16), dtype=np.float32), 10)
        assert session.round_trips == 2  # the settings of the search go along
    with table.reading() as session:
        assert session.round_trips == 1
        version = session.head.version
        session.rows(np.arange(5), around=True)
        session.search(np.zeros((9, 3), dtype=np.float32), 2, "price > 3")
        session.find([3, "3"])
        assert session.round_trips == 4
    given = points(EVERYBODY)
    with table.writing() as writing:
        writing.commit(change(given, [3], no_points())[0])
    with table.reading() as session:
        assert 3 in session.changed_since(version)
        assert session.round_trips == 1  # what changed since the last session comes by itself


def test_many_slots_and_vectors_are_cut_into_several_exchanges(table, monkeypatch):
    query = points(np.arange(9), seed=4).vectors
    with table.reading() as session:
        whole = session.rows(EVERYBODY), session.rows(EVERYBODY[:9], around=True)
        found = session.search(query, 3)
        told = session.points(EVERYBODY, COLUMNS), session.vectors(EVERYBODY)
        places, matching = session.places(EVERYBODY), session.matching("sold", EVERYBODY)
    monkeypatch.setattr(portions, "MOST_SLOTS", 4)
    monkeypatch.setattr(reading, "MOST_VECTORS", 2)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 36)
    with table.reading() as session:
        same_rows(session.rows(EVERYBODY), whole[0])
        same_rows(session.rows(EVERYBODY[:9], around=True), whole[1])
        assert session.round_trips == 1 + 5 + 3
        for (slots, _), (expected, _) in zip(session.search(query, 3), found, strict=True):
            assert slots.tolist() == expected.tolist()
        assert session.round_trips == 1 + 5 + 3 + 5
        assert session.points(EVERYBODY, COLUMNS) == told[0]
        np.testing.assert_array_equal(session.vectors(EVERYBODY[::-1]), told[1][::-1])
        np.testing.assert_array_equal(session.places(EVERYBODY[::-1]), places[::-1])
        assert session.matching("sold", EVERYBODY).tolist() == matching.tolist()
        assert [slots.tolist() for slots, _ in session.scan()][:2] == [[0, 1, 2], [3, 4, 5]]
        ids = told[0][0]
        assert session.find(ids).tolist() == EVERYBODY.tolist()


@pytest.mark.parametrize("n_features", [1, 900, 1500, 2500])
def test_vectors_of_any_length(database, n_features):
    given = points(np.arange(6), n_features=n_features)
    chosen = settings(n_features)
    with database.create("long", chosen, COLUMNS, replace=True) as filling:
        filling.add(given, rows(given.slots, given.vectors))
        filling.finish()
    table = database.open("long")
    with table.reading() as session:
        np.testing.assert_array_equal(session.vectors(given.slots), given.vectors)
        ((slots, _),) = session.search(given.vectors[2:3], 1)
        assert slots.tolist() == [2]
    table.close()
    database.drop("long")


def test_names_are_data(database):
    name = "a'; DROP TABLE rankfold_tables; -- %s ü {number} \\' \\"
    _, true = fill(database, name)
    assert name in database.names()
    table = database.open(name)
    with table.reading() as session:
        same_rows(session.rows(EVERYBODY), true)
    table.close()
    database.drop(name)
    assert name not in database.names()


def test_no_version_is_used_twice(database):
    versions = []
    for _ in range(2):
        fill(database, "again")
        table = database.open("again")
        with table.reading() as session:
            versions.append(session.head.version)
            assert session.changed_since(session.head.version - 1) is None
        table.close()
        database.drop("again")
    assert versions[0] < versions[1]


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", [2**60, None]), ("number", [0.5, None]), ("text", ["a", None]),
     ("boolean", [True, False])],
)  # fmt: skip
def test_a_column_without_values_takes_any_kind(database, kind, values):
    empty = points(np.arange(4))._replace(payload={"note": [None] * 4})
    columns = (Column("note", "unknown", 0),)
    with database.create("notes", settings(), columns, replace=True) as filling:
        filling.add(empty, rows(empty.slots, empty.vectors))
        filling.finish()
    table, known = database.open("notes"), (Column("note", kind, 0),)
    with table.writing() as writing:
        assert writing.matching("note = 3 or note like 'x' or note in ('a', true)").tolist() == []
        writing.change_payload(np.array([1, 2]), {"note": values}, known)
    with table.reading() as session:
        assert session.head.columns == known
        assert session.points(np.arange(4), known)[1] == {"note": [None, *values, None]}
    table.close()
    database.drop("notes")


def test_old_changes_are_forgotten(table, monkeypatch):
    monkeypatch.setattr("rankfold.databases.postgresql.writing.CHANGES_KEPT", 2)
    assert schema.CHANGES_KEPT > 100
    given, versions = points(EVERYBODY), []
    for slot in range(4):
        made, given = change(given, [slot], no_points())
        with table.writing() as writing:
            versions.append(writing.commit(made))
    with table.reading() as session:
        assert session.changed_since(versions[-1]).tolist() == []
        assert {2, 3} <= set(session.changed_since(versions[-3]).tolist())
        assert session.changed_since(versions[-4]) is None
        assert session.changed_since(versions[-1] + 1) is None
