"""What PostgreSQL cannot or may not do: clear words, and no password shown."""

import importlib
import sys

import numpy as np
import pytest
from databases.tables import COLUMNS, change, fill, points, settings

from rankfold.check import DatabaseError, InputError, MissingExtraError, UnreachableError
from rankfold.databases.postgresql import PostgreSQL
from rankfold.storage.columns import Column

SECRET = "s3cret"  # noqa: S105


def test_psycopg_is_needed(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("rankfold.databases.postgresql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"rankfold\[postgresql\]"):
        importlib.import_module("rankfold.databases.postgresql")


def test_a_server_that_is_not_there(tmp_path):
    address = f"postgresql://me:{SECRET}@/db?host={tmp_path}"
    with pytest.raises(UnreachableError, match=r"cannot be reached.*server runs") as caught:
        PostgreSQL(address).names()
    assert SECRET not in str(caught.value)


def test_a_wrong_password(server, fresh):
    server.run("DROP ROLE IF EXISTS guarded")
    server.run("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    assert PostgreSQL(server.address(fresh, "guarded", "right")).names() == []
    with pytest.raises(DatabaseError, match="password in PGPASSWORD") as caught:
        PostgreSQL(server.address(fresh, "guarded", SECRET)).names()
    assert SECRET not in str(caught.value)
    assert not isinstance(caught.value, UnreachableError)
    server.run("DROP ROLE guarded")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"database": "nowhere"}, '"nowhere" does not exist.*create the database'),
        ({"user": "nobody_knows"}, "user in the address that the server knows"),
    ],
)
def test_what_the_server_does_not_know(server, changed, message):
    with pytest.raises(DatabaseError, match=message):
        PostgreSQL(server.address(**changed)).names()


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}%zz@host/db",
        f"postgresql://me:{SECRET}@host:port:9/db?x=1",
        f"postgresql://me:50/{SECRET}@host/db",
        f"postgresql://me:50@{SECRET}@host/db",
        f"postgresql://me:{SECRET}@host/db?unknown=1",
        f"postgresql://me:{SECRET}@host/db?timeout=soon",
        f"postgresql://me:{SECRET}@host/db?timeout=0",
    ],
)
def test_addresses_that_cannot_be_read(address):
    with pytest.raises(InputError, match="address of the database") as caught:
        PostgreSQL(address)
    assert SECRET not in str(caught.value)


def test_options_are_taken_to_the_letter_as_libpq_does(server, fresh):
    server.run("DROP ROLE IF EXISTS guarded")
    server.run("CREATE ROLE guarded LOGIN PASSWORD 'one+one=two'")
    address = server.address(fresh, "guarded", password=None)
    assert PostgreSQL(f"{address}&password=one+one%3Dtwo&timeout=%35").names() == []
    server.run("DROP ROLE guarded")


def test_nothing_is_deleted_while_someone_changes_it(server, fresh, filled):
    open_table, *_ = filled
    with open_table().writing() as session:
        with pytest.raises(DatabaseError, match="others are using the index just now"):
            PostgreSQL(server.address(fresh, timeout=0.2)).drop("digits")
        assert len(session.slots()) == session.head.n_alive
    PostgreSQL(server.address(fresh)).drop("digits")


def test_without_the_extension(server, fresh):
    server.run("CREATE ROLE plain LOGIN")
    server.run(f"ALTER DATABASE {fresh} OWNER TO plain")
    database = PostgreSQL(server.address(fresh, user="plain"))
    assert database.names() == []
    with pytest.raises(DatabaseError, match="administrator to run CREATE EXTENSION vector"):
        database.check_place("digits", replace=False)
    server.run("CREATE EXTENSION vector", fresh)
    database.check_place("digits", replace=False)
    fill(database, "digits")
    assert database.names() == ["digits"]
    server.run(f"ALTER DATABASE {fresh} OWNER TO rankfold")
    server.run("DROP OWNED BY plain CASCADE", fresh)
    server.run("DROP ROLE plain")


def test_an_extension_that_is_too_old(server, fresh):
    server.run("CREATE EXTENSION vector", fresh)
    server.run("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'", fresh)
    with pytest.raises(DatabaseError, match=r"pgvector 0\.7\.4, but 0\.8 or newer"):
        PostgreSQL(server.address(fresh)).check_place("digits", replace=False)


def test_a_user_who_may_not_create_tables(server, fresh):
    server.run("CREATE EXTENSION vector", fresh)
    server.run("CREATE ROLE reader LOGIN")
    with pytest.raises(DatabaseError, match="administrator for the rights"):
        PostgreSQL(server.address(fresh, user="reader")).check_place("digits", replace=False)
    server.run("DROP ROLE reader")


def test_a_wrong_number_of_features(filled):
    open_table, given, _ = filled
    table = open_table()
    with table.reading() as session, pytest.raises(InputError, match=r"4 features.*have 3"):
        session.search(np.zeros((1, 4), dtype=np.float32), 3)
    made, _ = change(given, [], points([20]))
    wrong = made.added._replace(vectors=np.zeros((1, 5), dtype=np.float32))
    with table.writing() as writing, pytest.raises(InputError, match=r"\(1, 5\).*\(1, 3\)"):
        writing.commit(made._replace(added=wrong))


def test_too_many_features_for_an_index(server, fresh):
    database = PostgreSQL(server.address(fresh))
    for n_features, search in ((2001, "hnsw"), (16_001, "exact")):
        with pytest.raises(DatabaseError, match=f"{n_features} features.*up to"):
            fill(database, "wide", n_features=n_features, search=search)
    assert database.names() == []


def test_unknown_names_are_answered_with_those_there_are(server, fresh):
    database = PostgreSQL(server.address(fresh))
    with pytest.raises(DatabaseError, match="there are none"):
        database.open("letters")
    fill(database, "digits")
    with pytest.raises(DatabaseError, match="no index 'letters'; there are 'digits'"):
        database.open("letters")


def test_ids_that_are_too_long(server, fresh):
    database = PostgreSQL(server.address(fresh))
    rng = np.random.default_rng(0)
    longest = ["".join(map(chr, rng.integers(0x10000, 0x1F000, n))) for n in (650, 651, 3, 4)]
    with database.create("digits", settings(), COLUMNS, replace=False) as filling:
        with pytest.raises(InputError, match=r"2604 bytes.*up to 2600"):
            filling.add(points(np.arange(4))._replace(ids=longest), None)
        filling.add(points(np.arange(4))._replace(ids=[longest[0], *"abc"]), None)
        filling.finish()
    table = database.open("digits")
    with table.reading() as session:
        assert session.find(longest).tolist() == [0, -1, -1, -1]
    table.close()
    with pytest.raises(InputError, match="was closed"), table.reading():
        pytest.fail("a closed table can be read")


def test_ids_that_are_given_twice(server, fresh):
    database = PostgreSQL(server.address(fresh))
    twice = points(np.arange(4))._replace(ids=["a", "b", "a", 1])
    with database.create("digits", settings(), COLUMNS, replace=False) as filling:
        filling.add(twice, None)
        with pytest.raises(InputError, match=r"more than once.*a"):
            filling.finish()
    assert database.names() == []


def test_numbers_that_would_lose_digits(filled):
    open_table, _, _ = filled
    table = open_table()
    wider = (Column("price", "number", 0), *COLUMNS[1:])
    with table.writing() as writing:
        writing.change_payload(np.array([1]), {"price": [2**53 + 1]}, COLUMNS)
    with table.writing() as writing, pytest.raises(InputError, match="lose digits"):
        writing.change_payload(np.array([2]), {"price": [0.5]}, wider)
