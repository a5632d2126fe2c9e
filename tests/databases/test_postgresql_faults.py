"""What goes wrong with PostgreSQL: clear words, nothing half-written, no password shown."""

import importlib
import signal
import sys
import time
from threading import Event, Thread
from uuid import uuid4

import numpy as np
import psycopg
import pytest
from databases.cutting import cut_after
from databases.servers import PostgreSQLServer, postgresql
from databases.tables import COLUMNS, change, fill, no_points, points, same_rows, settings

from rankfold.check import DatabaseError, InputError, MissingExtraError, UnreachableError
from rankfold.databases.postgresql import PostgreSQL
from rankfold.storage.columns import Column

EVERYBODY = np.arange(20)
SECRET = "s3cret"  # noqa: S105


@pytest.fixture
def server():
    return postgresql()


@pytest.fixture
def fresh(server):
    """Return the name of a database in which nothing is."""
    name = f"test_{uuid4().hex}"
    server.run(f"CREATE DATABASE {name}")
    yield name
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def filled(server, fresh):
    """Return a function that opens the same table by any address, its points and its rows."""
    given, true = fill(PostgreSQL(server.address(fresh)), "digits")
    opened = []

    def open_table(**options):
        opened.append(PostgreSQL(server.address(fresh, **options)).open("digits"))
        return opened[-1]

    yield open_table, given, true
    for table in opened:
        table.close()


def cut_off(server, database):
    """End all connections to a database."""
    others = f"WHERE datname = '{database}' AND pid <> pg_backend_pid()"
    server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {others}")  # noqa: S608


def read(table):
    with table.reading() as session:
        return session.rows(EVERYBODY)


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


def test_a_wrong_password(server):
    server.run("DROP ROLE IF EXISTS guarded")
    server.run("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    assert isinstance(PostgreSQL(server.address(user="guarded", password="right")).names(), list)  # noqa: S106
    with pytest.raises(DatabaseError, match="right user and password") as caught:
        PostgreSQL(server.address(user="guarded", password=SECRET)).names()
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
        f"postgresql://me:{SECRET}@host/db?unknown=1",
        f"postgresql://me:{SECRET}@host/db?timeout=soon",
        f"postgresql://me:{SECRET}@host/db?timeout=0",
    ],
)
def test_addresses_that_cannot_be_read(address):
    with pytest.raises(InputError, match="address of the database") as caught:
        PostgreSQL(address)
    assert SECRET not in str(caught.value)


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


def test_a_connection_lost_in_the_middle_of_a_session(server, fresh, filled):
    open_table, _, true = filled
    table = open_table()
    with table.reading() as session:
        cut_off(server, fresh)
        with pytest.raises(UnreachableError, match="try again"):
            session.rows(EVERYBODY)
    same_rows(read(table), true)


def test_connections_that_were_lost_meanwhile_are_not_noticed(server, fresh, filled):
    open_table, _, true = filled
    table = open_table()
    with table.reading(), table.reading():
        pass
    cut_off(server, fresh)
    same_rows(read(table), true)
    cut_off(server, fresh)
    with table.writing() as writing:
        same_rows(writing.rows(EVERYBODY), true)


def test_a_connection_lost_before_a_commit(server, fresh, filled):
    open_table, given, true = filled
    table = open_table()
    made, _ = change(given, [3], no_points())
    with table.writing() as writing:
        cut_off(server, fresh)
        with pytest.raises(UnreachableError, match="try again"):
            writing.commit(made)
    same_rows(read(table), true)


def test_a_commit_that_fails_at_the_very_end(server, fresh, filled):
    open_table, given, true = filled
    ((number,),) = server.run("SELECT number FROM rankfold_tables", fresh)
    server.run(
        "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'",
        fresh,
    )
    server.run(
        f"CREATE CONSTRAINT TRIGGER leaving AFTER INSERT ON rankfold_{number}_changes "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION leave()",
        fresh,
    )
    table = open_table()
    made, _ = change(given, [3], no_points())
    with table.writing() as writing, pytest.raises(UnreachableError, match="nothing was changed"):
        writing.commit(made)
    same_rows(read(table), true)


def test_a_commit_whose_answer_is_lost_is_found_to_be_made(server, filled):
    open_table, given, _ = filled
    made, after = change(given, [3], no_points())
    table = open_table()
    with cut_after(server, b"COMMIT\0") as folder, open_table(host=folder).writing() as writing:
        version = writing.head.version
        assert writing.commit(made) == version + 1
    with table.reading() as session:
        assert session.head.version == version + 1
        assert session.slots().tolist() == after.slots.tolist()


def test_a_commit_whose_fate_is_unknown():
    own = PostgreSQLServer()
    given, _ = fill(PostgreSQL(own.address()), "digits")
    made, _ = change(given, [3], no_points())
    with cut_after(own, b"COMMIT\0") as folder:
        table = PostgreSQL(own.address(host=folder)).open("digits")
        with table.writing() as writing:
            writing.connections.address.parameters["host"] = "/nowhere"
            with pytest.raises(DatabaseError, match="unknown whether"):
                writing.commit(made)
        table.close()
    own.remove()


def test_a_slow_server(server, fresh, filled):
    open_table, _, true = filled
    table = open_table(timeout=0.3)
    ((number,),) = server.run("SELECT number FROM rankfold_tables", fresh)
    with psycopg.connect(server.address(fresh)) as other:
        other.execute(f"LOCK TABLE rankfold_{number}_points")
        with pytest.raises(UnreachableError, match=r"longer than 0\.3 seconds.*timeout="):
            read(table)
    same_rows(read(table), true)


def test_a_writer_who_waits_too_long(filled):
    open_table, given, _ = filled
    patient, hasty = open_table(), open_table(timeout=0.3)
    with patient.writing() as writing:
        with pytest.raises(DatabaseError, match="others are using the index"), hasty.writing():
            pytest.fail("two writers at once")
        version = writing.commit(change(given, [3], no_points())[0])
    with hasty.writing() as writing:
        assert writing.head.version == version


def test_a_standby_is_read_and_says_where_to_write():
    primary = PostgreSQLServer()
    given, true = fill(PostgreSQL(primary.address()), "digits")
    standby = PostgreSQLServer(primary=primary)
    table, source = (PostgreSQL(s.address()).open("digits") for s in (standby, primary))
    same_rows(read(table), true)
    with pytest.raises(DatabaseError, match="address of the primary"), table.writing():
        pytest.fail("a standby lets write")
    with pytest.raises(DatabaseError, match="address of the primary"):
        fill(PostgreSQL(standby.address()), "digits", replace=True)
    with source.writing() as writing:
        version = writing.commit(change(given, [3], no_points())[0])
    wait_until(lambda: heads(table) == (version, 20, 19))
    for part in (table, source):
        part.close()
    standby.remove()
    primary.remove()


def heads(table):
    with table.reading() as session:
        return session.head[:3]


def wait_until(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


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
    with pytest.raises(InputError, match="was closed"):
        read(table)


def test_a_fill_whose_last_answer_is_lost_is_found_to_be_done(server, fresh):
    PostgreSQL(server.address(fresh)).check_place("digits", replace=False)
    with cut_after(server, b"COMMIT\0") as folder:
        fill(PostgreSQL(server.address(fresh, host=folder)), "digits")
    assert PostgreSQL(server.address(fresh)).names() == ["digits"]


def test_an_index_that_someone_deletes(server, fresh, filled):
    open_table, _, true = filled
    table, database = open_table(), PostgreSQL(server.address(fresh))
    with table.reading() as session:
        database.drop("digits")
        same_rows(session.rows(EVERYBODY), true)  # what is being read stays
    with pytest.raises(DatabaseError, match="someone has deleted it"):
        read(table)
    fill(database, "digits")
    same_rows(read(table), true)


def test_readers_outlive_a_replacement_and_then_all_old_tables_go(server, fresh, filled):
    open_table, _, true = filled
    table, database = open_table(), PostgreSQL(server.address(fresh))
    with table.reading() as session:
        _, others = fill(database, "digits", n=12, replace=True)
        same_rows(session.rows(EVERYBODY), true)
        same_rows(read(table), others)
    fill(database, "digits", n=15, replace=True)
    kept = server.run("SELECT relname FROM pg_class WHERE relname ~ '^rankfold_.*_points$'", fresh)
    assert len(kept) == 1


def test_readers_see_one_index_or_the_other_while_it_is_replaced(server, fresh, filled):
    open_table, _, _ = filled
    table, database, done = open_table(), PostgreSQL(server.address(fresh)), Event()
    seen, faults = set(), []

    def read_on():
        while not done.is_set():
            try:
                with table.reading() as session:
                    assert len(session.rows(EVERYBODY)) == session.head.n_alive
                    seen.add(session.head.n_alive)
            except BaseException as fault:
                faults.append(fault)
                return

    threads = [Thread(target=read_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in (12, 15, 18):
        fill(database, "digits", n=n, replace=True)
    done.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert seen <= {20, 12, 15, 18}


def test_two_who_fill_the_same_name(server, fresh):
    database = PostgreSQL(server.address(fresh))
    with database.create("digits", settings(), COLUMNS, replace=False) as filling:
        filling.add(points(np.arange(4)), None)
        fill(database, "digits")
        with pytest.raises(DatabaseError, match="has an index 'digits' already"):
            filling.finish()
    assert database.names() == ["digits"]


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


def test_a_server_that_stops_and_starts_again():
    server = PostgreSQLServer()
    database = PostgreSQL(server.address())
    _, true = fill(database, "digits")
    table = database.open("digits")
    same_rows(read(table), true)
    server.stop()
    with pytest.raises(UnreachableError, match="cannot be reached"):
        read(table)
    server.start()
    same_rows(read(table), true)
    with database.create("letters", settings(), COLUMNS, replace=False) as filling:
        filling.add(points(np.arange(4)), None)
        server.stop(signal.SIGQUIT)
        with pytest.raises(UnreachableError):
            filling.finish()
    server.start()
    assert database.names() == ["digits"]
    assert server.run("SELECT count(*) FROM pg_class WHERE relname LIKE 'rankfold%points'") == [
        (1,)
    ]
    same_rows(read(table), true)
    table.close()
    server.remove()
